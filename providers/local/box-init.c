/* SPDX-License-Identifier: MIT */
/* The first process of a box: reaps orphans, ends the box on SIGTERM or at its expiry. */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/clock.h"

/* How long processes may take to end after SIGTERM when nobody kills the box earlier. */
#define LAST_GRACE_MS 30000
#define POLL_MS 5
#define SHELL_LIMIT_S 10
/* The wall clock may be set: look again at least this often. */
#define LOOK_AGAIN_S 60

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* TERM for everybody; the kernel kills who is left when this process ends. */
static _Noreturn void shut_down(const sigset_t *set)
{
	int64_t end = abx_monotonic_ms() + LAST_GRACE_MS;
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};

	(void)kill(-1, SIGTERM);
	(void)kill(-1, SIGCONT);
	while (kill(-1, 0) == 0 && abx_monotonic_ms() < end) {
		(void)sigtimedwait(set, NULL, &pause);
		reap();
	}
	_exit(0);
}

static _Noreturn void serve(int64_t expires_at_ms)
{
	sigset_t set;

	/* Blocked signals are never ignored, not even by a first process. */
	(void)sigfillset(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	box_forget_pages();
	for (;;) {
		struct timespec wait = {.tv_sec = LOOK_AGAIN_S};
		int sig;

		if (expires_at_ms) {
			int64_t left = expires_at_ms - abx_clock_ms(CLOCK_REALTIME);

			if (left <= 0)
				shut_down(&set);
			if (left < LOOK_AGAIN_S * 1000)
				wait = (struct timespec){left / 1000, left % 1000 * 1000000};
		}
		sig = expires_at_ms ? sigtimedwait(&set, NULL, &wait) : sigwaitinfo(&set, NULL);
		if (sig == SIGTERM)
			shut_down(&set);
		reap();
	}
}

/* Nothing in a box works without it, so this is what tells a root from a heap of files. */
static void try_shell(void)
{
	static const char remedy[] = "take the root of a Linux system for this kind of processor";
	static char path[] = "/bin/sh", option[] = "-c", script[] = "exit 0";
	char *argv[] = {path, option, script, NULL}, *env[] = {NULL};
	const struct timespec limit = {.tv_sec = SHELL_LIMIT_S};
	int status = 0, r;
	sigset_t set;
	pid_t pid;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	r = posix_spawn(&pid, path, NULL, NULL, argv, env);
	if (r == ENOEXEC)
		box_fail(ABX_EINVAL, remedy, "image: /bin/sh: not for this kind of processor");
	if (r == ENOENT && access(path, F_OK) == 0)
		box_fail(ABX_EINVAL, remedy,
			 "image: /bin/sh: its interpreter or loader is missing");
	if (r == ENOENT)
		box_fail(ABX_EINVAL, remedy, "image: /bin/sh: not there");
	if (r)
		box_fail(ABX_EINVAL, remedy, "image: /bin/sh: %s", strerror(r));
	/* As the first process, we take whoever still runs along when we end. */
	if (sigtimedwait(&set, NULL, &limit) < 0 || waitpid(pid, &status, WNOHANG) != pid ||
	    status != 0)
		box_fail(ABX_EINVAL, remedy, "image: /bin/sh: it does not run \"exit 0\"");
}

void box_init(const struct box_req *rq)
{
	if (getpid() != 1)
		box_fail(ABX_EPROTO, NULL, "helper: not for use by hand");
	box_keep_lock(LB_FD_LIVE);
	if ((rq->h.flags & LB_F_PROBE) && (rq->h.flags & LB_F_IMAGE))
		try_shell();
	(void)prctl(PR_SET_NAME, LB_READY_NAME, 0, 0, 0);
	box_send_kind(LB_MSG_READY, 0);
	if (rq->h.flags & LB_F_PROBE)
		_exit(0);
	(void)close(LB_FD_STATUS);
	(void)close(LB_FD_LIFELINE);
	serve(rq->h.expires_at_ms);
}

/* One that box root may read: by a file that it may not, the kernel would judge the memory of
 * the process as the user's, whom box root is not. */
static int readable_program(int fd)
{
	int copy;
	ssize_t n = 1;

	if (syscall(SYS_faccessat2, fd, "", R_OK | X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0)
		return fd;
	copy = memfd_create(LB_READY_NAME, MFD_CLOEXEC);
	while (copy >= 0 && n > 0)
		n = sendfile(copy, fd, NULL, 1 << 20);
	if (copy < 0 || n < 0)
		box_fail_errno(errno, "helper program: copy it");
	return copy;
}

void box_init_anew(const struct box_req *rq, int program_fd)
{
	static char name[] = "agentbox";
	char *argv[] = {name, NULL}, *env[] = {NULL};
	/* User, path and name, each of them empty. */
	static const char strings[3];
	struct lb_req h = {.magic = LB_MAGIC,
			   .op = LB_OP_INIT,
			   .flags = rq->h.flags,
			   .map = rq->h.map,
			   .strings_len = sizeof(strings),
			   .expires_at_ms = rq->h.expires_at_ms};
	int request = memfd_create("agentbox-request", MFD_CLOEXEC);

	/* Out of the way of the descriptors that have a meaning. */
	program_fd = fcntl(readable_program(program_fd), F_DUPFD_CLOEXEC, LB_FD_LAST + 1);
	if (request < 0 || program_fd < 0)
		box_fail_errno(errno, "helper: request");
	box_write_all(request, &h, sizeof(h));
	box_write_all(request, strings, sizeof(strings));
	/* All other descriptors end here. */
	if ((request != LB_FD_REQUEST && dup2(request, LB_FD_REQUEST) < 0) ||
	    fcntl(LB_FD_REQUEST, F_SETFD, 0) < 0 || fcntl(LB_FD_STATUS, F_SETFD, 0) < 0 ||
	    fcntl(LB_FD_LIVE, F_SETFD, 0) < 0)
		box_fail_errno(errno, "helper: request");
	(void)syscall(SYS_execveat, program_fd, "", argv, env, AT_EMPTY_PATH);
	box_fail_errno(errno, "helper program: run it anew");
}
