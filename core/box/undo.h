/* SPDX-License-Identifier: MIT */
/*
 * core/box/undo.h: making a box not exist any more, from whatever state it is in.
 *
 * Works from the record, the journal and the provider's own list by label, so it finds what
 * a dead process left.  Idempotent: interrupted, it is simply done again.
 */
#ifndef ABX_UNDO_H
#define ABX_UNDO_H

#include "core/box/app.h"

struct abx_undo {
	int64_t grace_ms; /* for the processes in the box */
	/* The provider cannot be asked (missing plugin, refused login): drop the record all the
	 * same.  What remains there is said in a warning. */
	bool force;
};

/*
 * The caller holds the box's lock.  Removes sandboxes with the box's label, announced
 * resources, files of ours, the record, and the lock file; journaled.  On failure the record
 * stays, pending "destroy".
 */
int abx_undo_box(struct abx_app *app, struct abx_box *box, const struct abx_undo *how,
		 struct abx_err *err);

/* Only what is ours on this machine: directories, record, lock file. */
int abx_undo_record(struct abx_app *app, const struct abx_box *box, struct abx_err *err);

#endif
