/* SPDX-License-Identifier: MIT */
/*
 * Files in and out of a box, by a command in it: as the user whose files they are, below
 * whatever is mounted there.  What the engine has for it writes as root and sees no mounts.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "providers/docker/docker.h"

/* $1 path, $2 size, $3 mode, $4 "p" when parents are to be made.  A stream that ends early is
 * told from a whole one by its size: the file is there as a whole or not at all. */
static const char upload_script[] =
	"p=$1; case $p in */*) d=${p%/*} ;; *) d=. ;; esac\n"
	"[ -z \"$4\" ] || mkdir -p -- \"${d:-/}\" || exit 1\n"
	"[ ! -d \"$p\" ] || { echo 'it is a directory' >&2; exit 1; }\n"
	"t=$(mktemp \"$d/.agentbox-XXXXXX\") || exit 1\n"
	"trap 'rm -f -- \"$t\"' EXIT; trap 'exit 1' HUP INT TERM\n"
	"cat >\"$t\" || exit 1\n"
	"n=$(wc -c <\"$t\"); [ \"$n\" -eq \"$2\" ] || { echo 'cut short' >&2; exit 1; }\n"
	"chmod \"$3\" \"$t\" && mv -f -- \"$t\" \"$p\"\n";

/* 44: there is none; 45: a directory. */
static const char download_script[] = "[ ! -d \"$1\" ] || exit 45\n"
				      "[ -e \"$1\" ] || exit 44\n"
				      "exec cat -- \"$1\"\n";

int32_t docker_move_exec(const struct abx_move *m, const struct abx_exec *req, struct abx_exit *ret)
{
	const struct docker_mover *by = m->ctx;

	return docker_exec_some(by->s, m->call, by->sb, req, m->in_bytes, ret);
}

int32_t docker_scratch(const struct abx_session *s, struct abx_call *call, int *ret_fd)
{
	int fd = abx_fs_open_scratch(s->state_dir);

	if (fd < 0)
		return abx_fail_errno(call, -fd, "a file in %s", s->state_dir);
	*ret_fd = fd;
	return ABX_OK;
}

/* A stream of unknown length goes into a file without a name first. */
static int32_t spool(struct abx_session *s, struct abx_call *call, int from, int *ret_fd)
{
	abx_autofree char *chunk = malloc(65536);
	abx_autoclose int fd = -1;
	int32_t r = docker_scratch(s, call, &fd);

	if (!chunk)
		return abx_fail_no_memory(call);
	if (r != ABX_OK)
		return r;
	for (;;) {
		struct pollfd p = {.fd = from, .events = POLLIN};
		ssize_t n;
		int e;

		r = abx_call_poll(call, &p, 1, -1);
		if (r != ABX_OK)
			return r;
		if (!p.revents)
			continue;
		n = read(from, chunk, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return abx_fail_errno(call, errno, "upload: read");
		if (n == 0)
			break;
		e = abx_fs_write_all(fd, chunk, (size_t)n);
		if (e < 0)
			return abx_fail_errno(call, -e, "upload: a file in %s", s->state_dir);
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return abx_fail_errno(call, errno, "upload: read");
	*ret_fd = abx_steal_fd(&fd);
	return ABX_OK;
}

static int32_t send_file(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			 const struct abx_transfer *t, int fd, int64_t size)
{
	char bytes[32], mode[16];
	const char *const argv[] = {
		"/bin/sh", "-c",  upload_script, "agentbox",
		t->path,   bytes, mode,		 t->flags & ABX_XFER_CREATE_PARENTS ? "p" : "",
		NULL};
	struct docker_mover by = {s, sb};
	struct abx_move m = {
		.call = call, .what = "upload", .out = -1, .exec = docker_move_exec, .ctx = &by};

	(void)snprintf(bytes, sizeof(bytes), "%lld", (long long)size);
	(void)snprintf(mode, sizeof(mode), "%o", t->mode ? t->mode & 07777 : 0644);
	m.argv = argv;
	m.in = fd;
	m.in_bytes = size;
	return abx_move(&m, t);
}

int32_t docker_upload(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_transfer *t)
{
	abx_autoclose int spooled = -1;
	int64_t size = t->size_bytes >= 0 ? t->size_bytes : abx_fs_rest(t->fd);
	int fd = t->fd;
	int32_t r = ABX_OK;

	if (size < 0) {
		r = spool(s, call, fd, &spooled);
		fd = spooled;
		size = fd >= 0 ? abx_fs_rest(fd) : 0;
	}
	return r == ABX_OK ? send_file(s, call, sb, t, fd, size) : r;
}

int32_t docker_download(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const struct abx_transfer *t)
{
	const char *const argv[] = {"/bin/sh", "-c", download_script, "agentbox", t->path, NULL};
	struct docker_mover by = {s, sb};
	struct abx_move m = {.call = call,
			     .what = "download",
			     .in = -1,
			     .out = t->fd,
			     .mark_end = true,
			     .exec = docker_move_exec,
			     .ctx = &by};

	m.argv = argv;
	return abx_move(&m, t);
}
