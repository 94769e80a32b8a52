/* SPDX-License-Identifier: MIT */
/*
 * core/box/checkpoint.h: checkpoints of boxes, and forks.
 *
 * Both take the source's lock while its snapshot is taken, and no longer.
 */
#ifndef ABX_BOX_CHECKPOINT_H
#define ABX_BOX_CHECKPOINT_H

#include "core/box/app.h"
#include "core/checkpoint/checkpoint.h"

/* `name` is checked.  stop: its processes may end, where that
 * saves a copy. */
int abx_box_checkpoint(struct abx_app *app, struct abx_box *box, const char *name, bool stop,
		       struct abx_checkpoint *ret, struct abx_err *err);

/* With its snapshot.  One whose manifest is damaged is removed by its labels. */
int abx_box_checkpoint_remove(struct abx_app *app, const char *provider, const char *project,
			      const char *name, struct abx_err *err);

struct abx_fork {
	const char *name; /* NULL: made up; of several, NAME-1, NAME-2, ... */
	uint32_t count;	  /* at least 1 */
	bool stop;	  /* as above */
};
/* Boxes that go on from where `box` is.  All of them, or none. */
int abx_box_fork(struct abx_app *app, struct abx_box *box, const struct abx_fork *how,
		 struct abx_box_list *ret, struct abx_err *err);

#endif
