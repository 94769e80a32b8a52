/* SPDX-License-Identifier: MIT */
/* Starting a box, and removing what one has written. */
#include "providers/local/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abxsdk/fs.h"

static void await_go(void)
{
	struct lb_ctrl c;

	if (read(LB_FD_LIFELINE, &c, sizeof(c)) != (ssize_t)sizeof(c) || c.kind != LB_CTRL_GO)
		_exit(1);
}

static _Noreturn void first_process(const struct box_req *rq, int map_fd)
{
	int program_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (program_fd < 0)
		box_fail_errno(errno, "helper program");
	(void)setsid();
	if (rq->h.map != LB_MAP_DIRECT)
		box_binds_open();
	box_become_root(rq->h.map == LB_MAP_SINGLE);
	if (sethostname(rq->name, strlen(rq->name)) < 0)
		box_fail_refused(errno, "set the host name of the box");
	box_mount_root(rq, map_fd);
	/* A box may not live before it is on record: a client that was killed before that
	 * has closed the lifeline, and all that was mounted goes with this process. */
	await_go();
	box_filter_calls();
	box_drop_capabilities(!(rq->h.flags & LB_F_IMAGE));
	/* An ordinary user is privileged over the box's user namespace only.  To join the box, and
	 * while its root may not look into this process, the memory has to be of that one. */
	if (rq->h.map != LB_MAP_DIRECT)
		box_init_anew(rq, program_fd);
	box_init(rq);
}

void box_start(const struct box_req *rq)
{
	int sync[2], ids[2] = {-1, -1};
	pid_t pid;

	box_join_cgroups(rq);
	box_new_session_keyring();
	/* A descriptor stays in the mount namespace in which it was opened, and nothing can be
	 * mounted from there; the current directory is the one thing that comes along. */
	if (fchdir(LB_FD_BOX) < 0 || pipe2(sync, O_CLOEXEC) < 0)
		box_fail_errno(errno, "state directory");
	(void)close(LB_FD_BOX);
	box_binds_load(rq);
	if (rq->h.map == LB_MAP_DIRECT && box_binds_are_mounts()) {
		box_binds_open();
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ids) < 0)
			box_fail_errno(errno, "ids of mounts");
	}
	pid = box_clone(rq, box_namespaces(rq));
	if (pid == 0) {
		(void)close(sync[1]);
		if (ids[1] >= 0)
			(void)close(ids[1]);
		box_await_maps(sync[0]);
		first_process(rq, ids[0]);
	}
	(void)close(sync[0]);
	box_write_maps(rq, pid);
	box_send_kind(LB_MSG_PID, pid);
	box_write_all(sync[1], "", 1);
	if (ids[0] >= 0) {
		(void)close(ids[0]);
		box_binds_map_ids(rq, ids[1]);
	}
	_exit(0);
}

static int empty_directory(const struct box_req *rq)
{
	DIR *d;
	struct dirent *e;
	int r = 0;

	(void)rq;
	d = fdopendir(LB_FD_BOX);
	if (!d)
		box_fail_errno(errno, "remove");
	while (r == 0 && (e = readdir(d)))
		if (!abx_fs_is_dot(e->d_name))
			r = abx_fs_remove_tree(LB_FD_BOX, e->d_name);
	if (r < 0)
		box_fail_errno(-r, "remove");
	box_send_kind(LB_MSG_DONE, 0);
	return 0;
}

void box_remove(const struct box_req *rq)
{
	_exit(box_in_userns(rq, empty_directory) == 0 ? 0 : 1);
}
