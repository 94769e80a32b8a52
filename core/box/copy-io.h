/* SPDX-License-Identifier: MIT */
/* core/box/copy-io.h: what copies of files and streams share; only for core/box. */
#ifndef ABX_COPY_IO_H
#define ABX_COPY_IO_H

#include <sys/stat.h>

#include "core/box/app.h"

struct abx_copier {
	struct abx_app *app;
	struct abx_cloud *cloud;
	struct abx_call_opts opts;
	struct abx_sandbox sandbox;
};

/* The box runs afterwards; pointers of *ret lead into it. */
int abx_copier_open(struct abx_app *app, struct abx_box *box, struct abx_copier *ret,
		    struct abx_err *err);

/* Absolute, in a box; free it. */
char *abx_copy_box_path(const char *path);
/* The last name of a path, without trailing slashes; "." and ".." have none of their own. */
char *abx_copy_last_name(const char *path);
bool abx_copy_has_no_name(const char *name);

/* Is it a directory, a file, something else, or nothing?  'd', 'f', 'o' or '-'; of a file also
 * the permission bits and the size, as the box has it. */
int abx_copy_kind(struct abx_copier *c, const char *path, char *ret_kind, mode_t *ret_mode,
		  uint64_t *ret_size, struct abx_err *err);

/* "dir/" names a directory, so a file cannot become it: as cp(1) says. */
int abx_copy_check_slash(const char *target, bool is_directory, struct abx_err *err);

#endif
