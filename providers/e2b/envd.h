/* SPDX-License-Identifier: MIT */
/*
 * envd.h: what speaks with the daemon in a sandbox.
 *
 * process.Process is spoken over the Connect protocol with messages of protocol buffers: output
 * comes as bytes, not in base64.  A stream has a request of its own.  What goes the other way
 * meanwhile (input, signals, a change of size) goes by other requests, from threads of their own;
 * these never see the host's call (struct e2b_aside).
 *
 * A connection that is lost ends no command.  It is attached to again by its pid; what it said in
 * between is gone, and abx_exec.gap() is told so.
 */
#ifndef E2B_ENVD_H
#define E2B_ENVD_H

#include <pthread.h>
#include <stdatomic.h>

#include "abxsdk/move.h"
#include "providers/e2b/e2b.h"
#include "providers/e2b/frames.h"
#include "providers/e2b/pb.h"

/* envd says something at least so often, whatever the command does. */
#define E2B_KEEPALIVE_S "20"
#define E2B_STREAM_QUIET_MS 70000
/* An answer that is no stream. */
#define E2B_ANSWER_MS 60000
/* A cancelled operation returns within a second. */
#define E2B_LAST_WORDS_MS 700
#define E2B_MESSAGE_MAX ((size_t)32 << 20)

/*
 * envd-rpc.c: one call.
 *
 *	struct e2b_rpc rpc = {.http = envd->http, .call = call, .method = "SendSignal"};
 *	int32_t r = e2b_rpc_call(envd, &rpc, &message);
 *
 *	if (r != ABX_OK)
 *		return e2b_rpc_fail(call, r, &rpc, "signal");
 *
 * Nothing is said to the host before e2b_rpc_fail().
 */
struct e2b_rpc {
	struct abx_http *http;
	struct abx_call *call;
	const char *method; /* with its service: "process.Process/List" */
	const char *user;   /* who it is done as; NULL: the template's default */
	/* Of a stream. */
	int32_t (*message)(void *ctx, const void *data, size_t len);
	void *ctx;
	const int *stop_fd; /* readable: give up; may be NULL */
	/* Of a stream that goes the other way: as abx_http_request has them, in frames. */
	int body_fd;
	ssize_t (*source)(void *ctx, void *to, size_t room);
	/* Of a call: its answer; may be NULL. */
	struct abx_buf *answer;

	/* What became of it. */
	int32_t status; /* of HTTP; 0: no answer came */
	bool sent;	/* envd may have acted on it */
	bool lost;	/* a stream that broke off */
	char code[32];	/* a word of Connect's; "" */
	char text[512]; /* why; "" */
	char request_id[80];
};

int32_t e2b_rpc_call(const struct e2b_envd *envd, struct e2b_rpc *rpc, const struct abx_buf *msg);
/* A stream up to its end; what message() returned is returned. */
int32_t e2b_rpc_stream(const struct e2b_envd *envd, struct e2b_rpc *rpc, const struct abx_buf *msg);
int32_t e2b_rpc_fail(struct abx_call *call, int32_t r, const struct e2b_rpc *rpc, const char *what);
/* {process: {pid: N}}, the first member of most messages. */
void e2b_rpc_put_pid(struct abx_buf *msg, uint32_t pid);
/* Of an answer that is nothing of Connect's: the code and the words. */
int32_t e2b_rest_error(int32_t status, const struct abx_buf *body, char *text, size_t size);
/* Is it what stands before envd says of a sandbox that does not run? */
bool e2b_rpc_is_gone(int32_t r, int32_t status);

/*
 * envd-aside.c: requests that are not the operation's own.
 *
 * They end when stop_fd is readable or the time is over, not with the call.  What they were is
 * told to the host by e2b_aside_close(), which is called on the operation's thread, after the
 * thread that used it.
 */
struct e2b_aside;
int32_t e2b_aside_open(const struct e2b_envd *envd, struct abx_call *call, int stop_fd,
		       int64_t max_ms, struct e2b_aside **ret);
void e2b_aside_close(struct e2b_aside *a, struct abx_call *call);
/* To be given to struct e2b_rpc. */
struct abx_http *e2b_aside_http(const struct e2b_aside *a);
struct abx_call *e2b_aside_call(struct e2b_aside *a);

/*
 * envd-input.c: what a command is given while it runs, by threads of their own.
 *
 * Each piece is a request, as E2B's own clients do it; with ABX_EXEC_BULK it is one stream, which
 * somebody on the way may hold until it has ended.  Only `pid` is set between e2b_input_init() and
 * e2b_input_begin().
 */
struct e2b_input {
	const struct e2b_envd *envd;
	const struct abx_exec *req;
	int64_t left; /* of stdin_fd */
	uint32_t pid;
	int stop_fd;	/* readable: the threads end */
	int give_up_fd; /* readable: the command is not waited for any longer */
	atomic_bool timed_out, detached, lost;
	char why_lost[200];
	pthread_t threads[2];
	struct e2b_aside *asides[2];
	unsigned int n_threads;
	bool begun;
};
int32_t e2b_input_init(struct e2b_input *in, struct abx_call *call, const struct e2b_envd *envd,
		       const struct abx_exec *req, int64_t in_bytes);
int32_t e2b_input_begin(struct e2b_input *in, struct abx_call *call);
/* Ends its threads, soon; on the operation's thread. */
void e2b_input_end(struct e2b_input *in, struct abx_call *call);

/* A message's {pty: {size}}. */
void e2b_put_pty(struct abx_buf *msg, uint16_t rows, uint16_t cols);

/* envd-signal.c: ABX_OK also when there is no such process any more. */
int32_t e2b_signal(const struct e2b_envd *envd, struct e2b_aside *a, uint32_t pid, int32_t signo);
int32_t e2b_kill_tree(const struct e2b_envd *envd, struct e2b_aside *a, uint32_t pid);

/* envd-exec.c */
/* Of stdin_fd only so many bytes are given to it; -1: all. */
int32_t e2b_exec_some(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_exec *req, int64_t in_bytes, struct abx_exit *ret);
/* The same of a command that runs already. */
int32_t e2b_exec_again(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_exec *req, uint32_t pid, struct abx_exit *ret);

/* envd-files.c: runs the scripts of an abx_move, whose ctx is this. */
struct e2b_mover {
	struct abx_session *s;
	const struct abx_sandbox *sb;
};
int32_t e2b_move_exec(const struct abx_move *m, const struct abx_exec *req, struct abx_exit *ret);

#endif
