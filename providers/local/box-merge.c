/* SPDX-License-Identifier: MIT */
/*
 * One layer made of others, the topmost first: by copying what nobody may change meanwhile,
 * or by hard links to what nobody changes any more.
 *
 * A name of a lower layer counts where no higher one has it, below directories that are not
 * opaque in a higher one.  A whiteout is a name like any other: below all layers lies the
 * root that they were written over, and what was deleted there stays deleted.
 */
#include "providers/local/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#define OPAQUE "user.overlay.opaque"
#define BUFFER_BYTES ((size_t)256 << 10)
#define XATTR_MAX ((size_t)64 << 10)
/* A tree may be deeper than descriptors may be open: only so many levels are. */
#define MAX_OPEN 64
/* How much is done between two looks whether the client is still there. */
#define LOOK_ENTRIES 256

struct level {
	struct level *up;
	int from, to; /* -1: closed for now, to be found again as `..` of the one below */
	struct stat from_st, to_st;
	struct timespec times[2];
	mode_t mode;
	bool fresh; /* nothing was there before this layer */
	char *names;
	size_t at;
	size_t len;
};

static struct {
	bool link, no_clone, no_range;
	int shared; /* copies of files that have more names, by inode number */
	uint64_t bytes, entries;
	char *buffer, *list, *value;
} job;

static void look_after_client(void)
{
	struct pollfd p = {.fd = LB_FD_LIFELINE, .events = POLLIN};

	if (++job.entries % LOOK_ENTRIES == 0 && poll(&p, 1, 0) > 0)
		box_fail(ABX_ECANCELED, NULL, "layer: cancelled");
}

static _Noreturn void fail(const char *what, const char *name)
{
	box_fail_errno(errno, "layer: %s %.256s", what, name);
}

/* Attributes. */

static void copy_xattrs(int from, int to, const char *name)
{
	ssize_t n = flistxattr(from, job.list, XATTR_MAX), len;

	if (n < 0 && errno != EOPNOTSUPP)
		fail("attributes of", name);
	for (char *x = job.list; n > 0 && x < job.list + n; x += strlen(x) + 1) {
		len = fgetxattr(from, x, job.value, XATTR_MAX);
		if (len < 0 && (errno == ENODATA || errno == EOPNOTSUPP))
			continue;
		/* What only the host may set was not set from inside the box. */
		if (len < 0 || (fsetxattr(to, x, job.value, (size_t)len, 0) < 0 &&
				(strncmp(x, "user.", 5) == 0 || errno == ENOSPC ||
				 strcmp(x, "security.capability") == 0 ||
				 strncmp(x, "system.posix_acl_", 17) == 0)))
			fail("attributes of", name);
	}
}

