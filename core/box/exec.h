/* SPDX-License-Identifier: MIT */
/*
 * core/box/exec.h: a command in a box, as good as ssh.
 *
 * A stopped box is started first.  Output goes to the descriptors as it comes; a reader that
 * went away ends the command.  The exit code is the command's: 0-255, 128+n for a signal,
 * 126/127 as a shell would say, 124 when it ran out of time.  Output beyond max_output ends
 * the command as a reader that has enough would: what was delivered is a prefix, and the code
 * is 141 (128 + SIGPIPE) whatever the command made of it.
 */
#ifndef ABX_BOX_EXEC_H
#define ABX_BOX_EXEC_H

#include "core/box/app.h"
#include "core/state/envfile.h"

struct abx_exec_request {
	const char *const *argv;
	const char *cwd, *user;	   /* NULL: the box's own */
	const struct abx_env *env; /* may be NULL */
	int fd_in, fd_out, fd_err; /* fd_in -1: nothing to read */
	int64_t timeout_ms;	   /* 0 = none */
	bool detached;

	bool tty;
	uint16_t rows, cols;	    /* 0 = unknown */
	int *control_fd;	    /* of ABX_CTRL_* records; NULL: none */
	uint64_t max_output;	    /* bytes of both streams; 0 = no limit */
	void (*started)(void *ctx); /* on another thread; may be NULL */
	void *started_ctx;
	struct abx_exec_result *result; /* filled in as far as known; may be NULL */
};

/* How it went, beside the exit code. */
struct abx_exec_result {
	char exec_id[128]; /* "" until it started */
	int code, signo;
	bool timed_out, truncated, detached;
	uint64_t bytes_out;
};

int abx_box_exec(struct abx_app *app, struct abx_box *box, const struct abx_exec_request *req,
		 int *ret_code, struct abx_err *err);

/* The same on a cloud whose box is being made, output to one descriptor. */
int abx_exec_on(struct abx_cloud *cloud, const struct abx_call_opts *o, const struct abx_sandbox *s,
		const struct abx_exec_request *req, int *ret_code, struct abx_err *err);

#endif
