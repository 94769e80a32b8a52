/* SPDX-License-Identifier: MIT */
/* Files that appear in a directory whole or not at all. */
#include "core/util/landing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/base.h"
#include "abxsdk/fs.h"
#include "core/util/mem.h"
#include "core/util/rand.h"

/* Two paths, each ended by NUL; the second may be empty. */
#define NOTE_MAX ((size_t)2 * PATH_MAX)

/* ---- notes ---- */

static int open_note(struct abx_landing *l)
{
	abx_autofree char *path = NULL;
	abx_autoclose int dir = -1, fd = -1;
	char hex[17];
	int r = abx_fs_mkdir_p(AT_FDCWD, l->notes, 0700);

	if (r < 0)
		return r;
	dir = abx_fs_open_dir(AT_FDCWD, l->notes);
	if (dir < 0)
		return dir;
	/* Who sweeps holds the directory: no note is seen before it is locked. */
	while (flock(dir, LOCK_SH) < 0)
		if (errno != EINTR)
			return -errno;
	abx_rand_hex(hex, 16);
	path = abx_xasprintf("%s/%s", l->notes, hex);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = -errno;
		(void)unlink(path);
		return r;
	}
	l->note = abx_steal_ptr(&path);
	l->note_fd = abx_steal_fd(&fd);
	return 0;
}

/* "DIR/NAME" of an open directory. */
static int path_of(int dirfd, const char *name, char *path, size_t size)
{
	char self[32];
	ssize_t n;

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", dirfd);
	n = readlink(self, path, size);
	if (n < 0)
		return -errno;
	if ((size_t)n + strlen(name) + 2 > size)
		return -ENAMETOOLONG;
	path[n] = '/';
	memcpy(path + n + 1, name, strlen(name) + 1);
	return 0;
}

static int write_note(struct abx_landing *l, int dirfd, const char *name, const char *proof)
{
	char text[NOTE_MAX];
	size_t len;
	int r;

	/* What is too deep to be named stays where it is left. */
	if (!l->notes || path_of(dirfd, name, text, PATH_MAX) < 0)
		return 0;
	len = strlen(text) + 1;
	text[len] = '\0';
	if (proof && path_of(dirfd, proof, text + len, PATH_MAX) < 0)
		return 0;
	r = l->note_fd < 0 ? open_note(l) : 0;
	if (r < 0)
		return r;
	len += strlen(text + len) + 1;
	return pwrite(l->note_fd, text, len, 0) == (ssize_t)len ? 0 : -ENOSPC;
}

int abx_landing_unless(struct abx_landing *l, int dirfd, const char *name, const char *proof)
{
	return write_note(l, dirfd, name, proof);
}

void abx_landing_close(struct abx_landing *l)
{
	abx_landing_drop(l);
	if (l->note)
		(void)unlink(l->note);
	if (l->note_fd >= 0)
		(void)close(l->note_fd);
	free(l->note);
	l->note = NULL;
	l->note_fd = -1;
}

/* ---- one file ---- */

static void take_tmp_name(struct abx_landing *l)
{
	char hex[17];

	abx_rand_hex(hex, 16);
	(void)snprintf(l->tmp, sizeof(l->tmp), ".agentbox-%s.tmp", hex);
}

int abx_landing_begin(struct abx_landing *l, int dirfd, mode_t mode)
{
	int fd = abx_fs_open_unnamed(dirfd, ".", mode), r;

	l->named = fd < 0;
	if (fd < 0) {
		take_tmp_name(l);
		r = write_note(l, dirfd, l->tmp, NULL);
		if (r < 0)
			return r;
		fd = openat(dirfd, l->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    mode);
		if (fd < 0)
			return -errno;
	}
	l->fd = fd;
	l->dirfd = dirfd;
	return 0;
}

