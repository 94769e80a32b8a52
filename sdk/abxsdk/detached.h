/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/detached.h: what is kept of a command that outlives its client.
 *
 * Beside its log, DIR/ID.log, its supervisor keeps one line in DIR/ID.state, for everybody in
 * the box to read:
 *
 *	running PID START              the supervisor, by number and time as in proc-stat.h
 *	ended CODE SIGNAL TIMED-OUT    SIGNAL 0: by itself; TIMED-OUT 0 or 1
 *
 * A line that says running while no such process is there is that of a command which the box,
 * or its supervisor, did not survive.  The file is replaced as a whole; nothing that somebody
 * else put in its place is followed or written to.  What cannot be written is not kept.
 */
#ifndef ABXSDK_DETACHED_H
#define ABXSDK_DETACHED_H

#include "abxsdk/supervise.h"

/* The command has started, and the caller watches it. */
void abx_detached_begin(const char *log);
/* It has ended. */
void abx_detached_end(const char *log, const struct abx_supervisor *s);

#endif
