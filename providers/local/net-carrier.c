/* SPDX-License-Identifier: MIT */
/* The program that carries the packets of a box: that it starts, is ready, and has ended. */
#include "providers/local/net.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/local/box.h"

#define READY_WAIT_MS 10000
#define WHY_BYTES 400

static struct {
	const struct net_carrier *is;
	pid_t pid, stand_in;
	int stand_in_fd; /* never written: its end is that of the stand-in */
	int error_fd;
	struct net_source died, said;
} carrier = {.pid = -1,
	     .stand_in = -1,
	     .stand_in_fd = -1,
	     .error_fd = -1,
	     .died = {.fd = -1},
	     .said = {.fd = -1}};

void net_pipe(int *ret_read, int *ret_write)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		box_fail_errno(errno, "network helper: pipe");
	*ret_read = p[0];
	*ret_write = p[1];
}

/* The last line of what a program complained about, fit for one line of ours. */
static void last_line(int fd, char *why, size_t size)
{
	char text[WHY_BYTES], *end;
	ssize_t n;

	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	end = text + strlen(text);
	while (end > text && end[-1] == '\n')
		*--end = '\0';
	end = strrchr(text, '\n');
	(void)snprintf(why, size, "%s", end ? end + 1 : text);
	for (char *c = why; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = ' ';
}

/* The pid of a box may be somebody else's by the time that the carrier opens its namespaces, and
 * given as paths slirp4netns takes them from root only.  So it gets a child of ours, which has
 * joined the box by its descriptor, and whose pid is nobody else's until we have waited for it. */
static _Noreturn void stand_in(int go_fd, int up_fd)
{
	char c = 0;

	if (setns(LB_FD_BOX, CLONE_NEWUSER | CLONE_NEWNET) < 0)
		_exit(1);
	/* Whoever started us may look at its namespaces; the box does not see this process. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)write(up_fd, &c, 1);
	(void)close(up_fd);
	/* Until our parent is done with it, or gone. */
	while (read(go_fd, &c, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static void start_stand_in(void)
{
	int go_r = -1, up_r = -1, up_w = -1;
	ssize_t n;
	char c;

	net_pipe(&go_r, &carrier.stand_in_fd);
	net_pipe(&up_r, &up_w);
	carrier.stand_in = fork();
	if (carrier.stand_in < 0)
		box_fail_errno(errno, "network helper: new process");
	if (carrier.stand_in == 0) {
		(void)close(carrier.stand_in_fd);
		stand_in(go_r, up_w);
	}
	(void)close(go_r);
	(void)close(up_w);
	do
		n = read(up_r, &c, 1);
	while (n < 0 && errno == EINTR);
	(void)close(up_r);
	if (n != 1)
		net_join_box();
}

static void end_stand_in(void)
{
	(void)close(carrier.stand_in_fd);
	while (waitpid(carrier.stand_in, NULL, 0) < 0 && errno == EINTR)
		;
}

void net_carrier_start(const struct net_carrier *c, uint32_t network)
{
	int error_w = -1, r;

	start_stand_in();
	net_pipe(&carrier.error_fd, &error_w);
	carrier.is = c;
	r = c->start(network, carrier.stand_in, error_w, &carrier.pid);
	if (r == -ENOENT || r == -EACCES)
		box_fail(ABX_ENOTFOUND, c->install, "network: %s: %s", c->name, strerror(-r));
	if (r < 0)
		box_fail_errno(-r, "network: %s", c->name);
	(void)close(error_w);
	r = (int)syscall(SYS_pidfd_open, carrier.pid, 0);
	if (r < 0)
		box_fail_errno(errno, "network: %s", c->name);
	carrier.died.fd = r;
}

static _Noreturn void failed(const char *what)
{
	char why[WHY_BYTES];

	last_line(carrier.error_fd, why, sizeof(why));
	box_fail(ABX_EIO, strstr(why, "tun") ? "chmod 0666 /dev/net/tun" : carrier.is->remedy,
		 "network: %s %s: %s", carrier.is->name, what, *why ? why : "no reason given");
}

static void on_death(struct net_source *s, uint32_t events)
{
	(void)s;
	(void)events;
	failed("ended");
}

/* What it says later is of interest to nobody, but its pipe may not fill. */
static void on_words(struct net_source *s, uint32_t events)
{
	char drop[4096];
	ssize_t n = read(s->fd, drop, sizeof(drop));

	(void)events;
	if (n == 0)
		net_unwatch(s);
}

void net_carrier_await(void)
{
	struct pollfd p[] = {{.fd = carrier.is->watch(), .events = POLLIN},
			     {.fd = carrier.died.fd, .events = POLLIN}};

	while (!carrier.is->ready()) {
		int n = poll(p, 2, READY_WAIT_MS);

		if (n == 0)
			failed("is not ready in time");
		if (n > 0 && p[1].revents)
			failed("failed");
	}
	(void)close(p[0].fd);
	end_stand_in();
	net_watch(&carrier.died, carrier.died.fd, EPOLLIN, on_death);
	(void)fcntl(carrier.error_fd, F_SETFL, O_NONBLOCK);
	net_watch(&carrier.said, carrier.error_fd, EPOLLIN, on_words);
}
