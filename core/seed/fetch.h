/* SPDX-License-Identifier: MIT */
/*
 * core/seed/fetch.h: a box's commits as a ref of the host's repository.
 *
 * Nothing of the host's but that ref and the objects behind it changes: no work tree, index,
 * config, HEAD, reflog or FETCH_HEAD, and no gc runs.  The box is not trusted: its packs go into
 * a directory of ours that borrows the repository's objects; git looks at every object (names
 * like .git, submodule URLs, ...), and that nothing is missing; only then do the objects move,
 * and the ref with them, if it still is where it was.
 *
 * Submodules and repositories that lie in the workspace go the same way, each into its own
 * repository on the host, where there is one.
 */
#ifndef ABX_FETCH_H
#define ABX_FETCH_H

#include "core/host/cloud.h"

#define ABX_FETCH_BYTES_MAX ((uint64_t)8 << 30) /* of all packs of one fetch */
#define ABX_FETCH_REPOS_MAX 4096
#define ABX_FETCH_SUBJECTS 10

struct abx_fetch_ask {
	const char *dir;	 /* in the box, "/workspace" */
	const char *workspace;	 /* on this machine */
	const char *base_commit; /* what the box began with, or NULL */
	const char *ref;	 /* refs/...: where the commits go; abx_fetch_ref() */
	const char *spool;	 /* a private, empty directory that the caller removes */
	const char *memory;	 /* a file of the box's: the refs that were written for it */
	const char *notes;	 /* of abx_landing, or NULL */
	uint64_t max_bytes;	 /* 0: ABX_FETCH_BYTES_MAX */
	abx_progress_fn progress;
	void *progress_ctx;
};

enum abx_fetch_result {
	ABX_FETCH_FAILED,  /* `problem` says why */
	ABX_FETCH_NOTHING, /* no commits but the host's, and no ref */
	ABX_FETCH_SAME,	   /* the ref is there already */
	ABX_FETCH_NEW,
	ABX_FETCH_FORWARD,
	ABX_FETCH_MOVED, /* the box's history was rewritten */
};
const char *abx_fetch_result_name(enum abx_fetch_result result);

struct abx_fetched_repo {
	char *path;	       /* in the workspace, "" for its own */
	char *branch;	       /* in the box, or NULL when detached */
	const char *under_way; /* "a rebase", "a merge", ... or NULL */
	uint64_t uncommitted;  /* files in the box */
	uint64_t stashes;      /* in the box, which stay there */
	char *old_id, *new_id; /* of the ref; NULL: none */
	uint64_t commits;      /* new ones */
	char **subjects;       /* "ID subject" of the newest, newest first, not printable as such */
	size_t n_subjects;
	enum abx_fetch_result result;
	char *problem;
	char *remedy; /* or NULL */
	uint64_t pack_bytes;
};
struct abx_fetched {
	struct abx_fetched_repo *items; /* the workspace's own is the first */
	size_t len;
};
void abx_fetched_release(struct abx_fetched *f);

/* "x" is refs/heads/x, and refs/... itself; ABX_EUSAGE for what is no name.  To be freed. */
int abx_fetch_ref(const char *name, char **ret, struct abx_err *err);

int abx_fetch(struct abx_cloud *cloud, const struct abx_call_opts *o,
	      const struct abx_sandbox *sandbox, const struct abx_fetch_ask *ask,
	      struct abx_fetched *ret, struct abx_err *err);

#endif
