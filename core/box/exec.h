/* SPDX-License-Identifier: MIT */
/*
 * core/box/exec.h: a command in a box, as good as ssh.
 *
 * A stopped box is started first.  Output goes to the descriptors as it comes; a reader that
 * went away ends the command.  The exit code is the command's: 0-255, 128+n for a signal,
 * 126/127 as a shell would say, 124 when it ran out of time.
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
};

int abx_box_exec(struct abx_app *app, struct abx_box *box, const struct abx_exec_request *req,
		 int *ret_code, struct abx_err *err);

/* The same on a cloud whose box is being made, output to one descriptor. */
int abx_exec_on(struct abx_cloud *cloud, const struct abx_call_opts *o, const struct abx_sandbox *s,
		const struct abx_exec_request *req, int *ret_code, struct abx_err *err);

#endif
