/* SPDX-License-Identifier: MIT */
/*
 * core/ctl/ctl.h: agentbox-ctl, our program inside a box.
 *
 * One static program of libc only, without NSS or resolver; single-threaded.
 *
 *	agentbox-ctl exec [--text | --spool BASE]   run one command; core/ctl/wire.h
 *	agentbox-ctl forward FROM TO                listen at port FROM for as long as the box
 *	                                            runs, and pass on to port TO; forward.c
 *	agentbox-ctl sum                            size and checksum of this very program
 *
 * It is in the box's hands: the host believes nothing that it says but bytes and numbers.
 */
#ifndef ABX_CTL_H
#define ABX_CTL_H

#include "abxsdk/launch.h"
#include "abxsdk/pty.h"
#include "abxsdk/supervise.h"
#include "core/ctl/wire.h"

/* What the host sends.  spool.c: BASE.0 and BASE.d. */
struct ctl_spool {
	char *base;
	bool dir_made;
	uint32_t next;
};
/* Take one file that is whole; 1 when there was one, 0, or -errno.  feed: abx_wire_feed. */
int ctl_spool_take(struct ctl_spool *s, struct abx_wire_in *in);
int ctl_spool_open(struct ctl_spool *s);
void ctl_spool_remove(struct ctl_spool *s);

struct ctl_exec {
	/* The connection. */
	struct abx_wire_in in;
	struct abx_wire_out out;
	int in_fd, out_fd; /* -1: over */
	int life_fd, done_fd;
	struct ctl_spool spool; /* base NULL: there is none */
	struct abx_buf queue;	/* encoded frames, sent up to `sent` */
	size_t sent;
	struct abx_buf request_bytes;
	struct abx_wire_request request;
	bool go, finishing, said_bye;
	uint32_t credit; /* taken, not yet said */
	int64_t silent_ms, last_ms, beat_at;

	/* The command. */
	struct abx_launch *launch;
	struct abx_user user;
	char own_id[16]; /* what user.name is for an id that /etc/passwd does not know */
	struct abx_supervisor sup;
	struct abx_pty *pty;
	bool running;
	int to_cmd;	   /* write end of its input; -1: closed */
	int from_cmd[2];   /* read ends of its outputs */
	bool end_of_input; /* close to_cmd once `input` is empty */
	size_t input_at, input_len;
	char input[ABX_WIRE_WINDOW];
};

/* command.c: 0 once it runs, or it said why not (finishing is set). */
void ctl_command_start(struct ctl_exec *x);
/* The last step of it: the process, and STARTED. */
void ctl_launch(struct ctl_exec *x);
/* What the command wrote before it ended, then EXIT. */
void ctl_command_ended(struct ctl_exec *x);
/* Read what one of its outputs has, at most `max` bytes, into the queue; bytes read. */
size_t ctl_command_output(struct ctl_exec *x, int i, size_t max);
void ctl_fail(struct ctl_exec *x, int32_t code, const char *fmt, ...) ABX_PRINTF(3, 4);

/* detach.c: start the command and leave it; ends the process. */
_Noreturn void ctl_detach(struct ctl_exec *x);

/* Nothing of the transport's is held any more: it waits for the end of our output. */
void ctl_let_go(void);

/* forward.c: returns once somebody listens. */
int ctl_forward(int argc, char **argv);

/* exec.c */
/* life_fd: end of file = the client is gone; done_fd: one byte = this process stays behind.
 * given: the first frames, as ABX_WIRE_GIVEN has them; NULL: they are sent. */
int ctl_exec(int argc, char **argv, char *given, int life_fd, int done_fd);
/* Write out the queue, waiting as long as somebody reads. */
void ctl_flush(struct ctl_exec *x);

#endif
