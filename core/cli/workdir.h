/* SPDX-License-Identifier: MIT */
/*
 * core/cli/workdir.h: a private directory for one command on one box at a time.
 *
 * It is empty at first, whatever a process that died has left, and gone at the end.
 *
 *	struct abx_workdir dir = ABX_WORKDIR_INIT;
 *
 *	r = abx_workdir_open(&home, &box, "fetch", &dir, err);
 *	...
 *	abx_workdir_close(&dir);
 */
#ifndef ABX_WORKDIR_H
#define ABX_WORKDIR_H

#include "core/state/boxes.h"
#include "core/state/home.h"

struct abx_workdir {
	char *path;
	char *lock_path;
	int lock;
};
#define ABX_WORKDIR_INIT   \
	{                  \
		.lock = -1 \
	}

/* ABX_ESTATE while another process does the same. */
int abx_workdir_open(const struct abx_home *home, const struct abx_box *box, const char *what,
		     struct abx_workdir *ret, struct abx_err *err);
/* Nothing happens when it was not opened. */
void abx_workdir_close(struct abx_workdir *dir);

#endif
