/* SPDX-License-Identifier: MIT */
/* The programs that the network of a box stands on: slirp4netns and nft. */
#include "providers/local/net.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/spawn.h"
#include "providers/local/box.h"

#define READY_WAIT_MS 10000
#define WHY_BYTES 400
/* Descriptors in slirp4netns. */
#define SLIRP_READY 3
#define SLIRP_EXIT 4

static struct {
	pid_t pid;
	int ready_fd, error_fd;
	int alive_fd; /* never written: slirp4netns ends when we, its only holder, do */
	struct net_source died, said;
} slirp = {.pid = -1,
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

void net_slirp_start(const char *pid, uint32_t network)
{
	char cidr[48], ready[24], ended[24];
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

	(void)snprintf(cidr, sizeof(cidr), "--cidr=%u.%u.%u.0/24", network >> 24,
		       network >> 16 & 255, network >> 8 & 255);
	(void)snprintf(ready, sizeof(ready), "--ready-fd=%d", SLIRP_READY);
	(void)snprintf(ended, sizeof(ended), "--exit-fd=%d", SLIRP_EXIT);
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
	pidfd = (int)syscall(SYS_pidfd_open, slirp.pid, 0);
	if (pidfd < 0)
		box_fail_errno(errno, "network: slirp4netns");
	net_watch(&slirp.died, pidfd, EPOLLIN, on_death);
	(void)fcntl(slirp.error_fd, F_SETFL, O_NONBLOCK);
	net_watch(&slirp.said, slirp.error_fd, EPOLLIN, on_words);
}

bool net_nft(const struct abx_buf *rules, char *ret_why, size_t size)
{
	static const char *const argv[] = {"nft", "-f", "-", NULL};
	struct abx_spawn sp = {.argv = argv, .fd_out = -1};
	int status = -1, r;
	pid_t pid;

	if (rules->failed)
		box_fail_errno(ENOMEM, "network: rules");
	sp.fd_in = memfd_create("agentbox-rules", MFD_CLOEXEC);
	if (sp.fd_in < 0 || abx_fs_write_all(sp.fd_in, rules->data, rules->len) < 0 ||
	    lseek(sp.fd_in, 0, SEEK_SET) < 0)
		box_fail_errno(errno, "network: rules");
	sp.fd_err = memfd_create("agentbox-errors", MFD_CLOEXEC);
	r = abx_spawn_start(&sp, &pid);
	(void)close(sp.fd_in);
	if (r == 0) {
		(void)abx_spawn_wait(pid, &status);
		(void)lseek(sp.fd_err, 0, SEEK_SET);
		last_line(sp.fd_err, ret_why, size);
	} else {
		(void)snprintf(ret_why, size, "%s", strerror(-r));
	}
	abx_cleanup_close(&sp.fd_err);
	return r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
