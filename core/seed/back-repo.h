/* SPDX-License-Identifier: MIT */
/*
 * core/seed/back-repo.h: no repository comes back in disguise.
 *
 * A directory with HEAD, objects and refs is a repository to every git that passes by, and its
 * config names programs to run.  Changes that would complete one get a problem.
 */
#ifndef ABX_BACK_REPO_H
#define ABX_BACK_REPO_H

#include "core/seed/back.h"

/* `changes` are sorted by path; what is on the host already is looked for below root_fd. */
void abx_back_refuse_repositories(struct abx_changes *changes, int root_fd);

#endif
