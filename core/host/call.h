/* SPDX-License-Identifier: MIT */
/*
 * core/host/call.h: one operation under way.
 *
 * A call is shared by the thread that waits and the worker that runs the provider's code.
 * When the provider does not come back in time the waiting thread abandons the call: from
 * then on every callback answers ABX_ECANCELED and touches nothing of ours, and the last of
 * the two to let go frees the call.  Everything that the provider may read until it returns
 * (request, sandbox, descriptors, the place for its answer) therefore lives in the call.
 *
 * `lock` guards all that follows it, and is held while a callback runs code of ours, so that
 * none runs after abx_call_abandon() returned.
 */
#ifndef ABX_CALL_H
#define ABX_CALL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/host/cloud.h"
#include "core/host/record.h"

/* One thing that the provider emitted. */
struct abx_result {
	const struct abx_record_type *type;
	uint32_t phase;
	void *record, *memory;
};

/* A copied argument. */
struct abx_arg {
	void *record, *memory;
};

/* Where callbacks lead; all of it belongs to whoever waits. */
struct abx_call_sink {
	const struct abx_host_ctx *ctx; /* NULL: no progress, no database */
	const char *provider, *box_id;
	const struct abx_option *const *options; /* the provider's own */
	bool is_list;				 /* results pile up, and resources are not notes */
	bool deaf;				 /* a clean-up: progress cannot end it */
	atomic_ullong *round_trips;		 /* may be NULL */
	const struct abx_exec *exec;		 /* the caller's callbacks */
	const struct abx_watcher *watcher;	 /* sandboxes go there and are not kept */
	const struct abx_log_sink *log;		 /* NULL: where ctx says */
	const char *attempt;			 /* of abx_call_opts */
};

struct abx_call {
	atomic_uint refs;
	int cancel_event;    /* what the provider polls; raised once, never lowered */
	int64_t deadline_ms; /* abx_now_ms()'s clock; INT64_MAX = none */
	struct abx_arg sandbox, request, plain;
	int fds[2]; /* duplicates of descriptors in the request */
	struct abx_exit exit;
	const struct abx_session_args *session_args;
	struct abx_session *session; /* what session_open returned */

	pthread_mutex_t lock;
	bool abandoned, done, retries_used_up, delivered;
	int32_t code; /* valid once done */
	struct abx_call_sink sink;
	struct abx_err failure; /* what it said through fail() */
	struct abx_err broken;	/* the first contract or storage error of a callback */
	struct abx_result *results;
	size_t n_results, results_cap;
};

/* One reference, for the caller. */
int abx_call_new(int64_t deadline_ms, struct abx_call **ret, struct abx_err *err);
void abx_call_ref(struct abx_call *call);
void abx_call_unref(struct abx_call *call);

/* Copies for the provider. */
int abx_call_set_sandbox(struct abx_call *call, const struct abx_sandbox *s, struct abx_err *err);
int abx_call_set_request(struct abx_call *call, const struct abx_record_type *type,
			 const void *request, struct abx_err *err);
int abx_call_set_plain(struct abx_call *call, const struct abx_plain_args *plain,
		       struct abx_err *err);

/* Make cancel_fd readable. */
void abx_call_cancel(struct abx_call *call);
bool abx_call_is_cancelled(const struct abx_call *call);
int64_t abx_call_time_left_ms(const struct abx_call *call);

/* True when the operation had ended after all. */
bool abx_call_abandon(struct abx_call *call);

/* Take the last result of a type out of the call; false when there is none. */
bool abx_call_take_last(struct abx_call *call, const struct abx_record_type *type,
			struct abx_result *ret);
void abx_result_release(struct abx_result *r);

#endif
