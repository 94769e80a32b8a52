/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/agent/agent.h: agentbox-cloud-agent, the part of an emulated cloud that is inside
 * its sandboxes.
 *
 *	agentbox-cloud-agent run                       one command; frames.h
 *	agentbox-cloud-agent stat USER PATH            entries, see below
 *	agentbox-cloud-agent list USER PATH DEPTH
 *	agentbox-cloud-agent mkdir USER PATH
 *	agentbox-cloud-agent move USER FROM TO
 *	agentbox-cloud-agent remove USER PATH
 *	agentbox-cloud-agent get USER PATH             "ok NUL SIZE NUL PATH NUL", then the file
 *	agentbox-cloud-agent put USER PATH             the file comes on the standard input
 *	agentbox-cloud-agent watch USER PATH recursive|flat
 *	agentbox-cloud-agent kill PID SIGNAL
 *	agentbox-cloud-agent dial PORT request|stream  "+" once connected, and bytes both ways; "-".
 *	                                               A request is over with its input; of a stream
 *	                                               that is the end of one way
 *
 * It runs as root; USER owns what is made, and relative paths begin at its home.  An answer is
 * "ok NUL" and entries, or "KIND NUL TEXT NUL" with a word of the Connect protocol.  An entry is
 * AGENT_ENTRY_FIELDS fields, each ended by NUL: name, type (file, directory, symlink or nothing),
 * path, size, mode, permissions, owner, group, time, target.
 *
 * One static program of libc only, without NSS; single-threaded.
 */
#ifndef CLOUD_AGENT_H
#define CLOUD_AGENT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "abxsdk/base.h"
#include "abxsdk/user.h"

#define AGENT_ENTRY_FIELDS 10

struct agent_user {
	struct abx_user user;
	char *passwd, *group;
};

/* main.c: false when there is no such user. */
bool agent_user_find(const char *name, struct agent_user *ret);
/* The path that is meant, absolute; NULL: another user's home. */
char *agent_path(const struct agent_user *u, const char *path);
/* Say why not, and return the exit code. */
int agent_fail(const char *kind, const char *fmt, ...) ABX_PRINTF(2, 3);
void *agent_alloc(size_t n, size_t size);

/* entry.c: the fields of what is at `path`; -errno. */
int agent_entry(FILE *to, const char *path);

/* run.c, files.c, watch.c: the exit code. */
int agent_run(void);
int agent_stat(const struct agent_user *u, char **args);
int agent_list(const struct agent_user *u, char **args);
int agent_mkdir(const struct agent_user *u, char **args);
int agent_move(const struct agent_user *u, char **args);
int agent_remove(const struct agent_user *u, char **args);
int agent_get(const struct agent_user *u, char **args);
int agent_put(const struct agent_user *u, char **args);
int agent_watch(const struct agent_user *u, char **args);
/* dial.c */
int agent_dial(const char *port, bool stream);

/* run.c: write one frame to the standard output; ends the program when nobody reads. */
void agent_say(char kind, const void *data, size_t len);

#endif
