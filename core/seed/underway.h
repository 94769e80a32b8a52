/* SPDX-License-Identifier: MIT */
/*
 * core/seed/underway.h: a merge, rebase, cherry-pick, revert, am or bisection that is not
 * finished yet, as git keeps it in files of its own.
 *
 * The files travel as they are, so that it can be finished in the box; what they name by id
 * are objects that must travel too.
 */
#ifndef ABX_UNDERWAY_H
#define ABX_UNDERWAY_H

#include <stdbool.h>

#include "abxsdk/buf.h"
#include "core/util/err.h"
#include "core/util/mem.h"

struct abx_underway {
	struct abx_strv files; /* of the git directory, relative; a directory before its files */
	struct abx_strv ids;   /* what looks like an object id in them, each once */
	char *branch;	       /* refs/heads/... that a rebase will move, or NULL ... */
	char *branch_id;       /* ... and where it is */
	bool detached;	       /* HEAD must stay detached for it */
};

int abx_underway_read(const char *git_dir, struct abx_underway *ret, struct abx_err *err);
void abx_underway_release(struct abx_underway *u);

#endif
