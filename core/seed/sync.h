/* SPDX-License-Identifier: MIT */
/*
 * core/seed/sync.h: the host's newer commits and edits into a running box.
 *
 * Files are compared three ways, by content: what was last sent, what the host has, what the box
 * has.  Where only the host changed, the box takes it; where both did, the box's stays and the
 * path is named.  The host's commits arrive as refs/remotes/host/BRANCH; the box's branch moves
 * to them when it has none of its own, is merged with them when that is clean, and otherwise
 * stays.  Nothing is ever left unmerged.
 *
 * Whatever dies on the way, the next sync begins again and finds its own work done: the box's
 * files first, then the manifest, then the record of what they are compared with.
 */
#ifndef ABX_SYNC_H
#define ABX_SYNC_H

#include "core/host/cloud.h"
#include "core/util/mem.h"

struct abx_synced {
	struct abx_strv taken;	   /* paths that became the host's */
	struct abx_strv conflicts; /* paths that both changed: the box's stay */
	struct abx_strv unmerged;  /* paths in which commits do not go together */
	char *branch;		   /* of the box: none, same, forward, merged or left */
	char *why;		   /* it is left, or none though the box began with one; or NULL */
	char *head;		   /* the host's commit, or NULL */
	char *host_ref;		   /* where it is in the box: "host/main"; NULL: it is not */
	char *seed_tree;
	bool base_moved; /* `head` is now what the box goes on from */
};
void abx_synced_release(struct abx_synced *s);

struct abx_sync_ask {
	const char *dir;	 /* in the box, "/workspace" */
	const char *workspace;	 /* on this machine */
	const char *base_commit; /* or NULL */
	const char *seed_tree;
	const char *manifest;
	const char *spool;    /* a private, empty directory that the caller removes */
	const char *keep_out; /* as in abx_seed_options */
	bool dry_run;
	/* Makes seed_tree and, with base_moved, head durable, after the manifest. */
	int (*record)(void *ctx, const struct abx_synced *s, struct abx_err *err);
	void *ctx;
};

int abx_sync(struct abx_cloud *cloud, const struct abx_call_opts *o,
	     const struct abx_sandbox *sandbox, const struct abx_sync_ask *ask,
	     struct abx_synced *ret, struct abx_err *err);

#endif
