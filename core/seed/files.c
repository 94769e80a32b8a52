/* SPDX-License-Identifier: MIT */
/* Which files and directories of a workspace are put into a box. */
#include "core/seed/files.h"

#include <fcntl.h>
#include <string.h>

#include "core/seed/cursor.h"
#include "core/seed/ignore.h"
#include "core/seed/layout.h"
#include "core/util/parse.h"
#include "core/util/walk.h"

#define NESTED_REMEDY "give it a box of its own with -w, or list it in .gitignore"

struct collect {
	const char *workspace, *prefix;
	const struct abx_seed_known *known;
	struct abx_strv *nested;
	struct abx_seed_files *out;
	struct abx_cursor cursor;
	uid_t euid;
};

/* A path of the repository as one of the workspace. */
static char *in_workspace(const struct collect *c, const char *path)
{
	return *c->prefix && *path ? abx_xasprintf("%s/%s", c->prefix, path)
				   : abx_xstrdup(*path ? path : c->prefix);
}

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
	*item = (struct abx_seed_file){.path = in_workspace(c, path),
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

static bool holds_repository(int dirfd, const char *name)
{
	abx_autofree char *path = abx_xasprintf("%s/.git", name);
	struct stat st;

	return fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What macOS puts beside a file where it cannot keep what else belongs to that: "._x" beside
 * "x", with the mark of its format. */
static bool is_apple_double(const struct abx_walk_item *item)
{
	static const unsigned char magic[] = {0x00, 0x05, 0x16, 0x07};
	unsigned char start[sizeof(magic)];
	abx_autoclose int fd = -1;
	struct stat st;

	if (strncmp(item->name, "._", 2) != 0 || !item->name[2] ||
	    fstatat(item->dirfd, item->name + 2, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	fd = openat(item->dirfd, item->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && read(fd, start, sizeof(start)) == (ssize_t)sizeof(start) &&
	       memcmp(start, magic, sizeof(magic)) == 0;
}

static int visit(void *ctx, const struct abx_walk_item *item, struct abx_err *err)
{
	struct collect *c = ctx;
	const mode_t type = item->st->st_mode & S_IFMT;
	int r;

	if (type == S_IFDIR && holds_repository(item->dirfd, item->name)) {
		abx_strv_add(c->nested, item->path);
		return ABX_WALK_SKIP;
	}
	if (type != S_IFREG && type != S_IFDIR && type != S_IFLNK) {
		if (!c->out->skipped++)
			c->out->skipped_first = abx_xstrdup(item->path);
		return 0;
	}
	if (type == S_IFREG && is_apple_double(item))
		return 0;
	r = check_readable(c, item->dirfd, item->name, item->path, item->st, err);
	if (r == 0)
		(void)add(c, item->path, item->st);
	return r;
}

int abx_seed_files_walk(const char *workspace, int root_fd, struct abx_seed_files *ret,
			struct abx_strv *nested, struct abx_err *err)
{
	struct collect c = {.workspace = workspace,
			    .prefix = "",
			    .nested = nested,
			    .out = ret,
			    .euid = geteuid()};

	return abx_walk(root_fd, visit, &c, err);
}

static int on_dir(void *ctx, int dirfd, const char *path, struct abx_err *err)
{
	struct collect *c = ctx;
	struct stat st;

	if (fstat(dirfd, &st) < 0)
		return fail_at(err, errno, path);
	if (holds_repository(dirfd, "."))
		return refuse_nested(c, path, err);
	(void)add(c, path, &st);
	return 0;
}

/* A submodule, or an untracked repository.  A submodule that is not checked out is an empty
 * directory.  A tracked path where there is now a directory counts as deleted otherwise. */
static int add_directory(struct collect *c, int dirfd, const char *name, const char *path,
			 bool link)
{
	struct stat st;

	if (holds_repository(dirfd, name)) {
		abx_strv_take(c->nested, in_workspace(c, path));
	} else if (link && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		(void)add(c, path, &st);
		abx_strv_take(c->known->absent, in_workspace(c, path));
	}
	return 0;
}

/* Has git looked at it, and found what the index says?  tracked: the index entry, or NULL. */
static bool is_clean(const struct collect *c, const char *path,
		     const struct abx_index_entry *tracked)
{
	return tracked && !tracked->assume_valid && !tracked->skip_worktree &&
	       !abx_status_is_dirty(c->known->status, path);
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
		if (r == ENOENT || r == ENOTDIR || r == ELOOP) {
			if (!tracked || is_clean(c, path, tracked))
				abx_strv_take(&c->out->gone, in_workspace(c, path));
			return 0;
		}
		return fail_at(err, r, path);
	}
	if (r < 0)
		return r;
	if (S_ISDIR(st.st_mode))
		return add_directory(c, dirfd, name, path,
				     tracked && tracked->mode == ABX_MODE_GITLINK);
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
	item->steady = is_clean(c, path, tracked);
	if (same && (tracked->mode & S_IFMT) == (st.st_mode & S_IFMT)) {
		item->has_oid = true;
		memcpy(item->oid, tracked->oid, ABX_OID_BYTES);
	}
	return 0;
}

/* Entry i, unless it is the same path in another stage of a merge. */
static int add_tracked(struct collect *c, size_t i, struct abx_err *err)
{
	const struct abx_seed_known *k = c->known;
	const struct abx_index_entry *e = &k->index->entries[i];
	/* Git does not look at files that are assumed unchanged, so nobody knows. */
	const bool same = !e->stage && !e->assume_valid && !e->skip_worktree &&
			  !(k->raw && k->raw[i]) && !abx_status_is_dirty(k->status, e->path);

	if (i && strcmp(e->path, k->index->entries[i - 1].path) == 0)
		return 0;
	/* A directory of a sparse index, of which nothing is checked out. */
	if (e->mode == ABX_MODE_TREE)
		return 0;
	return add_known(c, e->path, e, same, err);
}

static int add_untracked(struct collect *c, const char *path, struct abx_err *err)
{
	const size_t len = strlen(path);
	abx_autofree char *dir = NULL;

	if (path[len - 1] != '/')
		return add_known(c, path, NULL, false, err);
	dir = abx_xstrndup(path, len - 1);
	return add_known(c, dir, NULL, false, err);
}

/* The directory of a nested repository, which has not been entered yet. */
static int add_top(struct collect *c, struct abx_err *err)
{
	struct stat st;

	if (!*c->prefix)
		return 0;
	if (fstat(c->known->root_fd, &st) < 0)
		return fail_at(err, errno, c->prefix);
	(void)add(c, "", &st);
	return 0;
}

int abx_seed_files_known(const struct abx_seed_known *known, struct abx_seed_files *ret,
			 struct abx_err *err)
{
	struct collect c = {.workspace = known->workspace,
			    .prefix = known->prefix,
			    .known = known,
			    .nested = known->nested,
			    .out = ret,
			    .euid = geteuid()};
	size_t i = 0, j = 0;
	int r = add_top(&c, err);

	abx_cursor_init(&c.cursor, known->root_fd);
	while (r == 0 && (i < known->index->len || j < known->others->len)) {
		const char *t = i < known->index->len ? known->index->entries[i].path : NULL;
		const char *u = j < known->others->len ? known->others->items[j] : NULL;

		if (t && (!u || strcmp(t, u) < 0))
			r = add_tracked(&c, i++, err);
		else
			r = add_untracked(&c, known->others->items[j++], err);
	}
	abx_cursor_release(&c.cursor);
	return r;
}

/* Is it among them?  Directories are there with a slash. */
static bool is_among(const struct abx_seed_file *f, const struct abx_strv *paths)
{
	abx_autofree char *dir = S_ISDIR(f->mode) ? abx_xasprintf("%s/", f->path) : NULL;

	return abx_paths_have(paths, dir ? dir : f->path);
}

void abx_seed_files_drop(struct abx_seed_files *f, const struct abx_strv *paths)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->len; i++) {
		const struct abx_seed_file *item = &f->items[i];

		if (!is_among(item, paths)) {
			f->items[kept++] = *item;
			continue;
		}
		if (!S_ISDIR(item->mode)) {
			f->files--;
			f->bytes -= item->size;
		}
		free(item->path);
	}
	f->len = kept;
}

void abx_seed_files_release(struct abx_seed_files *f)
{
	for (size_t i = 0; i < f->len; i++) {
		free(f->items[i].path);
		free(f->items[i].instead);
	}
	free(f->items);
	abx_strv_release(&f->gone);
	free(f->skipped_first);
	memset(f, 0, sizeof(*f));
}
