/* SPDX-License-Identifier: MIT */
/* What the host has otherwise than it was sent. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "core/seed/back-host.h"
#include "core/seed/sync-io.h"
#include "core/util/archive.h"
#include "core/util/beneath.h"
#include "core/util/parse.h"

#define LIST_MAX ((size_t)256 << 20)

/* As git has it: what kind of file it is, and whether its owner may run it. */
void abx_sync_delta_release(struct abx_sync_delta *d)
{
	for (size_t i = 0; i < d->len; i++)
		free(d->items[i].path);
	free(d->items);
	memset(d, 0, sizeof(*d));
}

static struct abx_sync_item *add(struct abx_sync_delta *d, const char *path,
				 const struct abx_manifest_entry *old)
{
	struct abx_sync_item *item;

	if (d->len == d->cap) {
		d->cap = d->cap ? 2 * d->cap : 64;
		d->items = abx_xreallocarray(d->items, d->cap, sizeof(*d->items));
	}
	item = &d->items[d->len++];
	*item = (struct abx_sync_item){.path = abx_xstrdup(path)};
	if (old) {
		item->old_mode = abx_git_mode(old->mode);
		memcpy(item->old_oid, old->oid, sizeof(item->old_oid));
	}
	return item;
}

static int fail_at(const char *path, int errnum, struct abx_err *err)
{
	char shown[300];

	abx_quote_text(path, shown, sizeof(shown));
	return abx_err_errno(err, errnum, "sync: read '%s'", shown);
}

static int look(const struct abx_seed *seed, struct abx_manifest *sent, const char *path,
		struct abx_sync_delta *d, struct abx_err *err)
{
	const struct abx_manifest_entry *old = abx_manifest_find(sent, path);
	abx_autoclose int dirfd = -1;
	char oid[ABX_SHA1_HEX_BYTES];
	struct abx_sync_item *item;
	const char *name;
	struct stat st;
	int r = abx_open_parent_beneath(seed->root_fd, path, 0, &dirfd, &name);

	if (r == 0 && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r < 0)
		return fail_at(path, -r, err);
	if (old && abx_manifest_untouched(old, &st))
		return 0;
	r = abx_blob_id_of(dirfd, name, &st, oid);
	if (r < 0)
		return fail_at(path, -r, err);
	if (old && strcmp(old->oid, oid) == 0 &&
	    abx_git_mode(old->mode) == abx_git_mode(st.st_mode)) {
		abx_manifest_set(sent, path, &st, oid);
		return 0;
	}
	item = add(d, path, old);
	item->st = st;
	item->new_mode = abx_git_mode(st.st_mode);
	memcpy(item->new_oid, oid, sizeof(oid));
	return 0;
}

/* What was sent and is not there any more; what is only ignored now stays. */
static void look_for_gone(const struct abx_seed *seed, const struct abx_manifest *sent,
			  struct abx_sync_delta *d)
{
	const size_t n = sent->sorted;

	for (size_t i = 0; i < n; i++) {
		const struct abx_manifest_entry *e = &sent->items[i];
		struct stat st;

		if (fstatat(seed->root_fd, e->path, &st, AT_SYMLINK_NOFOLLOW) < 0
			    ? errno == ENOENT || errno == ENOTDIR
			    : S_ISDIR(st.st_mode))
			(void)add(d, e->path, e);
	}
}

