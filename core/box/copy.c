/* SPDX-License-Identifier: MIT */
/* Files and trees between this machine and a box, wherever they lie. */
#include "core/box/copy.h"

#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/box/copy-io.h"
#include "core/host/stream.h"
#include "core/util/landing.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/room.h"

struct tree_source {
	const char *path;
	const char *as;
	struct abx_app *app;
};

static int report_progress(struct abx_app *app, uint64_t bytes, const char *what)
{
	if (!app->host.progress)
		return 0;
	return app->host.progress(app->host.progress_ctx, bytes, 0, what);
}

static int on_sent(void *ctx, const struct abx_tar_count *so_far)
{
	struct tree_source *src = ctx;

	return report_progress(src->app, so_far->bytes, "copying to the box");
}

static int send_tree(void *ctx, int fd, int stop_fd, struct abx_err *err)
{
	struct tree_source *src = ctx;
	struct abx_tar_tree tree = {.dirfd = AT_FDCWD,
				    .path = src->path,
				    .as = src->as,
				    .progress = on_sent,
				    .progress_ctx = src};
	struct abx_tar *tar;
	int r = abx_tar_open(fd, stop_fd, &tar, err);

	if (r < 0)
		return r;
	r = abx_tar_write_tree(tar, &tree, NULL, err);
	if (r == 0)
		r = abx_tar_finish(tar, err);
	abx_tar_close(tar);
	return r;
}

static int upload_file(struct abx_copier *c, const char *source, const struct stat *st,
		       const char *target, struct abx_err *err)
{
	struct abx_transfer req = {ABX_INIT(struct abx_transfer)};
	abx_autoclose int fd = -1;

	/* Reading a FIFO would wait for somebody who writes. */
	if (!S_ISREG(st->st_mode))
		return abx_err_set(err, ABX_EINVAL, "'%s' is neither a file nor a directory",
				   source);
	fd = open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return abx_err_errno(err, errno, "open '%s'", source);
	req.flags = ABX_XFER_CREATE_PARENTS;
	req.fd = fd;
	req.mode = st->st_mode & 0777;
	req.size_bytes = st->st_size;
	req.path = target;
	return abx_cloud_upload(c->cloud, &c->opts, &c->sandbox, &req, err);
}

/* A directory arrives under its new name: unpacked below the parent, called so in the tar. */
static int upload_tree(struct abx_copier *c, const char *source, const char *target,
		       struct abx_err *err)
{
	abx_autofree char *name = abx_copy_last_name(target), *parent = abx_xstrdup(target);
	struct tree_source src = {source, name, c->app};
	size_t len = strlen(parent);

	while (len > 1 && parent[len - 1] == '/')
		parent[--len] = '\0';
	parent[len - strlen(name)] = '\0';
	if (abx_copy_has_no_name(name))
		return abx_err_set(err, ABX_EUSAGE, "'%s' is no name for a copy", target);
	return abx_cloud_put_stream(c->cloud, &c->opts, &c->sandbox, parent, send_tree, &src, err);
}

static int copy_one_in(struct abx_copier *c, const char *source, const char *target,
		       char target_kind, struct abx_err *err)
{
	abx_autofree char *name = NULL, *full = NULL, *real = NULL;
	struct stat st;

	if (stat(source, &st) < 0)
		return abx_err_errno(err, errno, "read '%s'", source);
	name = abx_copy_last_name(source);
	if (abx_copy_has_no_name(name)) {
		real = realpath(source, NULL);
		if (!real)
			return abx_err_errno(err, errno, "read '%s'", source);
		free(name);
		name = abx_copy_last_name(real);
	}
	full = target_kind == 'd' ? abx_xasprintf("%s/%s", target, name) : abx_xstrdup(target);
	if (S_ISDIR(st.st_mode) && target_kind == 'f')
		return abx_err_set(err, ABX_EEXIST, "'%s' is a file, '%s' a directory", target,
				   source);
	if (S_ISDIR(st.st_mode))
		return upload_tree(c, source, full, err);
	if (abx_copy_check_slash(full, /* is_directory= */ false, err) < 0)
		return ABX_EINVAL;
	return upload_file(c, source, &st, full, err);
}

