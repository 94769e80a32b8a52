/* SPDX-License-Identifier: MIT */
/*
 * feed.h: the standard input of a command, through a pipe of our own.
 *
 * The caller's descriptor never enters a box: there it could be opened again for writing, its
 * flags could be changed for everybody who shares it, and a process left behind would keep
 * the caller's terminal.
 *
 *	local_feed_open(&f, req->stdin_fd, &fd_in);
 *	poll: local_feed_poll(&f, p), then local_feed_move(&f, p) until it ended
 *	local_feed_close(&f);
 */
#ifndef LOCAL_FEED_H
#define LOCAL_FEED_H

#include <poll.h>
#include <stddef.h>

struct local_feed {
	int from; /* the caller's; -1 once it ended */
	int to;	  /* our end of the pipe; -1 once nobody reads */
	char *buffer;
	size_t at, len;
};

#define LOCAL_FEED_INIT              \
	{                            \
		.from = -1, .to = -1 \
	}

/* `from` -1: nothing to read, and *ret_fd stays -1.  0 or -errno. */
int local_feed_open(struct local_feed *f, int from, int *ret_fd);
/* What to wait for: two entries. */
void local_feed_poll(const struct local_feed *f, struct pollfd p[2]);
void local_feed_move(struct local_feed *f, const struct pollfd p[2]);
void local_feed_close(struct local_feed *f);

#endif
