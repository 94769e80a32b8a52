/* SPDX-License-Identifier: MIT */
/*
 * core/state/aside.h: damaged files of ours are kept, not overwritten.
 *
 * <name> becomes <name>.damaged-<UTC time>, and a warning says so.  At most five such copies
 * of a file are kept: the oldest goes when a sixth comes, which is said too.  Call it under
 * abx_lock_home(), after having looked again whether the file is still damaged.
 */
#ifndef ABX_ASIDE_H
#define ABX_ASIDE_H

#include "core/state/home.h"

#define ABX_ASIDE_KEEP 5

/*
 * `name` is relative to the home.  `companions` (NULL-terminated, may be NULL) are suffixes
 * of files that belong to it and move first, for example "-wal".  `why` is one line.
 */
int abx_set_aside(const struct abx_home *home, const char *name, const char *const *companions,
		  const char *why, struct abx_err *err);

#endif
