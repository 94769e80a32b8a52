/* SPDX-License-Identifier: MIT */
/* Files, the careful way. */
#include "abxsdk/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

int abx_fs_open_dir(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

DIR *abx_fs_opendir(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int saved = errno;

	if (!d && fd >= 0)
		(void)close(fd);
	errno = saved;
	return d;
}

bool abx_fs_is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
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

int abx_fs_open_unnamed(int dirfd, const char *dir, mode_t mode)
{
	int fd = openat(dirfd, dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);

	return fd < 0 ? -errno : fd;
}

int abx_fs_open_scratch(const char *dir)
{
	char path[PATH_MAX];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/tmp-XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

int abx_fs_name_it(int fd, int dirfd, const char *name)
{
	char self[32];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, dirfd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
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

static int finish_and_close(int *fd, mode_t mode, bool durable)
{
	/* The caller's umask must not decide who can read state. */
	if (fchmod(*fd, mode) < 0)
		return -errno;
	if (durable && fsync(*fd) < 0)
		return -errno;
	return close(abx_steal_fd(fd)) < 0 ? -errno : 0;
}

int abx_fs_fill_atomic(int dirfd, const char *path, int (*fill)(void *ctx, int fd), void *ctx,
		       mode_t mode, bool durable)
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
	r = fill(ctx, fd);
	if (r == 0)
		r = finish_and_close(&fd, mode, durable);
	if (r == 0 && renameat(dirfd, tmp.data, dirfd, path) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dirfd, tmp.data, 0);
		return r;
	}
	return durable ? fsync_parent(dirfd, path) : 0;
}

struct bytes {
	const void *data;
	size_t len;
};

static int write_bytes(void *ctx, int fd)
{
	const struct bytes *b = ctx;

	return abx_fs_write_all(fd, b->data, b->len);
}

int abx_fs_write_atomic(int dirfd, const char *path, const void *data, size_t len, mode_t mode,
			bool durable)
{
	struct bytes b = {data, len};

	return abx_fs_fill_atomic(dirfd, path, write_bytes, &b, mode, durable);
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

/* A tree may be deeper than descriptors may be open: only so many levels are. */
#define RM_MAX_OPEN 16

/* One directory of a removal under way; deep trees must not deepen the C stack. */
struct rm_level {
	struct rm_level *up;
	DIR *dir; /* NULL: closed for now, to be found again as `..` of the one below */
	dev_t dev;
	ino_t ino;
	char name[];
};

static int rm_open(int dirfd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dirfd, name, flags);

	if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		fd = openat(dirfd, name, flags);
	return fd < 0 ? -errno : fd;
}

static void rm_close_far(struct rm_level *level)
{
	for (unsigned int i = 0; level && i < RM_MAX_OPEN; i++)
		level = level->up;
	if (level && level->dir) {
		(void)closedir(level->dir);
		level->dir = NULL;
	}
}

static int rm_push(struct rm_level **top, int dirfd, const char *name)
{
	abx_autoclose int fd = rm_open(dirfd, name);
	abx_autofree struct rm_level *level = NULL;
	size_t size = strlen(name) + 1;
	struct stat st;

	if (fd < 0)
		return fd;
	/* A directory that its owner may not write can still be emptied by its owner. */
	(void)fchmod(fd, 0700);
	if (fstat(fd, &st) < 0)
		return -errno;
	level = calloc(1, sizeof(*level) + size);
	if (!level)
		return -ENOMEM;
	level->dir = fdopendir(fd);
	if (!level->dir)
		return -errno;
	(void)abx_steal_fd(&fd);
	memcpy(level->name, name, size);
	level->dev = st.st_dev;
	level->ino = st.st_ino;
	level->up = *top;
	*top = abx_steal_ptr(&level);
	rm_close_far(*top);
	return 0;
}

/* Open the level above again, if it is still the one that was left. */
static int rm_reopen(struct rm_level *up, int below_fd)
{
	abx_autoclose int fd = rm_open(below_fd, "..");
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != up->dev || st.st_ino != up->ino)
		return -ESTALE;
	up->dir = fdopendir(fd);
	if (!up->dir)
		return -errno;
	(void)abx_steal_fd(&fd);
	return 0;
}

static struct rm_level *rm_free(struct rm_level *top)
{
	struct rm_level *up = top->up;

	if (top->dir)
		(void)closedir(top->dir);
	free(top);
	return up;
}

/* The top level is empty: remove it and go on above. */
static int rm_pop(struct rm_level **top, int root_dirfd, const char *root_name)
{
	struct rm_level *up = (*top)->up;
	int r = up && !up->dir ? rm_reopen(up, dirfd((*top)->dir)) : 0;

	if (r < 0)
		return r;
	if (unlinkat(up ? dirfd(up->dir) : root_dirfd, up ? (*top)->name : root_name,
		     AT_REMOVEDIR) < 0 &&
	    errno != ENOENT)
		return -errno;
	*top = rm_free(*top);
	return 0;
}

/* Remove one entry, or open it as the next level.  An entry that is gone is fine. */
static int rm_entry(struct rm_level **top, int dirfd, const char *name)
{
	int r;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
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

		errno = 0;
		e = readdir(top->dir);
		if (!e && errno)
			r = -errno;
		else if (!e)
			r = rm_pop(&top, root_dirfd, root_name);
		else if (!abx_fs_is_dot(e->d_name))
			r = rm_entry(&top, dirfd(top->dir), e->d_name);
	}
	while (top)
		top = rm_free(top);
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
	if (unlinkat(dirfd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	r = rm_push(&top, dirfd, path);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return rm_drain(top, dirfd, path);
}

uint64_t abx_fs_room(int fd)
{
	struct statvfs v;

	if (fstatvfs(fd, &v) < 0 || !v.f_blocks)
		return UINT64_MAX;
	return (uint64_t)(geteuid() ? v.f_bavail : v.f_bfree) * v.f_frsize;
}

int64_t abx_fs_rest(int fd)
{
	struct stat st;
	off_t at = lseek(fd, 0, SEEK_CUR);

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || at < 0)
		return -1;
	return st.st_size > at ? st.st_size - at : 0;
}
