/* SPDX-License-Identifier: MIT */
/* What a box wrote becomes a layer that others share: by a rename, or as a copy. */
#include "providers/local/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "providers/local/mount-api.h"

/* Whoever has joined a box ends with it, but a moment later. */
#define IN_USE_TRIES 50
#define IN_USE_WAIT_NS 1000000

/*
 * Does an overlay exist that writes to this top?  Its processes have ended, but one of them
 * may have handed an open file to somebody outside.  The kernel knows: with index=on, it
 * refuses a second overlay over the same upper directory.  0, or errno.
 */
static int is_free(int own, int lower, const char *top)
{
	char lower_path[64], upper[320], work[320];
	int fd = abx_fsopen("overlay"), r = 0;

	if (fd < 0)
		return errno;
	(void)snprintf(lower_path, sizeof(lower_path), "/proc/self/fd/%d", lower);
	(void)snprintf(upper, sizeof(upper), "/proc/self/fd/%d/upper/%.255s", own, top);
	(void)snprintf(work, sizeof(work), "/proc/self/fd/%d/work/%.255s", own, top);
	if (abx_fsconfig(fd, ABX_FSCONFIG_SET_FLAG, "userxattr", NULL) < 0 ||
	    abx_fsconfig(fd, ABX_FSCONFIG_SET_STRING, "index", "on") < 0 ||
	    abx_fsconfig(fd, ABX_FSCONFIG_SET_STRING, "lowerdir", lower_path) < 0 ||
	    abx_fsconfig(fd, ABX_FSCONFIG_SET_STRING, "upperdir", upper) < 0 ||
	    abx_fsconfig(fd, ABX_FSCONFIG_SET_STRING, "workdir", work) < 0 ||
	    abx_fsconfig(fd, ABX_FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
		r = errno;
	(void)close(fd);
	return r;
}

static int await_free(int own, int lower, const char *top)
{
	const struct timespec pause = {.tv_nsec = IN_USE_WAIT_NS};
	int r = EBUSY;

	for (int i = 0; i < IN_USE_TRIES && r == EBUSY; i++) {
		if (i)
			(void)nanosleep(&pause, NULL);
		r = is_free(own, lower, top);
	}
	return r;
}

/* 0, or errno: then nothing has changed. */
static int seal(const char *own_path, const char *layer)
{
	int own = open(own_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int lower = own < 0 ? -1 : openat(own, "mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int upper = own < 0 ? -1 : openat(own, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = upper < 0 ? NULL : fdopendir(upper);
	struct dirent *e;
	int r = d && lower >= 0 ? 0 : errno;

	while (r == 0 && (e = readdir(d)))
		if (e->d_name[0] != '.')
			r = await_free(own, lower, e->d_name);
	if (r == 0 && renameat(own, "upper", AT_FDCWD, layer) < 0)
		r = errno;
	if (d)
		(void)closedir(d);
	if (lower >= 0)
		(void)close(lower);
	if (own >= 0)
		(void)close(own);
	return r;
}

void box_seal(const char *own, const char *layer)
{
	int r = seal(own, layer);

	if (!r)
		return;
	box_send(&(struct lb_msg){.kind = LB_MSG_IN_USE, .code = r});
	_exit(0);
}

static int seal_only(const struct box_req *rq)
{
	struct box_plan plan;

	box_plan_parse(rq, &plan);
	if (fchdir(LB_FD_BOX) < 0 || !plan.seal)
		box_fail_errno(errno, "state directory");
	box_seal(rq->path, plan.seal);
	box_send_kind(LB_MSG_DONE, 0);
	return 0;
}

void box_op_seal(const struct box_req *rq)
{
	_exit(box_in_userns(rq, seal_only) == 0 ? 0 : 1);
}

static void open_sources(const struct box_req *rq, int *from)
{
	for (uint32_t i = 0; i < rq->h.n_argv; i++) {
		from[i] = openat(LB_MERGE_STORE_FD, rq->argv[i],
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (from[i] < 0)
			box_fail_errno(errno, "state directory: %s", rq->argv[i]);
	}
}

static int merge(const struct box_req *rq)
{
	int *from = box_alloc(rq->h.n_argv * sizeof(*from));
	int to = openat(LB_FD_LIVE, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct pollfd p = {.fd = LB_FD_LIFELINE, .events = POLLIN};
	uint64_t bytes;

	if (to < 0)
		box_fail_errno(errno, "state directory");
	open_sources(rq, from);
	bytes = box_merge(from, rq->h.n_argv, to, "new", rq->h.flags & LB_F_LINK);
	/* Whoever sweeps up after a dead client waits for our end. */
	if (poll(&p, 1, 0) > 0)
		_exit(1);
	if (renameat(to, "new", LB_MERGE_STORE_FD, rq->path) < 0)
		box_fail_errno(errno, "state directory: %s", rq->path);
	box_send_kind(LB_MSG_DONE, (int64_t)bytes);
	return 0;
}

void box_op_merge(const struct box_req *rq)
{
	if (!(rq->h.flags & LB_F_INSIDE))
		_exit(box_in_userns(rq, merge) == 0 ? 0 : 1);
	/* With the ids of the box, but still in our own root. */
	if (setns(LB_FD_BOX, CLONE_NEWUSER) < 0) {
		if (errno == ESRCH)
			box_fail(ABX_ESTATE, NULL, "the box is not running");
		box_fail_errno(errno, "enter the box");
	}
	box_become_root(rq->h.flags & LB_F_SINGLE_ID);
	_exit(merge(rq));
}
