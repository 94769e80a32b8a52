/* SPDX-License-Identifier: MIT */
/* The standard input of a command, through a pipe of our own. */
#include "providers/local/feed.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>

#include "abxsdk/base.h"

#define FEED_BYTES ((size_t)64 << 10)

int local_feed_open(struct local_feed *f, int from, int *ret_fd)
{
	int p[2];

	if (from < 0)
		return 0;
	f->buffer = malloc(FEED_BYTES);
	if (!f->buffer)
		return -ENOMEM;
	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	/* Only our end: how the box reads is its own affair. */
	if (fcntl(p[1], F_SETFL, O_NONBLOCK) < 0) {
		int saved = errno;

		(void)close(p[0]);
		(void)close(p[1]);
		return -saved;
	}
	f->from = from;
	f->to = p[1];
	*ret_fd = p[0];
	return 0;
}

static void end(struct local_feed *f)
{
	abx_cleanup_close(&f->to);
	f->to = f->from = -1;
}

void local_feed_poll(const struct local_feed *f, struct pollfd p[2])
{
	const bool full = f->at < f->len;

	p[0] = (struct pollfd){.fd = full || f->to < 0 ? -1 : f->from, .events = POLLIN};
	/* Without something to write it still tells that nobody reads any more. */
	p[1] = (struct pollfd){.fd = f->to, .events = full ? POLLOUT : 0};
}

void local_feed_move(struct local_feed *f, const struct pollfd p[2])
{
	ssize_t n;

	if (p[0].revents) {
		n = read(f->from, f->buffer, FEED_BYTES);
		if (n > 0) {
			f->at = 0;
			f->len = (size_t)n;
		} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
			end(f);
		}
	}
	if (f->to >= 0 && f->at < f->len) {
		n = write(f->to, f->buffer + f->at, f->len - f->at);
		if (n > 0)
			f->at += (size_t)n;
		else if (errno != EINTR && errno != EAGAIN)
			end(f);
	} else if (f->to >= 0 && p[1].revents & (POLLERR | POLLHUP)) {
		end(f);
	}
}

void local_feed_close(struct local_feed *f)
{
	end(f);
	free(f->buffer);
	f->buffer = NULL;
}
