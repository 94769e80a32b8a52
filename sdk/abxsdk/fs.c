/* SPDX-License-Identifier: MIT */
/* Files, the careful way. */
#include "abxsdk/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

int abx_fs_open_dir(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int abx_fs_read(int dirfd, const char *path, struct abx_buf *b)
{
	abx_autoclose int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > 0 && (size_t)st.st_size > b->max - b->len)
		return -EFBIG;
	return abx_buf_read_fd(b, fd);
}

int abx_fs_write_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int fsync_parent(int dirfd, const char *path)
{
	const char *slash = strrchr(path, '/');
	abx_autofree char *parent = NULL;
	abx_autoclose int fd = -1;

	if (!slash)
		parent = strdup(".");
	else
		parent = slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
	if (!parent)
		return -ENOMEM;
	fd = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fsync(fd) < 0 ? -errno : 0;
}

static int write_and_close(int *fd, const void *data, size_t len, mode_t mode, bool durable)
{
	int r = abx_fs_write_all(*fd, data, len);

	if (r < 0)
		return r;
	/* The caller's umask must not decide who can read state. */
	if (fchmod(*fd, mode) < 0)
		return -errno;
	if (durable && fsync(*fd) < 0)
		return -errno;
	return close(abx_steal_fd(fd)) < 0 ? -errno : 0;
}

int abx_fs_write_atomic(int dirfd, const char *path, const void *data, size_t len, mode_t mode,
			bool durable)
{
	abx_auto(abx_buf) struct abx_buf tmp = ABX_BUF_INIT(8192);
	abx_autoclose int fd = -1;
	uint64_t nonce;
	int r;

	if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return -EIO;
	abx_buf_addf(&tmp, "%s.tmp-%016llx", path, (unsigned long long)nonce);
	if (tmp.failed)
		return -ENAMETOOLONG;
	fd = openat(dirfd, tmp.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_and_close(&fd, data, len, mode, durable);
	if (r == 0 && renameat(dirfd, tmp.data, dirfd, path) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dirfd, tmp.data, 0);
		return r;
	}
	return durable ? fsync_parent(dirfd, path) : 0;
}

int abx_fs_mkdir_p(int dirfd, const char *path, mode_t mode)
{
	abx_autofree char *copy = strdup(path);
	char *at;

	if (!copy)
		return -ENOMEM;
	for (at = copy + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdirat(dirfd, copy, mode) < 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	if (mkdirat(dirfd, copy, mode) < 0) {
		struct stat st;

		if (errno != EEXIST)
			return -errno;
		if (fstatat(dirfd, copy, &st, 0) < 0)
			return -errno;
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
	}
	return 0;
}

/* One directory of a removal under way; deep trees must not deepen the C stack. */
struct rm_level {
	struct rm_level *up;
	DIR *dir;
	char name[256];
};

static int rm_push(struct rm_level **top, int dirfd, const char *name)
{
	struct rm_level *level;
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* A directory that its owner may not write can still be emptied by its owner. */
	(void)fchmod(fd, 0700);
	level = calloc(1, sizeof(*level));
	if (!level) {
		(void)close(fd);
		return -ENOMEM;
	}
	level->dir = fdopendir(fd);
	if (!level->dir) {
		int saved = errno;

		(void)close(fd);
		free(level);
		return -saved;
	}
	(void)snprintf(level->name, sizeof(level->name), "%s", name);
	level->up = *top;
	*top = level;
	return 0;
}

static struct rm_level *rm_pop(struct rm_level *top)
{
	struct rm_level *up = top->up;

	(void)closedir(top->dir);
	free(top);
	return up;
}

/* Remove one entry, or open it as the next level.  An entry that is gone is fine. */
static int rm_entry(struct rm_level **top, int dirfd, const char *name)
{
	int r;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	r = rm_push(top, dirfd, name);
	return r == -ENOENT ? 0 : r;
}

static int rm_drain(struct rm_level *top, int root_dirfd, const char *root_name)
{
	int r = 0;

	while (top && r == 0) {
		struct dirent *e;
		int fd = dirfd(top->dir), parent;
		const char *name;

		errno = 0;
		e = readdir(top->dir);
		if (!e && errno) {
			r = -errno;
			break;
		}
		if (e) {
			if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
				r = rm_entry(&top, fd, e->d_name);
			continue;
		}
		parent = top->up ? dirfd(top->up->dir) : root_dirfd;
		name = top->up ? top->name : root_name;
		if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			r = -errno;
		else
			top = rm_pop(top);
	}
	while (top)
		top = rm_pop(top);
	return r;
}

int abx_fs_remove_tree(int dirfd, const char *path)
{
	struct rm_level *top = NULL;
	int r;

	if (unlinkat(dirfd, path, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dirfd, path, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	r = rm_push(&top, dirfd, path);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return rm_drain(top, dirfd, path);
}
