/* SPDX-License-Identifier: MIT */
/*
 * core/host/worker.h: threads that run a provider's code.
 *
 * A cloud keeps its idle workers, so that most operations start no thread.  Signals for the
 * process stay with the other threads.  A worker whose call was abandoned belongs to nobody
 * any more and ends by itself, should the provider ever come back.
 */
#ifndef ABX_WORKER_H
#define ABX_WORKER_H

#include "core/host/call.h"

typedef int32_t (*abx_invoke_fn)(const struct abx_cloud_backend *table, struct abx_session *session,
				 struct abx_call *call);

struct abx_job {
	abx_invoke_fn invoke;
	const struct abx_cloud_backend *table;
	struct abx_session *session;
	struct abx_call *call; /* the worker takes a reference of its own */
};

struct abx_worker;

struct abx_worker_pool {
	pthread_mutex_t lock;
	struct abx_worker *idle;
};

void abx_worker_pool_init(struct abx_worker_pool *pool);
/* Ends the idle ones; there must be no other. */
void abx_worker_pool_clear(struct abx_worker_pool *pool);

/* Start the job on an idle worker, or on a new one. */
int abx_worker_start(struct abx_worker_pool *pool, const struct abx_job *job,
		     struct abx_worker **ret, struct abx_err *err);
/* Readable once the job has ended. */
int abx_worker_done_fd(const struct abx_worker *w);
/* The job has ended, or is about to say so: the worker may be used again. */
void abx_worker_return(struct abx_worker_pool *pool, struct abx_worker *w);

#endif
