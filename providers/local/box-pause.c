/* SPDX-License-Identifier: MIT */
/*
 * Holding the processes of a box from within its pid namespace, where all of them are in sight.
 *
 * The first process is left alone: it has to end the box at its expiry.
 */
#include "providers/local/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abxsdk/proc-stat.h"

#define ROUNDS_MAX 2000
#define ROUND_NS 2000000
#define PIDS_MAX 32768

struct pids {
	pid_t v[PIDS_MAX];
	size_t n;
};

/* 0 when there is no such process. */
static char state_of(int proc_fd, pid_t pid)
{
	struct abx_proc_stat p;
	char digits[16];

	(void)snprintf(digits, sizeof(digits), "%d", pid);
	return abx_proc_stat_read(proc_fd, digits, &p) == 0 ? p.state : 0;
}

/* Every living process of the box but the first one and ourselves. */
static void list_others(struct pids *p, DIR *proc)
{
	struct dirent *e;

	p->n = 0;
	rewinddir(proc);
	while ((e = readdir(proc))) {
		pid_t pid = abx_parse_pid(e->d_name);

		if (pid > 1 && pid != getpid() && p->n < PIDS_MAX)
			p->v[p->n++] = pid;
	}
}

static void read_members(struct pids *p)
{
	static char b[PIDS_MAX * 8];
	char *line, *save = NULL;
	size_t len = 0;
	ssize_t n;

	p->n = 0;
	if (lseek(LB_FD_CGROUP, 0, SEEK_SET) < 0)
		return;
	while (len < sizeof(b) - 1 && (n = read(LB_FD_CGROUP, b + len, sizeof(b) - 1 - len)) > 0)
		len += (size_t)n;
	b[len] = '\0';
	for (line = strtok_r(b, "\n", &save); line && p->n < PIDS_MAX;
	     line = strtok_r(NULL, "\n", &save))
		p->v[p->n++] = abx_parse_pid(line);
}

static bool has(const struct pids *p, pid_t pid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i] == pid)
			return true;
	return false;
}

/* How many had to be moved. */
static size_t gather_round(DIR *proc)
{
	static struct pids all, members;
	size_t moved = 0;
	char text[16];

	list_others(&all, proc);
	read_members(&members);
	for (size_t i = 0; i < all.n; i++) {
		char state;
		int n;

		if (has(&members, all.v[i]))
			continue;
		state = state_of(dirfd(proc), all.v[i]);
		if (state == 0 || state == 'Z' || state == 'X')
			continue;
		n = snprintf(text, sizeof(text), "%d", all.v[i]);
		if (write(LB_FD_CGROUP, text, (size_t)n) == n)
			moved++;
		else if (errno != ESRCH)
			box_fail_errno(errno, "cgroup: move a process");
	}
	return moved;
}

/* How many were not stopped yet. */
static size_t stop_round(DIR *proc)
{
	static struct pids all;
	size_t running = 0;

	list_others(&all, proc);
	for (size_t i = 0; i < all.n; i++) {
		char state = state_of(dirfd(proc), all.v[i]);

		if (state == 0 || strchr("TtZX", state))
			continue;
		running++;
		(void)kill(all.v[i], SIGSTOP);
	}
	return running;
}

static int until_none_is_left(size_t (*round)(DIR *))
{
	static const struct timespec pause = {.tv_nsec = ROUND_NS};
	DIR *proc = opendir("/proc");

	if (!proc)
		box_fail_errno(errno, "/proc of the box");
	for (int i = 0; i < ROUNDS_MAX; i++) {
		if (round(proc) == 0) {
			box_send_kind(LB_MSG_DONE, 0);
			return 0;
		}
		/* What was moved needs no time; what was signalled may need some. */
		if (round == stop_round)
			(void)nanosleep(&pause, NULL);
	}
	box_fail(ABX_EIO, "look for a process in state D", "the box's processes do not stop");
}

static int act(void *arg)
{
	const struct box_req *rq = arg;

	if (rq->h.op == LB_OP_GATHER)
		_exit(until_none_is_left(gather_round));
	if (rq->h.op == LB_OP_SUSPEND)
		_exit(until_none_is_left(stop_round));
	(void)kill(-1, SIGCONT);
	box_send_kind(LB_MSG_DONE, 0);
	_exit(0);
}

void box_hold(const struct box_req *rq)
{
	int status;

	box_enter(rq);
	status = box_run_child(act, (void *)(uintptr_t)rq);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
