/* SPDX-License-Identifier: MIT */
/*
 * core/seed/cursor.h: the directories of many sorted paths, each opened once.
 *
 *	fd = abx_cursor_enter(&c, "src/deep/a.c", on_dir, ctx, &name, err);
 *	fstatat(fd, name, ...);
 *
 * No symbolic link is followed.  Paths come in byte order, so that what lies in one directory
 * comes together.
 */
#ifndef ABX_CURSOR_H
#define ABX_CURSOR_H

#include <stddef.h>

#include "abxsdk/buf.h"
#include "core/util/err.h"

struct abx_cursor {
	int root_fd; /* the caller's */
	struct abx_cursor_level {
		int fd;
		size_t path_len;
	} * levels;
	size_t len, cap;
	struct abx_buf path; /* of the innermost level */
};

void abx_cursor_init(struct abx_cursor *c, int root_fd);
void abx_cursor_release(struct abx_cursor *c);

/* A directory is entered for the first time; negative ends abx_cursor_enter with it. */
typedef int (*abx_cursor_fn)(void *ctx, int dirfd, const char *path, struct abx_err *err);

/* The directory of `path` in *ret_fd, its last component in *ret_name.  0; a positive errno
 * when a directory on the way cannot be entered; or what on_dir (may be NULL) returned. */
int abx_cursor_enter(struct abx_cursor *c, const char *path, abx_cursor_fn on_dir, void *ctx,
		     int *ret_fd, const char **ret_name, struct abx_err *err);

#endif
