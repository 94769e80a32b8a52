/* SPDX-License-Identifier: MIT */
/*
 * core/host/run.h: one operation of a cloud, from request to judged result.
 *
 * Copies the request, waits for its turn (thread model), runs the operation on a worker,
 * gives up on it when its time is over, repeats it when that is safe and useful, and turns
 * what the provider said into an error of ours.
 */
#ifndef ABX_RUN_H
#define ABX_RUN_H

#include "core/host/call.h"
#include "core/host/loader.h"
#include "core/host/options.h"
#include "core/host/worker.h"

/* How long a provider may go on after its deadline or a cancel. */
#define ABX_GRACE_MS 1000
/* How long to look for what was made when the answer was lost. */
#define ABX_FIND_LOST_MS 60000

struct abx_cloud {
	struct abx_plugin *plugin;
	const struct abx_host_ctx *ctx;
	struct abx_options options;
	char *state_dir, *ca_file;
	struct abx_session_args args;
	struct abx_session *session;
	bool session_open;
	struct abx_worker_pool pool;
	struct abx_gate gate; /* for ABX_THREADS_SESSION */
	atomic_bool lost;     /* the provider did not come back from an operation */
	atomic_ullong round_trips;
	struct abx_cloud *next_lost;
};

struct abx_op {
	const char *name;
	abx_invoke_fn invoke;
	bool repeatable; /* doing it twice is as good as once */
	bool is_list;
	bool any_time; /* not bound by the thread model */
};

struct abx_op_args {
	const struct abx_sandbox *sandbox; /* may be NULL */
	const struct abx_record_type *type;
	const void *request; /* of `type`; may be NULL */
	int fds[2];	     /* duplicated into call->fds; -1 = none */
	const struct abx_exec *exec;
	const struct abx_plain_args *plain; /* beside `request`; may be NULL */
	const struct abx_watcher *watcher;
	const struct abx_log_sink *log;
};

#define ABX_OP_ARGS_INIT          \
	{                         \
		.fds = { -1, -1 } \
	}

/* On success the call with its results; abx_call_unref() it. */
int abx_run(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
	    const struct abx_op_args *args, struct abx_call **ret, struct abx_err *err);

/* The same where nothing but success or failure is of interest. */
int abx_run_plain(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		  const struct abx_op_args *args, struct abx_err *err);
/* What is gone is deleted: ABX_ENOTFOUND is success. */
int abx_run_delete(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		   const struct abx_op_args *args, struct abx_err *err);

/* "provider 'x': cannot do that", ABX_ENOTSUP. */
int abx_run_cannot(const struct abx_cloud *c, const char *what, struct abx_err *err);
/* "provider 'x': op: why", of a code. */
int abx_run_fail(const struct abx_cloud *c, const char *op, int code, struct abx_err *err,
		 const char *fmt, ...) ABX_PRINTF(5, 6);

#endif
