/* SPDX-License-Identifier: MIT */
/* Looking at the workspace on a thread of its own. */
#include "core/box/inspection.h"

#include <stdlib.h>

#include "core/util/mem.h"
#include "core/util/thread.h"

static void *inspect(void *arg)
{
	struct abx_inspection *i = arg;

	i->result = abx_seed_inspect(i->workspace, i->spool, &i->how, &i->seed, &i->err);
	return NULL;
}

int abx_inspection_start(struct abx_inspection *i, const char *workspace, const char *spool,
			 const struct abx_seed_options *how, struct abx_err *err)
{
	int r;

	i->workspace = abx_xstrdup(workspace);
	i->spool = abx_xstrdup(spool);
	i->how = *how;
	i->err = (struct abx_err)ABX_ERR_INIT;
	r = abx_thread_start(&i->thread, inspect, i);
	if (r)
		return abx_err_errno(err, r, "start a thread");
	i->running = true;
	return 0;
}

static void wait_for(struct abx_inspection *i)
{
	if (i->running)
		(void)pthread_join(i->thread, NULL);
	i->running = false;
}

int abx_inspection_finish(struct abx_inspection *i, struct abx_seed **ret_seed, struct abx_err *err)
{
	wait_for(i);
	if (i->result < 0) {
		if (err)
			*err = i->err;
		return i->result;
	}
	*ret_seed = abx_steal_ptr(&i->seed);
	return 0;
}

void abx_inspection_release(struct abx_inspection *i)
{
	wait_for(i);
	abx_seed_free(i->seed);
	free(i->workspace);
	free(i->spool);
	*i = (struct abx_inspection)ABX_INSPECTION_INIT;
}
