/* SPDX-License-Identifier: MIT */
/*
 * pty [-r ROWS] [-c COLS] [-t SECONDS] SCRIPT COMMAND...: run a command on a terminal of its own.
 *
 * What it prints goes to stdout.  SCRIPT is a file of lines, done in turn:
 *	wait TEXT	until it printed TEXT, behind what the last wait saw
 *	send TEXT	type TEXT; \n \r \t \\ and \xHH are what they are in C
 *	paste FILE	type what is in FILE
 *	resize R C	change the size of the terminal
 *	hangup		close the terminal
 * After that it waits for the command's end and returns its code; 98 when SECONDS are over.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/clock.h"
#include "tests/contract/tool.h"

#define SEEN_MAX (1 << 20)

struct pty {
	int fd; /* -1 once hung up */
	pid_t pid;
	int64_t until;
	char *script; /* what is left of it */
	char *pasted;
	char *seen;
	size_t seen_len;
	const char *wait; /* what is waited for, NULL = nothing */
	char *out;	  /* typed and not yet taken */
	size_t out_len;
};

static int open_pty(struct pty *p, unsigned short rows, unsigned short cols, char *name, size_t len)
{
	const struct winsize size = {.ws_row = rows, .ws_col = cols};

	p->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (p->fd < 0 || grantpt(p->fd) < 0 || unlockpt(p->fd) < 0 ||
	    ptsname_r(p->fd, name, len) != 0 || ioctl(p->fd, TIOCSWINSZ, &size) < 0)
		return tool_fail("open a terminal");
	return 0;
}

static void __attribute__((noreturn)) child(const char *name, char **argv)
{
	int fd;

	(void)setsid();
	fd = open(name, O_RDWR);
	if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) < 0)
		_exit(tool_fail(name));
	for (int i = 0; i < 3; i++)
		(void)dup2(fd, i);
	if (fd > 2)
		(void)close(fd);
	(void)tool_sigdfl(1, argv);
	_exit(127);
}

static char *read_file(const char *path, size_t *ret_len)
{
	FILE *file = fopen(path, "re");
	char *data = malloc(SEEN_MAX);
	size_t len = 0;

	if (!file || !data) {
		(void)tool_fail(path);
		exit(99);
	}
	len = fread(data, 1, SEEN_MAX - 1, file);
	data[len] = '\0';
	(void)fclose(file);
	*ret_len = len;
	return data;
}

/* In place; returns the new length. */
static size_t unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (*at != '\\' || !at[1]) {
			*to++ = *at;
			continue;
		}
		at++;
		if (*at == 'x' && at[1] && at[2]) {
			const char hex[3] = {at[1], at[2], '\0'};

			*to++ = (char)strtoul(hex, NULL, 16);
			at += 2;
		} else {
			*to++ = (char)(*at == 'n'   ? '\n'
				       : *at == 'r' ? '\r'
				       : *at == 't' ? '\t'
						    : *at);
		}
	}
	return (size_t)(to - text);
}

static void resize(const struct pty *p, const char *text)
{
	struct winsize size = {0};
	char *end;

	size.ws_row = (unsigned short)strtoul(text, &end, 10);
	size.ws_col = (unsigned short)strtoul(end, NULL, 10);
	if (ioctl(p->fd, TIOCSWINSZ, &size) < 0)
		(void)tool_fail("resize");
}

static void hang_up(struct pty *p)
{
	(void)close(p->fd);
	p->fd = -1;
}

/* Do lines until one has to wait. */
static void step(struct pty *p)
{
	while (!p->wait && !p->out_len && *p->script) {
		char *line = p->script;
		char *end = strchrnul(line, '\n');

		p->script = *end ? end + 1 : end;
		*end = '\0';
		if (strncmp(line, "wait ", 5) == 0) {
			p->wait = line + 5;
		} else if (strncmp(line, "send ", 5) == 0) {
			p->out = line + 5;
			p->out_len = unescape(p->out);
		} else if (strncmp(line, "paste ", 6) == 0) {
			free(p->pasted);
			p->pasted = p->out = read_file(line + 6, &p->out_len);
		} else if (strncmp(line, "resize ", 7) == 0) {
			resize(p, line + 7);
		} else if (strcmp(line, "hangup") == 0) {
			hang_up(p);
		} else if (*line) {
			errno = EINVAL;
			(void)tool_fail(line);
			exit(99);
		}
	}
}

