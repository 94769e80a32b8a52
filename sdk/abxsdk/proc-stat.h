/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/proc-stat.h: what the kernel says of a process in /proc/PID/stat.
 *
 *	struct abx_proc_stat p;
 *	int r = abx_proc_stat_read(proc_fd, "123", &p);      0, or -errno: it has ended
 *
 * The name of a process may hold anything, ")" and line ends too; all else is the kernel's.
 * Allocates nothing.
 */
#ifndef ABXSDK_PROC_STAT_H
#define ABXSDK_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct abx_proc_stat {
	pid_t pid, parent;
	char name[64];
	char state; /* 'R', 'S', 'D', 'T', 't', 'Z', ... */
	uint64_t flags;
	uint64_t ticks;		 /* of processor time, */
	uint64_t children_ticks; /* and of children that it waited for */
	uint64_t start;		 /* since the boot; with the pid it names a process for good */
	uint64_t rss_pages;
};

/* False: that is no such text. */
bool abx_proc_stat_parse(const char *text, struct abx_proc_stat *ret);
/* `pid` are digits or "self" in /proc, or a path of one ("/proc/1", any proc_fd).  0, -errno, or
 * -EPROTO. */
int abx_proc_stat_read(int proc_fd, const char *pid, struct abx_proc_stat *ret);

/* A name in /proc that is a process; 0: it is not. */
pid_t abx_parse_pid(const char *name);

#endif
