/* SPDX-License-Identifier: MIT */
/*
 * cgroup.h: directories of control groups for boxes, of version 1, 2, or both side by side.
 *
 * A box has none unless it needs one: to be limited, or to be paused.  Each is called
 * agentbox-<store>-<box>, and is written down in boxes/<id>/cgroups before it is made, so that
 * whoever ends the box removes it, whatever became of its maker.
 *
 * A place is the topmost directory on the way to our own cgroup in which we may make others:
 * for root that is the top of the hierarchy, for an ordinary user what systemd has delegated
 * to user@UID.service.  So a box is not part of the session of whoever has made it, and ends
 * neither with it nor by its limits.
 */
#ifndef LOCAL_CGROUP_H
#define LOCAL_CGROUP_H

#include "providers/local/local.h"

#define LOCAL_CGROUP_PATH_MAX 1024
/* Within a box's directory: what is frozen, which is all but the first process.  That one has
 * to end the box at its expiry. */
#define LOCAL_CGROUP_INNER "frozen"

struct local_place {
	char dir[LOCAL_CGROUP_PATH_MAX];
	bool v2;
};

/* Where `controller` can be used: "memory", "pids", "cpu", "freezer".  -ENOENT: nowhere on this
 * machine.  -EACCES: not by this caller.  -EBUSY: the cgroup has processes and cannot hand its
 * controllers down. */
int local_cgroup_find(const char *controller, struct local_place *ret);
/* The box's own directory there, made and on record; it may exist.  0 or -errno. */
int local_cgroup_make(const struct abx_session *s, const struct local_box *b,
		      const struct local_place *p, char ret_dir[LOCAL_CGROUP_PATH_MAX]);
/* Write `text` into DIR/FILE: 0 or -errno. */
int local_cgroup_write(const char *dir, const char *file, const char *text);
/* What DIR/FILE says, as far as it fits: 0 or -errno. */
int local_cgroup_read(const char *dir, const char *file, char *text, size_t size);
/* The directories on record, in the order in which they were made. */
int local_cgroup_each(const struct local_box *b, int (*visit)(void *ctx, const char *dir),
		      void *ctx);
/* Remove them; all processes of the box have ended.  What cannot go now stays on record. */
void local_cgroup_remove(struct abx_call *call, const struct local_box *b);

#endif
