/* SPDX-License-Identifier: MIT */
/*
 * slirp4netns, which carries packets from and to the sockets of an ordinary process.
 *
 * It listens at a socket for frames (its "bess" mode) instead of opening the interface of the box:
 * so it can start when there is something to carry, and nothing is lost meanwhile.
 */
#include "providers/local/net.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/clock.h"
#include "abxsdk/pass.h"
#include "providers/local/box.h"

#define SLIRP_EXIT 3 /* descriptor in slirp4netns */
#define SOCKET_NAME "frames.sock"
#define CONNECT_WAIT_MS 10000

static int link_fd = -1; /* where the connection for frames arrives */
static int link_end = -1;
static int exit_end = -1; /* the other end, never written: slirp4netns ends when we do */
static int frames_fd = -1;

/* Its sandbox is a mount namespace of its own, which it leaves the machine's root in by unmounting
 * that: where mounts are shared, which systemd makes them, the whole machine would follow.  So as
 * root it is started in one where they are slaves; private ones would hold what the machine
 * unmounts.  Who may not have one has it in a user namespace, in which mounts are slaves. */
static int enter_namespaces(void)
{
	char uid[32], gid[32];

	if (unshare(CLONE_NEWNS) == 0)
		return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL);
	if (errno != EPERM)
		return -1;
	(void)snprintf(uid, sizeof(uid), "0 %u 1\n", geteuid());
	(void)snprintf(gid, sizeof(gid), "0 %u 1\n", getegid());
	if (unshare(CLONE_NEWUSER) < 0)
		return -1;
	/* Without it these files are root's; what it becomes is no secret. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)box_write_proc(getpid(), "setgroups", "deny");
	errno = box_write_proc(getpid(), "uid_map", uid);
	if (!errno)
		errno = box_write_proc(getpid(), "gid_map", gid);
	return errno ? -1 : 0;
}

/* Out of the way of the numbers that it gets there. */
static int move_up(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, LB_FD_LAST + 1);

	if (up < 0)
		box_fail_errno(errno, "network helper: pipe");
	(void)close(fd);
	return up;
}

static void prepare(void)
{
	int alive_fd, pair[2];

	net_pipe(&exit_end, &alive_fd);
	exit_end = move_up(exit_end);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		box_fail_errno(errno, "network helper: socket");
	link_fd = pair[0];
	link_end = move_up(pair[1]);
}

static bool is_done(void)
{
	struct pollfd p = {.fd = link_end};

	return poll(&p, 1, 0) != 0;
}

/* By whom the directory belongs to, which the network helper is not any more. */
static _Noreturn void connect_it(void)
{
	const struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = SOCKET_NAME};
	const int64_t end = abx_monotonic_ms() + CONNECT_WAIT_MS;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	while (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		if (is_done() || abx_monotonic_ms() > end)
			_exit(1);
		(void)poll(NULL, 0, 1);
	}
	(void)unlink(SOCKET_NAME);
	_exit(fd >= 0 && abx_pass_send(link_end, "", 1, fd) == 0 ? 0 : 1);
}

/* Nobody's child, so that slirp4netns has none that it does not know. */
static int start_connector(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			connect_it();
		_exit(pid < 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static void become(uint32_t network, pid_t of)
{
	char cidr[48], ended[24];
	const char *argv[] = {"slirp4netns",
			      "--target-type=bess",
			      "--disable-host-loopback",
			      "--mtu=65520",
			      "--enable-sandbox",
			      "--enable-seccomp",
			      cidr,
			      ended,
			      SOCKET_NAME,
			      NULL};

	(void)of;
	(void)snprintf(ended, sizeof(ended), "--exit-fd=%d", SLIRP_EXIT);
	(void)snprintf(cidr, sizeof(cidr), "--cidr=%u.%u.%u.0/24", network >> 24,
		       network >> 16 & 255, network >> 8 & 255);
	/* Relative, whatever the length of its path; its sandbox leaves the directory. */
	if (fchdir(LB_FD_DIR) == 0 && (unlink(SOCKET_NAME) == 0 || errno == ENOENT) &&
	    start_connector() == 0 && enter_namespaces() == 0 && dup2(exit_end, SLIRP_EXIT) >= 0)
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
}

static int watch(void)
{
	(void)close(link_end);
	(void)close(exit_end);
	(void)fcntl(link_fd, F_SETFL, O_NONBLOCK);
	return link_fd;
}

static bool ready(void)
{
	char c;

	frames_fd = -1;
	(void)abx_pass_recv(link_fd, &c, sizeof(c), 0, &frames_fd);
	return frames_fd >= 0;
}

static int frames(void)
{
	return frames_fd;
}

const struct net_carrier net_slirp = {
	.name = "slirp4netns",
	.install = "install the package slirp4netns",
	.remedy = "see slirp4netns(1)",
	.tcp_names = true,
	.prepare = prepare,
	.become = become,
	.watch = watch,
	.ready = ready,
	.frames = frames,
};