int abx_landing_begin_at(struct abx_landing *l, const char *path, mode_t mode,
			 const char **ret_name)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	abx_autofree char *dir = abx_xstrndup(path, (size_t)(name - path));
	abx_autoclose int dirfd = abx_fs_open_dir(AT_FDCWD, *dir ? dir : ".");
	int r = dirfd < 0 ? dirfd : abx_landing_begin(l, dirfd, mode);

	if (r < 0)
		return r;
	l->own_dirfd = abx_steal_fd(&dirfd);
	*ret_name = name;
	return 0;
}

void abx_landing_drop(struct abx_landing *l)
{
	if (l->fd >= 0)
		(void)close(l->fd);
	if (l->dirfd >= 0 && l->named)
		(void)unlinkat(l->dirfd, l->tmp, 0);
	if (l->own_dirfd >= 0)
		(void)close(l->own_dirfd);
	l->fd = l->dirfd = l->own_dirfd = -1;
	l->named = false;
}

/* What lands, and how it gets one more name. */
struct source {
	int dirfd;
	const char *path; /* or the target of a symbolic link */
	int flags;
	bool symlink;
};

static int give_name(const struct source *s, int dirfd, const char *name)
{
	const int r = s->symlink ? symlinkat(s->path, dirfd, name)
				 : linkat(s->dirfd, s->path, dirfd, name, s->flags);

	return r < 0 ? -errno : 0;
}

/* Only what is new can be given its name at once. */
static int land(struct abx_landing *l, const struct source *s, int dirfd, const char *name)
{
	int r = give_name(s, dirfd, name);

	if (r != -EEXIST)
		return r;
	take_tmp_name(l);
	r = write_note(l, dirfd, l->tmp, NULL);
	if (r == 0)
		r = give_name(s, dirfd, l->tmp);
	if (r < 0)
		return r;
	if (renameat(dirfd, l->tmp, dirfd, name) < 0)
		r = -errno;
	/* A file that is renamed onto its own other name stays under both. */
	(void)unlinkat(dirfd, l->tmp, 0);
	return r;
}

int abx_landing_land(struct abx_landing *l, const char *name)
{
	char self[32];
	const struct source s = {.dirfd = AT_FDCWD, .path = self, .flags = AT_SYMLINK_FOLLOW};
	int r = 0;

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", l->fd);
	if (!l->named) {
		r = land(l, &s, l->dirfd, name);
	} else {
		/* A file system may say only here that the disk is full. */
		if (close(abx_steal_fd(&l->fd)) < 0 ||
		    renameat(l->dirfd, l->tmp, l->dirfd, name) < 0)
			r = -errno;
		else
			l->named = false;
	}
	abx_landing_drop(l);
	return r;
}

int abx_landing_symlink(struct abx_landing *l, const char *target, int dirfd, const char *name)
{
	const struct source s = {.path = target, .symlink = true};

	return land(l, &s, dirfd, name);
}

int abx_landing_link(struct abx_landing *l, int from_dirfd, const char *from, int dirfd,
		     const char *name)
{
	const struct source s = {.dirfd = from_dirfd, .path = from};

	return land(l, &s, dirfd, name);
}

/* ---- what the dead have left ---- */

static void sweep_one(int dir, const char *name)
{
	abx_autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[NOTE_MAX + 2] = "";
	const char *proof;
	ssize_t n;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	n = read(fd, text, NOTE_MAX);
	if (n > 0) {
		proof = text + strlen(text) + 1;
		if (text[0] == '/' && (!*proof || access(proof, F_OK) != 0))
			(void)unlink(text);
	}
	(void)unlinkat(dir, name, 0);
}

void abx_landing_sweep(const char *notes)
{
	const struct dirent *e;
	DIR *d = abx_fs_opendir(AT_FDCWD, notes);

	if (!d)
		return;
	if (flock(dirfd(d), LOCK_EX | LOCK_NB) == 0)
		while ((e = readdir(d)))
			if (!abx_fs_is_dot(e->d_name))
				sweep_one(dirfd(d), e->d_name);
	(void)closedir(d);
}
