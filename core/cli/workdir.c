/* SPDX-License-Identifier: MIT */
/* A private directory for one piece of work on one box at a time. */
#include "core/cli/workdir.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "core/state/lock.h"
#include "core/util/mem.h"

static int say_busy(const struct abx_box *box, const char *what, struct abx_err *err)
{
	(void)abx_err_set(err, ABX_EEXIST, "box '%s': another %s is under way", box->name, what);
	return abx_err_remedy(err, "wait until it is done");
}

int abx_workdir_open(const struct abx_home *home, const struct abx_box *box,
		     enum abx_workdir_kind kind, struct abx_workdir *ret, struct abx_err *err)
{
	static const struct {
		const char *name, *what;
	} kinds[] = {[ABX_WORKDIR_FETCH] = {"fetch", "fetch"},
		     [ABX_WORKDIR_PATCH] = {"patch", "download"},
		     [ABX_WORKDIR_RECORD] = {"record", "download or sync"}};
	abx_autofree char *path = NULL;
	abx_autoclose int lock = -1;
	int r = abx_home_dir(home, &path, err, "boxes/%s/%s", box->id, kinds[kind].name);

	if (r < 0)
		return r;
	/* The directory that holds the files is the lock. */
	r = abx_lock_dir(path, /* wait_ms= */ 0, &lock);
	if (r == -EWOULDBLOCK)
		return say_busy(box, kinds[kind].what, err);
	if (r < 0)
		return abx_err_errno(err, -r, "lock '%s'", path);
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
