/* SPDX-License-Identifier: MIT */
/* What every provider says to its host in the same way. */
#include "abxsdk/plugin.h"

#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "abxsdk/text.h"

const struct abx_host *abx_plugin_host;

static void say(struct abx_call *call, int32_t code, uint32_t flags, const char *remedy,
		const char *fmt, va_list ap) ABX_PRINTF(5, 0);

static void say(struct abx_call *call, int32_t code, uint32_t flags, const char *remedy,
		const char *fmt, va_list ap)
{
	char text[1024];
	const struct abx_failure f = {ABX_INIT(struct abx_failure),
				      .code = code,
				      .retry_after_ms = -1,
				      .flags = flags,
				      .text = text,
				      .remedy = remedy && *remedy ? remedy : NULL};

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)abx_plugin_host->fail(call, &f);
}

int32_t abx_fail(struct abx_call *call, int32_t code, const char *remedy, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(call, code, 0, remedy, fmt, ap);
	va_end(ap);
	return code;
}

int32_t abx_fail_unknown(struct abx_call *call, int32_t code, const char *remedy, const char *fmt,
			 ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(call, code, ABX_FAIL_OUTCOME_UNKNOWN, remedy, fmt, ap);
	va_end(ap);
	return code;
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

int32_t abx_fail_errno(struct abx_call *call, int err, const char *fmt, ...)
{
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return abx_fail(call, code_of(err), abx_remedy_of_errno(err), "%s: %s", text,
			err == EPROTO ? "damaged" : strerror(err));
}

int32_t abx_fail_canceled(struct abx_call *call)
{
	return abx_fail(call, ABX_ECANCELED, NULL, "cancelled");
}

int32_t abx_fail_timed_out(struct abx_call *call)
{
	return abx_fail(call, ABX_ETIMEDOUT, NULL, "the time for this operation is over");
}

int32_t abx_fail_no_memory(struct abx_call *call)
{
	return abx_fail(call, ABX_ENOMEM, NULL, "out of memory");
}

int32_t abx_call_poll(struct abx_call *call, struct pollfd *fds, size_t n, int64_t max_ms)
{
	struct pollfd all[8];
	int64_t left = abx_plugin_host->time_left_ms(call);
	int deadline_first = max_ms < 0 || left < max_ms;
	int64_t wait = deadline_first ? left : max_ms;
	int r;

	if (n >= ABX_N_ELEMENTS(all))
		return abx_fail(call, ABX_EINTERNAL, NULL, "poll: too many descriptors");
	memcpy(all, fds, n * sizeof(*fds));
	all[n] = (struct pollfd){.fd = abx_plugin_host->cancel_fd(call), .events = POLLIN};
	if (wait < 0)
		wait = 0;
	r = poll(all, n + 1, wait > INT32_MAX ? INT32_MAX : (int)wait);
	if (r < 0 && errno != EINTR)
		return abx_fail_errno(call, errno, "poll");
	for (size_t i = 0; i < n; i++)
		fds[i].revents = r > 0 ? all[i].revents : (short)0;
	if (r > 0 && all[n].revents)
		return abx_fail_canceled(call);
	if (r == 0 && deadline_first && left <= INT32_MAX)
		return abx_fail_timed_out(call);
	return ABX_OK;
}

int abx_take_text(char **to, const char *text)
{
	if (!text)
		return 0;
	*to = strdup(text);
	return *to ? 0 : -ENOMEM;
}

void abx_rfc3339(int64_t seconds, char out[40])
{
	const time_t t = (time_t)seconds;
	struct tm tm;

	out[0] = '\0';
	if (gmtime_r(&t, &tm))
		(void)strftime(out, 40, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static int milliseconds(const char *rest)
{
	int ms = 0, weight = 100;

	if (*rest != '.')
		return 0;
	for (rest++; *rest >= '0' && *rest <= '9'; rest++, weight /= 10)
		ms += (*rest - '0') * weight;
	return ms;
}

int64_t abx_rfc3339_ms(const char *text)
{
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	time_t t = rest ? timegm(&tm) : 0;

	return t > 0 ? (int64_t)t * 1000 + milliseconds(rest) : 0;
}
