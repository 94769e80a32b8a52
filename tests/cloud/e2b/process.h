/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/e2b/process.h: the processes of a sandbox that envd started, and who listens.
 *
 * Each has a thread that runs the agent; what it says goes to every listener, and is dropped when
 * there is none.  One that ended is remembered for 30 seconds.
 */
#ifndef CLOUD_E2B_PROCESS_H
#define CLOUD_E2B_PROCESS_H

#include "tests/cloud/e2b/connect.h"

struct listener {
	struct listener *next;
	struct emu_feed *feed;
	struct connect_kind kind;
	int64_t until_ms; /* 0: no limit */
	bool kills;	  /* at its limit the process is killed */
};

enum proc_state { PROC_STARTING, PROC_RUNNING, PROC_ENDED };

struct e2b_proc {
	struct e2b_proc *next;
	struct e2b_box *box;
	int refs;	      /* behind the lock of the service */
	_Atomic uint32_t pid; /* 0: not known yet */
	char *user, *tag;
	cJSON *request; /* StartRequest */
	bool pty;
	pthread_mutex_t in_lock;
	int in_fd, in_end; /* what the agent reads, and its other end */
	bool in_closed;

	pthread_mutex_t lock; /* of the rest; what is atomic is read without it */
	_Atomic enum proc_state state;
	struct listener *listeners;
	cJSON *end;	       /* EndEvent */
	int64_t ended_ms;      /* before its state says so */
	struct abx_buf frames; /* used by the thread alone */
};

/* Deletes nothing of what it is given.  Without a feed nobody listens.  A reference. */
struct e2b_proc *proc_start(struct e2b_box *b, const char *user, const cJSON *request,
			    struct emu_feed *feed, const struct connect_kind *kind,
			    int64_t timeout_ms);
/* By ProcessSelector: a reference, or NULL. */
struct e2b_proc *proc_find(struct e2b_box *b, const cJSON *selector);
void proc_put(struct e2b_proc *p);
/* Whoever listens loses it. */
void proc_cut(struct e2b_proc *p);
/* Listeners whose time is over; true: the process's is, too. */
bool proc_cut_late(struct e2b_proc *p, int64_t now_ms);
/* Everything from now on, and first of all that it runs, or how it ended. */
void proc_listen(struct e2b_proc *p, struct emu_feed *feed, const struct connect_kind *kind,
		 int64_t timeout_ms);
/* A frame for the agent: 0, or -EPIPE when it does not listen any more. */
int proc_say(struct e2b_proc *p, char kind, const void *data, size_t len);
/* 0, or -ESRCH. */
int proc_signal(struct e2b_proc *p, int signo);
/* A PTY message's size as AGENT_PTY and AGENT_RESIZE have it. */
void proc_pty_size(const cJSON *pty, unsigned char ret[4]);

#endif
