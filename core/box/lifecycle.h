/* SPDX-License-Identifier: MIT */
/*
 * core/box/lifecycle.h: boxes that exist: their state, starting, stopping, pausing, destroying.
 */
#ifndef ABX_LIFECYCLE_H
#define ABX_LIFECYCLE_H

#include "core/box/app.h"

/*
 * Ask the providers, once each, how the boxes are.  A provider that cannot be asked costs a
 * warning and leaves its boxes unknown; a sandbox that its provider does not know any more
 * makes the box gone.  Changed states are recorded.
 */
int abx_lifecycle_refresh(struct abx_app *app, struct abx_box_list *boxes, struct abx_err *err);

/* All of these take the box's lock, waiting for others that work on it.  Starting a paused one
 * resumes it. */
int abx_lifecycle_start(struct abx_app *app, struct abx_box *box, struct abx_err *err);
int abx_lifecycle_stop(struct abx_app *app, struct abx_box *box, int64_t grace_ms,
		       struct abx_err *err);
/* Where the provider cannot pause, it is stopped: the box's state says which. */
int abx_lifecycle_pause(struct abx_app *app, struct abx_box *box, struct abx_err *err);
int abx_lifecycle_destroy(struct abx_app *app, struct abx_box *box, bool force,
			  struct abx_err *err);
/* Drop the record of a box; whatever it has at its provider stays. */
int abx_lifecycle_forget(struct abx_app *app, struct abx_box *box, struct abx_err *err);

/* Its provider does not know it any more: record that, and ABX_ENOBOX. */
int abx_lifecycle_say_gone(struct abx_app *app, struct abx_box *box, struct abx_err *err);

/* ABX_ESTATE when an operation on it is under way, or was left unfinished. */
int abx_lifecycle_check_whole(const struct abx_box *box, struct abx_err *err);

/*
 * For an operation of several steps: the lock of a box that is whole, with the record as it is
 * now; and the same steps for whoever holds it.
 */
int abx_lifecycle_lock(struct abx_app *app, struct abx_box *box, int *ret_lock,
		       struct abx_err *err);
int abx_lifecycle_start_locked(struct abx_app *app, struct abx_box *box, struct abx_err *err);
int abx_lifecycle_pause_locked(struct abx_app *app, struct abx_box *box, struct abx_err *err);
int abx_lifecycle_stop_locked(struct abx_app *app, struct abx_box *box, int64_t grace_ms,
			      struct abx_err *err);

#endif
