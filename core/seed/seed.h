/* SPDX-License-Identifier: MIT */
/*
 * core/seed/seed.h: putting the project into a new box.
 *
 *	abx_seed_inspect(workspace, spool, NULL, &seed, err);      reads the host only, refuses
 *early abx_seed_into(seed, cloud, &opts, sandbox, &target, &result, err);
 *
 * The host's work tree, index, refs and config are not changed by a byte.  What travels: one
 * tar stream (a pack of the objects that are needed, the index, a fresh config, the work
 * tree's files as they are, times kept) and one script, which makes the branch, proves that
 * the box has what the host has (objects connected, HEAD equal, status equal) and records
 * the seeded state as a tree in a repository of its own beside the workspace, the base of
 * `diff` and `download`.
 *
 * Submodules and repositories that just lie in the workspace travel in the same stream, each
 * with its own objects and proof.  A state that cannot be carried faithfully (a bare
 * repository, SHA-256, reftable, grafts, ...) is refused by name, ABX_ENOTSUP, before anything
 * costs.
 */
#ifndef ABX_SEED_H
#define ABX_SEED_H

#include "core/host/cloud.h"
#include "core/util/mem.h"

struct abx_seed;

struct abx_seed_info {
	bool git, committed;	 /* committed: what a commit says, not what is checked out */
	const char *base_commit; /* HEAD, or NULL */
	const char *head_branch; /* the host's branch, or NULL */
	uint64_t files, bytes;	 /* of the work tree */
	uint64_t pack_bytes;	 /* of git's objects; 0 before abx_seed_weigh() */
	uint64_t skipped;	 /* sockets, FIFOs, devices: not carried, said */
	const char *skipped_first;
	uint64_t n_ignored;	      /* files and directories that stay here */
	const char *ignored_names;    /* the first of them, for a reader; or NULL */
	size_t repos;		      /* with submodules and nested ones */
	const struct abx_strv *notes; /* lines for people */
	uint64_t commits;	      /* that travel where history was cut; 0: all do */
};

#define ABX_SEED_MAX_GLOBS 32

struct abx_seed_options {
	int64_t depth; /* commits of history; -1: all; 0: all where that is cheap */
	bool no_dirty; /* of HEAD only what is committed */
	/* At most one of them; both NULL: HEAD.  The committed state of a branch, tag or commit;
	 * or a branch that the box goes on with, with what is not committed when HEAD is on it. */
	const char *from_branch, *use_branch;
	bool skip_lfs;				/* of files that Git LFS keeps only the pointers */
	const struct abx_strv *include_ignored; /* globs; lives as long as the seed; or NULL */
	/* An absolute, real path with secrets in it (AGENTBOX_HOME), or NULL: a workspace that
	 * would take it along is refused. */
	const char *keep_out;
	bool look_only; /* it will not be sent: no pack is made */
};

/* Is this a name that git takes for a branch? */
bool abx_is_branch_name(const char *name);

/* `spool` is a directory of ours for temporary files (the pack); it exists, is private, and
 * is removed by the caller.  `workspace` is absolute and real.  o may be NULL. */
int abx_seed_inspect(const char *workspace, const char *spool, const struct abx_seed_options *o,
		     struct abx_seed **ret, struct abx_err *err);
void abx_seed_free(struct abx_seed *seed);

/* The same state for one more box, on another thread perhaps: what `from` found is only read.
 * `from`, and what its options point to, outlive the new seed, which looks for itself, with
 * `spool`, when somebody works in the workspace.  Only where it may be lent: after
 * abx_seed_weigh(), and not where what is sent is still to be found out. */
bool abx_seed_may_lend(const struct abx_seed *seed);
struct abx_seed *abx_seed_borrow(const struct abx_seed *from, const char *spool);
const struct abx_seed_info *abx_seed_info(const struct abx_seed *seed);

/* Wait until it is known how much all of it is: abx_seed_info()->pack_bytes.  stop_fd readable
 * (-1: never): given up. */
int abx_seed_weigh(struct abx_seed *seed, int stop_fd, struct abx_err *err);

/* "data (1200.0 MiB), src (3.1 MiB)": the largest of what lies in its root; to be freed. */
char *abx_seed_largest(const struct abx_seed *seed);

struct abx_seed_target {
	const char *dir;	  /* in the box, "/workspace"; exists */
	const char *branch;	  /* "agentbox/<name>", or use_branch; ignored without git */
	const char *manifest;	  /* host path of the file that remembers what was sent */
	abx_progress_fn progress; /* called on another thread while abx_seed_into() waits */
	void *progress_ctx;
};
struct abx_seed_result {
	char *branch, *base_commit; /* NULL without git */
	char *seed_tree;	    /* NULL when the box has no git and needs none */
};
void abx_seed_result_release(struct abx_seed_result *r);

/* When somebody works in the workspace meanwhile, it is looked at and sent again, a few times;
 * what still changes then is carried as it was read last, and a warning names it.  What
 * abx_seed_info() says is of the last time. */
int abx_seed_into(struct abx_seed *seed, struct abx_cloud *cloud, const struct abx_call_opts *o,
		  const struct abx_sandbox *sandbox, const struct abx_seed_target *target,
		  struct abx_seed_result *ret, struct abx_err *err);

#endif
