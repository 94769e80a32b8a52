/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/supervise.h: watching one command and all that it starts.
 *
 *	abx_supervise_init(&s, grace_ms, timeout_ms);    before the command starts
 *	s.pid = abx_child_start(...);
 *	loop:
 *		poll(s.signal_fd and others, abx_supervise_wait_ms(&s));
 *		if (abx_supervise_step(&s))
 *			... s.status and s.timed_out are final: report, and end
 *
 * The process is single-threaded, has all signals blocked and is the subreaper of the tree, so
 * a grandchild that called setsid() is still found when the tree has to end.  What the command
 * leaves running when it ends by itself lives on; once abx_supervise_end() was called,
 * nothing does: TERM, the grace, then KILL.  The same when it ended after a signal that asks
 * commands to end came through abx_supervise_signal(): whoever presses Ctrl-C means all of it.
 */
#ifndef ABXSDK_SUPERVISE_H
#define ABXSDK_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct abx_supervisor {
	pid_t pid;
	int signal_fd; /* readable when a child ended */
	int status;    /* a wait status */
	bool ended, ending, killing, timed_out, interrupted;
	int64_t grace_ms, timeout_at, kill_at; /* 0: never */
};

#define ABX_GRACE_MAX_MS 60000

/* 0 or -errno. */
int abx_supervise_init(struct abx_supervisor *s, int64_t grace_ms, int64_t timeout_ms);
/* For poll(): -1 = nothing is due. */
int abx_supervise_wait_ms(const struct abx_supervisor *s);
/* Reap and do what is due; true when the command, or the tree that has to end, has ended. */
bool abx_supervise_step(struct abx_supervisor *s);
/* From now on all of it has to end. */
void abx_supervise_end(struct abx_supervisor *s);
/* A signal for the command's process group. */
void abx_supervise_signal(struct abx_supervisor *s, int signo);

#endif
