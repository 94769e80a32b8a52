/* SPDX-License-Identifier: MIT */
/*
 * The running side of a box: run.json, which names its first process.
 *
 * That process has live locked, and mapped (box_keep_lock()), for as long as it lives.  So where
 * run.json says nothing and somebody has that lock, it is the one that has that file mapped.
 */
#include "providers/local/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "abxsdk/proc-stat.h"

#define RUN "run.json"
/* One length, so that each start writes over the record of the last one: on a full disk there
 * is room for no other. */
#define RUN_BYTES 256
#define MAPS_MAX_BYTES ((size_t)1 << 20)

/* PF_EXITING of the kernel: no namespaces any more, and no command can enter. */
#define FLAG_EXITING 4
/* How long a first process that was killed may take to see all others off. */
#define EXITING_MS 2000

struct process {
	int64_t start; /* with the pid, this names a process for good */
	bool ready;
	bool exiting;
};

static int read_process(int64_t pid, struct process *ret)
{
	struct abx_proc_stat stat;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%lld", (long long)pid);
	r = abx_proc_stat_read(AT_FDCWD, path, &stat);
	if (r < 0)
		return r;
	ret->start = (int64_t)stat.start;
	ret->ready = strcmp(stat.name, LB_READY_NAME) == 0;
	ret->exiting = stat.flags & FLAG_EXITING;
	return 0;
}

static bool has_ended(int pidfd, int wait_ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, wait_ms) != 0;
}

static bool in_swap(const struct local_box *b)
{
	struct stat st;

	return fstatat(b->dir_fd, LOCAL_SWAP, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0;
}

/* Does somebody live who has it locked? */
static bool is_live(const struct local_box *b, ino_t *ret_ino)
{
	abx_autoclose int fd = openat(b->dir_fd, "live", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0)
		return false;
	*ret_ino = st.st_ino;
	return errno == EWOULDBLOCK;
}

/* "first-last modes offset device inode path" */
static bool has_mapped(int64_t pid, const char *path_end, ino_t ino)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(MAPS_MAX_BYTES);
	abx_autoclose int fd = -1;
	char path[64];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%lld/maps", (long long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || abx_buf_read_fd(&b, fd) < 0)
		return false;
	at = strstr(abx_buf_str(&b), path_end);
	while (at && at > b.data && at[-1] != '\n')
		at--;
	for (int i = 0; at && i < 4; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at && strtoull(at, NULL, 10) == ino;
}

static void find_lost(const struct local_box *b, struct local_run *run)
{
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(256), text = ABX_BUF_INIT(256);
	struct dirent *e;
	DIR *d = NULL;
	ino_t ino;

	if (is_live(b, &ino))
		d = opendir("/proc");
	abx_buf_addf(&path, "/boxes/%s/live\n", b->id);
	while (d && run->pidfd < 0 && (e = readdir(d))) {
		struct process proc;
		int64_t pid = strtoll(e->d_name, NULL, 10);

		if (pid <= 1 || read_process(pid, &proc) < 0 || !proc.ready || proc.exiting)
			continue;
		run->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
		if (run->pidfd < 0)
			continue;
		if (!has_mapped(pid, abx_buf_str(&path), ino)) {
			local_run_release(run);
			continue;
		}
		*run = (struct local_run){
			.pidfd = run->pidfd, .ready = !in_swap(b), .lost = true, .pid = pid};
		abx_buf_addf(&text,
			     "store/boxes/%s/" RUN
			     ": damaged or missing; the box is found, but not "
			     "when it expires (stop and start it)",
			     b->id);
		abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "local",
				     abx_buf_str(&text));
	}
	if (d)
		(void)closedir(d);
}

/* An unreadable record names no process, as one of an earlier boot does not. */
static int read_record(const struct abx_session *s, const struct local_box *b,
		       struct local_run *run, int64_t *start)
{
	const char *boot = NULL;
	int64_t flags = 0;
	cJSON *doc = NULL;
	int r = local_read_json(b->dir_fd, RUN, &doc);

	if (r == 0)
		r = abx_json_i64(doc, "pid", &run->pid);
	if (r == 0)
		r = abx_json_i64(doc, "start_time", start);
	if (r == 0)
		r = abx_json_i64(doc, "expires_at_ms", &run->expires_at_ms);
	if (r == 0)
		r = abx_json_str(doc, "boot_id", 64, &boot);
	if (r == 0 && abx_json_i64(doc, "flags", &flags) == 0)
		run->flags = (uint32_t)flags;
	if (r == 0 && (!boot || strcmp(boot, s->boot_id) != 0 || run->pid <= 1))
		r = -ESRCH;
	cJSON_Delete(doc);
	return r;
}

int local_run_open(const struct abx_session *s, const struct local_box *b, struct local_run *ret)
{
	struct local_run run = LOCAL_RUN_INIT;
	struct process proc = {0};
	int64_t start = 0;

	if (read_record(s, b, &run, &start) == 0) {
		run.pidfd = (int)syscall(SYS_pidfd_open, (pid_t)run.pid, 0);
		if (run.pidfd >= 0 && (read_process(run.pid, &proc) < 0 || proc.start != start ||
				       has_ended(run.pidfd, proc.exiting ? EXITING_MS : 0)))
			local_run_release(&run);
		run.ready = run.pidfd >= 0 && proc.ready && !proc.exiting && !in_swap(b);
	}
	if (run.pidfd < 0)
		find_lost(b, &run);
	*ret = run;
	return 0;
}

void local_run_release(struct local_run *r)
{
	abx_cleanup_close(&r->pidfd);
	r->pidfd = -1;
	r->ready = false;
}

uint32_t local_run_state(const struct local_run *run)
{
	if (run->pidfd < 0)
		return ABX_STATE_STOPPED;
	return run->ready ? ABX_STATE_RUNNING : ABX_STATE_STARTING;
}

/* 0 when there is one of the same length to write over. */
static int write_over(int dir_fd, const char *text)
{
	abx_autoclose int fd = openat(dir_fd, RUN, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != RUN_BYTES)
		return -ENOENT;
	/* Whoever reads a part of each sees a process that does not exist, and looks for live. */
	return pwrite(fd, text, RUN_BYTES, 0) == RUN_BYTES ? 0 : -ENOENT;
}

int local_run_write(const struct abx_session *s, int dir_fd, pid_t pid, int64_t expires_at_ms,
		    uint32_t flags)
{
	char text[RUN_BYTES + 1];
	struct process proc;
	int n, r = read_process(pid, &proc);

	if (r < 0)
		return r;
	n = snprintf(text, sizeof(text),
		     "{\"pid\": %d, \"start_time\": %lld, \"boot_id\": \"%s\", "
		     "\"expires_at_ms\": %lld, \"flags\": %u}",
		     pid, (long long)proc.start, s->boot_id, (long long)expires_at_ms, flags);
	if (n < 0 || n >= RUN_BYTES)
		return -EOVERFLOW;
	memset(text + n, ' ', (size_t)(RUN_BYTES - n));
	text[RUN_BYTES - 1] = '\n';
	/* Not flushed: after a power loss there is no such process. */
	return write_over(dir_fd, text) == 0
		       ? 0
		       : abx_fs_write_atomic(dir_fd, RUN, text, RUN_BYTES, 0600, false);
}
