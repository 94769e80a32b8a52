/* SPDX-License-Identifier: MIT */
/*
 * core/seed/layout.h: what kind of directory a workspace is, where its repository lies, and
 * the states that cannot be carried and show in the files of .git.
 *
 * Every refusal is ABX_ENOTSUP and names the thing.
 */
#ifndef ABX_LAYOUT_H
#define ABX_LAYOUT_H

#include <stdbool.h>

#include "core/seed/git-config.h"
#include "core/seed/index.h"

enum abx_workspace_kind { ABX_WORKSPACE_PLAIN, ABX_WORKSPACE_GIT };

/* A repository, by absolute paths.  In a linked work tree the two differ. */
struct abx_git_place {
	char *git_dir;	  /* HEAD, index, what is under way */
	char *common_dir; /* objects, refs, config */
	bool elsewhere;	  /* found by a file or link: core.worktree was followed */
};
void abx_git_place_release(struct abx_git_place *p);

/* Where the repository of `workspace` is.  A directory in which git finds none of its own is
 * PLAIN, and *ret_place is not set.  Refuses: a bare repository, a directory with
 * files of a repository above, a .git that is broken, grafts, reftable.  `spool` is for git's
 * output. */
int abx_layout_find(const char *workspace, const char *spool, enum abx_workspace_kind *ret,
		    struct abx_git_place *ret_place, struct abx_err *err);

/* The repository that has files in `workspace`, a directory without one of its own; NULL when
 * there is none: a project below somebody's home that is a repository is still its own. */
int abx_layout_top(const char *workspace, const char *spool, char **ret_top, struct abx_err *err);

/* The branch that HEAD names, or NULL in *ret_branch when it is detached. */
int abx_layout_head(const char *workspace, const struct abx_git_place *place, char **ret_branch,
		    struct abx_err *err);

/* What settings say: bare, work trees elsewhere, object formats. */
int abx_layout_check_config(const char *workspace, const struct abx_git_place *place,
			    const struct abx_git_config *c, struct abx_err *err);

/* Fill err: "workspace '<w>': <what>: this cannot be put into a box yet", with a remedy. */
int abx_layout_refuse(const char *workspace, const char *remedy, struct abx_err *err,
		      const char *fmt, ...) ABX_PRINTF(4, 5);

#endif
