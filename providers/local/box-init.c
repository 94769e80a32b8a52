/* SPDX-License-Identifier: MIT */
/* The first process of a box: reaps orphans, ends the box on SIGTERM or at its expiry. */
#include "providers/local/box.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long processes may take to end after SIGTERM when nobody kills the box earlier. */
#define LAST_GRACE_MS 30000
#define POLL_MS 5
/* The wall clock may be set: look again at least this often. */
#define LOOK_AGAIN_S 60

static int64_t clock_ms(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* TERM for everybody; the kernel kills who is left when this process ends. */
static _Noreturn void shut_down(const sigset_t *set)
{
	int64_t end = clock_ms(CLOCK_MONOTONIC) + LAST_GRACE_MS;
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};

	(void)kill(-1, SIGTERM);
	(void)kill(-1, SIGCONT);
	while (kill(-1, 0) == 0 && clock_ms(CLOCK_MONOTONIC) < end) {
		(void)sigtimedwait(set, NULL, &pause);
		reap();
	}
	_exit(0);
}

void box_init_loop(int64_t expires_at_ms)
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
			int64_t left = expires_at_ms - clock_ms(CLOCK_REALTIME);

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
