/* SPDX-License-Identifier: MIT */
/* Making the namespaces of a box, joining them, and working in a user namespace alone. */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Files of /proc have no size: read what fits. */
static const char *read_proc(const char *path, char *b, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, b, size - 1);

	if (fd >= 0)
		(void)close(fd);
	b[n > 0 ? n : 0] = '\0';
	return b;
}

static bool sysctl_is(const char *path, const char *line)
{
	char b[32];

	return strcmp(read_proc(path, b, sizeof(b)), line) == 0;
}

static bool seccomp_filtered(void)
{
	char b[8192];

	return strstr(read_proc("/proc/self/status", b, sizeof(b)), "\nSeccomp:\t2") != NULL;
}

static bool root_is_chroot(void)
{
	struct statx st;

	return statx(AT_FDCWD, "/", 0, STATX_TYPE, &st) == 0 &&
	       (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) &&
	       !(st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Which of the many locks on user namespaces is it? */
static _Noreturn void fail_clone(int err)
{
	if (sysctl_is("/proc/sys/user/max_user_namespaces", "0\n") || err == ENOSPC)
		box_fail(ABX_EPERM, "sysctl -w user.max_user_namespaces=15000",
			 "new user namespace: the limit user.max_user_namespaces is reached");
	if (err != EPERM)
		box_fail_errno(err, "new namespaces");
	if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", "0\n"))
		box_fail(ABX_EPERM, "sysctl -w kernel.unprivileged_userns_clone=1",
			 "new user namespace: forbidden by kernel.unprivileged_userns_clone");
	if (root_is_chroot())
		box_fail(ABX_EPERM, "enter the root with pivot_root (unshare -m, or bwrap)",
			 "new user namespace: not possible inside a chroot");
	if (seccomp_filtered())
		box_fail(
			ABX_EPERM,
			"start the outer container with --security-opt seccomp=unconfined",
			"new user namespace: forbidden by a seccomp filter of the outer container");
	box_fail(ABX_EPERM,
		 "leave a chroot by pivot_root (unshare -m, or bwrap); else the kernel's log may "
		 "say "
		 "which security module it was",
		 "new user namespace: forbidden, by a chroot or a security module");
}

void box_fail_refused(int err, const char *what)
{
	if (err != EPERM && err != EACCES)
		box_fail_errno(err, "%s", what);
	if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n"))
		box_fail(ABX_EPERM, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
			 "%s: a new user namespace has no rights (AppArmor restricts it)", what);
	if (seccomp_filtered())
		box_fail(ABX_EPERM,
			 "start the outer container with --security-opt seccomp=unconfined",
			 "%s: forbidden by a seccomp filter of the outer container", what);
	box_fail(ABX_EPERM, "the kernel's log may say which one (dmesg, journalctl -k)",
		 "%s: forbidden by a security module", what);
}

unsigned long box_namespaces(const struct box_req *rq)
{
	unsigned long net = CLONE_NEWNET;

	return rq->h.flags & LB_F_HOST_NET ? BOX_NAMESPACES & ~net : BOX_NAMESPACES;
}

pid_t box_clone(const struct box_req *rq, unsigned long flags)
{
	long pid;

	/* The map files of a process that is not dumpable belong to root.  The child is not
	 * dumpable any more once it has become root of its namespace. */
	if (rq->h.map == LB_MAP_SINGLE)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	pid = syscall(SYS_clone, flags | SIGCHLD, 0L, 0L, 0L, 0L);
	if (pid < 0)
		fail_clone(errno);
	return (pid_t)pid;
}

int box_write_proc(pid_t pid, const char *file, const char *text)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	n = write(fd, text, strlen(text));
	if (n < 0)
		n = -errno;
	(void)close(fd);
	return n < 0 ? (int)-n : 0;
}

static void map_by_program(const char *program, const char *file, pid_t pid, uint32_t base)
{
	char id[16], first[16], count[16];
	char *argv[] = {box_strdup(program), id, box_strdup("0"), first, count, NULL};
	int status = -1, r;
	pid_t child;

	(void)snprintf(id, sizeof(id), "%d", pid);
	(void)snprintf(first, sizeof(first), "%u", base);
	(void)snprintf(count, sizeof(count), "%u", LB_MAP_IDS);
	r = posix_spawnp(&child, program, NULL, NULL, argv, environ);
	if (r == ENOENT)
		box_fail(ABX_EBROKEN, "install the package uidmap", "%s: %s is missing", file,
			 program);
	if (r)
		box_fail_errno(r, "%s", program);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		box_fail(ABX_EPERM, "give your user 65536 ids in /etc/subuid and /etc/subgid",
			 "%s: %s refused ids %u to %u", file, program, base, base + LB_MAP_IDS - 1);
}

/* Writing more than one's own id into a map takes both. */
static bool may_set_ids(void)
{
	return prctl(PR_CAPBSET_READ, CAP_SETUID, 0, 0, 0) != 0 &&
	       prctl(PR_CAPBSET_READ, CAP_SETGID, 0, 0, 0) != 0;
}

void box_write_maps(const struct box_req *rq, pid_t pid)
{
	char uids[64], gids[64];
	int r;

	if (rq->h.map == LB_MAP_SUBID) {
		map_by_program("newuidmap", "uid_map", pid, rq->h.uid_base);
		map_by_program("newgidmap", "gid_map", pid, rq->h.gid_base);
		return;
	}
	if (rq->h.map == LB_MAP_SINGLE) {
		(void)snprintf(uids, sizeof(uids), "0 %u 1\n", geteuid());
		(void)snprintf(gids, sizeof(gids), "0 %u 1\n", getegid());
		r = box_write_proc(pid, "setgroups", "deny");
		if (r && r != ENOENT)
			box_fail_errno(r, "new user namespace: setgroups");
	} else {
		(void)snprintf(uids, sizeof(uids), "0 %u %u\n", rq->h.uid_base, LB_MAP_IDS);
		(void)snprintf(gids, sizeof(gids), "0 %u %u\n", rq->h.gid_base, LB_MAP_IDS);
	}
	r = box_write_proc(pid, "uid_map", uids);
	if (r == 0)
		r = box_write_proc(pid, "gid_map", gids);
	if (r == EPERM && rq->h.map == LB_MAP_DIRECT && !may_set_ids())
		box_fail(ABX_EPERM, "give it CAP_SETUID and CAP_SETGID (docker run --cap-add)",
			 "uid_map: root of this container may not hand out ids");
	if (r == EPERM && rq->h.map == LB_MAP_DIRECT)
		box_fail(ABX_EPERM,
			 "give root a range of 65536 ids of this machine in /etc/subuid and "
			 "/etc/subgid",
			 "uid_map: ids %u to %u do not exist here (inside a user namespace)",
			 rq->h.uid_base, rq->h.uid_base + LB_MAP_IDS - 1);
	if (r)
		box_fail_errno(r, "uid_map");
}

void box_await_maps(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(1);
	(void)close(fd);
}

int box_in_userns(const struct box_req *rq, int (*fn)(const struct box_req *))
{
	int sync[2], status;
	pid_t pid;

	if (pipe2(sync, O_CLOEXEC) < 0)
		box_fail_errno(errno, "pipe");
	pid = box_clone(rq, CLONE_NEWUSER | CLONE_NEWNS);
	if (pid == 0) {
		(void)close(sync[1]);
		box_await_maps(sync[0]);
		box_become_root(rq->h.map == LB_MAP_SINGLE);
		_exit(fn(rq));
	}
	(void)close(sync[0]);
	box_write_maps(rq, pid);
	box_write_all(sync[1], "", 1);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

void box_join_cgroups(const struct box_req *rq)
{
	for (uint32_t i = 0; i < rq->h.n_cgroups && i < LB_CGROUPS_MAX; i++) {
		int fd = LB_FD_CGROUP + (int)i;

		if (write(fd, "0", 1) != 1) {
			/* Version 2 wants the common parent of both cgroups to be ours. */
			int e = errno;

			if (e != EACCES)
				box_fail_errno(e, "cgroup of the box");
			if (box_scope_join(fd) < 0)
				box_fail(ABX_EPERM, "start with systemd-run --user --scope",
					 "limits of the box: from this cgroup its own cannot be "
					 "entered");
		}
		(void)close(fd);
	}
}

void box_enter(const struct box_req *rq)
{
	bool single = rq->h.flags & LB_F_SINGLE_ID;

	if (rq->h.op != LB_OP_GATHER)
		box_join_cgroups(rq);
	box_new_session_keyring();
	if (setns(LB_FD_BOX, (int)box_namespaces(rq)) < 0) {
		if (errno == ESRCH)
			box_fail(ABX_ESTATE, NULL, "the box is not running");
		box_fail_errno(errno, "enter the box");
	}
	(void)close(LB_FD_BOX);
	box_become_root(single);
	if (rq->h.flags & LB_F_NO_SET_ID)
		box_filter_set_id();
	box_filter_calls();
	box_drop_capabilities(!(rq->h.flags & LB_F_IMAGE));
}

struct service {
	const struct box_req *rq;
	struct abx_user user;
	int (*fn)(const struct box_req *);
};

static int serve_inside(void *arg)
{
	struct service *s = arg;
	struct pollfd p = {.fd = LB_FD_LIFELINE};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	box_become_user(&s->user, s->rq->h.flags & LB_F_SINGLE_ID);
	/* The client closes the lifeline before it kills our parent, so one of the two is
	 * always seen. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (poll(&p, 1, 0) > 0)
		_exit(1);
	/* A reader that is gone is an error to report. */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)umask(022);
	_exit(s->fn(s->rq));
}

void box_serve(const struct box_req *rq, int (*fn)(const struct box_req *))
{
	struct service s = {.rq = rq, .fn = fn};
	pid_t client = getppid();
	int status;

	box_enter(rq);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != client)
		_exit(1);
	box_lookup_user(rq->user, rq->h.flags & LB_F_SINGLE_ID, &s.user);
	status = box_run_child(serve_inside, &s);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
