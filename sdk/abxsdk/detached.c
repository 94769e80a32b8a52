/* SPDX-License-Identifier: MIT */
/* What is kept of a command that outlives its client. */
#include "abxsdk/detached.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/base.h"
#include "abxsdk/fs.h"
#include "abxsdk/proc-stat.h"

static void write_state(const char *log, const char *text)
{
	const char *slash = strrchr(log, '/'), *name = slash ? slash + 1 : log;
	const int dir = (int)(name - log), stem = (int)strcspn(name, ".");
	char path[PATH_MAX], next[PATH_MAX];
	abx_autoclose int fd = -1;

	if ((size_t)snprintf(path, sizeof(path), "%.*s.state", dir + stem, log) >= sizeof(path) ||
	    (size_t)snprintf(next, sizeof(next), "%.*s.%.*s.state", dir, log, stem, name) >=
		    sizeof(next))
		return;
	/* In a directory that is everybody's. */
	(void)unlink(next);
	fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (fchmod(fd, 0644) < 0 || abx_fs_write_all(fd, text, strlen(text)) < 0 ||
	    rename(next, path) < 0)
		(void)unlink(next);
}

void abx_detached_begin(const char *log)
{
	struct abx_proc_stat self;
	char text[64];

	if (abx_proc_stat_read(AT_FDCWD, "/proc/self", &self) < 0)
		return;
	(void)snprintf(text, sizeof(text), "running %d %llu\n", self.pid,
		       (unsigned long long)self.start);
	write_state(log, text);
}

void abx_detached_end(const char *log, const struct abx_supervisor *s)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "ended %d %d %d\n",
		       WIFSIGNALED(s->status) ? 0 : WEXITSTATUS(s->status),
		       WIFSIGNALED(s->status) ? WTERMSIG(s->status) : 0, s->timed_out);
	write_state(log, text);
}
