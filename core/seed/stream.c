/* SPDX-License-Identifier: MIT */
/* An inspected workspace as one tar stream. */
#include "core/seed/stream.h"

#include <fcntl.h>
#include <string.h>

#include "core/seed/made.h"
#include "core/seed/stream-file.h"
#include "core/seed/stream-git.h"

struct writer {
	struct abx_seed *seed;
	const struct abx_seed_stream *how;
	struct abx_tar *tar;
	struct abx_manifest *sent;
};

static int on_progress(void *ctx, uint64_t written)
{
	struct writer *w = ctx;
	const uint64_t total = w->seed->files.bytes + w->seed->info.pack_bytes;

	if (!w->how->progress)
		return 0;
	return w->how->progress(w->how->progress_ctx, written < total ? written : total, total,
				"seeding the workspace");
}

static int send_files(struct writer *w, bool last, struct abx_err *err)
{
	struct abx_file_writer fw = {.seed = w->seed, .tar = w->tar, .sent = w->sent, .last = last};
	int r = 0;

	fw.small = abx_xcalloc(1, ABX_STREAM_SMALL_BYTES);
	abx_cursor_init(&fw.cursor, w->seed->root_fd);
	for (size_t i = 0; i < w->seed->files.len && r == 0; i++) {
		const struct abx_seed_file *f = &w->seed->files.items[i];

		if (S_ISDIR(f->mode))
			r = abx_tar_dir(w->tar, f->path, f->mode, f->mtime.tv_sec, err);
		else
			r = abx_stream_file(&fw, i, err);
	}
	abx_cursor_release(&fw.cursor);
	free(fw.small);
	return r;
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

/* What git will check out in the box.  A file of that content here is what was sent, whenever it
 * was made. */
static void add_clean(struct writer *w, const struct abx_seed_repo *r)
{
	for (size_t i = 0; r->want.clean && i < r->index.len; i++) {
		const struct abx_index_entry *e = &r->index.entries[i];
		const struct abx_lfs_file *lfs = abx_lfs_of_entry(&r->lfs, i);
		const struct stat st = {.st_mode = e->mode};
		const char *made = abx_seed_made_of(r, i);
		char oid[ABX_SHA1_HEX_BYTES];
		abx_autofree char *path =
			abx_xasprintf("%s%s%s", r->path, *r->path ? "/" : "", e->path);

		if (!S_ISREG(e->mode) && !S_ISLNK(e->mode))
			continue;
		abx_oid_hex(e->oid, oid);
		abx_manifest_add(w->sent, path, &st,
				 lfs && *lfs->sent ? lfs->sent
				 : made		   ? made
						   : oid);
	}
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
	r = stream->program ? send_program(&w, err) : 0;
	if (r == 0)
		r = send_files(&w, stream->last, err);
	for (size_t i = 0; i < seed->n_repos && r == 0; i++) {
		r = abx_seed_write_git(w.tar, seed->repos[i], stream->branch, stream->stop_fd, err);
		if (r == 0)
			add_clean(&w, seed->repos[i]);
	}
	if (r == 0)
		r = abx_tar_finish(w.tar, err);
	abx_tar_close(w.tar);
	return r;
}
