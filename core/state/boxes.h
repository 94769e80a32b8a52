/* SPDX-License-Identifier: MIT */
/*
 * core/state/boxes.h: the records of boxes and projects.
 *
 * A record is made by abx_boxes_reserve() before anything exists elsewhere, and deleted only
 * when nothing does any more.  Names are unique in an install, indices in a project.
 */
#ifndef ABX_BOXES_H
#define ABX_BOXES_H

#include <stddef.h>
#include <stdint.h>

#include "core/state/db.h"

enum abx_box_state {
	ABX_BOX_UNKNOWN,
	ABX_BOX_CREATING,
	ABX_BOX_STARTING,
	ABX_BOX_RUNNING,
	ABX_BOX_PAUSING,
	ABX_BOX_PAUSED,
	ABX_BOX_STOPPING,
	ABX_BOX_STOPPED,
	ABX_BOX_FAILED,
	ABX_BOX_GONE,
};

const char *abx_box_state_name(enum abx_box_state state);
enum abx_box_state abx_box_state_of_name(const char *name);  /* UNKNOWN for a strange one */
enum abx_box_state abx_box_state_of_sandbox(uint32_t state); /* from ABX_STATE_* */

struct abx_box {
	char *id; /* 16 hexadecimal digits */
	char *name;
	uint32_t index;	 /* from 1, in the project */
	char *project;	 /* key */
	char *workspace; /* absolute path on the host */
	char *provider;
	char *sandbox_id; /* NULL until the provider named it */
	char *account, *provider_data;
	char *attempt;		    /* nonce of the create, also a label */
	char *branch, *base_commit; /* NULL for a directory without git */
	char *seed_tree;	    /* git tree id of what was seeded, NULL before */
	char *checkpoint;
	char *spec;    /* core/box/spec.h, as JSON; NULL = nothing but the project */
	char *pending; /* operation under way: "create", "destroy", or NULL */
	char *error;   /* why it failed, one line */
	enum abx_box_state state;
	int64_t created_at_ms, expires_at_ms; /* 0 = does not expire */
};

void abx_box_release(struct abx_box *b);

struct abx_box_list {
	struct abx_box *items;
	size_t len;
};
void abx_box_list_release(struct abx_box_list *l);

/* Key of the project at `path` (absolute, real): basename and a hash, file-name safe. */
char *abx_project_key(const char *path);

/*
 * Take a name and the lowest free index, write the record with state creating and pending
 * "create", and its first journal row, in one transaction.  name NULL: one is made up.
 * ABX_EEXIST names the box that has the name.  `in` gives project path, workspace, provider.
 */
struct abx_reserve {
	const char *id; /* chosen by the caller, who holds its lock; NULL: one is made */
	const char *name, *project_path, *workspace, *provider;
	const char *spec; /* may be NULL */
};
/* 16 hexadecimal digits, never only decimal ones (those would read as an index). */
void abx_box_new_id(char id[17]);
int abx_boxes_reserve(struct abx_db *db, const struct abx_reserve *in, struct abx_box *ret,
		      struct abx_err *err);

/* ABX_ENOBOX when there is none. */
int abx_boxes_load(struct abx_db *db, const char *id, struct abx_box *ret, struct abx_err *err);
/* The same for one that is at hand, which is left alone on failure. */
int abx_boxes_reload(struct abx_db *db, struct abx_box *box, struct abx_err *err);
/* All of a project, or of the install (project NULL), by project and index. */
int abx_boxes_list(struct abx_db *db, const char *project, struct abx_box_list *ret,
		   struct abx_err *err);
/* Write every column but id, name, index, project and created_at. */
int abx_boxes_update(struct abx_db *db, const struct abx_box *b, struct abx_err *err);
/* What a provider said about it: sandbox id, state, account, expiry, provider data.  What it
 * left out stays as it was, and so does the state while an operation is pending, for then
 * whoever does that knows better. */
int abx_boxes_set_sandbox(struct abx_db *db, const char *id, const struct abx_sandbox *s,
			  struct abx_err *err);
/* The record with its journal and resources; the project too when it was the last one. */
int abx_boxes_delete(struct abx_db *db, const char *id, struct abx_err *err);

/* The changes of state since `*seq`, in their order, and the next seq; of the past only the seq
 * where it is negative.  Old ones are forgotten.  Ends with the first non-zero result of `fn`. */
typedef int (*abx_box_change_fn)(void *ctx, const char *id, enum abx_box_state was,
				 enum abx_box_state state);
int abx_boxes_changes(struct abx_db *db, int64_t *seq, abx_box_change_fn fn, void *ctx,
		      struct abx_err *err);

#endif
