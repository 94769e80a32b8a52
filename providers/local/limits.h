/* SPDX-License-Identifier: MIT */
/*
 * limits.h: how much of this machine a box may take.
 *
 * Processors, memory with swap, and processes by control groups, made at each start; disk by a
 * project quota of the file system, set once on boxes/<id>/layers, where all that the box
 * writes gets it.  The key `limits` of box.json holds what was asked for.  What cannot be kept
 * is refused before anything is made.
 */
#ifndef LOCAL_LIMITS_H
#define LOCAL_LIMITS_H

#include "providers/local/local.h"

struct local_limits {
	uint32_t cpu_milli, max_pids; /* 0: none */
	uint64_t mem_bytes, disk_bytes;
	uint32_t project; /* of the quota; 0: none */
};

/* Can these be kept here?  *ret is what goes on record, with a project of its own. */
int32_t local_limits_check(const struct abx_session *s, struct abx_call *call,
			   const struct abx_provision *p, struct local_limits *ret);
int local_limits_record(cJSON *doc, const struct local_limits *l);
int local_limits_read(const cJSON *doc, struct local_limits *ret);

/* The cgroups of a box that is about to start, and of whoever enters it: files for the helper
 * to join them by, all -1 before.  Boxes without limits have none. */
int32_t local_limits_start(const struct abx_session *s, struct abx_call *call,
			   const struct local_box *b, int fds[LB_CGROUPS_MAX]);
int32_t local_limits_enter(struct abx_call *call, const struct local_box *b,
			   int fds[LB_CGROUPS_MAX]);

/* Of a command in a box with a memory limit: how many processes that has ended. */
struct local_oom {
	int fd; /* the kernel's count; -1: no such limit */
	uint64_t kills, mem_bytes;
};
#define LOCAL_OOM_INIT   \
	{                \
		.fd = -1 \
	}
void local_oom_open(const struct local_box *b, struct local_oom *ret);
/* Log it if there are more by now: whoever reads 137 should know from whom. */
void local_oom_tell(const struct local_oom *o);
void local_oom_close(struct local_oom *o);

/* A full box too can be started and snapshotted, which takes some directories of ours: from `on`
 * until it is off again there is room for them. */
void local_limits_make_room(const struct local_box *b, bool on);

/* quota.c: a project that nobody uses, for files of this directory's file system.  0 or
 * -errno: -EOPNOTSUPP, it has no project quota, or none that is on; -EPERM, not root. */
int local_quota_choose(int dir_fd, uint32_t *ret_project);
/* Everything made in `name` from now on counts. */
int local_quota_set(int dir_fd, const char *name, const struct local_limits *l);
/* 0 bytes: none. */
int local_quota_limit(int dir_fd, uint32_t project, uint64_t bytes);
/* The limit ends; what is left may stay. */
void local_quota_release(int dir_fd, uint32_t project);
int local_quota_used(int dir_fd, uint32_t project, uint64_t *ret_bytes);

#endif
