/* SPDX-License-Identifier: MIT */
/* slirp4netns, which carries packets from and to the sockets of an ordinary process. */
#include "providers/local/net.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "abxsdk/spawn.h"
#include "providers/local/box.h"

/* Descriptors in slirp4netns. */
#define SLIRP_READY 3
#define SLIRP_EXIT 4

static int ready_fd = -1;
static int alive_fd = -1; /* never written: slirp4netns ends when we, its only holder, do */

/* As root slirp4netns leaves the machine's root by unmounting it in a mount namespace of its own,
 * and where mounts are shared, which systemd makes them, the whole machine would follow.  So it is
 * started in one where they are slaves; private ones would hold what the machine unmounts.  Who
 * may not do this is no root: there it enters a user namespace first, in which mounts are slaves.
 * Returns the way back, or -1. */
static int part_from_mounts(void)
{
	int back = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	if (back < 0)
		box_fail_errno(errno, "network helper: /proc/self/ns/mnt");
	if (unshare(CLONE_NEWNS) < 0) {
		if (errno != EPERM)
			box_fail_errno(errno, "network helper: mount namespace");
		(void)close(back);
		return -1;
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		box_fail_errno(errno, "network helper: part from the machine's mounts");
	return back;
}

static void return_to_mounts(int back)
{
	if (back < 0)
		return;
	if (setns(back, CLONE_NEWNS) < 0)
		box_fail_errno(errno, "network helper: the machine's mounts");
	(void)close(back);
}

static int start(uint32_t network, pid_t stand_in, int error_fd, pid_t *ret_pid)
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
	struct abx_spawn sp = {
		.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = error_fd, .new_session = 1};
	int ready_w = -1, exit_r = -1, mounts, r;

	(void)snprintf(pid, sizeof(pid), "%lld", (long long)stand_in);
	(void)snprintf(ready, sizeof(ready), "--ready-fd=%d", SLIRP_READY);
	(void)snprintf(ended, sizeof(ended), "--exit-fd=%d", SLIRP_EXIT);
	(void)snprintf(cidr, sizeof(cidr), "--cidr=%u.%u.%u.0/24", network >> 24,
		       network >> 16 & 255, network >> 8 & 255);
	net_pipe(&ready_fd, &ready_w);
	net_pipe(&exit_r, &alive_fd);
	sp.extra[0].from = ready_w;
	sp.extra[0].to = SLIRP_READY;
	sp.extra[1].from = exit_r;
	sp.extra[1].to = SLIRP_EXIT;
	sp.n_extra = 2;
	mounts = part_from_mounts();
	r = abx_spawn_start(&sp, ret_pid);
	return_to_mounts(mounts);
	(void)close(ready_w);
	(void)close(exit_r);
	return r;
}

static int watch(void)
{
	(void)fcntl(ready_fd, F_SETFL, O_NONBLOCK);
	return ready_fd;
}

static bool ready(void)
{
	char c;

	return read(ready_fd, &c, 1) == 1;
}

const struct net_carrier net_slirp = {
	.name = "slirp4netns",
	.install = "install the package slirp4netns",
	.remedy = "see slirp4netns(1)",
	.tcp_names = true,
	.start = start,
	.watch = watch,
	.ready = ready,
};
