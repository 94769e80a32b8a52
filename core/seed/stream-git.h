/* SPDX-License-Identifier: MIT */
/*
 * core/seed/stream-git.h: the `.git` that a repository of the workspace has in the box.
 *
 * Objects, index and refs; a fresh config with nothing of the host's but name, email and how
 * files are compared; no hooks, no reflogs, no remotes.  HEAD comes last.
 */
#ifndef ABX_STREAM_GIT_H
#define ABX_STREAM_GIT_H

#include <time.h>

#include "core/seed/seed-state.h"
#include "core/util/archive.h"

/* branch: of the workspace's own repository.  Waits for git pack-objects, unless stop_fd
 * becomes readable. */
int abx_seed_write_git(struct abx_tar *tar, struct abx_seed_repo *repo, const char *branch,
		       int stop_fd, struct abx_err *err);

/* The branch that HEAD is on in the box, or NULL when it is detached there. */
const char *abx_seed_box_branch(const struct abx_seed_repo *repo, const char *branch);

#endif
