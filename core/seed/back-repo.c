/* SPDX-License-Identifier: MIT */
/* No repository comes back in disguise. */
#include "core/seed/back-repo.h"

#include <fcntl.h>
#include <string.h>

#include "core/seed/back-list.h"
#include "core/util/beneath.h"
#include "core/util/mem.h"

static const char *const parts[] = {"HEAD", "objects", "refs"};

/* The first change at or behind `path`. */
static size_t lower_bound(const struct abx_changes *changes, const char *path)
{
	size_t low = 0, high = changes->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(changes->items[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool comes(const struct abx_changes *changes, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = lower_bound(changes, path); i < changes->len; i++) {
		const struct abx_change *c = &changes->items[i];

		if (strncmp(c->path, path, len) != 0)
			return false;
		/* Between "refs" and "refs/x" may come "refs-old". */
		if (c->kind != ABX_CHANGE_DELETED && (!c->path[len] || c->path[len] == '/'))
			return true;
		if ((unsigned char)c->path[len] > '/')
			return false;
	}
	return false;
}

static bool is_here(int root_fd, const char *path)
{
	abx_autoclose int fd = abx_open_beneath(root_fd, path, O_PATH | O_NOFOLLOW, 0);

	return fd >= 0 || fd == -ELOOP;
}

/* Would the directory that ends where `len` does be a repository? */
static bool completes(const struct abx_changes *changes, int root_fd, const char *path, size_t len)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(parts); i++) {
		abx_autofree char *part = abx_xasprintf("%.*s%s", (int)len, path, parts[i]);

		if (!comes(changes, part) && !is_here(root_fd, part))
			return false;
	}
	return true;
}

static bool makes_repository(const struct abx_changes *changes, int root_fd, const char *path)
{
	for (const char *at = path;; at++) {
		size_t len = strcspn(at, "/");

		for (size_t i = 0; i < ABX_N_ELEMENTS(parts); i++)
			if (strlen(parts[i]) == len && strncmp(at, parts[i], len) == 0 &&
			    completes(changes, root_fd, path, (size_t)(at - path)))
				return true;
		at += len;
		if (!*at)
			return false;
	}
}

void abx_back_refuse_repositories(struct abx_changes *changes, int root_fd)
{
	for (size_t i = 0; i < changes->len; i++) {
		struct abx_change *c = &changes->items[i];

		if (!c->problem && c->kind != ABX_CHANGE_DELETED &&
		    makes_repository(changes, root_fd, c->path))
			abx_change_fail(c, "would make its directory a git repository");
	}
}
