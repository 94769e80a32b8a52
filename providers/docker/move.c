/* SPDX-License-Identifier: MIT */
/* A script in the box that takes or gives bytes. */
#include "providers/docker/move.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"

/* A pipe that has room takes this much without waiting. */
#define PIPE_BYTES 4096

static int32_t write_slowly(struct docker_move *m, const char *data, size_t len)
{
	while (len) {
		struct pollfd p = {.fd = m->out, .events = POLLOUT};
		int32_t r = abx_call_poll(m->call, &p, 1, -1);
		ssize_t n;

		if (r != ABX_OK)
			return r;
		if (!p.revents)
			continue;
		n = write(m->out, data, len < PIPE_BYTES ? len : PIPE_BYTES);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return abx_fail_errno(m->call, errno, "%s: write", m->what);
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return ABX_OK;
}

static int32_t write_out(struct docker_move *m, const char *data, size_t len)
{
	struct stat st;
	int r;

	if (fstat(m->out, &st) < 0 || !S_ISREG(st.st_mode))
		return write_slowly(m, data, len);
	r = abx_fs_write_all(m->out, data, len);
	return r < 0 ? abx_fail_errno(m->call, -r, "%s: write", m->what) : ABX_OK;
}

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct docker_move *m = io;

	if (stream == ABX_STREAM_STDOUT && m->out >= 0) {
		m->failed = write_out(m, data, len);
		return m->failed;
	}
	if (len > DOCKER_WORDS_MAX - m->n_words)
		len = DOCKER_WORDS_MAX - m->n_words;
	memcpy(m->words + m->n_words, data, len);
	m->n_words += len;
	return ABX_OK;
}

static int32_t judge(struct docker_move *m, const char *path, const struct abx_exit *e)
{
	m->words[strcspn(m->words, "\r\n")] = '\0';
	if (e->flags & ABX_EXIT_NOT_STARTED)
		return abx_fail(m->call, ABX_EIO, "use an image that has a shell",
				"%s: /bin/sh cannot be run in the box", m->what);
	if (e->flags & ABX_EXIT_LOST)
		return abx_fail(m->call, ABX_ESTATE, NULL, "%s: the box stopped meanwhile",
				m->what);
	if (!e->code)
		return ABX_OK;
	if (e->code == 44)
		return abx_fail(m->call, ABX_ENOTFOUND, NULL, "%.300s: there is no such file",
				path);
	if (e->code == 45)
		return abx_fail(m->call, ABX_EINVAL, NULL, "%.300s: it is a directory", path);
	return abx_fail(m->call, strstr(m->words, "ermission denied") ? ABX_EPERM : ABX_EIO, NULL,
			"%s: %.300s: %s", m->what, path,
			*m->words ? m->words : "it failed in the box");
}

int32_t docker_move(struct abx_session *s, const struct abx_sandbox *sb,
		    const struct abx_transfer *t, struct docker_move *m)
{
	const struct abx_exec req = {
		ABX_INIT(struct abx_exec), .argv = m->argv,  .cwd = "/", .user = t->owner,
		.stdin_fd = m->in,	   .control_fd = -1, .io = m,	 .output = on_output};
	struct abx_exit e = {ABX_INIT(struct abx_exit)};
	int32_t r;

	if (t->flags & ~(ABX_XFER_CREATE_PARENTS | ABX_XFER_NO_OWNER))
		return abx_fail(m->call, ABX_ENOTSUP, NULL, "%s: unknown flags %#x", m->what,
				t->flags);
	if (!t->path || t->path[0] != '/')
		return abx_fail(m->call, ABX_EINVAL, NULL, "%s: %s: not an absolute path", m->what,
				t->path ? t->path : "(none)");
	r = docker_exec_some(s, m->call, sb, &req, m->in_bytes, &e);
	if (m->failed)
		return m->failed;
	return r == ABX_OK ? judge(m, t->path, &e) : r;
}
