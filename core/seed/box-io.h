/* SPDX-License-Identifier: MIT */
/*
 * core/seed/box-io.h: the two things that seeding needs of a box, and running a script there.
 *
 * A cloud is one way to have them; tests use a directory of this machine.
 */
#ifndef ABX_BOX_IO_H
#define ABX_BOX_IO_H

#include "abxsdk/buf.h"
#include "core/host/stream.h"

struct abx_box_io {
	void *ctx;
	/* Unpack what `produce` writes below `path`; core/host/stream.h says how. */
	int (*put_stream)(void *ctx, const char *path, abx_stream_fn produce, void *produce_ctx,
			  struct abx_err *err);
	int (*exec)(void *ctx, const struct abx_exec *req, struct abx_exit *ret,
		    struct abx_err *err);
	/* A program that the box needs for the next command, and its name in the stream; NULL:
	 * none. */
	const char *program, *program_name;
};

/* The ctx of a cloud's box; lives as long as the abx_box_io. */
struct abx_box_of_cloud {
	struct abx_cloud *cloud;
	const struct abx_call_opts *opts;
	const struct abx_sandbox *sandbox;
};
struct abx_box_io abx_box_io_of_cloud(struct abx_box_of_cloud *box);

struct abx_box_script {
	const char *what; /* for errors: "seed" */
	const char *text;
	const char *const *args; /* NULL-terminated */
	int stdin_fd;		 /* -1: none */
	/* Gets stdout as it comes, on another thread, never after abx_box_run returned.
	 * Non-zero ends the script, and is the result when it is a negative code. */
	int (*output)(void *ctx, const void *data, size_t len);
	void *ctx;
};

/* Run it as the box user.  *ret_code is its exit code, and *ret_stderr (may be NULL) what it
 * said, bounded; both are for the caller to judge.  Negative: it did not run to its end. */
int abx_box_run(const struct abx_box_io *io, const struct abx_box_script *script, int *ret_code,
		struct abx_buf *ret_stderr, struct abx_err *err);

/* The error for an exit code of a script of seed-script.h other than 0. */
int abx_box_script_error(const char *what, int code, const struct abx_buf *stderr_text,
			 struct abx_err *err);

#endif