int abx_copy_in(struct abx_app *app, struct abx_box *box, const struct abx_copy *what,
		struct abx_err *err)
{
	abx_autofree char *target = abx_copy_box_path(what->target);
	struct abx_copier c = {0};
	char kind = '-';
	uint64_t size;
	mode_t mode;
	int r = abx_copier_open(app, box, &c, err);

	if (r == 0)
		r = abx_copy_kind(&c, target, &kind, &mode, &size, err);
	if (r == 0 && kind == 'o')
		return abx_err_set(err, ABX_EEXIST,
				   "'%s' in the box is neither a file nor a directory", target);
	if (r == 0 && what->n_sources > 1 && kind != 'd')
		return abx_err_set(err, ABX_EUSAGE, "'%s' is not a directory in the box", target);
	for (size_t i = 0; i < what->n_sources && r == 0; i++)
		r = copy_one_in(&c, what->sources[i], target, kind, err);
	return r;
}

struct tree_target {
	int dirfd;
	struct abx_app *app;
	struct abx_tar_result *result;
};

static int on_received(void *ctx, const struct abx_tar_count *so_far)
{
	struct tree_target *dst = ctx;

	return report_progress(dst->app, so_far->bytes, "copying from the box");
}

static int receive_tree(void *ctx, int fd, int stop_fd, struct abx_err *err)
{
	struct tree_target *dst = ctx;
	struct abx_tar_extract how = {
		.notes = dst->app->notes, .progress = on_received, .progress_ctx = dst};

	/* Reading ends by itself once the other side closes its end. */
	(void)stop_fd;
	return abx_tar_extract(fd, dst->dirfd, &how, dst->result, err);
}

static int download_tree(struct abx_copier *c, const char *source, const char *target,
			 struct abx_tar_result *ret, struct abx_err *err)
{
	struct tree_target dst = {.app = c->app, .result = ret};
	abx_autoclose int fd = -1;

	if (mkdir(target, 0777) < 0 && errno != EEXIST)
		return abx_err_errno(err, errno, "make '%s'", target);
	fd = abx_fs_open_dir(AT_FDCWD, target);
	if (fd < 0)
		return abx_err_errno(err, abx_steal_fd(&fd), "open '%s'", target);
	dst.dirfd = fd;
	return abx_cloud_get_stream(c->cloud, &c->opts, &c->sandbox, source, receive_tree, &dst,
				    err);
}

/* A link is followed, as cp(1) does; a device or FIFO is not for us to replace. */
static int resolve_target(const char *given, char **ret, struct abx_err *err)
{
	struct stat st;

	if (lstat(given, &st) < 0 || !S_ISLNK(st.st_mode)) {
		*ret = abx_xstrdup(given);
	} else {
		*ret = realpath(given, NULL);
		if (!*ret)
			return abx_err_errno(err, errno, "follow the link '%s'", given);
	}
	if (stat(*ret, &st) == 0 && !S_ISREG(st.st_mode))
		return abx_err_set(err, ABX_EEXIST, "'%s' is there and is not a regular file",
				   given);
	return 0;
}

static int fetch_file(struct abx_copier *c, const char *source, int fd, mode_t mode,
		      struct abx_err *err)
{
	struct abx_transfer req = {ABX_INIT(struct abx_transfer)};
	mode_t mask = umask(0);
	int r;

	(void)umask(mask);
	req.fd = fd;
	req.size_bytes = -1;
	req.path = source;
	r = abx_cloud_download(c->cloud, &c->opts, &c->sandbox, &req, err);
	if (r == 0 && fchmod(fd, mode & 0777 & ~mask) < 0)
		r = abx_err_errno(err, errno, "write");
	return r;
}

