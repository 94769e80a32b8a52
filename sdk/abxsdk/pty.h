/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/pty.h: a terminal for one command.
 *
 *	struct abx_pty p;
 *	int r = abx_pty_open(&p, in_fd, out_fd, rows, cols);
 *	... start the command with p.slave as its terminal, close p.slave ...
 *	loop: abx_pty_poll(&p, fds); poll(); abx_pty_serve(&p, fds);
 *	the command has ended: abx_pty_finish(&p);
 *
 * What comes from `in` goes to the terminal, what the terminal shows to `out`; nothing is
 * dropped: whoever is slow makes the other side wait.  The end of `in` is typed as ^D.
 * Descriptors stay the caller's; `out` is made non-blocking.
 */
#ifndef ABXSDK_PTY_H
#define ABXSDK_PTY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct abx_pty {
	int master, slave, in_fd, out_fd;
	char in[4096], out[32768];
	size_t in_len, out_len;
	bool input_open, output_open, hung_up;
};
#define ABX_PTY_FDS 3

/* What every terminfo knows, and most terminals are. */
#define ABX_DEFAULT_TERM "xterm-256color"

/* 0 or -errno.  A size of nothing is 24 x 80. */
int abx_pty_open(struct abx_pty *p, int in_fd, int out_fd, unsigned int rows, unsigned int cols);
void abx_pty_poll(const struct abx_pty *p, struct pollfd *fds);
void abx_pty_serve(struct abx_pty *p, const struct pollfd *fds);
void abx_pty_finish(struct abx_pty *p);
void abx_pty_resize(const struct abx_pty *p, unsigned int rows, unsigned int cols);

/* Is there a description of this terminal here?  A name that is none is not looked for. */
bool abx_term_is_known(const char *term, const char *home);

#endif
