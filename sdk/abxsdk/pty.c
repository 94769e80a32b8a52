/* SPDX-License-Identifier: MIT */
/* A terminal for one command. */
#include "abxsdk/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "abxsdk/base.h"

#define DEFAULT_ROWS 24
#define DEFAULT_COLS 80
#define END_OF_INPUT "\004" /* what a terminal takes for the end of its input */
/* What may still be in a terminal when its command has ended. */
#define REST_BYTES_MAX ((size_t)1 << 20)

static void set_size(int fd, unsigned int rows, unsigned int cols)
{
	struct winsize w = {.ws_row = (unsigned short)(rows ? rows : DEFAULT_ROWS),
			    .ws_col = (unsigned short)(cols ? cols : DEFAULT_COLS)};

	(void)ioctl(fd, TIOCSWINSZ, &w);
}

int abx_pty_open(struct abx_pty *p, int in_fd, int out_fd, unsigned int rows, unsigned int cols)
{
	int unlocked = 0;

	memset(p, 0, sizeof(*p));
	p->in_fd = in_fd;
	p->out_fd = out_fd;
	p->slave = -1;
	p->master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (p->master < 0)
		p->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (p->master < 0)
		return -errno;
	/* By descriptor: the path could be anything in a box. */
	if (ioctl(p->master, TIOCSPTLCK, &unlocked) == 0)
		p->slave = ioctl(p->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (p->slave < 0) {
		int saved = errno;

		(void)close(p->master);
		return -saved;
	}
	set_size(p->master, rows, cols);
	p->input_open = in_fd >= 0;
	p->output_open = true;
	/* The pipe is ours alone; the input is not and stays as it is. */
	(void)fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
	return 0;
}

void abx_pty_poll(const struct abx_pty *p, struct pollfd *fds)
{
	bool full = p->out_len == sizeof(p->out);

	fds[0] = (struct pollfd){.fd = p->input_open && !p->in_len ? p->in_fd : -1,
				 .events = POLLIN};
	fds[1] =
		(struct pollfd){.fd = p->master,
				.events = (short)((full ? 0 : POLLIN) | (p->in_len ? POLLOUT : 0))};
	fds[2] = (struct pollfd){.fd = p->output_open && p->out_len ? p->out_fd : -1,
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

static void read_input(struct abx_pty *p)
{
	ssize_t n = read(p->in_fd, p->in, sizeof(p->in));

	if (n > 0) {
		p->in_len = (size_t)n;
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		p->input_open = false;
		p->in[0] = END_OF_INPUT[0];
		p->in_len = 1;
	}
}

static void write_input(struct abx_pty *p)
{
	ssize_t n = write(p->master, p->in, p->in_len);

	if (n > 0)
		consume(p->in, &p->in_len, (size_t)n);
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		p->in_len = 0;
}

/* Bytes read; 0 when there are none now. */
static size_t read_output(struct abx_pty *p)
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

static void write_output(struct abx_pty *p)
{
	ssize_t n = p->output_open ? write(p->out_fd, p->out, p->out_len) : (ssize_t)p->out_len;

	if (n > 0) {
		consume(p->out, &p->out_len, (size_t)n);
	} else if (n < 0 && errno != EINTR && errno != EAGAIN) {
		p->output_open = false;
		p->out_len = 0;
	}
}

void abx_pty_serve(struct abx_pty *p, const struct pollfd *fds)
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

void abx_pty_finish(struct abx_pty *p)
{
	size_t done = 0, n = 1;

	/* The client reads as long as it is there. */
	(void)fcntl(p->out_fd, F_SETFL, fcntl(p->out_fd, F_GETFL) & ~O_NONBLOCK);
	while (done < REST_BYTES_MAX && (n || p->out_len)) {
		n = p->out_len < sizeof(p->out) ? read_output(p) : 0;
		done += n;
		if (p->out_len)
			write_output(p);
	}
}

void abx_pty_resize(const struct abx_pty *p, unsigned int rows, unsigned int cols)
{
	set_size(p->master, rows, cols);
}

bool abx_term_is_known(const char *term, const char *home)
{
	static const char *const dirs[] = {"/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo",
					   "/usr/lib/terminfo", "/usr/share/misc/terminfo"};
	char path[4096];

	for (const char *c = term; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		      (*c >= '0' && *c <= '9') || (c > term && strchr("-_.+", *c))))
			return false;
	if (!*term || strlen(term) > 64)
		return false;
	for (size_t i = 0; i <= ABX_N_ELEMENTS(dirs); i++) {
		const bool own = i == ABX_N_ELEMENTS(dirs);
		int n = snprintf(path, sizeof(path), "%s%s/%c/%s", own ? home : dirs[i],
				 own ? "/.terminfo" : "", *term, term);

		if (n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0)
			return true;
	}
	return false;
}
