/* SPDX-License-Identifier: MIT */
/*
 * move.h: a script in the box that takes or gives bytes, and how it says what went wrong.
 *
 * It runs as the transfer's owner, from /.  Its exit code 44 means that there is no such file,
 * 45 that it is a directory; any other is explained by the first line of its stderr.
 */
#ifndef DOCKER_MOVE_H
#define DOCKER_MOVE_H

#include "providers/docker/docker.h"

#define DOCKER_WORDS_MAX 400

struct docker_move {
	struct abx_call *call;
	const char *what; /* for messages */
	const char *const *argv;
	int in, out;	  /* descriptors; -1 */
	int64_t in_bytes; /* -1 = to its end */

	int32_t failed;
	char words[DOCKER_WORDS_MAX + 1]; /* of stderr */
	size_t n_words;
};

int32_t docker_move(struct abx_session *s, const struct abx_sandbox *sb,
		    const struct abx_transfer *t, struct docker_move *m);
/* A file without a name in the state directory. */
int32_t docker_scratch(const struct abx_session *s, struct abx_call *call, int *ret_fd);

#endif
