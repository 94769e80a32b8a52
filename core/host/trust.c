/* SPDX-License-Identifier: MIT */
/* May this file run inside the program? */
#include "core/host/trust.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "core/util/mem.h"

static bool ours(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

static int check_dir(int dirfd, const char *dir, const char *path, struct abx_err *err)
{
	struct stat st;

	if (fstat(dirfd, &st) < 0)
		return abx_err_set(err, ABX_EPROVIDER, "%s: cannot check: %s", path,
				   strerror(errno));
	if (!ours(&st))
		return abx_err_set(err, ABX_EPROVIDER,
				   "%s: refused: its directory belongs to uid %lu, neither root "
				   "nor you",
				   path, (unsigned long)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		(void)abx_err_set(err, ABX_EPROVIDER,
				  "%s: refused: its directory is writable by group or others",
				  path);
		return abx_err_remedy(err, "chmod go-w %s", dir);
	}
	return 0;
}

static int check_file(int fd, const char *path, struct abx_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return abx_err_set(err, ABX_EPROVIDER, "%s: cannot check: %s", path,
				   strerror(errno));
	if (!S_ISREG(st.st_mode))
		return abx_err_set(err, ABX_EPROVIDER, "%s: refused: not a regular file", path);
	if (!ours(&st))
		return abx_err_set(err, ABX_EPROVIDER,
				   "%s: refused: belongs to uid %lu, neither root nor you", path,
				   (unsigned long)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		(void)abx_err_set(err, ABX_EPROVIDER, "%s: refused: writable by group or others",
				  path);
		return abx_err_remedy(err, "chmod go-w %s", path);
	}
	return 0;
}

/* Open the directory part of an absolute path; *ret_base points into `path`. */
static int open_dir_of(const char *path, const char *shown, int *ret_fd, char **ret_dir,
		       const char **ret_base, struct abx_err *err)
{
	const char *slash = strrchr(path, '/');
	abx_autofree char *dir = abx_xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return abx_err_set(err, ABX_EPROVIDER, "%s: cannot open: %s", shown,
				   strerror(errno));
	*ret_fd = fd;
	*ret_dir = abx_steal_ptr(&dir);
	*ret_base = slash + 1;
	return 0;
}

int abx_trust_open(const char *path, int *ret_fd, struct abx_err *err)
{
	abx_autofree char *real = realpath(path, NULL), *dir = NULL, *real_dir = NULL;
	abx_autoclose int dirfd = -1, real_dirfd = -1, fd = -1;
	const char *base;
	int r;

	if (path[0] != '/')
		return abx_err_set(err, ABX_EPROVIDER, "%s: refused: not an absolute path", path);
	if (!real)
		return abx_err_set(err, ABX_EPROVIDER, "%s: cannot open: %s", path,
				   strerror(errno));
	r = open_dir_of(path, path, &dirfd, &dir, &base, err);
	if (r == 0)
		r = check_dir(dirfd, dir, path, err);
	if (r == 0)
		r = open_dir_of(real, path, &real_dirfd, &real_dir, &base, err);
	if (r == 0)
		r = check_dir(real_dirfd, real_dir, path, err);
	if (r < 0)
		return r;
	/* O_NONBLOCK: a pipe that took the file's place must not block us. */
	fd = openat(real_dirfd, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return abx_err_set(err, ABX_EPROVIDER, "%s: cannot open: %s", path,
				   strerror(errno));
	r = check_file(fd, path, err);
	if (r == 0)
		*ret_fd = abx_steal_fd(&fd);
	return r;
}
