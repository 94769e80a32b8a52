/* SPDX-License-Identifier: MIT */
/*
 * Making an image with mmdebstrap.
 *
 * It runs as root of a user namespace with the ids of boxes, for what it downloads and runs is
 * no more to be trusted than what is in a box; and as first process of a pid namespace, so
 * that all of it ends when the client does.
 */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WALK_FDS 32

static int64_t walked_bytes;

static int add_size(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)type;
	(void)ftw;
	walked_bytes += (int64_t)st->st_blocks * 512;
	return 0;
}

/* The directory that becomes the image is the current one: as /tmp it can be reached. */
static void mount_places(void)
{
	if (chmod(".", 0711) < 0 && errno != EPERM)
		box_fail_errno(errno, "image: state directory");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(".", "/tmp", NULL, MS_BIND, NULL) < 0 || chdir("/") < 0)
		box_fail_errno(errno, "image: mount the state directory");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		box_fail(ABX_EPERM, "docker run --security-opt systempaths=unconfined",
			 "mount /proc: refused, the outer container hides parts of its own");
}

static void run(const struct box_req *rq)
{
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	static char home[] = "HOME=/tmp", lang[] = "LC_ALL=C.UTF-8", temp[] = "TMPDIR=/tmp";
	char **env = box_alloc((rq->h.n_env + 5) * sizeof(*env));
	int status = 0, r;
	size_t n = 0;
	pid_t pid, got;

	env[n++] = path;
	env[n++] = home;
	env[n++] = lang;
	env[n++] = temp;
	for (uint32_t i = 0; i < rq->h.n_env; i++)
		env[n++] = rq->env[i];
	r = posix_spawnp(&pid, rq->argv[0], NULL, NULL, rq->argv, env);
	if (r == ENOENT)
		box_fail(ABX_EPERM, "install the package mmdebstrap", "%s: not installed",
			 rq->argv[0]);
	if (r)
		box_fail_errno(r, "%s", rq->argv[0]);
	while ((got = waitpid(-1, &status, 0)) != pid)
		if (got < 0 && errno != EINTR)
			box_fail_errno(errno, "%s", rq->argv[0]);
	if (WIFSIGNALED(status))
		box_fail(ABX_EIO, NULL, "%s: ended by signal %d", rq->argv[0], WTERMSIG(status));
	if (WEXITSTATUS(status))
		box_fail(ABX_EIO, NULL, "%s: exit status %d", rq->argv[0], WEXITSTATUS(status));
}

static _Noreturn void bootstrap(const struct box_req *rq)
{
	struct pollfd p = {.fd = LB_FD_LIFELINE};

	(void)setsid();
	box_become_root(false);
	/* After the change of ids, which resets it; whoever is gone by now is seen here. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (poll(&p, 1, 0) > 0)
		_exit(1);
	(void)umask(022);
	mount_places();
	run(rq);
	if (chroot("/tmp/root") < 0 || chdir("/") < 0)
		box_fail_errno(errno, "image");
	box_image_user(false);
	if (nftw("/", add_size, WALK_FDS, FTW_PHYS | FTW_MOUNT) < 0)
		box_fail_errno(errno, "image");
	box_send_kind(LB_MSG_DONE, walked_bytes);
	_exit(0);
}

void box_bootstrap(const struct box_req *rq)
{
	int sync[2], status;
	pid_t pid;

	box_new_session_keyring();
	if (fchdir(LB_FD_BOX) < 0 || pipe2(sync, O_CLOEXEC) < 0)
		box_fail_errno(errno, "state directory");
	(void)close(LB_FD_BOX);
	/* The network is the host's: packages come from there. */
	pid = box_clone(rq, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC);
	if (pid == 0) {
		(void)close(sync[1]);
		box_await_maps(sync[0]);
		bootstrap(rq);
	}
	(void)close(sync[0]);
	box_write_maps(rq, pid);
	box_write_all(sync[1], "", 1);
	for (;;) {
		struct pollfd p[] = {
			{.fd = LB_FD_LIFELINE, .events = POLLIN},
			{.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN}};

		if (poll(p, 2, -1) < 0 && errno == EINTR)
			continue;
		if (p[0].revents)
			(void)kill(pid, SIGKILL);
		break;
	}
	_exit(waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1);
}
