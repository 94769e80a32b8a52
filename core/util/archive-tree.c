/* SPDX-License-Identifier: MIT */
/* A whole tree of this machine as a tar stream. */
#include "core/util/archive.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/buf.h"
#include "core/util/parse.h"
#include "core/util/walk.h"

#define PROGRESS_BYTES (1U << 20)

struct tree_writer {
	struct abx_tar *tar;
	const struct abx_tar_tree *tree;
	struct abx_tar_count count;
	struct abx_buf name; /* of the entry under way */
};

static int fail_at(struct abx_err *err, int errnum, const char *path)
{
	char text[256];

	abx_quote_text(path, text, sizeof(text));
	return abx_err_errno(err, errnum, "read file '%s'", text);
}

static int write_file(struct tree_writer *w, int dirfd, const char *name, const char *as,
		      struct abx_err *err)
{
	abx_autoclose int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_at(err, errno, as);
	if (!S_ISREG(st.st_mode))
		return abx_err_set(err, ABX_ESTATE, "read file: it changed while it was read");
	r = abx_tar_file(w->tar, as, fd, &st, NULL, err);
	if (r < 0)
		return r;
	w->count.files++;
	w->count.bytes += (uint64_t)st.st_size;
	return 0;
}

static int write_link(struct tree_writer *w, int dirfd, const char *name, const char *as,
		      const struct stat *st, struct abx_err *err)
{
	char target[PATH_MAX];
	const ssize_t n = readlinkat(dirfd, name, target, sizeof(target));

	if (n < 0 || (size_t)n >= sizeof(target))
		return fail_at(err, n < 0 ? errno : ENAMETOOLONG, as);
	target[n] = '\0';
	w->count.links++;
	return abx_tar_symlink(w->tar, as, target, st->st_mtim.tv_sec, err);
}

static int write_entry(struct tree_writer *w, int dirfd, const char *name, const char *as,
		       const struct stat *st, struct abx_err *err)
{
	int r = 0;

	if (S_ISREG(st->st_mode)) {
		r = write_file(w, dirfd, name, as, err);
	} else if (S_ISLNK(st->st_mode)) {
		r = write_link(w, dirfd, name, as, st, err);
	} else if (S_ISDIR(st->st_mode)) {
		w->count.dirs++;
		r = abx_tar_dir(w->tar, as, st->st_mode, st->st_mtim.tv_sec, err);
	} else {
		w->count.skipped++;
	}
	if (r == 0 && w->tree->progress && w->tree->progress(w->tree->progress_ctx, &w->count) != 0)
		return abx_err_set(err, ABX_ECANCELED, "write archive: given up");
	return r;
}

static int visit(void *ctx, const struct abx_walk_item *item, struct abx_err *err)
{
	struct tree_writer *w = ctx;

	abx_buf_reset(&w->name);
	if (*w->tree->as)
		abx_buf_addf(&w->name, "%s/", w->tree->as);
	abx_buf_adds(&w->name, item->path);
	if (w->name.failed)
		return fail_at(err, ENAMETOOLONG, item->path);
	return write_entry(w, item->dirfd, item->name, w->name.data, item->st, err);
}

int abx_tar_write_tree(struct abx_tar *t, const struct abx_tar_tree *tree,
		       struct abx_tar_count *ret, struct abx_err *err)
{
	struct tree_writer w = {.tar = t, .tree = tree, .name = ABX_BUF_INIT(2 * PATH_MAX)};
	struct stat st;
	int r = 0;

	if (fstatat(tree->dirfd, tree->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_at(err, errno, tree->path);
	if (*tree->as)
		r = write_entry(&w, tree->dirfd, tree->path, tree->as, &st, err);
	else if (!S_ISDIR(st.st_mode))
		r = abx_err_set(err, ABX_EINVAL, "write archive: a file needs a name");
	if (r == 0 && S_ISDIR(st.st_mode)) {
		abx_autoclose int fd = openat(tree->dirfd, tree->path,
					      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		r = fd < 0 ? fail_at(err, errno, tree->path) : abx_walk(fd, visit, &w, err);
	}
	abx_buf_release(&w.name);
	if (r == 0 && ret)
		*ret = w.count;
	return r;
}
