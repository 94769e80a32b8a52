/* SPDX-License-Identifier: MIT */
/*
 * core/seed/clean.h: the committed state of a repository, which need not be checked out here.
 *
 * Its objects travel, and git in the box checks it out.  What is said here is which files that
 * makes, for the record of what was sent, and which contents beside the objects they need.
 */
#ifndef ABX_SEED_CLEAN_H
#define ABX_SEED_CLEAN_H

#include "core/seed/seed-state.h"

/* What the options say of the workspace's own repository.  Refuses names that mean nothing. */
int abx_seed_which(struct abx_seed *s, const struct abx_git_place *place, struct abx_seed_want *ret,
		   struct abx_err *err);
void abx_seed_want_release(struct abx_seed_want *w);

/* Index, attributes and LFS of r->want.commit; counts its files. */
int abx_seed_clean_read(const struct abx_seed *s, struct abx_seed_repo *r,
			struct abx_seed_files *files, struct abx_err *err);

/* The repository of the submodule at entry i of r's index, at the commit that is recorded:
 * *ret_place has no git_dir when it is not on this machine. */
int abx_seed_clean_module(const struct abx_seed *s, struct abx_seed_repo *r, size_t i,
			  struct abx_git_place *ret_place, struct abx_err *err);

#endif