static void look(struct pty *p)
{
	const char *at = p->wait ? memmem(p->seen, p->seen_len, p->wait, strlen(p->wait)) : NULL;
	size_t cut;

	if (!at)
		return;
	cut = (size_t)(at - p->seen) + strlen(p->wait);
	(void)memmove(p->seen, p->seen + cut, p->seen_len - cut);
	p->seen_len -= cut;
	p->wait = NULL;
}

/* False at the end of what is printed. */
static int take(struct pty *p)
{
	char buf[16384];
	const ssize_t n = read(p->fd, buf, sizeof(buf));

	if (n < 0 && errno == EINTR)
		return 1;
	if (n <= 0)
		return 0;
	if (tool_write(STDOUT_FILENO, buf, (size_t)n) < 0)
		exit(tool_fail("write"));
	if (p->seen_len + (size_t)n > SEEN_MAX)
		p->seen_len = 0;
	(void)memcpy(p->seen + p->seen_len, buf, (size_t)n);
	p->seen_len += (size_t)n;
	return 1;
}

static void type(struct pty *p)
{
	const ssize_t n = write(p->fd, p->out, p->out_len < 4096 ? p->out_len : 4096);

	if (n > 0) {
		p->out += n;
		p->out_len -= (size_t)n;
	}
}

/* Until the terminal has no user any more, or time is over (98). */
static int serve(struct pty *p)
{
	for (;;) {
		struct pollfd pfd;
		const int64_t left = p->until - abx_monotonic_ms();

		look(p);
		step(p);
		if (p->fd < 0)
			return 0;
		if (left <= 0)
			return 98;
		pfd = (struct pollfd){
			.fd = p->fd,
			.events = (short)(POLLIN | (p->out_len ? POLLOUT : 0)),
		};
		if (poll(&pfd, 1, (int)left) < 0)
			continue;
		if (pfd.revents & POLLOUT)
			type(p);
		if ((pfd.revents & (POLLIN | POLLHUP)) && !take(p))
			return 0;
	}
}

int tool_pty(int argc, char **argv)
{
	struct pty p = {.until = abx_monotonic_ms() + 30000};
	unsigned short rows = 24, cols = 80;
	char *script;
	size_t len;
	int opt, r, status = 0;
	char name[128];

	optind = 0;
	while ((opt = getopt(argc, argv, "+r:c:t:")) > 0) {
		if (opt == 'r')
			rows = (unsigned short)strtoul(optarg, NULL, 10);
		else if (opt == 'c')
			cols = (unsigned short)strtoul(optarg, NULL, 10);
		else if (opt == 't')
			p.until = abx_monotonic_ms() + 1000 * strtol(optarg, NULL, 10);
		else
			return 2;
	}
	if (argc - optind < 2)
		return 2;
	p.script = script = read_file(argv[optind], &len);
	p.seen = malloc(2 * SEEN_MAX);
	if (!p.seen || open_pty(&p, rows, cols, name, sizeof(name)) != 0)
		return 99;
	p.pid = fork();
	if (p.pid == 0)
		child(name, argv + optind + 1);
	r = p.pid < 0 ? tool_fail("fork") : serve(&p);
	if (r == 98)
		(void)kill(p.pid, SIGKILL);
	while (p.pid > 0 && waitpid(p.pid, &status, 0) < 0 && errno == EINTR)
		;
	free(script);
	free(p.pasted);
	free(p.seen);
	return r ? r : tool_exit_code(status);
}
