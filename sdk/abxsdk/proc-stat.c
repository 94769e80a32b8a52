/* SPDX-License-Identifier: MIT */
/* What the kernel says of a process in /proc/PID/stat. */
#include "abxsdk/proc-stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/base.h"
#include "abxsdk/number.h"

#define LAST_FIELD 24
/* The name is the only part without a bound that is known, and kernel workers have 64. */
#define TEXT_BYTES 1024

pid_t abx_parse_pid(const char *name)
{
	uint64_t pid = 0;

	return abx_parse_u64(name, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

/* "pid (name) state ppid ...", counted from 1 as proc(5) does; one that is negative is 0. */
bool abx_proc_stat_parse(const char *text, struct abx_proc_stat *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')'), *at = text;
	uint64_t v[LAST_FIELD + 1] = {0}, pid;
	struct abx_proc_stat p = {0};

	if (!open || !close || close < open || close[1] != ' ' || !close[2] ||
	    !abx_parse_digits(&at, INT32_MAX, &pid) || at + 1 != open)
		return false;
	p.pid = (pid_t)pid;
	p.state = close[2];
	(void)snprintf(p.name, sizeof(p.name), "%.*s", (int)(close - open - 1), open + 1);
	at = close + 3;
	for (int field = 4; field <= LAST_FIELD; field++) {
		if (*at++ != ' ')
			return false;
		if (!abx_parse_digits(&at, UINT64_MAX, &v[field]) && *at != '-')
			return false;
		at += strcspn(at, " \n");
	}
	if (v[4] > INT32_MAX)
		return false;
	p.parent = (pid_t)v[4];
	p.flags = v[9];
	p.ticks = v[14] + v[15];
	p.children_ticks = v[16] + v[17];
	p.start = v[22];
	p.rss_pages = v[24];
	*ret = p;
	return true;
}

int abx_proc_stat_read(int proc_fd, const char *pid, struct abx_proc_stat *ret)
{
	char path[32], text[TEXT_BYTES];
	abx_autoclose int fd = -1;
	ssize_t n;

	if ((size_t)snprintf(path, sizeof(path), "%s/stat", pid) >= sizeof(path))
		return -ENOENT;
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return abx_proc_stat_parse(text, ret) ? 0 : -EPROTO;
}
