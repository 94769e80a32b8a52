/* SPDX-License-Identifier: MIT */
/*
 * core/box/logs.h: what detached commands in a box have said.
 *
 * Each has a file, /var/log/agentbox/ID.log or, where its user may not write there,
 * ~/.agentbox/log/ID.log, which only that user may read.  It is read by programs of the box, so
 * nothing is asked of a provider.
 */
#ifndef ABX_BOX_LOGS_H
#define ABX_BOX_LOGS_H

#include "core/box/app.h"

struct abx_logs_request {
	const char *exec_id; /* NULL: the latest command's */
	const char *user;    /* whose; NULL: the box user */
	uint64_t lines;	     /* the last so many; 0 = all */
	bool follow;	     /* until the user gives up */
	int fd_out;
};

/* ABX_ENOTFOUND when there is no such log. */
int abx_box_logs(struct abx_app *app, struct abx_box *box, const struct abx_logs_request *req,
		 struct abx_err *err);

#endif
