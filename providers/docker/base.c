/* SPDX-License-Identifier: MIT */
/* The root of a suite of Debian or Ubuntu, made by mmdebstrap on this machine. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "abxsdk/spawn.h"
#include "abxsdk/suite.h"
#include "providers/docker/docker.h"

#define TAIL_BYTES ((size_t)600)

/* The end of what a program says. */
struct tail {
	char text[TAIL_BYTES + 1];
	size_t n;
};

static void tail_add(struct tail *t, const char *data, size_t len)
{
	if (len > TAIL_BYTES) {
		data += len - TAIL_BYTES;
		len = TAIL_BYTES;
	}
	if (t->n + len > TAIL_BYTES) {
		size_t drop = t->n + len - TAIL_BYTES;

		memmove(t->text, t->text + drop, t->n - drop);
		t->n -= drop;
	}
	memcpy(t->text + t->n, data, len);
	t->n += len;
	t->text[t->n] = '\0';
}

static const char *last_line(struct tail *t)
{
	char *at;

	while (t->n && strchr("\r\n", t->text[t->n - 1]))
		t->text[--t->n] = '\0';
	at = strrchr(t->text, '\n');
	return at ? at + 1 : t->text;
}

/* Until it ended: what it says goes to the host. */
static int32_t follow(struct abx_call *call, int fd, struct tail *t)
{
	char chunk[4096];

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int32_t r = abx_call_poll(call, &p, 1, -1);
		ssize_t n;

		if (r != ABX_OK)
			return r;
		if (!p.revents)
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n <= 0)
			return ABX_OK;
		tail_add(t, chunk, (size_t)n);
		r = abx_plugin_host->emit_log(call, ABX_STREAM_STDERR, chunk, (size_t)n);
		if (r != ABX_OK)
			return r;
	}
}

static int32_t run(struct abx_call *call, const struct abx_suite *su, const char *from, int out)
{
	struct abx_spawn sp = {.argv = (const char *const *)su->argv,
			       .fd_in = -1,
			       .fd_out = out,
			       .cwd = "/",
			       .new_session = 1};
	struct tail t = {.n = 0};
	int p[2], status = 0, e;
	pid_t pid;
	int32_t r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return abx_fail_errno(call, errno, "%s: pipe", from);
	sp.fd_err = p[1];
	e = abx_spawn_start(&sp, &pid);
	(void)close(p[1]);
	if (e < 0) {
		(void)close(p[0]);
		/* What it would be made by is not here: there are other ways. */
		return e == -ENOENT ? ABX_EBROKEN
				    : abx_fail_errno(call, -e, "%s: mmdebstrap", from);
	}
	r = follow(call, p[0], &t);
	if (r != ABX_OK)
		(void)kill(-pid, SIGTERM);
	(void)close(p[0]);
	(void)abx_spawn_wait(pid, &status);
	if (r == ABX_OK && status)
		r = abx_fail(call, ABX_EIO, NULL, "%s: mmdebstrap failed: %.400s", from,
			     last_line(&t));
	return r;
}

int32_t docker_bootstrap(struct abx_session *s, struct abx_call *call, const char *from,
			 const char *packages, int *ret_fd)
{
	const struct abx_suite_how how = {.from = from,
					  .packages = packages ? packages : abx_suite_packages,
					  .proxy = s->proxy,
					  .no_proxy = s->no_proxy,
					  .mode = "auto",
					  .format = "tar",
					  .target = "-"};
	abx_autoclose int fd = -1;
	struct abx_suite su = ABX_SUITE_INIT;
	int32_t r = docker_scratch(s, call, &fd);
	int e;

	if (r != ABX_OK)
		return r;
	e = abx_suite_make(&su, &how);
	if (e < 0)
		return abx_fail_errno(call, -e, "%s", from);
	r = run(call, &su, from, fd);
	abx_suite_release(&su);
	if (r == ABX_OK && lseek(fd, 0, SEEK_SET) < 0)
		r = abx_fail_errno(call, errno, "%s", from);
	if (r == ABX_OK)
		*ret_fd = abx_steal_fd(&fd);
	return r;
}
