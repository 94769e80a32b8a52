/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/move.h: bytes into and out of a box by a script in it, and how it says what went wrong.
 *
 *	struct abx_move m = {.call = call, .what = "download", .argv = argv, .in = -1,
 *			     .out = t->fd, .exec = acme_move_exec, .ctx = &mine};
 *
 *	return abx_move(&m, t);
 *
 * The script (argv is /bin/sh -c SCRIPT agentbox ...) runs as the transfer's owner, from /.  Its
 * exit code 44 means that there is no such file, 45 that it is a directory; any other is explained
 * by the first line of its stderr.
 *
 * Where a transport may end an output early, or never, and not say so, `mark_end` makes the script
 * write a mark behind what it gives: without it the output is not whole, with it nothing is
 * missing, whatever became of the stream.
 */
#ifndef ABXSDK_MOVE_H
#define ABXSDK_MOVE_H

#include <stdbool.h>

#include "abxsdk/plugin.h"

#define ABX_MOVE_WORDS_MAX 400
#define ABX_MOVE_NONCE_BYTES 32
#define ABX_MOVE_MARK_BYTES (ABX_MOVE_NONCE_BYTES + 3) /* and the script's exit code */

struct abx_move {
	struct abx_call *call;
	const char *what; /* for messages */
	const char *const *argv;
	int in, out;	  /* descriptors; -1 */
	int64_t in_bytes; /* of `in`, for exec(); -1 = to its end */
	bool mark_end;	  /* of `out` */
	/* The provider's own exec, given m->in_bytes of m->in. */
	int32_t (*exec)(const struct abx_move *m, const struct abx_exec *req, struct abx_exit *ret);
	void *ctx;

	int32_t failed;
	char held[ABX_MOVE_MARK_BYTES + 1]; /* the last of the output, which may be the mark */
	size_t n_held;
	char words[ABX_MOVE_WORDS_MAX + 1]; /* of stderr */
	size_t n_words;
};

int32_t abx_move(struct abx_move *m, const struct abx_transfer *t);
/* The operations, by the box's own tar: call, exec and ctx are given. */
int32_t abx_move_put_tar(struct abx_move *m, const struct abx_transfer *t);
int32_t abx_move_get_tar(struct abx_move *m, const struct abx_transfer *t);

/* Write it all, however slow the reader is; fails the call. */
int32_t abx_call_write(struct abx_call *call, int fd, const char *what, const void *data,
		       size_t len);

#endif
