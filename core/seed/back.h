/* SPDX-License-Identifier: MIT */
/*
 * core/seed/back.h: bringing a box's work back to the host.
 *
 * Changes are what differs between the seeded tree and the box's work tree now, ignored
 * files aside.  The box is not trusted: paths are checked (no absolute ones, no `..`, nothing
 * inside .git in any spelling), nothing is written through a symbolic link, no setuid bit is
 * restored, and a host file that is no longer what was sent is a conflict, reported and left
 * alone.
 */
#ifndef ABX_BACK_H
#define ABX_BACK_H

#include "core/host/cloud.h"

enum abx_change_kind {
	ABX_CHANGE_ADDED = 'A',
	ABX_CHANGE_MODIFIED = 'M',
	ABX_CHANGE_DELETED = 'D',
};

struct abx_change {
	char *path; /* relative, bytes as in the box */
	enum abx_change_kind kind;
	uint32_t mode;	   /* new, as in an index; 0 when deleted */
	char *blob;	   /* new object id, NULL when deleted */
	uint32_t old_mode; /* what it began with; 0 when added */
	char *old_blob;	   /* NULL when added */
	char *problem;	   /* why it is not applied (conflict, refused path), or NULL */
};
struct abx_changes {
	struct abx_change *items;
	size_t len;
	/* What the host has already, from a download that was cut short, or by itself: from now
	 * on the box's, when it is applied. */
	struct abx_change *have;
	size_t n_have;
};
void abx_changes_release(struct abx_changes *c);

struct abx_back {
	const char *dir;       /* in the box, "/workspace" */
	const char *seed_tree; /* from abx_seed_result */
	const char *manifest;  /* host path, as written by abx_seed_into; apply keeps it true */
	const char *workspace; /* host directory that is compared and written */
	const char *notes;     /* of abx_landing, or NULL */
	/* Larger files stay in the box, and those that would make all of them too large; 0: the
	 * values below. */
	uint64_t max_file, max_total;
	/* Where there are more new files, those of the directories that have most of them stay; 0:
	 * a million. */
	uint64_t max_new;
	/* Patterns of .gitignore: ignored files that come all the same.  NULL-terminated, or NULL.
	 */
	const char *const *ignored;
};
#define ABX_BACK_FILE_MAX ((uint64_t)16 << 30)
#define ABX_BACK_TOTAL_MAX ((uint64_t)64 << 30)

/* What would come back, with problems already marked.  Sorted by path. */
int abx_back_changes(struct abx_cloud *cloud, const struct abx_call_opts *o,
		     const struct abx_sandbox *sandbox, const struct abx_back *back,
		     struct abx_changes *ret, struct abx_err *err);

/* Bring those without a problem into the workspace; each file appears whole or not at all.
 * A change that cannot be written gets a problem and the others go on. */
int abx_back_apply(struct abx_cloud *cloud, const struct abx_call_opts *o,
		   const struct abx_sandbox *sandbox, const struct abx_back *back,
		   struct abx_changes *changes, abx_progress_fn progress, void *progress_ctx,
		   struct abx_err *err);

#endif
