/* SPDX-License-Identifier: MIT */
/* An inspected workspace as one tar stream. */
#include "core/seed/stream.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "core/seed/cursor.h"
#include "core/seed/stream-git.h"
#include "core/util/archive.h"
#include "core/util/parse.h"

struct writer {
	struct abx_seed *seed;
	const struct abx_seed_stream *how;
	struct abx_tar *tar;
	struct abx_manifest *sent;
	struct abx_cursor cursor;
};

static int fail_at(struct abx_err *err, int errnum, const char *path)
{
	char text[256];

	abx_quote_text(path, text, sizeof(text));
	if (errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP)
		return abx_err_set(err, ABX_ESTATE, "'%s' went away while the workspace was read",
				   text);
	return abx_err_errno(err, errnum, "read '%s' of the workspace", text);
}

static int changed(const char *path, struct abx_err *err)
{
	char text[256];

	abx_quote_text(path, text, sizeof(text));
	(void)abx_err_set(err, ABX_ESTATE, "'%s' changed while the workspace was read", text);
	return abx_err_remedy(err, "try again when nothing writes to it");
}

static int on_progress(void *ctx, uint64_t written)
{
	struct writer *w = ctx;
	const uint64_t total = w->seed->files.bytes;

	if (!w->how->progress)
		return 0;
	return w->how->progress(w->how->progress_ctx, written < total ? written : total, total,
				"seeding the workspace");
}

static bool is_as_inspected(const struct abx_seed_file *f, const struct stat *st)
{
	return (uint64_t)st->st_size == f->size && st->st_mtim.tv_sec == f->mtime.tv_sec &&
	       st->st_mtim.tv_nsec == f->mtime.tv_nsec;
}

static int send_file(struct writer *w, const struct abx_seed_file *f, int dirfd, const char *name,
		     struct abx_err *err)
{
	abx_autoclose int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char oid[ABX_SHA1_HEX_BYTES];
	abx_auto(abx_sha1) struct abx_sha1 hash = ABX_SHA1_INIT;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_at(err, errno, f->path);
	if (!S_ISREG(st.st_mode) || (f->has_oid && !is_as_inspected(f, &st)))
		return changed(f->path, err);
	r = f->has_oid ? 0 : abx_sha1_open(err);
	if (r == 0)
		r = abx_tar_file(w->tar, f->path, fd, &st, f->has_oid ? NULL : &hash, err);
	if (r < 0)
		return r;
	if (f->has_oid)
		abx_oid_hex(f->oid, oid);
	else
		abx_sha1_hex(&hash, oid);
	abx_manifest_add(w->sent, f->path, &st, oid);
	return 0;
}

static int send_link(struct writer *w, const struct abx_seed_file *f, int dirfd, const char *name,
		     struct abx_err *err)
{
	char target[PATH_MAX], oid[ABX_SHA1_HEX_BYTES];
	abx_auto(abx_sha1) struct abx_sha1 hash = ABX_SHA1_INIT;
	struct stat st;
	const ssize_t n = readlinkat(dirfd, name, target, sizeof(target));
	int r;

	if (n < 0 || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == EINVAL ? changed(f->path, err) : fail_at(err, errno, f->path);
	if ((size_t)n >= sizeof(target))
		return fail_at(err, ENAMETOOLONG, f->path);
	target[n] = '\0';
	r = abx_sha1_open(err);
	if (r == 0)
		r = abx_tar_symlink(w->tar, f->path, target, st.st_mtim.tv_sec, err);
	if (r < 0)
		return r;
	abx_blob_id_init(&hash, (uint64_t)n);
	abx_sha1_update(&hash, target, (size_t)n);
	abx_sha1_hex(&hash, oid);
	abx_manifest_add(w->sent, f->path, &st, oid);
	return 0;
}

static int send_files(struct writer *w, struct abx_err *err)
{
	for (size_t i = 0; i < w->seed->files.len; i++) {
		const struct abx_seed_file *f = &w->seed->files.items[i];
		const char *name;
		int dirfd, r;

		if (S_ISDIR(f->mode)) {
			r = abx_tar_dir(w->tar, f->path, f->mode, f->mtime.tv_sec, err);
			if (r < 0)
				return r;
			continue;
		}
		r = abx_cursor_enter(&w->cursor, f->path, NULL, NULL, &dirfd, &name, err);
		if (r > 0)
			return fail_at(err, r, f->path);
		if (r == 0 && S_ISLNK(f->mode))
			r = send_link(w, f, dirfd, name, err);
		else if (r == 0)
			r = send_file(w, f, dirfd, name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int send_program(struct writer *w, struct abx_err *err)
{
	const char *path = w->how->program;
	abx_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "read '%s'", path);
	return abx_tar_file(w->tar, w->how->program_name, fd, &st, NULL, err);
}

int abx_seed_write_stream(struct abx_seed *seed, const struct abx_seed_stream *stream,
			  struct abx_manifest *sent, struct abx_err *err)
{
	struct writer w = {.seed = seed, .how = stream, .sent = sent};
	int r;

	if (seed->info.git && !abx_is_branch_name(stream->branch))
		return abx_err_set(err, ABX_EINVAL, "branch '%s': not a name for a branch",
				   stream->branch);
	r = abx_tar_open(stream->fd, stream->stop_fd, &w.tar, err);
	if (r < 0)
		return r;
	abx_tar_watch(w.tar, on_progress, &w);
	abx_cursor_init(&w.cursor, seed->root_fd);
	r = stream->program ? send_program(&w, err) : 0;
	if (r == 0)
		r = send_files(&w, err);
	for (size_t i = 0; i < seed->n_repos && r == 0; i++)
		r = abx_seed_write_git(w.tar, seed->repos[i], stream->branch, stream->stop_fd, err);
	if (r == 0)
		r = abx_tar_finish(w.tar, err);
	abx_cursor_release(&w.cursor);
	abx_tar_close(w.tar);
	return r;
}
