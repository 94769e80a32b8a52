/* SPDX-License-Identifier: MIT */
/* A terminal of the box for one command, carried over the helper's standard streams. */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TTY_GROUP 5
#define END_OF_INPUT "\004" /* what a terminal takes for the end of its input */
/* What may still be in a terminal when its command has ended. */
#define REST_BYTES_MAX ((size_t)1 << 20)

void box_pty_open(struct box_pty *p, const struct box_req *rq, const struct box_user *u)
{
	struct winsize w = {.ws_row = (unsigned short)rq->h.rows,
			    .ws_col = (unsigned short)rq->h.cols};
	bool single = rq->h.flags & LB_F_SINGLE_ID;
	int unlocked = 0;

	p->master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (p->master < 0 || ioctl(p->master, TIOCSPTLCK, &unlocked) < 0)
		box_fail_errno(errno, "exec: terminal");
	/* By descriptor: the path could be anything in a box. */
	p->slave = ioctl(p->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (p->slave < 0 || (!single && fchown(p->slave, u->uid, TTY_GROUP) < 0))
		box_fail_errno(errno, "exec: terminal");
	if (w.ws_row && w.ws_col)
		(void)ioctl(p->master, TIOCSWINSZ, &w);
	p->input_open = p->output_open = true;
	/* The pipe is ours alone; standard input is not and stays as it is. */
	(void)fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
}

void box_pty_poll(const struct box_pty *p, struct pollfd *fds)
{
	bool full = p->out_len == sizeof(p->out);

	fds[0] = (struct pollfd){.fd = p->input_open && !p->in_len ? STDIN_FILENO : -1,
				 .events = POLLIN};
	fds[1] =
		(struct pollfd){.fd = p->master,
				.events = (short)((full ? 0 : POLLIN) | (p->in_len ? POLLOUT : 0))};
	fds[2] = (struct pollfd){.fd = p->output_open && p->out_len ? STDOUT_FILENO : -1,
				 .events = POLLOUT};
	/* A terminal that nobody has open is always "ready". */
	if ((p->hung_up || full) && !p->in_len)
		fds[1].fd = -1;
}

/* Move the first n bytes out of a buffer. */
static void consume(char *b, size_t *len, size_t n)
{
	for (size_t i = n; i < *len; i++)
		b[i - n] = b[i];
	*len -= n;
}

static void read_input(struct box_pty *p)
{
	ssize_t n = read(STDIN_FILENO, p->in, sizeof(p->in));

	if (n > 0) {
		p->in_len = (size_t)n;
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		p->input_open = false;
		p->in[0] = END_OF_INPUT[0];
		p->in_len = 1;
	}
}

static void write_input(struct box_pty *p)
{
	ssize_t n = write(p->master, p->in, p->in_len);

	if (n > 0)
		consume(p->in, &p->in_len, (size_t)n);
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		p->in_len = 0;
}

/* Bytes read; 0 when there are none now. */
static size_t read_output(struct box_pty *p)
{
	ssize_t n = read(p->master, p->out + p->out_len, sizeof(p->out) - p->out_len);

	if (n > 0) {
		p->out_len += (size_t)n;
		return (size_t)n;
	}
	if (n == 0 || (errno != EINTR && errno != EAGAIN))
		p->hung_up = true;
	return 0;
}

static void write_output(struct box_pty *p)
{
	ssize_t n = p->output_open ? write(STDOUT_FILENO, p->out, p->out_len) : (ssize_t)p->out_len;

	if (n > 0) {
		consume(p->out, &p->out_len, (size_t)n);
	} else if (n < 0 && errno != EINTR && errno != EAGAIN) {
		p->output_open = false;
		p->out_len = 0;
	}
}

void box_pty_serve(struct box_pty *p, const struct pollfd *fds)
{
	if (fds[0].revents)
		read_input(p);
	if (fds[1].revents & POLLOUT)
		write_input(p);
	if ((fds[1].revents & (POLLIN | POLLHUP)) && p->out_len < sizeof(p->out))
		(void)read_output(p);
	if (p->out_len)
		write_output(p);
}

void box_pty_finish(struct box_pty *p)
{
	size_t done = 0, n = 1;

	/* The client reads as long as it is there. */
	(void)fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) & ~O_NONBLOCK);
	while (done < REST_BYTES_MAX && (n || p->out_len)) {
		n = p->out_len < sizeof(p->out) ? read_output(p) : 0;
		done += n;
		if (p->out_len)
			write_output(p);
	}
}

void box_pty_resize(const struct box_pty *p, unsigned short rows, unsigned short cols)
{
	struct winsize w = {.ws_row = rows, .ws_col = cols};

	(void)ioctl(p->master, TIOCSWINSZ, &w);
}
