/* SPDX-License-Identifier: MIT */
/* Everything below a directory, in a fixed order, following no link. */
#include "core/util/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

/* One directory under way: its names are read at once, so that the order is ours. */
struct level {
	struct level *up;
	int fd;
	struct abx_strv names;
	size_t next;
	size_t path_len; /* of the path that leads here */
};

static void level_free(struct level *l)
{
	abx_strv_release(&l->names);
	if (l->fd >= 0)
		(void)close(l->fd);
	free(l);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int fail_at(struct abx_err *err, int errnum, const char *path)
{
	char text[256];

	abx_quote_text(path, text, sizeof(text));
	return abx_err_errno(err, errnum, "read directory '%s'", text);
}

static int read_names(int dirfd, struct abx_strv *names)
{
	DIR *dir = abx_fs_opendir(dirfd, ".");
	struct dirent *e;
	int saved;

	if (!dir)
		return -errno;
	for (errno = 0; (e = readdir(dir)); errno = 0)
		if (!abx_fs_is_dot(e->d_name))
			abx_strv_add(names, e->d_name);
	saved = errno;
	(void)closedir(dir);
	if (names->len)
		qsort(names->items, names->len, sizeof(char *), by_bytes);
	return -saved;
}

int abx_list_dir(int dirfd, struct abx_strv *ret, struct abx_err *err)
{
	const int r = read_names(dirfd, ret);

	return r < 0 ? abx_err_errno(err, -r, "read directory") : 0;
}

static int push(struct level **top, int dirfd, const char *name, const struct abx_buf *path,
		struct abx_err *err)
{
	struct level *l = abx_xcalloc(1, sizeof(*l));
	int r;

	l->up = *top;
	l->path_len = path->len;
	l->fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->fd < 0) {
		const int saved = errno;

		level_free(l);
		return fail_at(err, saved, abx_buf_str(path));
	}
	*top = l;
	r = read_names(l->fd, &l->names);
	return r < 0 ? fail_at(err, -r, abx_buf_str(path)) : 0;
}

/* Visit the next name of the level on top, and enter it when it is a directory. */
static int step(struct level **top, unsigned int *depth, struct abx_buf *path, abx_walk_fn visit,
		void *ctx, struct abx_err *err)
{
	struct level *l = *top;
	const char *name = l->names.items[l->next++];
	struct abx_walk_item item = {.dirfd = l->fd, .name = name};
	struct stat st;
	int r;

	path->len = l->path_len;
	if (path->len)
		abx_buf_addc(path, '/');
	abx_buf_adds(path, name);
	if (path->failed)
		return abx_err_set(err, ABX_EIO, "read directory: a path is longer than %d bytes",
				   PATH_MAX);
	if (fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail_at(err, errno, path->data);
	item.path = path->data;
	item.st = &st;
	r = visit(ctx, &item, err);
	if (r || !S_ISDIR(st.st_mode))
		return r < 0 ? r : 0;
	if (++*depth > ABX_WALK_MAX_DEPTH)
		return abx_err_set(err, ABX_EIO,
				   "read directory: directories are nested more than %d deep",
				   ABX_WALK_MAX_DEPTH);
	return push(top, l->fd, name, path, err);
}

int abx_walk(int dirfd, abx_walk_fn visit, void *ctx, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(PATH_MAX - 1);
	struct level *top = NULL;
	unsigned int depth = 0;
	int r = push(&top, dirfd, ".", &path, err);

	while (r == 0 && top) {
		if (top->next < top->names.len) {
			r = step(&top, &depth, &path, visit, ctx, err);
		} else {
			struct level *done = top;

			top = done->up;
			depth -= top ? 1 : 0;
			level_free(done);
		}
	}
	while (top) {
		struct level *done = top;

		top = done->up;
		level_free(done);
	}
	return r;
}
