/* SPDX-License-Identifier: MIT */
/* Which files and directories of a workspace are put into a box. */
#include "core/seed/files.h"

#include <fcntl.h>
#include <string.h>

#include "core/seed/cursor.h"
#include "core/seed/layout.h"
#include "core/util/parse.h"
#include "core/util/walk.h"

#define NESTED_REMEDY "give it a box of its own with -w, or list it in .gitignore"

struct collect {
	const char *workspace;
	struct abx_seed_files *out;
	struct abx_cursor cursor;
	uid_t euid;
};

static int fail_at(struct abx_err *err, int errnum, const char *path)
{
	char text[256];

	abx_quote_text(path, text, sizeof(text));
	return abx_err_errno(err, errnum, "read '%s' of the workspace", text);
}

static int refuse_nested(const struct collect *c, const char *path, struct abx_err *err)
{
	char text[256];

	abx_quote_text(path, text, sizeof(text));
	return abx_layout_refuse(c->workspace, NESTED_REMEDY, err,
				 "'%s' is a repository of its own inside of it", text);
}

static struct abx_seed_file *add(struct collect *c, const char *path, const struct stat *st)
{
	struct abx_seed_files *f = c->out;
	struct abx_seed_file *item;

	if (f->len == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 256;
		f->items = abx_xreallocarray(f->items, f->cap, sizeof(*f->items));
	}
	item = &f->items[f->len++];
	*item = (struct abx_seed_file){.path = abx_xstrdup(path),
				       .mode = st->st_mode,
				       .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
				       .mtime = st->st_mtim};
	if (!S_ISDIR(st->st_mode)) {
		f->files++;
		f->bytes += item->size;
	}
	return item;
}

/* Refused now rather than when a box is already there.  The mode answers nearly always. */
static int check_readable(const struct collect *c, int dirfd, const char *name, const char *path,
			  const struct stat *st, struct abx_err *err)
{
	if (!S_ISREG(st->st_mode) || c->euid == 0 ||
	    (st->st_uid == c->euid && (st->st_mode & S_IRUSR)))
		return 0;
	if (faccessat(dirfd, name, R_OK, AT_EACCESS) < 0)
		return fail_at(err, errno, path);
	return 0;
}

static bool holds_repository(int dirfd)
{
	struct stat st;

	return fstatat(dirfd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int visit(void *ctx, const struct abx_walk_item *item, struct abx_err *err)
{
	struct collect *c = ctx;
	const mode_t type = item->st->st_mode & S_IFMT;
	int r;

	if (strcmp(item->name, ".git") == 0) {
		abx_autofree char *dir = abx_xstrdup(item->path);

		dir[strlen(dir) > 5 ? strlen(dir) - 5 : 0] = '\0';
		return refuse_nested(c, dir, err);
	}
	if (type != S_IFREG && type != S_IFDIR && type != S_IFLNK) {
		c->out->skipped++;
		return 0;
	}
	r = check_readable(c, item->dirfd, item->name, item->path, item->st, err);
	if (r == 0)
		(void)add(c, item->path, item->st);
	return r;
}

int abx_seed_files_walk(const char *workspace, int root_fd, struct abx_seed_files *ret,
			struct abx_err *err)
{
	struct collect c = {.workspace = workspace, .out = ret, .euid = geteuid()};

	return abx_walk(root_fd, visit, &c, err);
}

static int on_dir(void *ctx, int dirfd, const char *path, struct abx_err *err)
{
	struct collect *c = ctx;
	struct stat st;

	if (fstat(dirfd, &st) < 0)
		return fail_at(err, errno, path);
	if (holds_repository(dirfd))
		return refuse_nested(c, path, err);
	(void)add(c, path, &st);
	return 0;
}

/* A tracked path where there is now a directory counts as deleted, unless that is another
 * repository. */
static int check_directory(const struct collect *c, int dirfd, const char *name, const char *path,
			   struct abx_err *err)
{
	abx_autoclose int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return fail_at(err, errno, path);
	return holds_repository(fd) ? refuse_nested(c, path, err) : 0;
}

/* tracked: the index entry, or NULL. */
static int add_known(struct collect *c, const char *path, const struct abx_index_entry *tracked,
		     bool same, struct abx_err *err)
{
	struct abx_seed_file *item;
	const char *name;
	struct stat st;
	int dirfd, r = abx_cursor_enter(&c->cursor, path, on_dir, c, &dirfd, &name, err);

	if (r == 0 && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = errno;
	if (r > 0) {
		/* Deleted, or something else took a directory's place: git says so as well. */
		if (tracked && (r == ENOENT || r == ENOTDIR || r == ELOOP))
			return 0;
		return fail_at(err, r, path);
	}
	if (r < 0)
		return r;
	if (S_ISDIR(st.st_mode))
		return check_directory(c, dirfd, name, path, err);
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
		char text[256];

		abx_quote_text(path, text, sizeof(text));
		return abx_layout_refuse(c->workspace, "git checkout -- that file", err,
					 "the tracked file '%s' is a socket, FIFO or device", text);
	}
	r = check_readable(c, dirfd, name, path, &st, err);
	if (r < 0)
		return r;
	item = add(c, path, &st);
	if (same && (tracked->mode & S_IFMT) == (st.st_mode & S_IFMT)) {
		item->has_oid = true;
		memcpy(item->oid, tracked->oid, ABX_OID_BYTES);
	}
	return 0;
}

static int add_tracked(struct collect *c, const struct abx_index_entry *e,
		       const struct abx_status *status, struct abx_err *err)
{
	/* Git does not look at files that are assumed unchanged, so nobody knows. */
	const bool same = !e->assume_valid && !abx_status_is_dirty(status, e->path);

	return add_known(c, e->path, e, same, err);
}

static int add_untracked(struct collect *c, const char *path, struct abx_err *err)
{
	if (path[strlen(path) - 1] == '/')
		return refuse_nested(c, path, err);
	return add_known(c, path, NULL, false, err);
}

int abx_seed_files_known(const char *workspace, int root_fd, const struct abx_index *index,
			 const struct abx_status *status, struct abx_seed_files *ret,
			 struct abx_err *err)
{
	struct collect c = {.workspace = workspace, .out = ret, .euid = geteuid()};
	size_t i = 0, j = 0;
	int r = 0;

	abx_cursor_init(&c.cursor, root_fd);
	while (r == 0 && (i < index->len || j < status->untracked.len)) {
		const char *t = i < index->len ? index->entries[i].path : NULL;
		const char *u = j < status->untracked.len ? status->untracked.items[j] : NULL;

		if (t && (!u || strcmp(t, u) < 0))
			r = add_tracked(&c, &index->entries[i++], status, err);
		else
			r = add_untracked(&c, status->untracked.items[j++], err);
	}
	abx_cursor_release(&c.cursor);
	return r;
}

void abx_seed_files_release(struct abx_seed_files *f)
{
	for (size_t i = 0; i < f->len; i++)
		free(f->items[i].path);
	free(f->items);
	memset(f, 0, sizeof(*f));
}
