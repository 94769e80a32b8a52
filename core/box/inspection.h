/* SPDX-License-Identifier: MIT */
/*
 * core/box/inspection.h: looking at the workspace while something else goes on.
 *
 *	struct abx_inspection look = ABX_INSPECTION_INIT;
 *	abx_inspection_start(&look, workspace, spool, &how, err);
 *	... make the sandbox ...
 *	abx_inspection_finish(&look, &seed, err);
 *	abx_inspection_release(&look);		waits for it where nobody did
 */
#ifndef ABX_INSPECTION_H
#define ABX_INSPECTION_H

#include <pthread.h>

#include "core/seed/seed.h"

struct abx_inspection {
	pthread_t thread;
	bool running;
	char *workspace, *spool;
	struct abx_seed_options how;
	struct abx_seed *seed;
	struct abx_err err;
	int result;
};
#define ABX_INSPECTION_INIT       \
	{                         \
		.running = false, \
	}

/* What `how` points to must live until the end. */
int abx_inspection_start(struct abx_inspection *i, const char *workspace, const char *spool,
			 const struct abx_seed_options *how, struct abx_err *err);
/* What abx_seed_inspect() returned; *ret_seed is the caller's.  Once for each start. */
int abx_inspection_finish(struct abx_inspection *i, struct abx_seed **ret_seed,
			  struct abx_err *err);
void abx_inspection_release(struct abx_inspection *i);

#endif
