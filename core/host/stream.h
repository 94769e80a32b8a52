/* SPDX-License-Identifier: MIT */
/*
 * core/host/stream.h: tar streams between this program and a box, made or eaten on a thread.
 *
 *	static int produce(void *ctx, int fd, int stop_fd, struct abx_err *err);
 *	r = abx_cloud_put_stream(cloud, &opts, sandbox, "/workspace", produce, &seed, err);
 *
 * The callback runs on a thread of its own with one end of a pipe, while the cloud works on
 * the other; memory stays constant.  It must not use the cloud.  `stop_fd` becomes readable
 * when the other side failed: the callback then gives up.  The error of the side that failed
 * first is returned; a broken pipe on the other side is only its echo.
 */
#ifndef ABX_STREAM_H
#define ABX_STREAM_H

#include "core/host/cloud.h"

typedef int (*abx_stream_fn)(void *ctx, int fd, int stop_fd, struct abx_err *err);

/* Unpack what `produce` writes below `path` in the box, owned by the box user. */
int abx_cloud_put_stream(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_sandbox *s, const char *path, abx_stream_fn produce,
			 void *ctx, struct abx_err *err);

/* Let `consume` read `path` as a tar stream: a directory's contents, or a file itself. */
int abx_cloud_get_stream(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_sandbox *s, const char *path, abx_stream_fn consume,
			 void *ctx, struct abx_err *err);

/* What both stand on: `call` gets one end of a pipe, and `work`, on its thread, the other one; with
 * `put` it is `work` that writes. */
typedef int (*abx_stream_call_fn)(void *ctx, int fd, struct abx_err *err);
int abx_stream_run(abx_stream_call_fn call, void *call_ctx, bool put, abx_stream_fn work,
		   void *work_ctx, struct abx_err *err);

#endif
