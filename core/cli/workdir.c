/* SPDX-License-Identifier: MIT */
/* A private directory for one command on one box at a time. */
#include "core/cli/workdir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "core/util/mem.h"

int abx_workdir_open(const struct abx_home *home, const struct abx_box *box, const char *what,
		     struct abx_workdir *ret, struct abx_err *err)
{
	abx_autofree char *path = NULL;
	abx_autoclose int lock = -1;
	int r = abx_home_dir(home, &path, err, "boxes/%s/%s", box->id, what);

	if (r < 0)
		return r;
	/* The directory that holds the files is the lock. */
	lock = abx_fs_open_dir(AT_FDCWD, path);
	if (lock < 0)
		return abx_err_errno(err, -lock, "open '%s'", path);
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? abx_err_set(err, ABX_EEXIST,
							  "%s: box '%s': another one is under way",
							  what, box->name)
					    : abx_err_errno(err, errno, "lock '%s'", path);
	ret->lock_path = abx_steal_ptr(&path);
	ret->path = abx_xasprintf("%s/work", ret->lock_path);
	ret->lock = abx_steal_fd(&lock);
	r = abx_fs_remove_tree(AT_FDCWD, ret->path);
	if (r == 0)
		r = abx_fs_mkdir_p(AT_FDCWD, ret->path, 0700);
	return r < 0 ? abx_err_errno(err, -r, "make '%s'", ret->path) : 0;
}

void abx_workdir_close(struct abx_workdir *dir)
{
	if (dir->lock < 0)
		return;
	(void)abx_fs_remove_tree(AT_FDCWD, dir->path);
	(void)close(dir->lock);
	free(dir->path);
	free(dir->lock_path);
	*dir = (struct abx_workdir)ABX_WORKDIR_INIT;
}
