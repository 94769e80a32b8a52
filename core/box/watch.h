/* SPDX-License-Identifier: MIT */
/*
 * core/box/watch.h: what becomes of boxes, as it happens.
 *
 * The records say it: other commands write them, and whatever a provider reports by itself, or
 * when it is asked every two seconds, is written there first.
 */
#ifndef ABX_BOX_WATCH_H
#define ABX_BOX_WATCH_H

#include "core/box/app.h"

struct abx_box_event {
	const struct abx_box *box; /* of one that was destroyed, as it was */
	const char *state;	   /* "destroyed" when it has no record any more */
	const char *was;	   /* NULL: not seen before */
};
/* Non-zero ends it, and is the result. */
typedef int (*abx_box_event_fn)(void *ctx, const struct abx_box_event *event);

/* Every box of a project (NULL: of the install), first as it is, until the user gives up, which
 * is success. */
int abx_box_watch(struct abx_app *app, const char *project, abx_box_event_fn tell, void *ctx,
		  struct abx_err *err);

#endif
