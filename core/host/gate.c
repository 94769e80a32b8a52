/* SPDX-License-Identifier: MIT */
/* One at a time, with a wait that can be given up. */
#include "core/host/gate.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "core/util/clock.h"

int abx_gate_open(struct abx_gate *g, struct abx_err *err)
{
	g->fd = eventfd(1, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	return g->fd < 0 ? abx_err_errno(err, errno, "eventfd") : 0;
}

void abx_gate_close(struct abx_gate *g)
{
	abx_cleanup_close(&g->fd);
	g->fd = -1;
}

static int poll_timeout(int64_t deadline_ms)
{
	int64_t left;

	if (deadline_ms == INT64_MAX)
		return -1;
	left = deadline_ms - abx_now_ms();
	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

int abx_gate_enter(struct abx_gate *g, int64_t deadline_ms, int cancel_fd)
{
	uint64_t one;

	if (g->fd < 0)
		return 0;
	while (read(g->fd, &one, sizeof(one)) < 0) {
		struct pollfd fds[2] = {{g->fd, POLLIN, 0}, {cancel_fd, POLLIN, 0}};
		int n = poll(fds, 2, poll_timeout(deadline_ms));

		if (n == 0 && deadline_ms <= abx_now_ms())
			return ABX_ETIMEDOUT;
		if (n > 0 && fds[1].revents)
			return ABX_ECANCELED;
	}
	return 0;
}

void abx_gate_leave(struct abx_gate *g)
{
	const uint64_t one = 1;

	if (g->fd >= 0)
		(void)!write(g->fd, &one, sizeof(one));
}
