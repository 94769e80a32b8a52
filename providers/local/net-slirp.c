/* SPDX-License-Identifier: MIT */
/* slirp4netns, which carries the packets of a box. */
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

#include "abxsdk/spawn.h"
#include "providers/local/box.h"

#define READY_WAIT_MS 10000
#define WHY_BYTES 400
/* Descriptors in slirp4netns. */
#define SLIRP_READY 3
#define SLIRP_EXIT 4

static struct {
	pid_t pid, stand_in;
	int stand_in_fd; /* never written: its end is that of the stand-in */
	int ready_fd, error_fd;
	int alive_fd; /* never written: slirp4netns ends when we, its only holder, do */
	struct net_source died, said;
} slirp = {.pid = -1,
	   .stand_in = -1,
	   .stand_in_fd = -1,
	   .ready_fd = -1,
	   .error_fd = -1,
	   .alive_fd = -1,
	   .died = {.fd = -1},
	   .said = {.fd = -1}};

static void make_pipe(int *ret_read, int *ret_write)
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

/* The pid of a box may be somebody else's by the time that slirp4netns opens its namespaces, and
 * given as paths it takes them from root only.  So it gets a child of ours, which has joined the
 * box by its descriptor, and whose pid is nobody else's until we have waited for it. */
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

	make_pipe(&go_r, &slirp.stand_in_fd);
	make_pipe(&up_r, &up_w);
	slirp.stand_in = fork();
	if (slirp.stand_in < 0)
		box_fail_errno(errno, "network helper: new process");
	if (slirp.stand_in == 0) {
		(void)close(slirp.stand_in_fd);
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
	(void)close(slirp.stand_in_fd);
	while (waitpid(slirp.stand_in, NULL, 0) < 0 && errno == EINTR)
		;
}

void net_slirp_start(uint32_t network)
{
	char cidr[48], ready[24], ended[24], pid[24];
	const char *argv[] = {"slirp4netns",
			      "--disable-host-loopback",
			      "--mtu=65520",
			      "--enable-sandbox",
			      "--enable-seccomp",
			      cidr,
			      ready,
			      ended,
			      pid,
			      NET_TAP,
			      NULL};
	struct abx_spawn sp = {.argv = argv, .fd_in = -1, .fd_out = -1, .new_session = 1};
	int ready_w = -1, exit_r = -1, error_w = -1, r;

	start_stand_in();
	(void)snprintf(pid, sizeof(pid), "%lld", (long long)slirp.stand_in);
	(void)snprintf(ready, sizeof(ready), "--ready-fd=%d", SLIRP_READY);
	(void)snprintf(ended, sizeof(ended), "--exit-fd=%d", SLIRP_EXIT);
	(void)snprintf(cidr, sizeof(cidr), "--cidr=%u.%u.%u.0/24", network >> 24,
		       network >> 16 & 255, network >> 8 & 255);
	make_pipe(&slirp.ready_fd, &ready_w);
	make_pipe(&exit_r, &slirp.alive_fd);
	make_pipe(&slirp.error_fd, &error_w);
	sp.fd_err = error_w;
	sp.extra[0].from = ready_w;
	sp.extra[0].to = SLIRP_READY;
	sp.extra[1].from = exit_r;
	sp.extra[1].to = SLIRP_EXIT;
	sp.n_extra = 2;
	r = abx_spawn_start(&sp, &slirp.pid);
	if (r == -ENOENT)
		box_fail(ABX_ENOTFOUND, "install the package slirp4netns",
			 "network: slirp4netns is missing");
	if (r < 0)
		box_fail_errno(-r, "network: slirp4netns");
	(void)close(ready_w);
	(void)close(exit_r);
	(void)close(error_w);
}

static _Noreturn void slirp_failed(const char *what)
{
	char why[WHY_BYTES];

	last_line(slirp.error_fd, why, sizeof(why));
	box_fail(ABX_EIO,
		 strstr(why, "/dev/net/tun") ? "chmod 0666 /dev/net/tun" : "see slirp4netns(1)",
		 "network: slirp4netns %s: %s", what, *why ? why : "no reason given");
}

static void on_death(struct net_source *s, uint32_t events)
{
	(void)s;
	(void)events;
	slirp_failed("ended");
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

void net_slirp_await(void)
{
	struct pollfd p = {.fd = slirp.ready_fd, .events = POLLIN};
	char c;
	int n, pidfd;

	do
		n = poll(&p, 1, READY_WAIT_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		slirp_failed("is not ready in time");
	if (read(slirp.ready_fd, &c, 1) != 1)
		slirp_failed("failed");
	(void)close(slirp.ready_fd);
	end_stand_in();
	pidfd = (int)syscall(SYS_pidfd_open, slirp.pid, 0);
	if (pidfd < 0)
		box_fail_errno(errno, "network: slirp4netns");
	net_watch(&slirp.died, pidfd, EPOLLIN, on_death);
	(void)fcntl(slirp.error_fd, F_SETFL, O_NONBLOCK);
	net_watch(&slirp.said, slirp.error_fd, EPOLLIN, on_words);
}
