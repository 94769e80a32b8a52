/* SPDX-License-Identifier: MIT */
/* An inspected workspace as one tar stream. */
#include "core/seed/stream.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "core/seed/cursor.h"
#include "core/seed/seed-state.h"
#include "core/util/archive.h"
#include "core/util/parse.h"
#include "core/util/walk.h"

#define PACK_HASH_MAX 128

struct writer {
	struct abx_seed *seed;
	const struct abx_seed_stream *how;
	struct abx_tar *tar;
	struct abx_manifest *sent;
	struct abx_cursor cursor;
	time_t now; /* for what is made here */
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

static int send_text(struct writer *w, const char *name, const void *data, size_t len,
		     struct abx_err *err)
{
	return abx_tar_bytes(w->tar, name, 0644, w->now, data, len, err);
}

/* Wait for git pack-objects, but not when the other side has given up. */
static int finish_pack(struct writer *w, struct abx_err *err)
{
	struct abx_seed *s = w->seed;
	struct pollfd fds[2] = {{s->pack.out_fd, POLLIN, 0}, {w->how->stop_fd, POLLIN, 0}};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(PACK_HASH_MAX);
	int r;

	if (s->packed)
		return 0;
	while (!(fds[0].revents | fds[1].revents) && poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return abx_err_errno(err, errno, "wait for git");
	if (fds[1].revents)
		return abx_err_set(err, ABX_ECANCELED, "write archive: given up");
	r = abx_git_finish(&s->pack, &out, err);
	s->packed = r == 0;
	return r;
}

static int send_spooled(struct writer *w, const char *name, struct abx_err *err)
{
	abx_autofree char *from = abx_xasprintf("%s/%s", w->seed->spool, name);
	abx_autofree char *to = abx_xasprintf(".git/objects/pack/%s", name);
	abx_autoclose int fd = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "read '%s'", from);
	return abx_tar_file(w->tar, to, fd, &st, NULL, err);
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

static bool is_suffix(const char *name, const char *end)
{
	const size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

static int send_pack(struct writer *w, struct abx_strv *sent, struct abx_err *err)
{
	abx_autoclose int fd = open(w->seed->spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct abx_strv names = {NULL, 0, 0};
	int r = fd < 0 ? abx_err_errno(err, errno, "read '%s'", w->seed->spool)
		       : abx_list_dir(fd, &names, err);

	for (size_t i = 0; i < names.len && r == 0; i++) {
		const char *name = names.items[i];

		if (strncmp(name, ABX_SEED_PACK "-", sizeof(ABX_SEED_PACK)) == 0 &&
		    (is_suffix(name, ".pack") || is_suffix(name, ".idx")))
			r = send_spooled(w, name, err);
		else
			continue;
		abx_strv_add(sent, name);
	}
	abx_strv_release(&names);
	return r;
}

/* A reference and a directory cannot have the same name: then the box's branch counts. */
static bool in_the_way(const char *a, const char *b)
{
	const size_t n = strlen(a), m = strlen(b);

	return (n < m && strncmp(a, b, n) == 0 && b[n] == '/') ||
	       (m < n && strncmp(a, b, m) == 0 && a[m] == '/');
}

static int send_ref(struct writer *w, const char *branch, struct abx_err *err)
{
	abx_autofree char *name = abx_xasprintf(".git/refs/heads/%s", branch);
	abx_autofree char *text = abx_xasprintf("%s\n", w->seed->status.head);
	int r = 0;

	for (char *at = name + sizeof(".git/refs/heads/"); r == 0 && (at = strchr(at, '/'));
	     *at++ = '/') {
		*at = '\0';
		r = abx_tar_dir(w->tar, name, 0755, w->now, err);
	}
	return r < 0 ? r : send_text(w, name, text, strlen(text), err);
}

static int send_refs(struct writer *w, struct abx_err *err)
{
	const char *host = w->seed->head_branch, *box = w->how->branch;
	abx_autofree char *head = abx_xasprintf("ref: refs/heads/%s\n", box);
	int r = send_ref(w, box, err);

	if (r == 0 && host && strcmp(host, box) != 0 && !in_the_way(host, box))
		r = send_ref(w, host, err);
	/* Last of all: from now on it is a repository. */
	return r < 0 ? r : send_text(w, ".git/HEAD", head, strlen(head), err);
}

/* With its own time: git tells by it which entries it must not trust. */
static int send_index(struct writer *w, const char *name, struct abx_err *err)
{
	const struct abx_index *index = &w->seed->index;

	if (index->missing)
		return 0;
	return abx_tar_bytes(w->tar, name, 0644, index->st.st_mtim.tv_sec, index->bytes.data,
			     index->bytes.len, err);
}

static int send_info(struct writer *w, struct abx_err *err)
{
	struct abx_seed *s = w->seed;
	abx_auto(abx_buf) struct abx_buf config = ABX_BUF_INIT(65536);
	int r;

	abx_git_config_write(&s->config, s->index.untracked_cache || s->index.fsmonitor, &config);
	if (config.failed)
		return abx_err_set(err, ABX_EINVAL, "git config: its values are too long");
	r = send_text(w, ".git/config", config.data, config.len, err);
	if (r == 0)
		r = send_text(w, ".git/info/exclude", abx_buf_str(&s->exclude), s->exclude.len,
			      err);
	if (r == 0 && s->attributes.len)
		r = send_text(w, ".git/info/attributes", s->attributes.data, s->attributes.len,
			      err);
	return r < 0 ? r : send_index(w, ".git/index", err);
}

/* The repository of the seeded state, which the script moves to its place. */
#define SHADOW ".git/agentbox/seed.git"

static int send_shadow(struct writer *w, const struct abx_strv *packs, struct abx_err *err)
{
	static const char *const dirs[] = {
		".git/agentbox",	SHADOW,		SHADOW "/info",	     SHADOW "/objects",
		SHADOW "/objects/pack", SHADOW "/refs", SHADOW "/refs/heads"};
	const struct abx_seed *s = w->seed;
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(dirs) && r == 0; i++)
		r = abx_tar_dir(w->tar, dirs[i], 0700, w->now, err);
	for (size_t i = 0; i < packs->len && r == 0; i++) {
		abx_autofree char *from = abx_xasprintf(".git/objects/pack/%s", packs->items[i]);
		abx_autofree char *to = abx_xasprintf(SHADOW "/objects/pack/%s", packs->items[i]);

		r = abx_tar_hardlink(w->tar, to, from, 0444, w->now, err);
	}
	if (r == 0)
		r = send_text(w, SHADOW "/exclude", abx_buf_str(&s->exclude), s->exclude.len, err);
	return r < 0 ? r : send_index(w, SHADOW "/index", err);
}

static int send_git(struct writer *w, struct abx_err *err)
{
	static const char *const dirs[] = {".git",	   ".git/hooks",	".git/info",
					   ".git/objects", ".git/objects/info", ".git/objects/pack",
					   ".git/refs",	   ".git/refs/heads",	".git/refs/tags"};
	struct abx_strv packs = {NULL, 0, 0};
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(dirs) && r == 0; i++)
		r = abx_tar_dir(w->tar, dirs[i], 0755, w->now, err);
	if (r == 0)
		r = send_info(w, err);
	if (r == 0)
		r = finish_pack(w, err);
	if (r == 0)
		r = send_pack(w, &packs, err);
	if (r == 0)
		r = send_shadow(w, &packs, err);
	abx_strv_release(&packs);
	return r < 0 ? r : send_refs(w, err);
}

int abx_seed_write_stream(struct abx_seed *seed, const struct abx_seed_stream *stream,
			  struct abx_manifest *sent, struct abx_err *err)
{
	struct writer w = {.seed = seed, .how = stream, .sent = sent, .now = time(NULL)};
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
	if (r == 0 && seed->info.git)
		r = send_git(&w, err);
	if (r == 0)
		r = abx_tar_finish(w.tar, err);
	abx_cursor_release(&w.cursor);
	abx_tar_close(w.tar);
	return r;
}

bool abx_is_branch_name(const char *name)
{
	const char *at = name;

	if (!name || !*name || *name == '-' || strstr(name, "..") || strstr(name, "@{") ||
	    strcmp(name, "@") == 0)
		return false;
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr("~^:?*[\\", *c))
			return false;
	for (;;) {
		const size_t len = strcspn(at, "/");

		if (!len || at[0] == '.' || at[len - 1] == '.' ||
		    (len >= 5 && strncmp(at + len - 5, ".lock", 5) == 0))
			return false;
		if (!at[len])
			return true;
		at += len + 1;
	}
}
