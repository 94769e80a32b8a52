/* SPDX-License-Identifier: MIT */
/* One operation of a cloud, from request to judged result. */
#include "core/host/run.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "core/host/hostapi.h"
#include "core/host/retry.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/redact.h"

/* A shorter id may be part of any word. */
#define ID_BYTES_MIN 6

/* How the wait for an operation ended. */
struct outcome {
	bool abandoned, cancelled, timed_out;
};

int abx_run_fail(const struct abx_cloud *c, const char *op, int code, struct abx_err *err,
		 const char *fmt, ...)
{
	char text[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)abx_err_set(err, code, "provider '%s': %s: %s", c->plugin->table.name, op, text);
	if (err)
		abx_redact(err->text);
	return code;
}

int abx_run_cannot(const struct abx_cloud *c, const char *what, struct abx_err *err)
{
	return abx_err_set(err, ABX_ENOTSUP, "provider '%s': cannot %s", c->plugin->table.name,
			   what);
}

static int duplicate(const struct abx_op_args *args, struct abx_call *call, struct abx_err *err)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(args->fds); i++) {
		if (args->fds[i] < 0)
			continue;
		call->fds[i] = fcntl(args->fds[i], F_DUPFD_CLOEXEC, 3);
		if (call->fds[i] < 0)
			return abx_err_errno(err, errno, "duplicate a descriptor");
	}
	return 0;
}

static int prepare(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		   const struct abx_op_args *args, struct abx_call *call, struct abx_err *err)
{
	int r = 0;

	if (args->sandbox)
		r = abx_call_set_sandbox(call, args->sandbox, err);
	if (r == 0 && args->request)
		r = abx_call_set_request(call, args->type, args->request, err);
	if (r == 0 && args->plain)
		r = abx_call_set_plain(call, args->plain, err);
	if (r == 0)
		r = duplicate(args, call, err);
	call->session_args = &c->args;
	call->sink.ctx = c->ctx;
	call->sink.provider = c->plugin->table.name;
	call->sink.options = c->plugin->table.options;
	call->sink.box_id = o->box_id;
	call->sink.is_list = op->is_list;
	call->sink.deaf = o->cleanup;
	call->sink.round_trips = &c->round_trips;
	call->sink.exec = args->exec;
	call->sink.watcher = args->watcher;
	call->sink.log = args->log;
	call->sink.attempt = o->attempt;
	return r;
}

