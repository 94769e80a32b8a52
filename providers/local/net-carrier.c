/* SPDX-License-Identifier: MIT */
/* The program that carries the packets of a box: that it starts, is ready, and has ended. */
#include "providers/local/net.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/local/box.h"

#define READY_WAIT_MS 10000
#define WHY_BYTES 400
#define NOT_STARTED 127

static struct {
	const struct net_carrier *is;
	pid_t pid;
	int go_fd, error_fd;
	struct abx_loop_source died, said;
} carrier = {.go_fd = -1, .error_fd = -1, .died = {.fd = -1}, .said = {.fd = -1}};

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

/* Packets may be wanted never: until then this is all that there is of it. */
static void wait_for_go(int go_fd)
{
	ssize_t n;
	char c;

	box_forget_pages();
	do
		n = read(go_fd, &c, 1);
	while (n < 0 && errno == EINTR);
	/* Our parent is gone. */
	if (n != 1)
		_exit(0);
}

static _Noreturn void become(uint32_t network, int go_fd, int error_fd)
{
	const struct sigaction dflt = {.sa_handler = SIG_DFL};
	const pid_t parent = getppid();
	int null;

	(void)setsid();
	/* When our parent is killed, its lock and its socket are nobody's at once. */
	(void)close(LB_FD_STATUS);
	(void)close(LB_FD_LIVE);
	(void)close(LB_FD_CONTROL);
	wait_for_go(go_fd);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)sigaction(SIGPIPE, &dflt, NULL);
	if (dup2(error_fd, STDERR_FILENO) < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		_exit(1);
	carrier.is->become(network, parent);
	(void)fprintf(stderr, "%s\n", strerror(errno));
	_exit(NOT_STARTED);
}

void net_carrier_fork(const struct net_carrier *c, uint32_t network)
{
	int go_r = -1, error_w = -1;
	pid_t pid;

	carrier.is = c;
	net_pipe(&go_r, &carrier.go_fd);
	net_pipe(&carrier.error_fd, &error_w);
	if (c->prepare)
		c->prepare();
	pid = fork();
	if (pid < 0)
		box_fail_errno(errno, "network helper: new process");
	if (pid == 0) {
		(void)close(carrier.go_fd);
		become(network, go_r, error_w);
	}
	(void)close(go_r);
	(void)close(error_w);
	carrier.pid = pid;
	carrier.died.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (carrier.died.fd < 0)
		box_fail_errno(errno, "network: %s", c->name);
}

static bool was_not_started(void)
{
	int status;

	return waitpid(carrier.pid, &status, WNOHANG) == carrier.pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == NOT_STARTED;
}

static _Noreturn void failed(const char *what)
{
	char why[WHY_BYTES];

	last_line(carrier.error_fd, why, sizeof(why));
	if (was_not_started())
		box_fail(ABX_ENOTFOUND, carrier.is->install, "network: %s: %s", carrier.is->name,
			 why);
	box_fail(ABX_EIO, strstr(why, "tun") ? "chmod 0666 /dev/net/tun" : carrier.is->remedy,
		 "network: %s %s: %s", carrier.is->name, what, *why ? why : "no reason given");
}

static void on_death(struct abx_loop_source *s, uint32_t events)
{
	(void)s;
	(void)events;
	failed("ended");
}

/* What it says later is of interest to nobody, but its pipe may not fill. */
static void on_words(struct abx_loop_source *s, uint32_t events)
{
	char drop[4096];
	ssize_t n = read(s->fd, drop, sizeof(drop));

	(void)events;
	if (n == 0)
		abx_loop_unwatch(s);
}

static void await(void)
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
}

void net_carrier_watch(void)
{
	abx_loop_watch(&carrier.died, carrier.died.fd, EPOLLIN, on_death);
}

void net_carrier_go(void)
{
	const char c = 0;

	/* The pid of the box may be somebody else's by the time that its namespaces are opened;
	 * ours is nobody else's.  Whoever started us may look at them for as long as it takes: the
	 * box does not see this process. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)write(carrier.go_fd, &c, 1);
	(void)close(carrier.go_fd);
	await();
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)fcntl(carrier.error_fd, F_SETFL, O_NONBLOCK);
	abx_loop_watch(&carrier.said, carrier.error_fd, EPOLLIN, on_words);
}
