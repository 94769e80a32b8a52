/* SPDX-License-Identifier: MIT */
/* The mock provider: files in and out. */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "abxsdk/fs.h"
#include "abxsdk/spawn.h"
#include "mock.h"

static int32_t copy_fd(struct abx_call *call, int from, int to, int64_t limit)
{
	char chunk[65536];

	while (limit != 0) {
		struct pollfd fds[2] = {{from, POLLIN, 0}, {mock_host->cancel_fd(call), POLLIN, 0}};
		size_t want =
			limit > 0 && limit < (int64_t)sizeof(chunk) ? (size_t)limit : sizeof(chunk);
		ssize_t n;

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			return ABX_ECANCELED;
		n = read(from, chunk, want);
		if (n < 0 && errno != EINTR)
			return mock_fail_errno(call, EIO, "read");
		if (n == 0)
			break;
		if (n > 0 && abx_fs_write_all(to, chunk, (size_t)n) < 0)
			return mock_fail_errno(call, EIO, "write");
		if (n > 0 && limit > 0)
			limit -= n;
	}
	if (limit > 0)
		return mock_fail(call, ABX_EINVAL, "the stream ended early");
	return ABX_OK;
}

static int32_t check(struct abx_session *s, struct abx_call *call, const char *op, const char *id)
{
	struct mock_box b;
	int32_t r = mock_fault_before(s, call, op);

	mock_host->trace(call, "POST", op, 200, 10);
	if (r == ABX_OK)
		r = mock_box_load(s, call, id, &b);
	if (r != ABX_OK)
		return r;
	if (b.state != ABX_STATE_RUNNING)
		r = mock_fail(call, ABX_ESTATE, "the sandbox is stopped");
	mock_box_release(&b);
	return r;
}

static void make_parents(char *path)
{
	char *slash = strrchr(path, '/');

	*slash = '\0';
	(void)abx_fs_mkdir_p(AT_FDCWD, path, 0755);
	*slash = '/';
}

/* What travelled, for tests to add up. */
static void count_bytes(const struct abx_session *s, const char *op, int fd)
{
#ifdef MOCK_FAR
	abx_autofree char *path = mock_path(s, "bytes");
	abx_autoclose int out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct stat st;

	if (fstat(fd, &st) == 0)
		(void)dprintf(out, "%s %lld\n", op, (long long)st.st_size);
#else
	(void)s;
	(void)op;
	(void)fd;
#endif
}

int32_t mock_upload(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_transfer *req)
{
	abx_autofree char *path = NULL;
	char part[PATH_MAX];
	abx_autoclose int fd = -1;
	int32_t r = check(s, call, "upload", sb->id);

	if (r != ABX_OK)
		return r;
	path = mock_map_path(s, sb->id, req->path);
	if (req->flags & ABX_XFER_CREATE_PARENTS)
		make_parents(path);
	/* Nobody sees half of it, also when the client is killed. */
	if ((size_t)snprintf(part, sizeof(part), "%.*s.part-XXXXXX",
			     (int)(strrchr(path, '/') + 1 - path), path) >= sizeof(part))
		return mock_fail_errno(call, ENAMETOOLONG, "open the file");
	fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0)
		return mock_fail_errno(call, errno, "open the file");
	r = copy_fd(call, req->fd, fd, req->size_bytes);
	count_bytes(s, "upload", fd);
	if (r == ABX_OK && fchmod(fd, req->mode ? req->mode & 07777 : 0644) < 0)
		r = mock_fail_errno(call, errno, "set the mode");
	if (r == ABX_OK && rename(part, path) < 0)
		r = mock_fail_errno(call, errno, "name the file");
	if (r != ABX_OK)
		(void)unlink(part);
	return r == ABX_OK ? mock_fault_after(s, call, "upload") : r;
}

