/* SPDX-License-Identifier: MIT */
/* The table of functions that a provider gets from us. */
#include "core/host/hostapi.h"

#include <limits.h>
#include <poll.h>
#include <string.h>

#include "config.h"
#include "core/host/options.h"
#include "core/host/retry.h"
#include "core/host/text.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/redact.h"

#define MAX_LOG_BYTES 1500
#define MAX_SECRET_BYTES 65536

static const char *const code_texts[] = {
	"no error",
	"it failed without saying why",
	"it cannot do that",
	"it does not understand the request",
	"no such object",
	"it exists already",
	"it is in the wrong state for that",
	"the credential is missing or was refused",
	"not allowed",
	"a limit of the account is reached",
	"too many requests",
	"it took too long",
	"canceled",
	"the service was not reached",
	"the service failed",
	"this machine failed",
	"out of memory",
	"the service answered nonsense",
	"this installation is incomplete",
};

int abx_hostapi_code(int32_t code)
{
	if (code > 0)
		return ABX_EPROTO;
	return code < ABX_EBROKEN ? ABX_EINTERNAL : code;
}

const char *abx_hostapi_code_text(int32_t code)
{
	return code_texts[-abx_hostapi_code(code)];
}

bool abx_call_enter(struct abx_call *call)
{
	(void)pthread_mutex_lock(&call->lock);
	if (!call->abandoned)
		return true;
	(void)pthread_mutex_unlock(&call->lock);
	return false;
}

void abx_call_leave(struct abx_call *call)
{
	(void)pthread_mutex_unlock(&call->lock);
}

static void host_log(void *ctx ABX_UNUSED, int32_t level, const char *topic, const char *msg)
{
	char name[64], line[MAX_LOG_BYTES];

	if (!msg)
		return;
	abx_text_line(topic ? topic : "provider", sizeof(name), name, sizeof(name));
	abx_text_line(msg, MAX_LOG_BYTES, line, sizeof(line));
	if (level < ABX_LOG_ERROR || level > ABX_LOG_DEBUG)
		level = ABX_LOG_DEBUG;
	abx_log(level, name, "%s: %s", name, line);
}

static int64_t host_now_ms(void *ctx ABX_UNUSED)
{
	return abx_now_ms();
}

/* What a failure says, as an error of ours; its texts are not trusted. */
static int read_failure(const struct abx_failure *theirs, struct abx_err *ret)
{
	struct abx_failure f;
	void *memory = NULL;
	int r = abx_record_copy(&abx_record_failure, theirs, &f, &memory, ret);

	if (r < 0)
		return r;
	(void)abx_err_set(ret, f.code < 0 ? abx_hostapi_code(f.code) : ABX_EINTERNAL, "%s", "");
	if (f.text)
		abx_text_line(f.text, strlen(f.text), ret->text, sizeof(ret->text));
	if (f.remedy)
		abx_text_line(f.remedy, strlen(f.remedy), ret->remedy, sizeof(ret->remedy));
	if (f.request_id)
		abx_text_line(f.request_id, strlen(f.request_id), ret->request_id,
			      sizeof(ret->request_id));
	ret->http_status = f.http_status;
	ret->retry_after_ms = f.retry_after_ms;
	ret->outcome_unknown = f.flags & ABX_FAIL_OUTCOME_UNKNOWN;
	free(memory);
	return ret->code;
}

static int32_t host_fail(struct abx_call *call, const struct abx_failure *theirs)
{
	struct abx_err failure = ABX_ERR_INIT;
	int code = read_failure(theirs, &failure);

	if (!abx_call_enter(call))
		return ABX_ECANCELED;
	call->failure = failure;
	abx_call_leave(call);
	return code;
}

static int32_t host_progress(struct abx_call *call, uint64_t done, uint64_t total, const char *what)
{
	const struct abx_host_ctx *ctx;
	char text[128] = "";
	int stop = 0;

	if (what)
		abx_text_line(what, sizeof(text), text, sizeof(text));
	if (!abx_call_enter(call))
		return ABX_ECANCELED;
	ctx = call->sink.ctx;
	if (ctx && ctx->progress)
		stop = ctx->progress(ctx->progress_ctx, done, total, text);
	if (call->sink.deaf)
		stop = 0;
	abx_call_leave(call);
	if (stop)
		abx_call_cancel(call);
	return stop || abx_call_is_cancelled(call) ? ABX_ECANCELED : ABX_OK;
}

static int32_t host_cancel_fd(struct abx_call *call)
{
	return call->cancel_event;
}

