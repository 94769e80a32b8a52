/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/tree.h: every descendant of this process.
 *
 * Found through /proc by parents, so that a process that left its session or group is among
 * them as long as this process is its subreaper (PR_SET_CHILD_SUBREAPER).  Not thread-safe.
 */
#ifndef ABXSDK_TREE_H
#define ABXSDK_TREE_H

#include <stddef.h>

/* Signal all of them; returns how many there were. */
size_t abx_tree_signal(int signo);
/* Kill all: stopped first, so that nobody starts one between the look and the kill. */
void abx_tree_kill(void);

#endif
