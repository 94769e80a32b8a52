/* SPDX-License-Identifier: MIT */
/* One file of the workspace into the stream, also while somebody writes to it. */
#include "core/seed/stream-file.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/util/parse.h"

#define SMALL_TRIES 3
#define OPEN_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static bool is_gone(int errnum)
{
	return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP;
}

static int fail_at(struct abx_err *err, int errnum, const char *path)
{
	char text[256];

	abx_quote_text(path, text, sizeof(text));
	return abx_err_errno(err, errnum, "read '%s' of the workspace", text);
}

static bool same_stat(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool is_as_inspected(const struct abx_seed_file *f, const struct stat *st)
{
	return (st->st_mode & S_IFMT) == (f->mode & S_IFMT) &&
	       (!S_ISREG(st->st_mode) || (uint64_t)st->st_size == f->size) &&
	       st->st_mtim.tv_sec == f->mtime.tv_sec && st->st_mtim.tv_nsec == f->mtime.tv_nsec;
}

static bool is_known_to_change(const struct abx_seed *s, const char *path)
{
	for (size_t i = 0; i < s->unsteady.len; i++)
		if (strcmp(s->unsteady.items[i], path) == 0)
			return true;
	return false;
}

static void note(struct abx_seed *s, const char *path)
{
	if (!is_known_to_change(s, path))
		abx_strv_add(&s->unsteady, path);
}

/* What else is no longer as git saw it: nobody wants to begin again for each of them. */
static void note_others(struct abx_file_writer *w, size_t i)
{
	const struct abx_seed_files *files = &w->seed->files;

	for (; i < files->len; i++) {
		const struct abx_seed_file *f = &files->items[i];
		const char *name;
		struct stat st;
		int dirfd;

		if (!f->steady ||
		    abx_cursor_enter(&w->cursor, f->path, NULL, NULL, &dirfd, &name, NULL) != 0 ||
		    fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (!is_as_inspected(f, &st))
			note(w->seed, f->path);
	}
}

static int moved(struct abx_file_writer *w, size_t i, struct abx_err *err)
{
	const char *path = w->seed->files.items[i].path;
	char text[256];

	w->seed->moved = true;
	note(w->seed, path);
	if (!w->last)
		note_others(w, i + 1);
	abx_quote_text(path, text, sizeof(text));
	(void)abx_err_set(err, ABX_ESTATE, "'%s' changed while the workspace was read", text);
	return abx_err_remedy(err, "try again when nothing writes to it");
}

/* It went away: begin again, or do without it. */
static int gone(struct abx_file_writer *w, size_t i, struct abx_err *err)
{
	if (!w->last)
		return moved(w, i, err);
	abx_strv_add(&w->seed->taken, w->seed->files.items[i].path);
	return 0;
}

static int failed(struct abx_file_writer *w, size_t i, int errnum, struct abx_err *err)
{
	return is_gone(errnum) ? gone(w, i, err)
			       : fail_at(err, errnum, w->seed->files.items[i].path);
}

/* It is another one than git saw, and travels so. */
static void take(struct abx_file_writer *w, struct abx_seed_file *f, struct stat *st)
{
	abx_strv_add(&w->seed->taken, f->path);
	f->has_oid = false;
	/* The box's git must not take it for the one that its index speaks of. */
	if (st->st_mtim.tv_sec == f->mtime.tv_sec)
		st->st_mtim.tv_sec++;
}

static void remember_hash(struct abx_file_writer *w, const struct abx_seed_file *f,
			  const struct stat *st, struct abx_sha1 *hash)
{
	char oid[ABX_SHA1_HEX_BYTES];

	abx_sha1_hex(hash, oid);
	abx_manifest_add(w->sent, f->path, st, oid);
}

static void remember(struct abx_file_writer *w, const struct abx_seed_file *f,
		     const struct stat *st, struct abx_sha1 *hash)
{
	char oid[ABX_SHA1_HEX_BYTES];

	if (!f->has_oid) {
		remember_hash(w, f, st, hash);
		return;
	}
	abx_oid_hex(f->oid, oid);
	abx_manifest_add(w->sent, f->path, st, oid);
}

/* All of it, or what there was of it; *st is what it was before and after that, unless it is
 * written to all the time. */
static int read_small(int fd, unsigned char *data, size_t *ret_len, struct stat *st)
{
	for (int i = 0; i < SMALL_TRIES; i++) {
		const size_t want = (uint64_t)st->st_size < ABX_STREAM_SMALL_BYTES
					    ? (size_t)st->st_size
					    : ABX_STREAM_SMALL_BYTES;
		struct stat after;
		size_t len = 0;

		while (len < want) {
			const ssize_t n = pread(fd, data + len, want - len, (off_t)len);

			if (n < 0 && errno != EINTR)
				return errno;
			if (n == 0)
				break;
			len += n > 0 ? (size_t)n : 0;
		}
		if (fstat(fd, &after) < 0)
			return errno;
		*ret_len = len;
		if (same_stat(st, &after))
			break;
		*st = after;
	}
	return 0;
}

static int send_small(struct abx_file_writer *w, size_t i, int fd, struct stat *st,
		      struct abx_err *err)
{
	struct abx_seed_file *f = &w->seed->files.items[i];
	abx_auto(abx_sha1) struct abx_sha1 hash = ABX_SHA1_INIT;
	struct stat sent;
	size_t len = 0;
	int e = read_small(fd, w->small, &len, st), r;

	if (e)
		return fail_at(err, e, f->path);
	sent = *st;
	sent.st_size = (off_t)len;
	if (f->steady && (!is_as_inspected(f, st) || len != f->size)) {
		if (!w->last)
			return moved(w, i, err);
		take(w, f, st);
	}
	r = f->has_oid ? 0 : abx_sha1_open(err);
	if (r == 0)
		r = abx_tar_bytes(w->tar, f->path, st->st_mode, st->st_mtim.tv_sec, w->small, len,
				  err);
	if (r < 0)
		return r;
	if (!f->has_oid) {
		abx_blob_id_init(&hash, len);
		abx_sha1_update(&hash, w->small, len);
	}
	remember(w, f, &sent, &hash);
	return 0;
}

/* A copy that nobody writes to. */
static int copy_of(struct abx_file_writer *w, int fd, const char *path, struct stat *st,
		   struct abx_err *err)
{
	int copy = abx_fs_open_scratch(w->seed->spool), e = 0;
	uint64_t len = 0;

	if (copy < 0)
		return abx_err_errno(err, -copy, "make a file in '%s'", w->seed->spool);
	while (!e) {
		const ssize_t n = read(fd, w->small, ABX_STREAM_SMALL_BYTES);

		if (n == 0)
			break;
		if (n < 0)
			e = errno == EINTR ? 0 : errno;
		else
			e = -abx_fs_write_all(copy, w->small, (size_t)n);
		len += n > 0 ? (uint64_t)n : 0;
	}
	if (!e && lseek(copy, 0, SEEK_SET) < 0)
		e = errno;
	if (e) {
		(void)close(copy);
		return fail_at(err, e, path);
	}
	st->st_size = (off_t)len;
	return copy;
}

/* The last time, one that is known to change. */
static int send_copy(struct abx_file_writer *w, size_t i, int fd, struct stat *st,
		     struct abx_err *err)
{
	struct abx_seed_file *f = &w->seed->files.items[i];
	const struct stat before = *st;
	abx_auto(abx_sha1) struct abx_sha1 hash = ABX_SHA1_INIT;
	abx_autoclose int copy = copy_of(w, fd, f->path, st, err);
	struct stat sent, after;
	int r = copy < 0 ? copy : abx_sha1_open(err);

	if (r < 0)
		return r;
	sent = *st;
	if (fstat(fd, &after) < 0)
		return fail_at(err, errno, f->path);
	if ((f->steady && !is_as_inspected(f, &after)) || !same_stat(&before, &after))
		take(w, f, st);
	r = abx_tar_file_live(w->tar, f->path, copy, st, f->has_oid ? NULL : &hash, &after, err);
	if (r == 0)
		remember(w, f, &sent, &hash);
	return r;
}

static int send_big(struct abx_file_writer *w, size_t i, int fd, struct stat *st,
		    struct abx_err *err)
{
	struct abx_seed_file *f = &w->seed->files.items[i];
	abx_auto(abx_sha1) struct abx_sha1 hash = ABX_SHA1_INIT;
	struct stat after;
	bool grew;
	int r;

	if (w->last && is_known_to_change(w->seed, f->path))
		return send_copy(w, i, fd, st, err);
	if (f->steady && !is_as_inspected(f, st))
		return moved(w, i, err);
	r = f->has_oid ? 0 : abx_sha1_open(err);
	if (r == 0)
		r = abx_tar_file_live(w->tar, f->path, fd, st, f->has_oid ? NULL : &hash, &after,
				      err);
	if (r == ABX_ESTATE)
		return moved(w, i, err);
	if (r < 0)
		return r;
	grew = !f->steady && after.st_size > st->st_size;
	if (!grew && !same_stat(st, &after))
		return moved(w, i, err);
	remember(w, f, st, &hash);
	return 0;
}

static int send_file(struct abx_file_writer *w, size_t i, int dirfd, const char *name,
		     struct abx_err *err)
{
	abx_autoclose int fd = openat(dirfd, name, OPEN_FLAGS);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(w, i, errno, err);
	if (!S_ISREG(st.st_mode))
		return gone(w, i, err);
	return (uint64_t)st.st_size <= ABX_STREAM_SMALL_BYTES ? send_small(w, i, fd, &st, err)
							      : send_big(w, i, fd, &st, err);
}

static int send_link(struct abx_file_writer *w, size_t i, int dirfd, const char *name,
		     struct abx_err *err)
{
	struct abx_seed_file *f = &w->seed->files.items[i];
	abx_auto(abx_sha1) struct abx_sha1 hash = ABX_SHA1_INIT;
	char target[PATH_MAX];
	struct stat st, sent;
	const ssize_t n = readlinkat(dirfd, name, target, sizeof(target));
	int r;

	if (n < 0 || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == EINVAL ? gone(w, i, err) : failed(w, i, errno, err);
	if ((size_t)n >= sizeof(target))
		return fail_at(err, ENAMETOOLONG, f->path);
	target[n] = '\0';
	sent = st;
	if (f->steady && !is_as_inspected(f, &st)) {
		if (!w->last)
			return moved(w, i, err);
		take(w, f, &st);
	}
	r = abx_sha1_open(err);
	if (r == 0)
		r = abx_tar_symlink(w->tar, f->path, target, st.st_mtim.tv_sec, err);
	if (r < 0)
		return r;
	abx_blob_id_init(&hash, (uint64_t)n);
	abx_sha1_update(&hash, target, (size_t)n);
	remember_hash(w, f, &sent, &hash);
	return 0;
}

/* No file here is what travels, so none counts as untouched when something comes back. */
static int send_instead(struct abx_file_writer *w, struct abx_seed_file *f, struct abx_err *err)
{
	abx_auto(abx_sha1) struct abx_sha1 hash = ABX_SHA1_INIT;
	const struct stat none = {.st_mode = f->mode};
	const size_t len = strlen(f->instead);
	int r = abx_sha1_open(err);

	if (r == 0)
		r = abx_tar_bytes(w->tar, f->path, f->mode, f->mtime.tv_sec, f->instead, len, err);
	if (r < 0)
		return r;
	abx_blob_id_init(&hash, len);
	abx_sha1_update(&hash, f->instead, len);
	remember(w, f, &none, &hash);
	return 0;
}

int abx_stream_file(struct abx_file_writer *w, size_t i, struct abx_err *err)
{
	struct abx_seed_file *f = &w->seed->files.items[i];
	const char *name;
	int dirfd, r;

	if (f->instead)
		return send_instead(w, f, err);

	r = abx_cursor_enter(&w->cursor, f->path, NULL, NULL, &dirfd, &name, err);
	if (r > 0)
		return failed(w, i, r, err);
	if (r < 0)
		return r;
	return S_ISLNK(f->mode) ? send_link(w, i, dirfd, name, err)
				: send_file(w, i, dirfd, name, err);
}
