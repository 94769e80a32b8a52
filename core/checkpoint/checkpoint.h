/* SPDX-License-Identifier: MIT */
/*
 * core/checkpoint/checkpoint.h: what a checkpoint is: a provider's snapshot, and what we know
 * of the box that it was taken of.
 *
 * What is known is a file, manifest.json (core/checkpoint/store.h).  A newer program may have
 * written it: members that are not known are ignored, another version is refused.
 */
#ifndef ABX_CHECKPOINT_H
#define ABX_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "abxsdk/buf.h"
#include "core/util/err.h"

struct abx_checkpoint {
	char *name; /* like a box's, unique in project and provider; NULL: of a fork only */
	char *provider, *account;
	char *ref;			/* the provider's name of the snapshot */
	char *attempt;			/* 16 hexadecimal digits, a label of the snapshot */
	char *created_at;		/* RFC 3339, UTC */
	char *box_id, *box_name;	/* what it was taken of */
	char *project, *workspace;	/* key, absolute path */
	char *branch, *base_commit;	/* NULL for a directory without git */
	char *seed_tree, *image, *spec; /* spec: JSON text of one object */
	uint64_t size_bytes;		/* 0 = not said */
	bool memory;			/* processes are in it */
};

void abx_checkpoint_release(struct abx_checkpoint *c);

struct abx_checkpoint_list {
	struct abx_checkpoint *items;
	size_t len;
};
void abx_checkpoint_list_release(struct abx_checkpoint_list *l);

/* The text of manifest.json. */
int abx_checkpoint_print(const struct abx_checkpoint *c, struct abx_buf *ret, struct abx_err *err);
/* ABX_ECORRUPT when it is damaged; ABX_ENOTSUP when a newer program wrote it. */
int abx_checkpoint_parse(const char *text, size_t len, struct abx_checkpoint *ret,
			 struct abx_err *err);

#endif
