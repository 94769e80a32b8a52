/* SPDX-License-Identifier: MIT */
/* What the processes of a box take, and what it has written takes on disk. */
#include "providers/local/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/proc-stat.h"

#define PASSWD_MAX_BYTES ((size_t)1 << 20)
#define DEPTH_MAX 256

static char *passwd;

/* What a terminal would take for a command of its own has no place in a table. */
static void make_printable(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
}

/* The first name with this number in the box's /etc/passwd, or the number. */
static void find_name(uint32_t uid, char *ret, size_t size)
{
	char want[16];
	const char *line = passwd ? passwd : "";
	int n = snprintf(want, sizeof(want), "%u:", uid);

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t name = strcspn(line, ":\n"), word;
		const char *rest = line + name;

		if (*rest != ':')
			continue;
		word = strcspn(rest + 1, ":\n");
		if (rest[1 + word] == ':' && strncmp(rest + 2 + word, want, (size_t)n) == 0 &&
		    name < size) {
			memcpy(ret, line, name);
			ret[name] = '\0';
			make_printable(ret);
			return;
		}
	}
	(void)snprintf(ret, size, "%u", uid);
}

static ssize_t read_some(int proc_fd, const char *pid, const char *file, char *b, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%.16s/%s", pid, file);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, b, size - 1);
	(void)close(fd);
	b[n > 0 ? n : 0] = '\0';
	return n;
}

static bool read_process(int proc_fd, const char *pid, struct lb_process *p)
{
	const uint64_t tick_ms = 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
	struct abx_proc_stat proc;
	char b[1024];
	struct stat st;
	ssize_t n;

	memset(p, 0, sizeof(*p));
	p->pid = abx_parse_pid(pid);
	if (!p->pid || p->pid == getpid() || abx_proc_stat_read(proc_fd, pid, &proc) < 0 ||
	    fstatat(proc_fd, pid, &st, 0) < 0)
		return false;
	(void)snprintf(p->command, sizeof(p->command), "[%s]", proc.name);
	p->state = proc.state;
	p->parent = proc.parent;
	p->cpu_ms = (proc.ticks + proc.children_ticks) * tick_ms;
	p->rss_bytes = proc.rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
	p->uid = st.st_uid;
	find_name(p->uid, p->user, sizeof(p->user));
	n = read_some(proc_fd, pid, "cmdline", b, sizeof(p->command));
	if (n > 0) {
		for (ssize_t i = 0; i + 1 < n; i++)
			if (!b[i])
				b[i] = ' ';
		/* Who names itself anew may fill up with blanks. */
		while (n > 0 && (b[n - 1] == ' ' || !b[n - 1]))
			b[--n] = '\0';
		memcpy(p->command, b, (size_t)n + 1);
	}
	make_printable(p->command);
	return true;
}

static int write_processes(void *arg)
{
	DIR *proc = opendir("/proc");
	struct lb_process p;
	struct dirent *e;
	int n = 0;

	(void)arg;
	passwd = box_read_file(AT_FDCWD, "/etc/passwd", PASSWD_MAX_BYTES, NULL);
	while (proc && n < LB_PROCESSES_MAX && (e = readdir(proc)))
		if (read_process(dirfd(proc), e->d_name, &p)) {
			box_write_all(STDOUT_FILENO, &p, sizeof(p));
			n++;
		}
	box_send_kind(LB_MSG_DONE, n);
	_exit(0);
}

void box_stats(const struct box_req *rq)
{
	int status;

	box_enter(rq);
	status = box_run_child(write_processes, NULL);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* A file with several names counts once, in parts. */
static uint64_t usage_of(int dir_fd, int depth)
{
	DIR *d = abx_fs_opendir(dir_fd, ".");
	uint64_t sum = 0;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct stat st;
		int inner;

		if (abx_fs_is_dot(e->d_name) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		sum += (uint64_t)st.st_blocks * 512 /
		       (S_ISDIR(st.st_mode) || !st.st_nlink ? 1 : (uint64_t)st.st_nlink);
		if (!S_ISDIR(st.st_mode) || depth == 0)
			continue;
		inner = openat(dirfd(d), e->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0) {
			sum += usage_of(inner, depth - 1);
			(void)close(inner);
		}
	}
	if (d)
		(void)closedir(d);
	return sum;
}

static int send_usage(const struct box_req *rq)
{
	(void)rq;
	box_send_kind(LB_MSG_DONE, (int64_t)usage_of(LB_FD_BOX, DEPTH_MAX));
	return 0;
}

void box_usage(const struct box_req *rq)
{
	_exit(box_in_userns(rq, send_usage) == 0 ? 0 : 1);
}
