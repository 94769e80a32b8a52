/* SPDX-License-Identifier: MIT */
/* Finding and signalling every descendant of this process. */
#include "abxsdk/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "abxsdk/proc-stat.h"

struct proc {
	pid_t pid, parent;
	bool below;
};

struct procs {
	struct proc *p;
	size_t n, cap;
};

static void add(struct procs *v, pid_t pid, pid_t parent)
{
	if (v->n == v->cap) {
		size_t cap = v->cap ? 2 * v->cap : 64;
		struct proc *p = realloc(v->p, cap * sizeof(*p));

		if (!p)
			return;
		v->p = p;
		v->cap = cap;
	}
	v->p[v->n++] = (struct proc){pid, parent, false};
}

static void read_all(struct procs *v)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct abx_proc_stat p;

		if (abx_parse_pid(e->d_name) && abx_proc_stat_read(dirfd(d), e->d_name, &p) == 0 &&
		    p.state != 'Z')
			add(v, p.pid, p.parent);
	}
	if (d)
		(void)closedir(d);
}

static bool is_below(const struct procs *v, pid_t parent, pid_t top)
{
	if (parent == top)
		return true;
	for (size_t i = 0; i < v->n; i++)
		if (v->p[i].pid == parent)
			return v->p[i].below;
	return false;
}

size_t abx_tree_signal(int signo)
{
	struct procs v = {NULL, 0, 0};
	pid_t self = getpid();
	size_t found = 0;
	bool more = true;

	read_all(&v);
	while (more) {
		more = false;
		for (size_t i = 0; i < v.n; i++)
			if (!v.p[i].below && is_below(&v, v.p[i].parent, self)) {
				v.p[i].below = more = true;
				found++;
			}
	}
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i].below)
			(void)kill(v.p[i].pid, signo);
	free(v.p);
	return found;
}

void abx_tree_kill(void)
{
	size_t before, now = 0;

	do {
		before = now;
		now = abx_tree_signal(SIGSTOP);
	} while (now > before);
	(void)abx_tree_signal(SIGKILL);
}