static bool is_opaque(int fd)
{
	char value[4];

	return fgetxattr(fd, OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

static void make_opaque(int fd, const char *name)
{
	if (fsetxattr(fd, OPAQUE, "y", 1, 0) < 0)
		fail("mark", name);
}

/* Contents. */

/* False: this file system cannot do it for these two. */
static bool copy_range(int from, int to, off_t at, off_t end)
{
	while (!job.no_range && at < end) {
		off_t in = at, out = at;
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);

		if (n < 0 &&
		    (errno == ENOSYS || errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP))
			job.no_range = true;
		else if (n < 0 && errno != EINTR)
			fail("copy", "a file");
		else if (n == 0)
			return true;
		else if (n > 0)
			at += n;
	}
	return !job.no_range;
}

static void copy_by_hand(int from, int to, off_t at, off_t end)
{
	while (at < end) {
		size_t want = end - at < (off_t)BUFFER_BYTES ? (size_t)(end - at) : BUFFER_BYTES;
		ssize_t n = pread(from, job.buffer, want, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			fail("read", "a file");
		if (n == 0)
			return;
		for (ssize_t done = 0, w; done < n; done += w) {
			w = pwrite(to, job.buffer + done, (size_t)(n - done), at + done);
			if (w < 0 && errno == EINTR)
				w = 0;
			else if (w < 0)
				fail("write", "a file");
		}
		at += n;
		look_after_client();
	}
}

static void copy_contents(int from, int to, const struct stat *st)
{
	bool sparse = (off_t)st->st_blocks * 512 < st->st_size;
	off_t at = 0, end;

	if (!job.no_clone) {
		if (ioctl(to, FICLONE, from) == 0)
			return;
		job.no_clone = true;
	}
	while (at < st->st_size) {
		end = st->st_size;
		if (sparse) {
			at = lseek(from, at, SEEK_DATA);
			if (at < 0 && errno == ENXIO)
				break;
			end = at < 0 ? -1 : lseek(from, at, SEEK_HOLE);
			if (end < 0)
				fail("read", "a sparse file");
		}
		if (end - at < (off_t)BUFFER_BYTES || !copy_range(from, to, at, end))
			copy_by_hand(from, to, at, end);
		at = end;
	}
	if (sparse && ftruncate(to, st->st_size) < 0)
		fail("write", "a sparse file");
}

static void copy_file(int from_dir, int to_dir, const char *name, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	char id[32];
	int from, to;

	(void)snprintf(id, sizeof(id), "%llx", (unsigned long long)st->st_ino);
	if (st->st_nlink > 1 && linkat(job.shared, id, to_dir, name, 0) == 0)
		return;
	from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		fail("open", name);
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		fail("create", name);
	if (st->st_size)
		copy_contents(from, to, st);
	if ((st->st_uid || st->st_gid) && fchown(to, st->st_uid, st->st_gid) < 0)
		fail("owner of", name);
	copy_xattrs(from, to, name);
	if (fchmod(to, st->st_mode & 07777) < 0 || futimens(to, times) < 0 || close(to) < 0)
		fail("attributes of", name);
	(void)close(from);
	job.bytes += (uint64_t)st->st_size;
	if (st->st_nlink > 1 && linkat(to_dir, name, job.shared, id, 0) < 0 && errno != EMLINK)
		fail("link", name);
}

static void copy_other(int from_dir, int to_dir, const char *name, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	char target[4097];
	ssize_t n;

	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(from_dir, name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (n <= 0 || symlinkat(target, to_dir, name) < 0)
			fail("link", name);
	} else if (mknodat(to_dir, name, st->st_mode, st->st_rdev) < 0) {
		fail("create", name);
	}
	if (fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISLNK(st->st_mode) && fchmodat(to_dir, name, st->st_mode & 07777, 0) < 0) ||
	    utimensat(to_dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		fail("attributes of", name);
}

static void put_leaf(const struct level *l, const char *name, const struct stat *st)
{
	/* One that has as many names as it may have is copied. */
	if (job.link && linkat(l->from, name, l->to, name, 0) == 0)
		return;
	if (job.link && errno != EMLINK)
		fail("link", name);
	if (S_ISREG(st->st_mode))
		copy_file(l->from, l->to, name, st);
	else
		copy_other(l->from, l->to, name, st);
}

/* Directories. */

static int open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		fail("open", name);
	return fd;
}

static void add_name(struct level *l, size_t *cap, const char *name)
{
	size_t n = strlen(name) + 1;

	if (l->len + n > *cap) {
		char *p = realloc(l->names, *cap = 2 * *cap + 4096);

		if (!p)
			box_fail(ABX_ENOMEM, NULL, "out of memory");
		l->names = p;
	}
	memcpy(l->names + l->len, name, n);
	l->len += n;
}

static void read_names(struct level *l)
{
	int fd = dup(l->from);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	size_t cap = 0;

	if (!d)
		fail("read", "a directory");
	while ((errno = 0, e = readdir(d)))
		if (!abx_fs_is_dot(e->d_name))
			add_name(l, &cap, e->d_name);
	if (errno)
		fail("read", "a directory");
	(void)closedir(d);
}

static void close_far(struct level *l)
{
	for (unsigned int i = 0; l && i < MAX_OPEN; i++)
		l = l->up;
	if (!l || l->from < 0)
		return;
	(void)close(l->from);
	(void)close(l->to);
	l->from = l->to = -1;
}

/* Takes both descriptors. */
static struct level *push(struct level *up, int from, int to, bool fresh)
{
	struct level *l = box_alloc(sizeof(*l));

	*l = (struct level){.up = up, .from = from, .to = to, .fresh = fresh};
	if (fstat(from, &l->from_st) < 0 || fstat(to, &l->to_st) < 0)
		fail("look at", "a directory");
	l->times[0] = fresh ? l->from_st.st_atim : l->to_st.st_atim;
	l->times[1] = fresh ? l->from_st.st_mtim : l->to_st.st_mtim;
	l->mode = (fresh ? l->from_st.st_mode : l->to_st.st_mode) & 07777;
	read_names(l);
	close_far(l);
	return l;
}

static int reopen(int below, const struct stat *st)
{
	int fd = open_dir(below, "..");
	struct stat now;

	if (fstat(fd, &now) < 0 || now.st_dev != st->st_dev || now.st_ino != st->st_ino)
		box_fail(ABX_EIO, NULL, "layer: a directory moved meanwhile");
	return fd;
}

static struct level *pop(struct level *l)
{
	struct level *up = l->up;

	if (fchmod(l->to, l->mode) < 0 || futimens(l->to, l->times) < 0)
		fail("attributes of", "a directory");
	if (up && up->from < 0) {
		up->from = reopen(l->from, &up->from_st);
		up->to = reopen(l->to, &up->to_st);
	}
	(void)close(l->from);
	(void)close(l->to);
	free(l->names);
	free(l);
	return up;
}

static struct level *put_directory(struct level *l, const char *name, const struct stat *st,
				   bool there)
{
	int from = open_dir(l->from, name), to;

	if (!there && mkdirat(l->to, name, 0700) < 0)
		fail("create", name);
	to = open_dir(l->to, name);
	if (there && is_opaque(to)) {
		(void)close(from);
		(void)close(to);
		return l;
	}
	if (there) {
		if (is_opaque(from))
			make_opaque(to, name);
	} else {
		if (fchown(to, st->st_uid, st->st_gid) < 0)
			fail("owner of", name);
		copy_xattrs(from, to, name);
	}
	return push(l, from, to, !there);
}

static struct level *put_entry(struct level *l, const char *name)
{
	struct stat st, old;
	bool there;
	int fd;

	look_after_client();
	if (fstatat(l->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fail("look at", name);
	there = !l->fresh && fstatat(l->to, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
	if (S_ISDIR(st.st_mode)) {
		if (!there || S_ISDIR(old.st_mode))
			return put_directory(l, name, &st, there);
	} else if (!there) {
		put_leaf(l, name, &st);
	} else if (S_ISDIR(old.st_mode)) {
		/* This layer has no directory here, nor shows one of those below it. */
		fd = open_dir(l->to, name);
		make_opaque(fd, name);
		(void)close(fd);
	}
	return l;
}

static void merge(int from, int to, bool fresh)
{
	struct level *l = push(NULL, from, to, fresh);

	while (l) {
		if (l->at < l->len) {
			const char *name = l->names + l->at;

			l->at += strlen(name) + 1;
			l = put_entry(l, name);
		} else {
			l = pop(l);
		}
	}
}

static void remove_shared(void)
{
	DIR *d = fdopendir(dup(job.shared));
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			(void)unlinkat(job.shared, e->d_name, 0);
	if (d)
		(void)closedir(d);
}

uint64_t box_merge(const int *from, size_t n, int to_parent, const char *name, bool link)
{
	job.link = link;
	job.buffer = box_alloc(BUFFER_BYTES);
	job.list = box_alloc(XATTR_MAX);
	job.value = box_alloc(XATTR_MAX);
	(void)umask(0);
	if (mkdirat(to_parent, name, 0755) < 0 || mkdirat(to_parent, "shared", 0700) < 0)
		fail("create", name);
	job.shared = open_dir(to_parent, "shared");
	for (size_t i = 0; i < n; i++)
		merge(from[i], open_dir(to_parent, name), i == 0);
	remove_shared();
	(void)close(job.shared);
	(void)unlinkat(to_parent, "shared", AT_REMOVEDIR);
	free(job.buffer);
	free(job.list);
	free(job.value);
	return job.bytes;
}
