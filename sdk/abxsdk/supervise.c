/* SPDX-License-Identifier: MIT */
/* Watching one command and all that it starts. */
#include "abxsdk/supervise.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/clock.h"
#include "abxsdk/tree.h"

#define KILL_AGAIN_MS 5
#define LONGEST_WAIT_MS 3600000

int abx_supervise_init(struct abx_supervisor *s, int64_t grace_ms, int64_t timeout_ms)
{
	sigset_t all, chld;

	memset(s, 0, sizeof(*s));
	s->grace_ms = grace_ms < 0 ? 0 : grace_ms > ABX_GRACE_MAX_MS ? ABX_GRACE_MAX_MS : grace_ms;
	if (timeout_ms > 0)
		s->timeout_at = abx_monotonic_ms() + timeout_ms;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	s->signal_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : 0;
}

int abx_supervise_wait_ms(const struct abx_supervisor *s)
{
	int64_t at = s->ending ? s->kill_at : s->timeout_at, left;

	if (s->killing)
		return KILL_AGAIN_MS;
	if (!at)
		return -1;
	left = at - abx_monotonic_ms();
	return left < 0 ? 0 : left > LONGEST_WAIT_MS ? LONGEST_WAIT_MS : (int)left;
}

void abx_supervise_end(struct abx_supervisor *s)
{
	if (s->ending)
		return;
	s->ending = true;
	s->kill_at = abx_monotonic_ms() + s->grace_ms;
	if (s->grace_ms > 0) {
		(void)abx_tree_signal(SIGTERM);
		(void)abx_tree_signal(SIGCONT);
	}
}

void abx_supervise_signal(struct abx_supervisor *s, int signo)
{
	/* Not once its number may be somebody else's. */
	if (s->pid <= 0 || s->ended)
		return;
	(void)kill(-s->pid, signo);
	if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT)
		s->interrupted = true;
}

/* Collect who ended. */
static bool reap(struct abx_supervisor *s)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == s->pid) {
			s->status = status;
			s->ended = true;
		}
	/* What the command left running lives on below the first process of the box; when the
	 * tree has to end, all of it has to. */
	if (s->ended && s->interrupted)
		abx_supervise_end(s);
	return s->ended && (!s->ending || (pid < 0 && errno == ECHILD));
}

bool abx_supervise_step(struct abx_supervisor *s)
{
	struct signalfd_siginfo si[8];

	(void)!read(s->signal_fd, si, sizeof(si));
	if (reap(s))
		return true;
	if (!s->ending && s->timeout_at && abx_monotonic_ms() >= s->timeout_at) {
		s->timed_out = true;
		abx_supervise_end(s);
	}
	if (s->ending && abx_monotonic_ms() >= s->kill_at) {
		abx_tree_kill();
		s->killing = true;
	}
	return s->ending && reap(s);
}
