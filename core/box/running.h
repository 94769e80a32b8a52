/* SPDX-License-Identifier: MIT */
/*
 * core/box/running.h: what needs a box that runs, and what happens where it does not.
 *
 * A command that works in a box (exec, shell, cp, files, logs, url, diff, download, fetch,
 * sync) starts a stopped one and resumes a paused one first.  That is said on stderr, in one
 * line that names the way back, for a box must not run, and perhaps cost, without its owner's
 * knowledge.  `url` does so only where the provider says that the box has to run.  What only
 * looks at boxes or changes settings (list, status, stats, top, watch, egress) starts nothing.
 *
 * The state on record is believed, so that a command costs no further round trip.  Where the
 * provider then has it otherwise (the machine was restarted, somebody stopped the box with
 * another tool), it is asked once, and the work is done again or the error says what the box
 * is: "box 'x' is stopped (agentbox start x)", never the provider's words for its own id.
 */
#ifndef ABX_RUNNING_H
#define ABX_RUNNING_H

#include "core/box/app.h"

/* Start or resume it if its record does not say that it runs, and say so. */
int abx_box_ensure_running(struct abx_app *app, struct abx_box *box, struct abx_err *err);

/* The same, and what a call about it takes; anew each time that the work is begun. */
int abx_box_reach(struct abx_app *app, struct abx_box *box, struct abx_cloud **ret_cloud,
		  struct abx_sandbox *ret_sandbox, struct abx_err *err);

/* Make it run, whatever its record says, and say so. */
int abx_box_start_again(struct abx_app *app, struct abx_box *box, struct abx_err *err);

typedef int (*abx_box_work_fn)(void *ctx, struct abx_box *box, struct abx_err *err);
/*
 * Do `work`, which calls abx_box_reach() once it knows that there is something to do.
 * It is called a second time when the box turned out not to run, so it has to be something
 * that can be begun again, and what it keeps of the box (abx_cloud_sandbox) it has to take
 * anew.
 */
int abx_box_work(struct abx_app *app, struct abx_box *box, abx_box_work_fn work, void *ctx,
		 struct abx_err *err);

/*
 * Something was asked of a box, and failed as `r` and `err` say.  Where the reason is that the
 * box is gone, stopped or paused, the error becomes that one, and is recorded; otherwise it
 * stays.  Returns the code of the error.
 */
int abx_box_blame(struct abx_app *app, struct abx_box *box, int r, struct abx_err *err);

#endif
