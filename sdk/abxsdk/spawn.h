/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/spawn.h: run a program by argv, never through a shell.
 *
 *	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = pipe_w, .fd_err = -1};
 *	pid_t pid;
 *	int r = abx_spawn_start(&s, &pid);
 *
 * Uses posix_spawn, so the cost does not grow with the caller's memory.  The child gets
 * default signal handling and an empty signal mask, and no descriptor but those named here.
 */
#ifndef ABXSDK_SPAWN_H
#define ABXSDK_SPAWN_H

#include <sys/types.h>

#include "abxsdk/buf.h"

#define ABX_SPAWN_MAX_FDS 12

struct abx_spawn {
	const char *const *argv;   /* argv[0] is looked up in PATH unless it has a slash */
	const char *const *envp;   /* NULL: the caller's environment */
	const char *cwd;	   /* NULL: the caller's */
	int fd_in, fd_out, fd_err; /* -1: /dev/null */
	/* Further descriptors: extra[i].from appears as extra[i].to (>= 3) in the child. */
	struct {
		int from, to;
	} extra[ABX_SPAWN_MAX_FDS];
	unsigned int n_extra;
	int new_session; /* non-zero: setsid, so that a terminal's signals do not reach it */
};

/* 0 or -errno (-ENOENT: no such program). */
int abx_spawn_start(const struct abx_spawn *s, pid_t *ret_pid);

/* Wait for it; 0 and the wait status, or -errno. */
int abx_spawn_wait(pid_t pid, int *ret_status);

/*
 * Run to the end, feed `in` (may be NULL), collect stdout and stderr (NULL: discarded, or
 * inherited when s->fd_err >= 0).  A bound that is passed ends the program: -EFBIG.
 */
int abx_spawn_collect(struct abx_spawn *s, const struct abx_buf *in, struct abx_buf *out,
		      struct abx_buf *err, int *ret_status);

#endif