int32_t mock_download(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_transfer *req)
{
	abx_autofree char *path = NULL;
	abx_autoclose int fd = -1;
	int32_t r = check(s, call, "download", sb->id);

	if (r != ABX_OK)
		return r;
	path = mock_map_path(s, sb->id, req->path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return mock_fail_errno(call, errno, "open the file");
	r = copy_fd(call, fd, req->fd, -1);
	return r == ABX_OK ? mock_fault_after(s, call, "download") : r;
}

/* Marked as the box's, so that destroying it ends one whose client died. */
int32_t mock_run(struct abx_session *s, struct abx_call *call, const char *id,
		 const char *const *argv, int fd_in, int fd_out)
{
	abx_autofree char *marker = mock_marker(s, id);
	const char *const envp[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", marker, NULL};
	const struct abx_spawn spawn = {.argv = argv,
					.envp = envp,
					.fd_in = fd_in,
					.fd_out = fd_out,
					.fd_err = -1,
					.new_session = 1};
	int r, status = 0;
	pid_t pid;

	r = abx_spawn_start(&spawn, &pid);
	if (r < 0)
		return mock_fail_errno(call, r, "start a program");
	for (;;) {
		struct pollfd p = {mock_host->cancel_fd(call), POLLIN, 0};

		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		if (poll(&p, 1, 2) > 0) {
			(void)kill(-pid, SIGKILL);
			(void)abx_spawn_wait(pid, &status);
			return ABX_ECANCELED;
		}
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return mock_fail(call, ABX_EIO, "%s failed", argv[0]);
	return ABX_OK;
}

#ifdef MOCK_FAR
/* Kept first: of a file, tar finds out itself how it is compressed. */
static int32_t unpack(struct abx_session *s, struct abx_call *call, const char *id, int from,
		      const char *dir)
{
	abx_autofree char *name = mock_path(s, "sandboxes/%s/stream-%d", id, from);
	const char *const argv[] = {"tar", "-x", "-p", "-o", "-C", dir, "-f", name, NULL};
	abx_autoclose int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int32_t r;

	if (fd < 0)
		return mock_fail_errno(call, errno, "keep the stream");
	r = copy_fd(call, from, fd, -1);
	count_bytes(s, "put_tar", fd);
	if (r == ABX_OK)
		r = mock_run(s, call, id, argv, -1, -1);
	(void)unlink(name);
	return r;
}
#else
static int32_t unpack(struct abx_session *s, struct abx_call *call, const char *id, int from,
		      const char *dir)
{
	const char *const argv[] = {"tar", "-x", "-p", "-o", "-C", dir, "-f", "-", NULL};

	return mock_run(s, call, id, argv, from, -1);
}
#endif

int32_t mock_put_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_transfer *req)
{
	abx_autofree char *path = NULL;
	int32_t r = check(s, call, "put_tar", sb->id);

	if (r != ABX_OK)
		return r;
	path = mock_map_path(s, sb->id, req->path);
	if (req->flags & ABX_XFER_CREATE_PARENTS)
		(void)abx_fs_mkdir_p(AT_FDCWD, path, 0755);
	r = unpack(s, call, sb->id, req->fd, path);
	return r == ABX_OK ? mock_fault_after(s, call, "put_tar") : r;
}

int32_t mock_get_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_transfer *req)
{
	abx_autofree char *path = NULL, *dir = NULL;
	const char *member = ".";
	struct stat st;
	int32_t r = check(s, call, "get_tar", sb->id);

	if (r != ABX_OK)
		return r;
	path = mock_map_path(s, sb->id, req->path);
	if (lstat(path, &st) < 0)
		return mock_fail_errno(call, errno, "find the path");
	dir = strdup(path);
	if (dir && !S_ISDIR(st.st_mode)) {
		*strrchr(dir, '/') = '\0';
		member = strrchr(path, '/') + 1;
	}
	{
		const char *const argv[] = {"tar", "-c", "-C", dir, "-f", "-", "--", member, NULL};

		r = mock_run(s, call, sb->id, argv, -1, req->fd);
	}
	return r == ABX_OK ? mock_fault_after(s, call, "get_tar") : r;
}
