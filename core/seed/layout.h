/* SPDX-License-Identifier: MIT */
/*
 * core/seed/layout.h: what kind of directory a workspace is, before any git runs, and the
 * states that cannot be carried and show in the files of .git.
 *
 * Every refusal is ABX_ENOTSUP and names the thing.
 */
#ifndef ABX_LAYOUT_H
#define ABX_LAYOUT_H

#include <stdbool.h>

#include "core/seed/git-config.h"
#include "core/seed/index.h"

enum abx_workspace_kind { ABX_WORKSPACE_PLAIN, ABX_WORKSPACE_GIT };

/* Refuses: links and files as .git, a bare repository, a directory inside a repository,
 * shallow, grafts, replaced objects, operations under way, reftable. */
int abx_layout_check(const char *workspace, enum abx_workspace_kind *ret, struct abx_err *err);

/* The branch that .git/HEAD names, or NULL in *ret_branch when it is detached. */
int abx_layout_head(const char *workspace, char **ret_branch, struct abx_err *err);

/* What settings and index say: bare, sparse, partial clones, submodules, conflicts, ... */
int abx_layout_check_config(const char *workspace, const struct abx_git_config *c,
			    struct abx_err *err);
int abx_layout_check_index(const char *workspace, const struct abx_index *index,
			   struct abx_err *err);

/* Fill err: "workspace '<w>': <what>: not carried into a box yet", with a remedy. */
int abx_layout_refuse(const char *workspace, const char *remedy, struct abx_err *err,
		      const char *fmt, ...) ABX_PRINTF(4, 5);

#endif
