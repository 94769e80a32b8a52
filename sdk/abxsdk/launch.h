/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/launch.h: a process that becomes a command, as a shell would do it.
 *
 *	struct abx_launch *l = ...;    zeroed memory that is shared with the child
 *	l->cwd = "/workspace";
 *	l->tty = l->fds[0] = l->fds[1] = l->fds[2] = -1;
 *	int r = abx_launch_prepare(l, argv, env);
 *	pid = abx_child_start(abx_launch_child, l, 0);
 *	if (l->failed_step) ... it did not become the command: l->failed_errno says why
 *
 * The program is looked up in the PATH of the command's own environment; a script without an
 * interpreter line is given to /bin/sh.  Everything that needs memory is done before the
 * child exists, for it shares memory with its parent and nothing after the start allocates.
 */
#ifndef ABXSDK_LAUNCH_H
#define ABXSDK_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "abxsdk/user.h"

#define ABX_DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct abx_launch {
	char *const *argv;
	char **env;
	const char *cwd;	     /* NULL: the caller's */
	const struct abx_user *user; /* NULL: the caller */
	bool keep_groups;	     /* setgroups is not for us */
	int tty;		     /* its terminal, or -1 */
	int fds[3];		     /* its standard streams; -1: the caller's */
	const char *log;	     /* a new file for both outputs, 0600; NULL: none */

	char **candidates; /* paths to try in turn, NULL-terminated */
	char **sh_argv;

	/* Written by the child before it ends without exec: "user", "cwd", "exec", ... */
	const char *failed_step;
	int failed_errno;
};

/* 0 or -ENOMEM. */
int abx_launch_prepare(struct abx_launch *l, char *const *argv, char **env);
/* Body of the child. */
int abx_launch_child(void *launch);
/* What a shell would say: 126 or 127, and why.  Only for the step "exec". */
int abx_launch_code(const struct abx_launch *l, char *text, size_t text_size);

/* Replace or append "K=V" in a vector that has room; keeps the pointer. */
void abx_env_put(char **env, size_t *n, char *pair);
const char *abx_env_value(char *const *env, const char *key); /* NULL when absent */

/*
 * A child that runs fn() and ends by returning, by _exit() or by exec, while this process
 * waits for one of the latter two: there is nothing else to do, and a child that shares
 * memory costs no page tables.  What it has to tell goes into shared memory, for some builds
 * cannot share all of it.  -1 and errno.
 */
pid_t abx_child_start(int (*fn)(void *), void *arg, unsigned long clone_flags);
/* Zeroed memory that such a child shares; NULL and errno. */
void *abx_child_shared(size_t n);

#endif
