/* SPDX-License-Identifier: MIT */
/* Writing a box's changes into the workspace. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/back-fetch.h"
#include "core/seed/back-host.h"
#include "core/seed/back-io.h"
#include "core/seed/index.h"
#include "core/util/beneath.h"
#include "core/util/landing.h"
#include "core/util/mem.h"
#include "core/util/sha1.h"

struct apply {
	const struct abx_back *back;
	struct abx_back_host host;
	struct abx_manifest sent;
	struct abx_change **writes; /* what is fetched, in order */
	uint64_t n_done, n_all, total;
	abx_progress_fn progress;
	void *progress_ctx;

	/* The file under way. */
	struct abx_landing landing;
	int dirfd;
	const char *name; /* in the change's path */
	char target[PATH_MAX];
	size_t target_len;
};

/* The box's version of it is here. */
static void is_here(struct apply *a, const struct abx_change *c, const struct stat *st)
{
	abx_manifest_set(&a->sent, c->path, st, c->blob);
	abx_manifest_bring(&a->sent, c->path, st ? c->mode : 0, c->blob);
}

static int count_one(struct apply *a, struct abx_err *err)
{
	a->n_done++;
	if (a->progress &&
	    a->progress(a->progress_ctx, a->n_done, a->n_all, "bringing back files") != 0)
		return abx_err_set(err, ABX_ECANCELED, "bring back: given up");
	return 0;
}

/* ---- deletions ---- */

/* Directories that only held what is now gone go too. */
static void remove_empty_parents(int root_fd, const char *path)
{
	abx_autofree char *at = abx_xstrdup(path);
	char *slash;

	while ((slash = strrchr(at, '/'))) {
		abx_autoclose int dirfd = -1;
		const char *name;

		*slash = '\0';
		if (abx_open_parent_beneath(root_fd, at, 0, &dirfd, &name) < 0 ||
		    unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
			return;
	}
}

static void delete_one(struct apply *a, struct abx_change *c)
{
	abx_autoclose int dirfd = -1;
	const char *name;
	int r;

	if (!abx_back_judge(&a->host, c)) {
		if (!c->problem)
			is_here(a, c, NULL);
		return;
	}
	r = abx_open_parent_beneath(a->host.root_fd, c->path, 0, &dirfd, &name);
	if (r == 0 && unlinkat(dirfd, name, 0) < 0)
		r = -errno;
	if (r < 0) {
		abx_change_fail(c, "cannot be deleted: %s", strerror(-r));
		return;
	}
	is_here(a, c, NULL);
	remove_empty_parents(a->host.root_fd, c->path);
}

/* Those that stand where something is written, or the others. */
static int delete_all(struct apply *a, struct abx_changes *changes, bool in_the_way,
		      struct abx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < changes->len && r == 0; i++) {
		struct abx_change *c = &changes->items[i];
		bool blocks;

		if (c->problem || c->kind != ABX_CHANGE_DELETED)
			continue;
		blocks = abx_changes_below(changes, c->path, /* deletion= */ false) ||
			 abx_changes_above(changes, c->path, /* deletion= */ false);
		if (blocks != in_the_way)
			continue;
		delete_one(a, c);
		r = count_one(a, err);
	}
	return r;
}

/* ---- writing ---- */

static void drop(struct apply *a)
{
	abx_landing_drop(&a->landing);
	if (a->dirfd >= 0)
		(void)close(a->dirfd);
	a->dirfd = -1;
}

static void fail_write(struct apply *a, struct abx_change *c, int errnum)
{
	abx_change_fail(c, "cannot be written: %s", strerror(errnum));
	drop(a);
}

static bool refuse(void *ctx, size_t i, uint64_t size)
{
	struct apply *a = ctx;
	const uint64_t max = a->back->max_file ? a->back->max_file : ABX_BACK_FILE_MAX;
	const uint64_t max_total = a->back->max_total ? a->back->max_total : ABX_BACK_TOTAL_MAX;

	if (size > max)
		abx_change_fail(a->writes[i], "larger than what may come back (--max-file)");
	else if (size > max_total - a->total)
		abx_change_fail(a->writes[i], "too much for one download (--max-total)");
	else
		a->total += size;
	return a->writes[i]->problem != NULL;
}

static int on_begin(void *ctx, size_t i, uint64_t size, struct abx_err *err)
{
	struct apply *a = ctx;
	struct abx_change *c = a->writes[i];
	/* Before directories are made for it, too. */
	const uint64_t room = abx_fs_room(a->host.root_fd);
	int r;

	(void)err;
	a->target_len = 0;
	if (!abx_back_judge(&a->host, c))
		return 0;
	if (size > room) {
		abx_change_fail(c,
				"cannot be written: No space left on device: %.1f MiB are coming, "
				"%.1f MiB are free",
				(double)size / (1 << 20), (double)room / (1 << 20));
		return 0;
	}
	r = abx_open_parent_beneath(a->host.root_fd, c->path, 0777, &a->dirfd, &a->name);
	if (r < 0) {
		a->dirfd = -1;
		fail_write(a, c, -r);
		return 0;
	}
	if (c->mode == ABX_MODE_LINK)
		return 0;
	/* The user's umask counts for new files. */
	r = abx_landing_begin(&a->landing, a->dirfd, c->mode == ABX_MODE_EXEC ? 0777 : 0666);
	if (r < 0)
		fail_write(a, c, -r);
	return 0;
}

