/* SPDX-License-Identifier: MIT */
/* Saying why an operation failed, and waiting no longer than the host wants to. */
#include <poll.h>
#include <stdarg.h>
#include <string.h>

#include "providers/docker/docker.h"

const struct abx_host *docker_host;

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
				      .remedy = remedy};

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)docker_host->fail(call, &f);
}

int32_t docker_fail(struct abx_call *call, int32_t code, const char *remedy, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(call, code, 0, remedy, fmt, ap);
	va_end(ap);
	return code;
}

int32_t docker_fail_unknown(struct abx_call *call, int32_t code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(call, code, ABX_FAIL_OUTCOME_UNKNOWN, DOCKER_REMEDY_LOST, fmt, ap);
	va_end(ap);
	return code;
}

int32_t docker_fail_errno(struct abx_call *call, int err, const char *fmt, ...)
{
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return docker_fail(call,
			   err == ENOENT   ? ABX_ENOTFOUND
			   : err == EACCES ? ABX_EPERM
			   : err == ENOMEM ? ABX_ENOMEM
					   : ABX_EIO,
			   NULL, "%s: %s", text, strerror(err));
}

int32_t docker_canceled(struct abx_call *call)
{
	return docker_fail(call, ABX_ECANCELED, NULL, "cancelled");
}

int32_t docker_timed_out(struct abx_call *call)
{
	return docker_fail(call, ABX_ETIMEDOUT, NULL, "the time for this operation is over");
}

int32_t docker_no_memory(struct abx_call *call)
{
	return docker_fail(call, ABX_ENOMEM, NULL, "out of memory");
}

int32_t docker_poll(struct abx_call *call, struct pollfd *fds, size_t n, int64_t max_ms)
{
	struct pollfd all[6];
	int64_t left = docker_host->time_left_ms(call);
	int64_t wait = max_ms >= 0 && max_ms < left ? max_ms : left;
	int r;

	if (n >= ABX_N_ELEMENTS(all))
		return docker_fail(call, ABX_EINTERNAL, NULL, "poll: too many descriptors");
	if (left <= 0)
		return docker_timed_out(call);
	memcpy(all, fds, n * sizeof(*fds));
	all[n] = (struct pollfd){.fd = docker_host->cancel_fd(call), .events = POLLIN};
	r = poll(all, n + 1, wait > 60000 ? 60000 : (int)wait);
	if (r < 0 && errno != EINTR)
		return docker_fail_errno(call, errno, "poll");
	for (size_t i = 0; i < n; i++)
		fds[i].revents = r > 0 ? all[i].revents : (short)0;
	return r > 0 && all[n].revents ? docker_canceled(call) : ABX_OK;
}
