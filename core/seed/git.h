/* SPDX-License-Identifier: MIT */
/*
 * core/seed/git.h: running this machine's git on a repository without touching it.
 *
 * No lock, hook, pager, prompt, fsmonitor, fetch or gc; GIT_* variables that would point git
 * elsewhere are dropped, those that carry the user's settings are kept.  Several can run at
 * once: start them all, then finish them.
 *
 *	abx_git_start(&git, args, NULL, 0, &job, err);
 *	abx_git_finish(&job, &out, err);
 *
 * Output goes to unlinked files in the spool directory, so no order of finishing blocks.
 */
#ifndef ABX_GIT_H
#define ABX_GIT_H

#include <stdbool.h>

#include "abxsdk/buf.h"
#include "core/util/err.h"
#include "core/util/mem.h"

#define ABX_GIT_OUTPUT_MAX ((size_t)1 << 30)

struct abx_git {
	const char *dir;   /* where it runs */
	const char *spool; /* private directory for temporary files */
	char shown[256];   /* dir, fit for an error text */
	struct abx_strv env;
};

struct abx_git_job {
	pid_t pid; /* 0: not started */
	int out_fd, err_fd;
	bool pipe;     /* out_fd is a pipe, see ABX_GIT_PIPE */
	char what[24]; /* the git command, for errors */
	const char *dir;
};
#define ABX_GIT_JOB_INIT                   \
	{                                  \
		.out_fd = -1, .err_fd = -1 \
	}

void abx_git_init(struct abx_git *g, const char *dir, const char *spool);
void abx_git_release(struct abx_git *g);
/* One more variable, "NAME=value". */
void abx_git_setenv(struct abx_git *g, const char *assignment);

/* stdout is a pipe, whose end says that git ended; for little output. */
#define ABX_GIT_PIPE 1U

/* args without "git", NULL-terminated; the command is the first one behind any `-c SETTING`.
 * in: may be NULL.  ABX_ENOTFOUND with a remedy when there is no git. */
int abx_git_start(const struct abx_git *g, const char *const *args, const struct abx_buf *in,
		  unsigned int flags, struct abx_git_job *ret, struct abx_err *err);
/* The same with a descriptor as its stdin, which stays the caller's. */
int abx_git_start_fd(const struct abx_git *g, const char *const *args, int in_fd,
		     unsigned int flags, struct abx_git_job *ret, struct abx_err *err);
/* git pack-objects --revs with `in`, into files BASE-<hash>.pack and .idx; the hash is what it
 * prints.  more: further arguments, NULL-terminated. */
int abx_git_start_pack(const struct abx_git *g, const char *const *more, const struct abx_buf *in,
		       const char *base, struct abx_git_job *ret, struct abx_err *err);
/* Wait and read; out may be NULL.  git's own last line is the error. */
int abx_git_finish(struct abx_git_job *job, struct abx_buf *out, struct abx_err *err);
/* The same, with its warnings. */
int abx_git_finish_warned(struct abx_git_job *job, struct abx_buf *out, struct abx_buf *warnings,
			  struct abx_err *err);
/* Both, for one that nothing runs beside. */
int abx_git_run(const struct abx_git *g, const char *const *args, const struct abx_buf *in,
		struct abx_buf *out, struct abx_err *err);
/* End it, whatever it is doing.  Nothing happens when it was not started. */
void abx_git_abandon(struct abx_git_job *job);

/* An unlinked file in `dir` that holds these bytes, at its start; -errno. */
int abx_spool_bytes(const char *dir, const void *data, size_t len);

/* The last line that says something, without "fatal:" or "error:"; into `line`. */
void abx_last_line(const char *text, char *line, size_t size);

#endif