static int on_data(void *ctx, size_t i, const void *data, size_t len, struct abx_err *err)
{
	struct apply *a = ctx;
	struct abx_change *c = a->writes[i];
	int r;

	(void)err;
	if (a->dirfd < 0) /* nothing to do, or a problem */
		return 0;
	if (c->mode != ABX_MODE_LINK) {
		r = abx_fs_write_all(a->landing.fd, data, len);
		if (r < 0)
			fail_write(a, c, -r);
		return 0;
	}
	if (len >= sizeof(a->target) - a->target_len) {
		fail_write(a, c, ENAMETOOLONG);
		return 0;
	}
	memcpy(a->target + a->target_len, data, len);
	a->target_len += len;
	return 0;
}

/* The bits that a file has here stay, but for the right to run it. */
static int keep_mode(struct apply *a, const struct abx_change *c)
{
	struct stat st;
	mode_t mode;

	if (fstatat(a->dirfd, a->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	mode = st.st_mode & 0777;
	mode = c->mode == ABX_MODE_EXEC ? mode | (mode & 0444) >> 2 : mode & ~(mode_t)0111;
	return fchmod(a->landing.fd, mode) < 0 ? -errno : 0;
}

static int land_link(struct apply *a, const struct abx_change *c)
{
	a->target[a->target_len] = '\0';
	if (strlen(a->target) != a->target_len || !abx_link_stays_beneath(c->path, a->target))
		return -EINVAL;
	return abx_landing_symlink(&a->landing, a->target, a->dirfd, a->name);
}

static int land_file(struct apply *a, const struct abx_change *c)
{
	const int r = keep_mode(a, c);

	return r < 0 ? r : abx_landing_land(&a->landing, a->name);
}

static void land(struct apply *a, struct abx_change *c)
{
	struct stat st;
	int r;

	/* The host's file may have changed while this one came. */
	if (!abx_back_judge(&a->host, c)) {
		drop(a);
		return;
	}
	r = c->mode == ABX_MODE_LINK ? land_link(a, c) : land_file(a, c);
	if (r < 0) {
		fail_write(a, c, -r);
		return;
	}
	if (fstatat(a->dirfd, a->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		is_here(a, c, &st);
	drop(a);
}

static int on_end(void *ctx, size_t i, struct abx_err *err)
{
	struct apply *a = ctx;

	if (a->dirfd >= 0)
		land(a, a->writes[i]);
	return count_one(a, err);
}

static int write_all(struct apply *a, const struct abx_box_io *io, struct abx_changes *changes,
		     const char *tmp, struct abx_err *err)
{
	abx_autofree struct abx_change **writes = abx_xcalloc(changes->len, sizeof(*writes));
	abx_autofree const char **ids = abx_xcalloc(changes->len, sizeof(*ids));
	struct abx_fetch fetch = {ids, 0, on_begin, on_data, on_end, refuse, a};
	int r;

	for (size_t i = 0; i < changes->len; i++) {
		struct abx_change *c = &changes->items[i];

		if (c->problem || c->kind == ABX_CHANGE_DELETED || !c->blob)
			continue;
		writes[fetch.len] = c;
		ids[fetch.len++] = c->blob;
	}
	a->writes = writes;
	r = abx_back_fetch(io, a->back->dir, tmp, &fetch, err);
	drop(a);
	return r;
}

/* What the host has as well is known to be the box's, unless it changed since it was judged. */
static void adopt_one(struct apply *a, struct abx_change *c)
{
	abx_autoclose int dirfd = -1;
	const char *name;
	struct stat st;
	const bool there =
		abx_open_parent_beneath(a->host.root_fd, c->path, 0, &dirfd, &name) == 0 &&
		fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

	if (c->kind == ABX_CHANGE_DELETED) {
		if (!there || S_ISDIR(st.st_mode))
			is_here(a, c, NULL);
	} else if (there && !abx_back_judge(&a->host, c) && !c->problem) {
		is_here(a, c, &st);
	}
}

static void adopt(struct apply *a, struct abx_changes *changes)
{
	for (size_t i = 0; i < changes->n_have; i++)
		adopt_one(a, &changes->have[i]);
}

int abx_back_apply_io(const struct abx_box_io *io, const struct abx_back *back,
		      struct abx_changes *changes, abx_progress_fn progress, void *progress_ctx,
		      struct abx_err *err)
{
	abx_autofree char *tmp = abx_back_tmp_dir(back);
	abx_autoclose int root_fd = abx_fs_open_dir(AT_FDCWD, back->workspace);
	struct apply a = {.back = back,
			  .host = {root_fd, &a.sent, NULL},
			  .landing = ABX_LANDING_INIT,
			  .dirfd = -1,
			  .progress = progress,
			  .progress_ctx = progress_ctx};
	int r, saved;

	if (root_fd < 0)
		return abx_back_no_workspace(back, -root_fd, err);
	r = abx_sha1_open(err);
	if (r == 0)
		r = abx_manifest_load(back->manifest, &a.sent, err);
	if (r < 0)
		return r;
	a.landing.notes = back->notes;
	for (size_t i = 0; i < changes->len; i++)
		a.n_all += !changes->items[i].problem;
	adopt(&a, changes);
	r = delete_all(&a, changes, /* in_the_way= */ true, err);
	if (r == 0)
		r = write_all(&a, io, changes, tmp, err);
	if (r == 0)
		r = delete_all(&a, changes, /* in_the_way= */ false, err);
	abx_landing_close(&a.landing);
	/* What did land is known to be the box's, also when the rest did not come. */
	saved = abx_manifest_save(&a.sent, back->manifest, r == 0 ? err : NULL);
	abx_manifest_release(&a.sent);
	return r < 0 ? r : saved;
}