static int64_t host_time_left_ms(struct abx_call *call)
{
	return abx_call_time_left_ms(call);
}

static int32_t host_wait_ms(struct abx_call *call, int64_t ms)
{
	const int64_t end = ms > INT64_MAX / 2 ? INT64_MAX : abx_now_ms() + (ms > 0 ? ms : 0);

	for (;;) {
		struct pollfd p = {call->cancel_event, POLLIN, 0};
		int64_t now = abx_now_ms(), left = end - now;

		if (call->deadline_ms < end)
			left = call->deadline_ms - now;
		if (left < 0)
			left = 0;
		if (poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left) > 0)
			return ABX_ECANCELED;
		now = abx_now_ms();
		if (now >= end)
			return ABX_OK;
		if (now >= call->deadline_ms)
			return ABX_ETIMEDOUT;
	}
}

static int32_t host_retry(struct abx_call *call, const struct abx_failure *theirs, uint32_t attempt)
{
	struct abx_err failure = ABX_ERR_INIT;
	int code = read_failure(theirs, &failure);
	int64_t delay = abx_retry_delay_ms(code, failure.retry_after_ms, attempt,
					   abx_call_time_left_ms(call));

	if (delay < 0) {
		/* Repeating the whole operation on top would multiply the attempts. */
		if (abx_retry_code(code) && abx_call_enter(call)) {
			call->retries_used_up = true;
			abx_call_leave(call);
		}
		return 0;
	}
	return host_wait_ms(call, delay) == ABX_OK;
}

static void host_add_secret(struct abx_call *call ABX_UNUSED, const char *value)
{
	if (value && strnlen(value, MAX_SECRET_BYTES) < MAX_SECRET_BYTES)
		abx_redact_add(value);
}

static int32_t host_store_secret(struct abx_call *call, const char *key, const char *value)
{
	struct abx_err err = ABX_ERR_INIT;
	int r = ABX_ENOTSUP;

	if (!key || !value || strnlen(key, 64) == 64 ||
	    strnlen(value, MAX_SECRET_BYTES) == MAX_SECRET_BYTES)
		return ABX_EINVAL;
	abx_redact_add(value);
	if (!abx_call_enter(call))
		return ABX_ECANCELED;
	if (call->sink.ctx && call->sink.ctx->home)
		r = abx_options_store_secret(call->sink.ctx->home, call->sink.provider,
					     call->sink.options, key, value, &err);
	abx_call_leave(call);
	if (r < 0)
		abx_log(ABX_LOG_DEBUG, "host", "store_secret: %s", err.text);
	return r < ABX_EBROKEN ? ABX_EIO : r;
}

static void host_trace(struct abx_call *call, const char *method, const char *path, int32_t status,
		       int64_t us)
{
	char shown_method[32] = "", shown_path[512] = "";

	if (method)
		abx_text_line(method, sizeof(shown_method), shown_method, sizeof(shown_method));
	if (path)
		abx_text_line(path, sizeof(shown_path), shown_path, sizeof(shown_path));
	if (!abx_call_enter(call))
		return;
	if (call->sink.round_trips)
		atomic_fetch_add(call->sink.round_trips, 1);
	abx_log(ABX_LOG_DEBUG, "trace", "%s: %s %s %d %lld us",
		call->sink.provider ? call->sink.provider : "provider", shown_method, shown_path,
		status, (long long)us);
	abx_call_leave(call);
}

const struct abx_host *abx_hostapi(void)
{
	static const struct abx_host host = {
		ABX_INIT(struct abx_host),
		.abi_major = ABX_ABI_MAJOR,
		.abi_minor = ABX_ABI_MINOR,
		.version = PACKAGE_VERSION,
		.log = host_log,
		.now_ms = host_now_ms,
		.fail = host_fail,
		.progress = host_progress,
		.cancel_fd = host_cancel_fd,
		.time_left_ms = host_time_left_ms,
		.wait_ms = host_wait_ms,
		.retry = host_retry,
		.add_secret = host_add_secret,
		.store_secret = host_store_secret,
		.trace = host_trace,
		.emit_sandbox = abx_emit_sandbox,
		.emit_resource = abx_emit_resource,
		.emit_snapshot = abx_emit_snapshot,
		.emit_url = abx_emit_url,
		.emit_ssh = abx_emit_ssh,
		.emit_file = abx_emit_file,
		.emit_rate = abx_emit_rate,
		.emit_usage = abx_emit_usage,
		.emit_row = abx_emit_row,
		.emit_log = abx_emit_log,
	};

	return &host;
}