/* The target appears as a whole or not at all. */
static int download_file(struct abx_copier *c, const char *source, mode_t mode, uint64_t size,
			 const char *given, struct abx_err *err)
{
	struct abx_landing l = ABX_LANDING_INIT;
	abx_autofree char *target = NULL;
	const char *name;
	int r = resolve_target(given, &target, err), failed;

	if (r < 0)
		return r;
	l.notes = c->app->notes;
	failed = abx_landing_begin_at(&l, target, 0600, &name);
	r = failed < 0 ? abx_err_errno(err, -failed, "make '%s'", target)
		       : abx_room_check(l.fd, size, target, err);
	if (r == 0)
		r = fetch_file(c, source, l.fd, mode, err);
	failed = r == 0 ? abx_landing_land(&l, name) : 0;
	if (failed < 0)
		r = abx_err_errno(err, -failed, "write '%s'", target);
	abx_landing_close(&l);
	return r;
}

/* Of a box that is only read, no disk but ours can be full. */
static int say_where(int r, const char *target, struct abx_err *err)
{
	if (r == 0 || !err || !abx_text_of_full_disk(err->text))
		return r;
	if (!strstr(err->text, target))
		(void)abx_err_wrap(err, "write '%s'", target);
	return abx_err_remedy(err, "free some space there");
}

static int copy_one_out(struct abx_copier *c, const char *given, const char *target, bool into_dir,
			struct abx_tar_result *ret, struct abx_err *err)
{
	abx_autofree char *source = abx_copy_box_path(given), *name = abx_copy_last_name(source);
	abx_autofree char *full = NULL;
	struct stat st;
	char kind = '-', shown[256];
	uint64_t size = 0;
	mode_t mode = 0;
	int r = abx_copy_kind(c, source, &kind, &mode, &size, err);

	if (r < 0)
		return r;
	abx_quote_text(source, shown, sizeof(shown));
	if (kind == '-')
		return abx_err_set(err, ABX_ENOTFOUND, "'%s' is not in the box '%s'", shown,
				   c->sandbox.name);
	if (kind == 'o')
		return abx_err_set(err, ABX_EINVAL,
				   "'%s' in the box '%s' is neither a file nor a "
				   "directory",
				   shown, c->sandbox.name);
	if (into_dir && abx_copy_has_no_name(name))
		return abx_err_set(err, ABX_EUSAGE, "'%s' has no name of its own", shown);
	full = into_dir ? abx_xasprintf("%s/%s", target, name) : abx_xstrdup(target);
	if (into_dir && kind == 'd' && lstat(full, &st) == 0 && S_ISLNK(st.st_mode))
		return abx_err_set(err, ABX_EEXIST,
				   "'%s' is a symbolic link, and a directory would go through it "
				   "(name the directory itself)",
				   full);
	if (kind == 'd')
		return say_where(download_tree(c, source, full, ret, err), full, err);
	r = abx_copy_check_slash(full, /* is_directory= */ false, err);
	return r < 0 ? r : say_where(download_file(c, source, mode, size, full, err), full, err);
}

int abx_copy_out(struct abx_app *app, struct abx_box *box, const struct abx_copy *what,
		 struct abx_tar_result *ret, struct abx_err *err)
{
	struct abx_copier c = {0};
	struct stat st;
	bool into_dir = stat(what->target, &st) == 0 && S_ISDIR(st.st_mode);
	int r;

	if (what->n_sources > 1 && !into_dir)
		return abx_err_set(err, ABX_EUSAGE, "'%s' is not a directory", what->target);
	r = abx_copier_open(app, box, &c, err);
	for (size_t i = 0; i < what->n_sources && r == 0; i++)
		r = copy_one_out(&c, what->sources[i], what->target, into_dir, ret, err);
	return r;
}
