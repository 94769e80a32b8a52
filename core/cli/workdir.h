/* SPDX-License-Identifier: MIT */
/*
 * core/cli/workdir.h: a private directory for one piece of work on one box at a time.
 *
 * It is empty at first, whatever a process that died has left, and gone at the end.
 *
 *	struct abx_workdir dir = ABX_WORKDIR_INIT;
 *
 *	r = abx_workdir_open(&home, &box, ABX_WORKDIR_FETCH, &dir, err);
 *	...
 *	abx_workdir_close(&dir);
 */
#ifndef ABX_WORKDIR_H
#define ABX_WORKDIR_H

#include "core/state/boxes.h"
#include "core/state/home.h"

enum abx_workdir_kind {
	ABX_WORKDIR_FETCH,
	ABX_WORKDIR_PATCH,
	/* Whatever changes the record of what was sent, from its reading to its writing.  What is
	 * known of the box may have been another before: read it again. */
	ABX_WORKDIR_RECORD,
};

struct abx_workdir {
	char *path;
	char *lock_path;
	int lock;
};
#define ABX_WORKDIR_INIT   \
	{                  \
		.lock = -1 \
	}

/* ABX_EEXIST while another process does the same. */
int abx_workdir_open(const struct abx_home *home, const struct abx_box *box,
		     enum abx_workdir_kind kind, struct abx_workdir *ret, struct abx_err *err);
/* Nothing happens when it was not opened. */
void abx_workdir_close(struct abx_workdir *dir);

#endif
