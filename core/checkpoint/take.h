/* SPDX-License-Identifier: MIT */
/*
 * core/checkpoint/take.h: snapshots of boxes, and checkpoints made of them.
 *
 * A snapshot is on record before it exists (core/state/attempt.h) and carries this install's
 * labels, so one whose maker died is found and removed; a checkpoint's manifest, written last,
 * is what keeps it.
 */
#ifndef ABX_CHECKPOINT_TAKE_H
#define ABX_CHECKPOINT_TAKE_H

#include "core/checkpoint/checkpoint.h"
#include "core/host/cloud.h"
#include "core/state/attempt.h"

struct abx_checkpointer {
	const struct abx_home *home;
	struct abx_db *db;
	struct abx_cloud *cloud;
	bool stop; /* what runs in the box may end, where that saves a copy */
};

/* Can it take snapshots at all?  ABX_ENOTSUP with the provider's name. */
int abx_checkpoint_supported(const struct abx_checkpointer *k, struct abx_err *err);

/*
 * A checkpoint of a box under a name that is free: ABX_EEXIST when there is one, ABX_ESTATE
 * when another command is making it.  `seed` is the path of what was sent into the box.  The
 * caller holds the box's lock.  On failure nothing is left, or it is on record.
 */
int abx_checkpoint_take(const struct abx_checkpointer *k, const struct abx_box *box,
			const char *name, const char *seed, struct abx_checkpoint *ret,
			struct abx_err *err);

/* Only a snapshot, of which nothing but the attempt's row speaks: end it with
 * abx_checkpoint_discard(). */
int abx_checkpoint_snapshot(const struct abx_checkpointer *k, const struct abx_box *box,
			    struct abx_attempt *ret_attempt, struct abx_checkpoint *ret,
			    struct abx_err *err);
/* Delete it again.  Where the provider refuses, for boxes still need it, it stays on record and
 * `prune` tries again: that is success. */
void abx_checkpoint_discard(const struct abx_checkpointer *k, const struct abx_checkpoint *c,
			    struct abx_attempt *attempt);

/* Snapshot and files of a checkpoint.  What is gone already is success. */
int abx_checkpoint_remove(const struct abx_checkpointer *k, const struct abx_checkpoint *c,
			  struct abx_err *err);
/* The same where nothing but the name is left of what was known: the snapshots that carry the
 * name and that no other manifest speaks for. */
int abx_checkpoint_remove_damaged(const struct abx_checkpointer *k, const char *project,
				  const char *name, struct abx_err *err);

#endif
