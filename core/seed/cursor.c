/* SPDX-License-Identifier: MIT */
/* The directories of many sorted paths, each opened once. */
#include "core/seed/cursor.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "core/util/mem.h"

void abx_cursor_init(struct abx_cursor *c, int root_fd)
{
	memset(c, 0, sizeof(*c));
	c->root_fd = root_fd;
	c->path = (struct abx_buf)ABX_BUF_INIT(PATH_MAX);
}

static void leave(struct abx_cursor *c)
{
	(void)close(c->levels[--c->len].fd);
}

void abx_cursor_release(struct abx_cursor *c)
{
	while (c->len)
		leave(c);
	free(c->levels);
	c->levels = NULL;
	abx_buf_release(&c->path);
}

/* Leave the directories that `path` is not in. */
static size_t back_out(struct abx_cursor *c, const char *path, size_t dir_len)
{
	while (c->len) {
		const size_t len = c->levels[c->len - 1].path_len;

		if (len <= dir_len && memcmp(c->path.data, path, len) == 0 && path[len] == '/')
			return len;
		leave(c);
	}
	return 0;
}

int abx_cursor_enter(struct abx_cursor *c, const char *path, abx_cursor_fn on_dir, void *ctx,
		     int *ret_fd, const char **ret_name, struct abx_err *err)
{
	const char *slash = strrchr(path, '/');
	const size_t dir_len = slash ? (size_t)(slash - path) : 0;
	size_t at = back_out(c, path, dir_len);

	while (at < dir_len) {
		const size_t from = at ? at + 1 : 0, end = from + strcspn(path + from, "/");
		const int parent = c->len ? c->levels[c->len - 1].fd : c->root_fd;
		int fd, r;

		abx_buf_reset(&c->path);
		abx_buf_add(&c->path, path, end);
		if (c->path.failed)
			return ENAMETOOLONG;
		fd = openat(parent, c->path.data + from,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return errno;
		if (c->len == c->cap) {
			c->cap = c->cap ? c->cap * 2 : 16;
			c->levels = abx_xreallocarray(c->levels, c->cap, sizeof(*c->levels));
		}
		c->levels[c->len++] = (struct abx_cursor_level){fd, end};
		r = on_dir ? on_dir(ctx, fd, c->path.data, err) : 0;
		if (r < 0)
			return r;
		at = end;
	}
	*ret_fd = c->len ? c->levels[c->len - 1].fd : c->root_fd;
	*ret_name = slash ? slash + 1 : path;
	return 0;
}
