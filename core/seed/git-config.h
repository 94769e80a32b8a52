/* SPDX-License-Identifier: MIT */
/*
 * core/seed/git-config.h: the git settings that matter for seeding, from
 * `git config -z --list` (all layers, the last one wins), and the config that a box gets.
 */
#ifndef ABX_GIT_CONFIG_H
#define ABX_GIT_CONFIG_H

#include <stdbool.h>

#include "abxsdk/buf.h"
#include "core/util/err.h"
#include "core/util/mem.h"

struct abx_git_config {
	char *user_name, *user_email;
	char *autocrlf, *eol, *safecrlf;       /* as written, or NULL */
	char *excludes_file, *attributes_file; /* absolute, or NULL; need not exist */
	bool filemode, ignorecase;
	bool sparse, sparse_cone, sparse_index;
	char *promisor; /* the remote that has what a partial clone has not, or NULL */
	char *promisor_filter;
	struct abx_strv submodules; /* "NAME", "URL" in turn: those that are initialised */
	bool bare, no_symlinks;	    /* states that are not carried */
	char *worktree, *object_format, *ref_storage;
};

int abx_git_config_parse(const struct abx_buf *list, const char *workspace,
			 struct abx_git_config *ret, struct abx_err *err);
void abx_git_config_release(struct abx_git_config *c);

/* Does core.autocrlf convert files? */
bool abx_git_config_converts(const struct abx_git_config *c);
/* AUTOCRLF: the same; CRLF: text files have CRLF in a work tree where no attribute says another. */
#define ABX_GIT_CONFIG_AUTOCRLF 1U
#define ABX_GIT_CONFIG_CRLF 2U
unsigned int abx_git_config_eol(const struct abx_git_config *c);

/* ABX_GIT_CONFIG_NO_CACHES: the index has extensions of features that are for the host only.
 * ABX_GIT_CONFIG_BY_TIME: some files must count as unchanged by size and time, because the box
 * lacks the filters that git would compare them through. */
#define ABX_GIT_CONFIG_NO_CACHES 1U
#define ABX_GIT_CONFIG_BY_TIME 2U
#define ABX_GIT_CONFIG_LFS 4U

/* The text of .git/config in the box. */
void abx_git_config_write(const struct abx_git_config *c, unsigned int flags, struct abx_buf *b);

#endif
