/* SPDX-License-Identifier: MIT */
/*
 * core/host/exec-ctl-run.h: one command by agentbox-ctl under way.
 *
 * Three threads meet here: the caller waits for the provider's exec; the provider's thread
 * brings what agentbox-ctl says; the sender takes the command's input, the caller's control
 * records and the clock, and turns them into frames.  `lock` guards what the last two share.
 * Memory is bounded by credit on the way in and by the caller's output() on the way out.
 */
#ifndef ABX_EXEC_CTL_RUN_H
#define ABX_EXEC_CTL_RUN_H

#include <pthread.h>

#include "core/ctl/wire.h"
#include "core/host/cloud.h"

#define ABX_CTL_BEAT_MS 5000
/* What agentbox-ctl takes for the end of its client. */
#define ABX_CTL_CLIENT_SILENCE_MS 20000
/* What we take for the end of the connection. */
#define ABX_CTL_SILENCE_MS 60000

/* What agentbox-ctl has said. */
#define ABX_CTL_HELLO 1u
#define ABX_CTL_ENDED 2u

struct abx_ctl_run {
	struct abx_cloud *c;
	const struct abx_call_opts *o;
	const struct abx_sandbox *s;
	const struct abx_exec *req;
	char id[24];
	bool spool;
	char base[64]; /* of the spool's files */

	/* The provider's thread. */
	struct abx_wire_in in;
	bool broken; /* what comes is not ours */
	bool gap;    /* something that was said did not come: it may run, or have run */
	char noise[512];
	size_t noise_len;
	struct {
		int32_t code, signo, failure;
		uint32_t flags;
		char text[640];
	} end;

	/* Of the command's input, what was there at once: it goes with the request. */
	struct abx_early_input *early, own_early;
	struct abx_exit left; /* how the program that was to be ctl ended */
	bool asked; /* ctl was started with the request: it may have begun whatever was said */

	/* Opened for one attempt. */
	struct abx_buf given; /* the first frames, for ctl's environment; empty: they are sent */
	int child_fd;	      /* what ctl reads; -1 = nothing */
	int pipe_fd;	      /* our end of it */
	int wake_fd, abort_fd;
	pthread_t sender;

	pthread_mutex_t lock;
	unsigned int said;
	uint64_t credit; /* how much more input may be sent */
	int64_t heard_ms;
	bool busy;   /* output() is with the caller, which may take its time */
	bool silent; /* nothing came for too long */
	bool stop;

	/* The sender. */
	struct abx_wire_out out;
	struct abx_buf queue;
	size_t sent;
	uint32_t next_file;
	int input_fd, control_fd;
	int64_t beat_at, ended_ms;
};

/* Make what an attempt needs, send the request, start the sender.  Closing tells an
 * agentbox-ctl that is still there to end the command. */
int abx_ctl_run_open(struct abx_ctl_run *x, struct abx_err *err);
void abx_ctl_run_close(struct abx_ctl_run *x);
/* What outlives an attempt. */
void abx_ctl_run_release(struct abx_ctl_run *x);

/* On the provider's thread. */
void abx_ctl_run_note(struct abx_ctl_run *x, unsigned int said);
int abx_ctl_run_credit(struct abx_ctl_run *x, uint32_t bytes);
void abx_ctl_run_heard(struct abx_ctl_run *x, bool busy);

#endif
