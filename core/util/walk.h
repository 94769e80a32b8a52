/* SPDX-License-Identifier: MIT */
/*
 * core/util/walk.h: everything below a directory, in a fixed order, following no link.
 *
 * A directory is visited before what it holds; the names of one directory come in byte
 * order.  The directory that the walk starts at is not visited itself.
 */
#ifndef ABX_WALK_H
#define ABX_WALK_H

#include <sys/stat.h>

#include "core/util/err.h"
#include "core/util/mem.h"

#define ABX_WALK_SKIP 1	       /* from visit: do not enter this directory */
#define ABX_WALK_MAX_DEPTH 512 /* one descriptor a level */

struct abx_walk_item {
	const char *path; /* from the start, without leading "./" */
	int dirfd;	  /* of the directory that holds it */
	const char *name; /* in that directory */
	const struct stat *st;
};

/* Returns 0, ABX_WALK_SKIP, or a negative code, which ends the walk. */
typedef int (*abx_walk_fn)(void *ctx, const struct abx_walk_item *item, struct abx_err *err);

/* The names in one directory, sorted by bytes, without "." and "..". */
int abx_list_dir(int dirfd, struct abx_strv *ret, struct abx_err *err);

int abx_walk(int dirfd, abx_walk_fn visit, void *ctx, struct abx_err *err);

#endif