static int until(int64_t end_ms)
{
	int64_t left;

	if (end_ms == INT64_MAX)
		return -1;
	left = end_ms - abx_now_ms();
	return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Wait until the worker is done, or until its grace is over. */
static struct outcome wait_for(struct abx_call *call, int done_fd, int cancel_fd, int abort_fd)
{
	struct outcome out = {0};
	int64_t next = call->deadline_ms;

	for (;;) {
		struct pollfd fds[3] = {
			{done_fd, POLLIN, 0}, {cancel_fd, POLLIN, 0}, {abort_fd, POLLIN, 0}};

		if (poll(fds, 3, until(next)) < 0)
			continue;
		if (fds[0].revents)
			return out;
		if (fds[1].revents || fds[2].revents) {
			cancel_fd = abort_fd = -1;
			out.cancelled = true;
		} else if (abx_now_ms() < next) {
			continue;
		} else if (out.cancelled || out.timed_out) {
			out.abandoned = !abx_call_abandon(call);
			return out;
		} else {
			out.timed_out = true;
		}
		abx_call_cancel(call);
		next = abx_now_ms() + ABX_GRACE_MS;
	}
}

static int judge_abandoned(const struct abx_cloud *c, const struct abx_op *op,
			   const struct outcome *out, struct abx_err *err)
{
	if (out->cancelled)
		(void)abx_run_fail(c, op->name, ABX_ECANCELED, err,
				   "canceled, but the provider did not stop");
	else
		(void)abx_run_fail(c, op->name, ABX_ETIMEDOUT, err,
				   "no answer in time, and the provider did not stop");
	if (err)
		err->outcome_unknown = true;
	return out->cancelled ? ABX_ECANCELED : ABX_ETIMEDOUT;
}

/* A provider has only its own id for a box, and its user has only the name. */
static void name_boxes(const struct abx_sandbox *s, const char *text, char *ret, size_t size)
{
	const size_t id_len = s && s->id && s->name ? strlen(s->id) : 0;
	size_t n = 0;

	while (*text && n + 1 < size) {
		const bool quoted = n && strchr("'\"", ret[n - 1]);
		int len;

		if (id_len < ID_BYTES_MIN || strncmp(text, s->id, id_len) != 0) {
			ret[n++] = *text++;
			continue;
		}
		len = snprintf(ret + n, size - n, quoted ? "%s" : "'%s'", s->name);
		n = len < 0 || (size_t)len >= size - n ? size - 1 : n + (size_t)len;
		text += id_len;
	}
	ret[n] = '\0';
}

/* What the provider returned and said, as an error of ours. */
static int judge(const struct abx_cloud *c, const struct abx_op *op, const struct abx_call *call,
		 const struct outcome *out, struct abx_err *err)
{
	const struct abx_err *said = call->broken.code ? &call->broken : &call->failure;
	int code = call->broken.code ? call->broken.code : abx_hostapi_code(call->code);
	char named[sizeof(said->text)];
	const char *text = named;

	name_boxes(call->sandbox.record, said->text, named, sizeof(named));
	if (code == ABX_OK) {
		if (call->failure.code)
			abx_log(ABX_LOG_DEBUG, "host",
				"provider '%s': %s: reported a failure, "
				"but returned success: %s",
				c->plugin->table.name, op->name, call->failure.text);
		return 0;
	}
	if (code == ABX_ECANCELED && out->timed_out && !out->cancelled) {
		code = ABX_ETIMEDOUT;
		text = "";
	}
	if (!*text)
		text = abx_hostapi_code_text(code);
	/* Some say which operation it was, which is said anyway. */
	if (strncmp(text, op->name, strlen(op->name)) == 0 &&
	    strncmp(text + strlen(op->name), ": ", 2) == 0)
		text += strlen(op->name) + 2;
	if (said->request_id[0])
		(void)abx_run_fail(c, op->name, code, err, "%s [request %s]", text,
				   said->request_id);
	else
		(void)abx_run_fail(c, op->name, code, err, "%s", text);
	if (!err)
		return code;
	err->http_status = said->http_status;
	err->retry_after_ms = said->retry_after_ms;
	err->outcome_unknown = said->outcome_unknown || code == ABX_ETIMEDOUT;
	memcpy(err->request_id, said->request_id, sizeof(err->request_id));
	name_boxes(call->sandbox.record, said->remedy, err->remedy, sizeof(err->remedy));
	abx_redact(err->remedy);
	return code;
}

static bool is_lost(const struct abx_cloud *c)
{
	return atomic_load(&c->lost) || atomic_load(&c->plugin->lost);
}

static struct abx_gate *gate_of(struct abx_cloud *c)
{
	/* Only one of them is ever open. */
	return c->plugin->gate.fd >= 0 ? &c->plugin->gate : &c->gate;
}

static int enter(struct abx_cloud *c, const struct abx_op *op, const struct abx_call *call,
		 int cancel_fd, struct abx_err *err)
{
	struct pollfd given_up = {cancel_fd, POLLIN, 0};
	int r = 0;

	/* Whoever gave up does not want one more thing begun. */
	if (cancel_fd >= 0 && poll(&given_up, 1, 0) > 0)
		return abx_run_fail(c, op->name, ABX_ECANCELED, err, "canceled");
	if (!op->any_time)
		r = abx_gate_enter(gate_of(c), call->deadline_ms, cancel_fd);
	if (r < 0)
		return abx_run_fail(c, op->name, r, err,
				    r == ABX_ECANCELED ? "canceled"
						       : "its turn did not come in time");
	if (!is_lost(c))
		return 0;
	if (!op->any_time)
		abx_gate_leave(gate_of(c));
	return abx_run_fail(c, op->name, ABX_ESTATE, err,
			    "not tried, for the provider never came back from an earlier one");
}

static int execute(struct abx_cloud *c, const struct abx_op *op, struct abx_call *call,
		   int cancel_fd, int abort_fd, struct abx_err *err)
{
	const struct abx_job job = {op->invoke, &c->plugin->table, c->session, call};
	struct abx_worker *worker;
	struct outcome out;
	int r = abx_worker_start(&c->pool, &job, &worker, err);

	if (r < 0)
		return r;
	atomic_fetch_add(&c->plugin->active, 1);
	out = wait_for(call, abx_worker_done_fd(worker), cancel_fd, abort_fd);
	if (out.abandoned) {
		atomic_store(&c->lost, true);
		if (c->plugin->gate.fd >= 0)
			atomic_store(&c->plugin->lost, true);
		return judge_abandoned(c, op, &out, err);
	}
	abx_worker_return(&c->pool, worker);
	atomic_fetch_sub(&c->plugin->active, 1);
	return judge(c, op, call, &out, err);
}

/* 1: may be tried again. */
static int run_once(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		    const struct abx_op_args *args, int64_t deadline_ms, bool *ret_again,
		    struct abx_call **ret, struct abx_err *err)
{
	int cancel_fd = o->cleanup || !c->ctx ? -1 : c->ctx->cancel_fd;
	struct abx_call *call;
	int r = abx_call_new(deadline_ms, &call, err);

	*ret_again = false;
	if (r < 0)
		return r;
	r = prepare(c, o, op, args, call, err);
	if (r == 0)
		r = enter(c, op, call, cancel_fd, err);
	if (r == 0) {
		r = execute(c, op, call, cancel_fd, o->abort_fd ? *o->abort_fd : -1, err);
		if (!op->any_time)
			abx_gate_leave(gate_of(c));
		*ret_again =
			op->repeatable && !is_lost(c) && !call->retries_used_up && !call->delivered;
	}
	if (r == 0)
		*ret = call;
	else
		abx_call_unref(call);
	return r;
}

/* False: the user gave up meanwhile. */
static bool pause_ms(const struct abx_cloud *c, const struct abx_call_opts *o, int64_t ms)
{
	struct pollfd p = {o->cleanup || !c->ctx ? -1 : c->ctx->cancel_fd, POLLIN, 0};
	const int64_t end = abx_now_ms() + ms;

	while (abx_now_ms() < end)
		if (poll(&p, 1, until(end)) > 0)
			return false;
	return true;
}

int abx_run(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
	    const struct abx_op_args *args, struct abx_call **ret, struct abx_err *err)
{
	static const struct abx_call_opts none = {0};
	struct abx_err why = ABX_ERR_INIT;
	int64_t deadline_ms;
	int r;

	if (!o)
		o = &none;
	deadline_ms = o->timeout_ms > 0 ? abx_now_ms() + o->timeout_ms : INT64_MAX;
	for (uint32_t attempt = 1;; attempt++) {
		bool again;
		int64_t left, delay;

		r = run_once(c, o, op, args, deadline_ms, &again, ret, &why);
		if (r == 0 || !again)
			break;
		left = deadline_ms == INT64_MAX ? INT64_MAX : deadline_ms - abx_now_ms();
		delay = abx_retry_delay_ms(r, why.retry_after_ms, attempt, left);
		if (delay < 0)
			break;
		abx_log(ABX_LOG_INFO, "host", "%s; again in %lld ms", why.text, (long long)delay);
		if (!pause_ms(c, o, delay)) {
			r = abx_run_fail(c, op->name, ABX_ECANCELED, &why, "canceled");
			break;
		}
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int abx_run_plain(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		  const struct abx_op_args *args, struct abx_err *err)
{
	struct abx_call *call;
	int r = abx_run(c, o, op, args, &call, err);

	if (r == 0)
		abx_call_unref(call);
	return r;
}

int abx_run_delete(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		   const struct abx_op_args *args, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	int r = abx_run_plain(c, o, op, args, &why);

	if (r == 0 || r == ABX_ENOTFOUND)
		return 0;
	if (err)
		*err = why;
	return r;
}