static int by_path(const void *a, const void *b)
{
	const struct abx_sync_item *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int abx_sync_delta(const struct abx_seed *seed, struct abx_manifest *sent,
		   struct abx_sync_delta *ret, struct abx_err *err)
{
	int r = abx_sha1_open(err);

	for (size_t i = 0; i < seed->files.len && r == 0; i++)
		if (!S_ISDIR(seed->files.items[i].mode))
			r = look(seed, sent, seed->files.items[i].path, ret, err);
	if (r < 0)
		return r;
	look_for_gone(seed, sent, ret);
	if (ret->len)
		qsort(ret->items, ret->len, sizeof(*ret->items), by_path);
	return 0;
}

/* One record of git ls-tree -r -z: "MODE TYPE ID\tPATH". */
static void mark(struct abx_sync_delta *d, const char *record)
{
	const char *tab = strchr(record, '\t'), *id = tab ? tab - 40 : NULL;
	struct abx_sync_item key = {.path = NULL}, *item;
	uint64_t mode = 0;

	if (!tab || id < record + 7)
		return;
	for (int i = 0; i < 6; i++)
		mode = mode * 8 + (uint64_t)(record[i] - '0');
	key.path = abx_xstrdup(tab + 1);
	item = bsearch(&key, d->items, d->len, sizeof(key), by_path);
	free(key.path);
	if (item)
		item->committed = item->new_mode == mode && strncmp(item->new_oid, id, 40) == 0;
}

int abx_sync_mark_committed(const struct abx_seed_repo *root, struct abx_sync_delta *delta,
			    struct abx_err *err)
{
	const char *const args[] = {"ls-tree", "-r", "-z", "--full-tree", root->status.head, NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	const char *at, *end;
	int r = abx_git_run(&root->git, args, NULL, &out, err);

	if (r < 0)
		return r;
	/* What is nowhere is committed as gone. */
	for (size_t i = 0; i < delta->len; i++)
		delta->items[i].committed = !delta->items[i].new_mode;
	at = abx_buf_str(&out);
	for (end = at + out.len; delta->len && at < end; at += strlen(at) + 1)
		mark(delta, at);
	return 0;
}

/* ---- the stream ---- */

struct lists {
	struct abx_buf old, now, merged, names, ids;
};

static void add_record(struct abx_buf *b, uint32_t mode, const char *oid, const char *path)
{
	if (!mode)
		return;
	abx_buf_addf(b, "%o %s\t%s", mode, oid, path);
	abx_buf_addc(b, '\0');
}

static int send_link(struct abx_tar *tar, const struct abx_seed *seed,
		     const struct abx_sync_item *item, const char *as, struct abx_err *err)
{
	char target[PATH_MAX];
	const ssize_t n = readlinkat(seed->root_fd, item->path, target, sizeof(target));

	if (n < 0)
		return fail_at(item->path, errno, err);
	return abx_tar_bytes(tar, as, 0600, 0, target, (size_t)n, err);
}

static int send_content(struct abx_tar *tar, const struct abx_seed *seed,
			const struct abx_sync_item *item, const char *as, struct abx_err *err)
{
	abx_autoclose int fd = -1;
	struct stat st;

	if (S_ISLNK(item->st.st_mode))
		return send_link(tar, seed, item, as, err);
	fd = abx_open_beneath(seed->root_fd, item->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fail_at(item->path, -fd, err);
	if (fstat(fd, &st) < 0)
		return fail_at(item->path, errno, err);
	return abx_tar_file(tar, as, fd, &st, NULL, err);
}

static int send_all(struct abx_tar *tar, const struct abx_seed *seed,
		    const struct abx_sync_delta *delta, struct lists *l, struct abx_err *err)
{
	int r = abx_tar_dir(tar, "f", 0700, 0, err);

	for (size_t i = 0; i < delta->len && r == 0; i++) {
		const struct abx_sync_item *item = &delta->items[i];
		char as[32];

		add_record(&l->old, item->old_mode, item->old_oid, item->path);
		add_record(&l->now, item->new_mode, item->new_oid, item->path);
		if (item->committed)
			add_record(&l->merged, item->new_mode, item->new_oid, item->path);
		else
			add_record(&l->merged, item->old_mode, item->old_oid, item->path);
		if (!item->new_mode)
			continue;
		(void)snprintf(as, sizeof(as), "f/%zu", i);
		abx_buf_addf(&l->names, "%s\n", as);
		abx_buf_addf(&l->ids, "%s\n", item->new_oid);
		r = send_content(tar, seed, item, as, err);
	}
	return r;
}

static int send_list(struct abx_tar *tar, const char *as, const struct abx_buf *b,
		     struct abx_err *err)
{
	if (b->failed)
		return abx_err_set(err, ABX_ENOMEM, "sync: too many changes");
	return abx_tar_bytes(tar, as, 0600, 0, abx_buf_str(b), b->len, err);
}

static int send_pack(struct abx_tar *tar, const char *pack, struct abx_err *err)
{
	abx_autoclose int fd = open(pack, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "read '%s'", pack);
	return abx_tar_file(tar, "pack", fd, &st, NULL, err);
}

int abx_sync_write(const struct abx_seed *seed, const struct abx_sync_delta *delta,
		   const char *pack, int fd, struct abx_err *err)
{
	struct lists l = {ABX_BUF_INIT(LIST_MAX), ABX_BUF_INIT(LIST_MAX), ABX_BUF_INIT(LIST_MAX),
			  ABX_BUF_INIT(LIST_MAX), ABX_BUF_INIT(LIST_MAX)};
	struct abx_tar *tar;
	int r = abx_tar_open(fd, -1, &tar, err);

	if (r < 0)
		return r;
	r = send_all(tar, seed, delta, &l, err);
	if (r == 0)
		r = send_list(tar, "old", &l.old, err);
	if (r == 0)
		r = send_list(tar, "new", &l.now, err);
	if (r == 0)
		r = send_list(tar, "merged", &l.merged, err);
	if (r == 0)
		r = send_list(tar, "names", &l.names, err);
	if (r == 0)
		r = send_list(tar, "ids", &l.ids, err);
	if (r == 0 && pack)
		r = send_pack(tar, pack, err);
	if (r == 0)
		r = abx_tar_finish(tar, err);
	abx_tar_close(tar);
	abx_buf_release(&l.old);
	abx_buf_release(&l.now);
	abx_buf_release(&l.merged);
	abx_buf_release(&l.names);
	abx_buf_release(&l.ids);
	return r;
}
