/* SPDX-License-Identifier: MIT */
/*
 * core/box/logs.h: what detached commands in a box have said, and how they ended.
 *
 * Each has a file, /var/log/agentbox/ID.log or, where its user may not write there,
 * ~/.agentbox/log/ID.log, which only that user may read, and ID.state beside it
 * (abxsdk/detached.h).  They are read by programs of the box, so nothing is asked of a
 * provider, and what they say is the box's word.
 */
#ifndef ABX_BOX_LOGS_H
#define ABX_BOX_LOGS_H

#include "core/box/app.h"

struct abx_logs_request {
	const char *exec_id; /* NULL: the latest command's */
	const char *user;    /* whose; NULL: the box user */
	uint64_t lines;	     /* the last so many; 0 = all */
	bool follow;	     /* until the command has ended, or the user gives up */
	int fd_out;	     /* -1: only how it ended */
};

enum abx_logs_state {
	ABX_LOGS_UNKNOWN, /* nothing is kept of it */
	ABX_LOGS_RUNNING,
	ABX_LOGS_ENDED,
	ABX_LOGS_LOST, /* its box was stopped, or its supervisor killed */
};

struct abx_logs_result {
	char exec_id[128];
	char path[256]; /* of the log, in the box */
	enum abx_logs_state state;
	int code, signo; /* once it has ended; code as exec would return it */
	bool timed_out;
};

/* ABX_ENOTFOUND when there is no such log.  Who gives up while following gets ABX_LOGS_RUNNING. */
int abx_box_logs(struct abx_app *app, struct abx_box *box, const struct abx_logs_request *req,
		 struct abx_logs_result *ret, struct abx_err *err);

#endif
