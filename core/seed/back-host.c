/* SPDX-License-Identifier: MIT */
/* May a change of the box land on this machine? */
#include "core/seed/back-host.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "core/seed/back-path.h"
#include "core/seed/index.h"
#include "core/util/beneath.h"
#include "core/util/mem.h"

#define CHUNK_BYTES 65536
#define CHANGED "changed on this machine since it was sent"

static int hash_file(int dirfd, const char *name, const struct stat *st, struct abx_sha1 *h)
{
	abx_autoclose int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	abx_autofree char *chunk = abx_xcalloc(1, CHUNK_BYTES);
	uint64_t left = (uint64_t)st->st_size;

	if (fd < 0)
		return -errno;
	while (left) {
		const ssize_t n = read(fd, chunk, CHUNK_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		/* Another length than it had a moment ago: another content, whatever it is. */
		if (n == 0 || (uint64_t)n > left)
			return -ESTALE;
		abx_sha1_update(h, chunk, (size_t)n);
		left -= (uint64_t)n;
	}
	return 0;
}

int abx_blob_id_of(int dirfd, const char *name, const struct stat *st, char oid[ABX_SHA1_HEX_BYTES])
{
	char target[PATH_MAX];
	abx_auto(abx_sha1) struct abx_sha1 h = ABX_SHA1_INIT;
	ssize_t n;
	int r = 0;

	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(dirfd, name, target, sizeof(target));
		if (n < 0)
			return -errno;
		abx_blob_id_init(&h, (uint64_t)n);
		abx_sha1_update(&h, target, (size_t)n);
	} else if (S_ISREG(st->st_mode)) {
		abx_blob_id_init(&h, (uint64_t)st->st_size);
		r = hash_file(dirfd, name, st, &h);
	} else {
		return -EINVAL;
	}
	if (r == 0)
		abx_sha1_hex(&h, oid);
	return r;
}

static bool judge_absent(const struct abx_back_host *h, struct abx_change *c)
{
	if (c->kind == ABX_CHANGE_DELETED)
		return false;
	if (abx_manifest_find(h->sent, c->path))
		abx_change_fail(c, "deleted on this machine since it was sent");
	return !c->problem;
}

/* A file or link is there. */
static bool judge_present(const struct abx_back_host *h, struct abx_change *c, int dirfd,
			  const char *name, const struct stat *st)
{
	const struct abx_manifest_entry *base = abx_manifest_find(h->sent, c->path);
	char oid[ABX_SHA1_HEX_BYTES] = "";
	int r = 0;

	if (base && abx_manifest_untouched(base, st))
		memcpy(oid, base->oid, sizeof(oid));
	else
		r = abx_blob_id_of(dirfd, name, st, oid);
	if (r < 0 && r != -ESTALE) {
		abx_change_fail(c, "cannot be read on this machine: %s", strerror(-r));
		return false;
	}
	if (c->blob && abx_git_mode(st->st_mode) == c->mode && strcmp(oid, c->blob) == 0)
		return false;
	if (!base && c->kind == ABX_CHANGE_DELETED)
		abx_change_fail(c, "it was never sent");
	else if (!base)
		abx_change_fail(c, "exists on this machine, and was not sent");
	else if (strcmp(oid, base->oid) != 0 ||
		 abx_git_mode(st->st_mode) != abx_git_mode(base->mode))
		abx_change_fail(c, CHANGED);
	return !c->problem;
}

/* No file of that name is here any more: by an earlier download, or by the user.  What the box has
 * in its place speaks for the first, and is judged by itself. */
static void judge_gone(const struct abx_back_host *h, struct abx_change *c)
{
	if (h->pending && (abx_changes_below(h->pending, c->path, /* deletion= */ false) ||
			   abx_changes_above(h->pending, c->path, /* deletion= */ false)))
		return;
	if (abx_manifest_find(h->sent, c->path))
		abx_change_fail(c, CHANGED);
}

static bool judge_directory(const struct abx_back_host *h, struct abx_change *c)
{
	if (h->pending && c->kind != ABX_CHANGE_DELETED &&
	    abx_changes_below(h->pending, c->path, /* deletion= */ true))
		return true;
	if (c->kind != ABX_CHANGE_DELETED)
		abx_change_fail(c, "a directory is in the way on this machine");
	else
		judge_gone(h, c);
	return false;
}

bool abx_back_judge(const struct abx_back_host *h, struct abx_change *c)
{
	const char *name, *bad_path = abx_back_path_problem(c->path);
	abx_autoclose int dirfd = -1;
	struct stat st;
	int r;

	if (bad_path)
		abx_change_fail(c, "%s", bad_path);
	if (c->problem)
		return false;
	r = abx_open_parent_beneath(h->root_fd, c->path, 0, &dirfd, &name);
	if (r == 0 && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == -ENOENT)
		return judge_absent(h, c);
	if (r == -ELOOP || r == -ENOTDIR) {
		if (h->pending && abx_changes_above(h->pending, c->path, /* deletion= */ true))
			return c->kind != ABX_CHANGE_DELETED;
		if (c->kind == ABX_CHANGE_DELETED)
			judge_gone(h, c);
		else
			abx_change_fail(c, r == -ELOOP
						   ? "a symbolic link is on the way on this machine"
						   : "a file is in the way on this machine");
		return false;
	}
	if (r < 0) {
		abx_change_fail(c, "cannot be read on this machine: %s", strerror(-r));
		return false;
	}
	return S_ISDIR(st.st_mode) ? judge_directory(h, c) : judge_present(h, c, dirfd, name, &st);
}
