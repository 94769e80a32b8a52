/* SPDX-License-Identifier: MIT */
/* Saying why an operation failed, and waiting no longer than the host wants to. */
#include "providers/local/local.h"

#include <poll.h>
#include <stdarg.h>
#include <string.h>

#include "abxsdk/clock.h"

const struct abx_host *local_host;

static int32_t fail_flags(struct abx_call *call, uint32_t flags, int32_t code, const char *remedy,
			  const char *text)
{
	struct abx_failure f = {
		ABX_INIT(struct abx_failure),
		.flags = flags,
		.code = code,
		.retry_after_ms = -1,
		.text = text,
		.remedy = remedy && *remedy ? remedy : NULL,
	};

	(void)local_host->fail(call, &f);
	return code;
}

static int32_t fail_text(struct abx_call *call, int32_t code, const char *remedy, const char *text)
{
	return fail_flags(call, 0, code, remedy, text);
}

int32_t local_fail_lost(struct abx_call *call, const char *text)
{
	return fail_flags(call, ABX_FAIL_OUTCOME_UNKNOWN, ABX_ESTATE, NULL, text);
}

int32_t local_fail(struct abx_call *call, int32_t code, const char *remedy, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return fail_text(call, code, remedy, text);
}

static int32_t code_of(int err)
{
	switch (err) {
	case ENOENT:
		return ABX_ENOTFOUND;
	case EACCES:
	case EPERM:
		return ABX_EPERM;
	case ENOMEM:
		return ABX_ENOMEM;
	case EPROTO:
		return ABX_EPROTO;
	case E2BIG:
		return ABX_EINVAL;
	default:
		return ABX_EIO;
	}
}

int32_t local_fail_errno(struct abx_call *call, int err, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(text))
		(void)snprintf(text + n, sizeof(text) - (size_t)n, ": %s",
			       err == EPROTO ? "damaged" : strerror(err));
	return fail_text(call, code_of(err), NULL, text);
}

int32_t local_canceled(struct abx_call *call)
{
	return local_fail(call, ABX_ECANCELED, NULL, "cancelled");
}

int32_t local_timed_out(struct abx_call *call)
{
	return local_fail(call, ABX_ETIMEDOUT, NULL, "the time for this operation is over");
}

int64_t local_wall_ms(void)
{
	return abx_clock_ms(CLOCK_REALTIME);
}

int32_t local_poll(struct abx_call *call, struct pollfd *fds, size_t n, int64_t max_ms)
{
	struct pollfd all[8];
	int64_t left = local_host->time_left_ms(call);
	bool deadline_first = max_ms < 0 || left < max_ms;
	int64_t wait = deadline_first ? left : max_ms;
	int r;

	if (n >= ABX_N_ELEMENTS(all))
		return local_fail(call, ABX_EINTERNAL, NULL, "poll: too many descriptors");
	memcpy(all, fds, n * sizeof(*fds));
	all[n] = (struct pollfd){.fd = local_host->cancel_fd(call), .events = POLLIN};
	if (wait < 0)
		wait = 0;
	r = poll(all, n + 1, wait > INT32_MAX ? INT32_MAX : (int)wait);
	if (r < 0 && errno != EINTR)
		return local_fail_errno(call, errno, "poll");
	if (r < 0)
		memset(all, 0, sizeof(all));
	for (size_t i = 0; i < n; i++)
		fds[i].revents = r > 0 ? all[i].revents : (short)0;
	if (r > 0 && all[n].revents)
		return local_canceled(call);
	if (r == 0 && deadline_first && left <= INT32_MAX)
		return local_timed_out(call);
	return ABX_OK;
}
