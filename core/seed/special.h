/* SPDX-License-Identifier: MIT */
/*
 * core/seed/special.h: sockets, FIFOs and devices in the work tree of a repository.
 *
 * Git does not speak of them.  They are looked for where git looks for untracked files: not in
 * directories that are ignored, nor in other repositories.
 */
#ifndef ABX_SEED_SPECIAL_H
#define ABX_SEED_SPECIAL_H

#include "core/seed/seed-state.h"

/* Counts those of `r`, whose status and ignored files are known, in `files`. */
int abx_seed_count_special(const struct abx_seed *s, const struct abx_seed_repo *r,
			   struct abx_seed_files *files, struct abx_err *err);

#endif
