/* SPDX-License-Identifier: MIT */
/*
 * lines.h: what the engine says of a pull, an import or a build: one JSON object a line, with
 * HTTP 200 also when it fails half-way.
 *
 *	struct docker_lines l = DOCKER_LINES_INIT(call);
 *
 *	... a request with .sink = docker_lines_feed, .sink_ctx = &l ...
 *	r = docker_lines_judge(&l, "pull");
 *	docker_lines_release(&l);
 */
#ifndef DOCKER_LINES_H
#define DOCKER_LINES_H

#include "providers/docker/docker.h"

#define DOCKER_LINE_MAX ((size_t)1 << 20)
#define DOCKER_SAID_MAX 400

struct docker_lines {
	struct abx_call *call;
	struct abx_buf line;
	char id[80];		     /* of what was made */
	char error[DOCKER_SAID_MAX]; /* "" */
	int64_t code;		     /* exit code of what failed; 0 */
	bool said;		     /* anything at all */

	/* Of a build. */
	char step[200];		    /* "Step 3/8 : RUN ..." */
	char out[DOCKER_SAID_MAX];  /* the last line that the step wrote */
	char half[DOCKER_SAID_MAX]; /* of the next one */
	size_t n_half;
};

#define DOCKER_LINES_INIT(call_)                               \
	{                                                      \
		(call_), .line = ABX_BUF_INIT(DOCKER_LINE_MAX) \
	}

/* `ctx` is the struct; an http request's sink. */
int32_t docker_lines_feed(void *ctx, const void *data, size_t len);
/* All has come: did it work?  ABX_EINVAL when the engine says that it did not. */
int32_t docker_lines_judge(struct docker_lines *l, const char *what);
void docker_lines_release(struct docker_lines *l);

#endif
