/* SPDX-License-Identifier: MIT */
/*
 * core/seed/ignore.h: what stays here although git does not ignore it, and what travels
 * although it does.
 *
 * `.agentboxignore` in the workspace's root is read as git reads a .gitignore, by git itself
 * in an empty repository of ours, where no other rule holds.  It is about untracked files, and
 * in a plain tree about all: what a commit has is not to be kept out of a box.
 *
 *	abx_ignore_open(workspace, root_fd, spool, &ignore, err);
 *	abx_ignore_ask(&ignore, prefix, &paths, &staying, err);
 */
#ifndef ABX_IGNORE_H
#define ABX_IGNORE_H

#include "core/seed/git.h"

struct abx_ignore {
	char *dir; /* NULL: there is no .agentboxignore */
	char *spool;
	char shown[256];
};

int abx_ignore_open(const char *workspace, int root_fd, const char *spool, struct abx_ignore *ret,
		    struct abx_err *err);
void abx_ignore_release(struct abx_ignore *i);

/* Those of `paths` (below `prefix`, which is "" or a directory of the workspace) that stay here,
 * sorted, to *ret.  A directory ends with a slash, and with it goes what is in it. */
int abx_ignore_ask(const struct abx_ignore *i, const char *prefix, const struct abx_strv *paths,
		   struct abx_strv *ret, struct abx_err *err);

/* Those of `paths`, below root_fd and written like these, of which git keeps no record: what lies
 * under a spelling of ".git", and a symbolic link that is called .gitmodules.  Sorted, to *ret. */
void abx_unkept(int root_fd, const struct abx_strv *paths, struct abx_strv *ret);

/* `git ls-files` of what is ignored and matches one of `globs`, in the repository at `path` of
 * the workspace.  A glob without a slash matches at any depth, another from the workspace's
 * root; what matches a directory matches all that is in it.  Not started when none can match. */
int abx_included_start(const struct abx_git *git, const char *path, const struct abx_strv *globs,
		       struct abx_git_job *ret, struct abx_err *err);
/* Their paths, sorted; a repository ends with a slash. */
int abx_included_finish(struct abx_git_job *job, struct abx_strv *ret, struct abx_err *err);

/* Sorted lists. */
void abx_paths_sort(struct abx_strv *v);
bool abx_paths_have(const struct abx_strv *v, const char *path);
/* v without those of `drop`. */
void abx_paths_drop(struct abx_strv *v, const struct abx_strv *drop);

#endif
