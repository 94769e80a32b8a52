/* SPDX-License-Identifier: MIT */
/* Tar streams between this program and a box, made or eaten on a thread. */
#include "core/host/stream.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "core/util/pump.h"

struct stream {
	abx_stream_fn work;
	void *ctx;
	int fd;	     /* the thread's end; closed by the thread */
	int stop_fd; /* the reading end, for the thread to poll */
	int result;
	atomic_bool failed;
	struct abx_err err;
};

static void *run_work(void *arg)
{
	struct stream *s = arg;
	sigset_t pipe_set;

	/* A side that goes away must be an error, not the end of the program. */
	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_set, NULL);
	s->result = s->work(s->ctx, s->fd, s->stop_fd, &s->err);
	atomic_store(&s->failed, s->result < 0);
	/* End of file for a reader, and no reader any more for a writer: from here on the other
	 * side may fail because of us. */
	(void)close(s->fd);
	return NULL;
}

struct both {
	abx_stream_call_fn call;
	void *ctx;
};

static int run_both(const struct both *b, struct stream *s, int call_fd, int stop_w,
		    struct abx_err *err)
{
	struct abx_err call_err = ABX_ERR_INIT;
	bool thread_first;
	pthread_t thread;
	int r = pthread_create(&thread, NULL, run_work, s);

	if (r) {
		(void)close(s->fd);
		(void)close(call_fd);
		return abx_err_errno(err, r, "start a thread");
	}
	r = b->call(b->ctx, call_fd, &call_err);
	/* Our end of the pipe was open until now: a thread that has failed did so by itself. */
	thread_first = atomic_load(&s->failed);
	if (r < 0)
		(void)!write(stop_w, "", 1);
	(void)close(call_fd);
	(void)pthread_join(thread, NULL);
	if (s->result < 0 && (thread_first || r == 0)) {
		if (err)
			*err = s->err;
		return s->result;
	}
	if (r < 0 && err)
		*err = call_err;
	return r;
}

int abx_stream_run(abx_stream_call_fn call, void *call_ctx, bool put, abx_stream_fn work,
		   void *work_ctx, struct abx_err *err)
{
	struct stream s = {.work = work, .ctx = work_ctx, .err = ABX_ERR_INIT};
	const struct both b = {call, call_ctx};
	int data[2], stop[2], r;

	if (pipe2(data, O_CLOEXEC) < 0)
		return abx_err_errno(err, errno, "make a pipe");
	if (pipe2(stop, O_CLOEXEC) < 0) {
		r = abx_err_errno(err, errno, "make a pipe");
		(void)close(data[0]);
		(void)close(data[1]);
		return r;
	}
	abx_pump_widen(data[1]);
	s.fd = data[put ? 1 : 0];
	s.stop_fd = stop[0];
	r = run_both(&b, &s, data[put ? 0 : 1], stop[1], err);
	(void)close(stop[0]);
	(void)close(stop[1]);
	return r;
}

struct transfer {
	struct abx_cloud *cloud;
	const struct abx_call_opts *o;
	const struct abx_sandbox *sandbox;
	const char *path;
	bool put;
};

static int call_cloud(void *ctx, int fd, struct abx_err *err)
{
	const struct transfer *t = ctx;
	struct abx_transfer req = {ABX_INIT(struct abx_transfer)};

	req.fd = fd;
	req.size_bytes = -1;
	req.path = t->path;
	return t->put ? abx_cloud_put_tar(t->cloud, t->o, t->sandbox, &req, err)
		      : abx_cloud_get_tar(t->cloud, t->o, t->sandbox, &req, err);
}

int abx_cloud_put_stream(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_sandbox *s, const char *path, abx_stream_fn produce,
			 void *ctx, struct abx_err *err)
{
	struct transfer t = {c, o, s, path, true};

	return abx_stream_run(call_cloud, &t, t.put, produce, ctx, err);
}

int abx_cloud_get_stream(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_sandbox *s, const char *path, abx_stream_fn consume,
			 void *ctx, struct abx_err *err)
{
	struct transfer t = {c, o, s, path, false};

	return abx_stream_run(call_cloud, &t, t.put, consume, ctx, err);
}
