/* SPDX-License-Identifier: MIT */
/*
 * A map of ids for a mount: a user namespace in which nothing runs.
 *
 * To its left are the ids that files have, to its right those that the box's user has here.
 */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_map(pid_t pid, const char *file, uint32_t id, uint32_t in_box)
{
	char text[64];
	int r;

	(void)snprintf(text, sizeof(text), "%u %u 1\n", id, in_box);
	r = box_write_proc(pid, file, text);
	if (r)
		box_fail_errno(r, "ids of a mount: %s", file);
}

int box_idmap_open(const struct box_req *rq, const struct box_idmap *map)
{
	char path[64];
	int fd, end[2];
	pid_t pid;

	if (pipe2(end, O_CLOEXEC) < 0)
		box_fail_errno(errno, "pipe");
	pid = box_clone(rq, CLONE_NEWUSER);
	if (pid == 0) {
		char c;

		(void)close(end[1]);
		(void)!read(end[0], &c, 1);
		_exit(0);
	}
	(void)close(end[0]);
	write_map(pid, "uid_map", map->uid, rq->h.uid_base + map->box_uid);
	write_map(pid, "gid_map", map->gid, rq->h.gid_base + map->box_gid);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		box_fail_errno(errno, "ids of a mount");
	(void)close(end[1]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return fd;
}
