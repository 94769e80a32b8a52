/* SPDX-License-Identifier: MIT */
/* One operation at a time on a box. */
#include "core/state/lock.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/util/clock.h"

#define LOCK_POLL_MIN_MS 2
#define LOCK_POLL_MAX_MS 50

/* Whoever held it may have removed the file meanwhile: then this lock is of no use. */
static bool still_there(int fd, const char *path)
{
	struct stat ours, named;

	return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_dev == named.st_dev &&
	       ours.st_ino == named.st_ino;
}

/* 1 when taken, 0 when somebody has it, or a negative errno. */
typedef int (*try_fn)(const char *path, int *ret_fd);

static int try_file(const char *path, int *ret_fd)
{
	for (;;) {
		abx_autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			if (errno == EINTR)
				continue;
			return errno == EWOULDBLOCK ? 0 : -errno;
		}
		if (!still_there(fd, path))
			continue;
		*ret_fd = abx_steal_fd(&fd);
		return 1;
	}
}

static int try_dir(const char *path, int *ret_fd)
{
	abx_autoclose int fd = abx_fs_open_dir(AT_FDCWD, path);

	if (fd < 0)
		return fd;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0)
		if (errno != EINTR)
			return errno == EWOULDBLOCK ? 0 : -errno;
	*ret_fd = abx_steal_fd(&fd);
	return 1;
}

static int wait_for(try_fn try, const char *path, int64_t wait_ms, int *ret_fd)
{
	const int64_t deadline = abx_now_ms() + wait_ms;
	int pause_ms = LOCK_POLL_MIN_MS, r = try(path, ret_fd);

	while (r == 0 && abx_now_ms() < deadline) {
		(void)poll(NULL, 0, pause_ms);
		pause_ms = pause_ms * 2 > LOCK_POLL_MAX_MS ? LOCK_POLL_MAX_MS : pause_ms * 2;
		r = try(path, ret_fd);
	}
	return r;
}

int abx_lock_dir(const char *path, int64_t wait_ms, int *ret_fd)
{
	const int r = wait_for(try_dir, path, wait_ms, ret_fd);

	return r == 0 ? -EWOULDBLOCK : r < 0 ? r : 0;
}

int abx_lock_box(const struct abx_home *home, const char *box_id, int64_t wait_ms, int *ret_fd,
		 struct abx_err *err)
{
	abx_autofree char *dir = NULL, *path = abx_home_path(home, "locks/%s", box_id);
	int r = wait_for(try_file, path, wait_ms, ret_fd);

	if (r == -ENOENT) {
		r = abx_home_dir(home, &dir, err, "locks");
		if (r < 0)
			return r;
		r = wait_for(try_file, path, wait_ms, ret_fd);
	}
	if (r < 0)
		return abx_err_errno(err, r, "lock '%s'", path);
	if (r == 0) {
		(void)abx_err_set(err, ABX_ESTATE, "box '%s': another command is at work on it",
				  box_id);
		(void)abx_err_remedy(err, "wait until it is done");
		return ABX_ESTATE;
	}
	return 0;
}

void abx_lock_forget(const struct abx_home *home, const char *box_id)
{
	abx_autofree char *path = abx_home_path(home, "locks/%s", box_id);

	(void)unlink(path);
}

int abx_lock_home(const struct abx_home *home, struct abx_err *err)
{
	/* A descriptor of its own: a lock on home->fd would not keep two threads apart. */
	abx_autoclose int fd = abx_fs_open_dir(AT_FDCWD, home->path);

	if (fd < 0)
		return abx_err_errno(err, fd, "open home '%s'", home->path);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return abx_err_errno(err, errno, "lock home '%s'", home->path);
	return abx_steal_fd(&fd);
}
