/* SPDX-License-Identifier: MIT */
/* Threads that run a provider's code. */
#include "core/host/worker.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "core/util/mem.h"
#include "core/util/thread.h"

struct abx_worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct abx_job job;
	bool has_job, quit;
	int done_event;
	struct abx_worker *next;
};

static void worker_free(struct abx_worker *w)
{
	abx_cleanup_close(&w->done_event);
	(void)pthread_cond_destroy(&w->wake);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

static bool next_job(struct abx_worker *w, struct abx_job *ret)
{
	bool got;

	(void)pthread_mutex_lock(&w->lock);
	while (!w->has_job && !w->quit)
		(void)pthread_cond_wait(&w->wake, &w->lock);
	got = w->has_job;
	w->has_job = false;
	*ret = w->job;
	(void)pthread_mutex_unlock(&w->lock);
	return got;
}

/* True when somebody still waits for it. */
static bool run_job(const struct abx_job *job)
{
	struct abx_call *call = job->call;
	int32_t code = job->invoke(job->table, job->session, call);
	bool wanted;

	(void)pthread_mutex_lock(&call->lock);
	call->code = code;
	call->done = true;
	wanted = !call->abandoned;
	(void)pthread_mutex_unlock(&call->lock);
	abx_call_unref(call);
	return wanted;
}

static void *worker_main(void *arg)
{
	struct abx_worker *w = arg;
	struct abx_job job;

	while (next_job(w, &job)) {
		const uint64_t one = 1;

		if (!run_job(&job)) {
			(void)pthread_detach(pthread_self());
			worker_free(w);
			return NULL;
		}
		(void)!write(w->done_event, &one, sizeof(one));
	}
	return NULL;
}

static int worker_new(struct abx_worker **ret, struct abx_err *err)
{
	struct abx_worker *w = abx_xcalloc(1, sizeof(*w));
	int r;

	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->wake, NULL);
	w->done_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->done_event < 0 ? errno : abx_thread_start(&w->thread, worker_main, w);
	if (r) {
		worker_free(w);
		return abx_err_errno(err, r, "start a thread");
	}
	*ret = w;
	return 0;
}

void abx_worker_pool_init(struct abx_worker_pool *pool)
{
	(void)pthread_mutex_init(&pool->lock, NULL);
	pool->idle = NULL;
}

void abx_worker_pool_clear(struct abx_worker_pool *pool)
{
	while (pool->idle) {
		struct abx_worker *w = pool->idle;

		pool->idle = w->next;
		(void)pthread_mutex_lock(&w->lock);
		w->quit = true;
		(void)pthread_mutex_unlock(&w->lock);
		(void)pthread_cond_signal(&w->wake);
		(void)pthread_join(w->thread, NULL);
		worker_free(w);
	}
	(void)pthread_mutex_destroy(&pool->lock);
}

int abx_worker_start(struct abx_worker_pool *pool, const struct abx_job *job,
		     struct abx_worker **ret, struct abx_err *err)
{
	struct abx_worker *w;
	int r;

	(void)pthread_mutex_lock(&pool->lock);
	w = pool->idle;
	if (w)
		pool->idle = w->next;
	(void)pthread_mutex_unlock(&pool->lock);
	if (!w) {
		r = worker_new(&w, err);
		if (r < 0)
			return r;
	}
	abx_call_ref(job->call);
	(void)pthread_mutex_lock(&w->lock);
	w->job = *job;
	w->has_job = true;
	(void)pthread_mutex_unlock(&w->lock);
	/* Whoever is woken with the lock taken sleeps again at once. */
	(void)pthread_cond_signal(&w->wake);
	*ret = w;
	return 0;
}

int abx_worker_done_fd(const struct abx_worker *w)
{
	return w->done_event;
}

void abx_worker_return(struct abx_worker_pool *pool, struct abx_worker *w)
{
	struct pollfd p = {w->done_event, POLLIN, 0};
	uint64_t count;

	while (poll(&p, 1, -1) < 1)
		;
	(void)!read(w->done_event, &count, sizeof(count));
	(void)pthread_mutex_lock(&pool->lock);
	w->next = pool->idle;
	pool->idle = w;
	(void)pthread_mutex_unlock(&pool->lock);
}
