/* SPDX-License-Identifier: MIT */
/* What would come back from a box. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/back-fetch.h"
#include "core/seed/back-host.h"
#include "core/seed/back-io.h"
#include "core/seed/back-repo.h"
#include "core/seed/git.h"
#include "core/seed/index.h"
#include "core/seed/seed-script.h"
#include "core/util/beneath.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/sha1.h"

#define STDERR_MAX ((size_t)1 << 20)

int abx_back_check_tree(const struct abx_back *back, struct abx_err *err)
{
	if (back->seed_tree && abx_is_oid_hex(back->seed_tree))
		return 0;
	return abx_err_set(err, ABX_ESTATE, "what the box started from is not known");
}

char *abx_back_limits(const struct abx_back *back)
{
	return abx_xasprintf("%" PRIu64 ":%" PRIu64,
			     back->max_file ? back->max_file : ABX_BACK_FILE_MAX,
			     back->max_new ? back->max_new : ABX_CHANGES_MAX);
}

struct text_sink {
	struct abx_buf text;
	struct abx_err *err;
};

static int on_text(void *ctx, const void *data, size_t len)
{
	struct text_sink *s = ctx;

	abx_buf_add(&s->text, data, len);
	if (s->text.failed)
		return abx_err_set(s->err, ABX_EPROTO, "the box's list of changes is too long");
	return 0;
}

/* What came before, as git update-index --index-info reads it: a file of ours, or -1 when there
 * is nothing to say. */
static int say_brought(const struct abx_manifest *sent, const char *tmp, int *ret,
		       struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_CHANGES_BYTES_MAX);
	abx_autoclose int fd = -1;
	int r;

	*ret = -1;
	if (!sent->n_brought)
		return 0;
	for (size_t i = 0; i < sent->n_brought; i++) {
		const struct abx_manifest_brought *e = &sent->brought[i];

		abx_buf_addf(&text, "%o %s\t%s", e->mode, e->oid, e->path);
		abx_buf_addc(&text, '\0');
	}
	if (text.failed)
		return abx_err_set(err, ABX_ENOMEM, "too much was brought back already");
	fd = abx_fs_open_scratch(tmp);
	r = fd < 0 ? fd : abx_fs_write_all(fd, abx_buf_str(&text), text.len);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return abx_err_errno(err, -r, "write in '%s'", tmp);
	*ret = abx_steal_fd(&fd);
	return 0;
}

static int ask(const struct abx_box_io *io, const struct abx_back *back,
	       const struct abx_manifest *sent, const char *tmp, struct abx_changes *ret,
	       struct abx_err *err)
{
	abx_autofree char *max = abx_back_limits(back);
	abx_autofree const char **args = NULL;
	struct text_sink sink = {ABX_BUF_INIT(ABX_CHANGES_BYTES_MAX), err};
	struct abx_box_script script = {"list changes", abx_script_changes, NULL, -1, on_text,
					&sink};
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(STDERR_MAX);
	abx_autoclose int brought_fd = -1;
	size_t n = 0;
	int code = 0, r = say_brought(sent, tmp, &brought_fd, err);

	if (r < 0)
		return r;
	script.stdin_fd = brought_fd;
	while (back->ignored && back->ignored[n])
		n++;
	args = abx_xcalloc(n + 4, sizeof(*args));
	args[0] = back->dir;
	args[1] = back->seed_tree;
	args[2] = max;
	if (n)
		memcpy(args + 3, back->ignored, n * sizeof(*args));
	script.args = args;
	r = abx_box_run(io, &script, &code, &said, err);
	if (r == 0 && code)
		r = abx_box_script_error("list changes", code, &said, err);
	if (r == 0)
		r = abx_changes_parse(&sink.text, ret, err);
	abx_buf_release(&sink.text);
	return r;
}

/* ---- links: where they lead is part of what must be known before they are made ---- */

struct links {
	struct abx_change **changes;
	char target[PATH_MAX];
	size_t len;
};

static bool link_refuse(void *ctx, size_t i, uint64_t size)
{
	struct links *l = ctx;

	if (size >= sizeof(l->target))
		abx_change_fail(l->changes[i], "a symbolic link that is too long");
	return size >= sizeof(l->target);
}

static int link_begin(void *ctx, size_t i, uint64_t size, struct abx_err *err)
{
	struct links *l = ctx;

	(void)err;
	(void)i;
	(void)size;
	l->len = 0;
	return 0;
}

static int link_data(void *ctx, size_t i, const void *data, size_t len, struct abx_err *err)
{
	struct links *l = ctx;

	(void)err;
	(void)i;
	memcpy(l->target + l->len, data, len);
	l->len += len;
	return 0;
}

static int link_end(void *ctx, size_t i, struct abx_err *err)
{
	struct links *l = ctx;
	struct abx_change *c = l->changes[i];

	(void)err;
	l->target[l->len] = '\0';
	if (strlen(l->target) != l->len || !abx_link_stays_beneath(c->path, l->target))
		abx_change_fail(c, "a symbolic link that leaves the workspace");
	return 0;
}

static int check_links(const struct abx_box_io *io, const struct abx_back *back, const char *tmp,
		       struct abx_changes *changes, struct abx_err *err)
{
	abx_autofree struct abx_change **chosen = abx_xcalloc(changes->len, sizeof(*chosen));
	abx_autofree const char **ids = abx_xcalloc(changes->len, sizeof(*ids));
	struct links links = {.changes = chosen};
	struct abx_fetch fetch = {ids, 0, link_begin, link_data, link_end, link_refuse, &links};

	for (size_t i = 0; i < changes->len; i++) {
		struct abx_change *c = &changes->items[i];

		if (c->problem || c->mode != ABX_MODE_LINK)
			continue;
		chosen[fetch.len] = c;
		ids[fetch.len++] = c->blob;
	}
	return abx_back_fetch(io, back->dir, tmp, &fetch, err);
}

/* Judge each, and put those aside that the host has already. */
static void judge(struct abx_changes *changes, int root_fd, const struct abx_manifest *sent)
{
	const struct abx_back_host host = {root_fd, sent, changes};
	abx_autofree bool *have = abx_xcalloc(changes->len + 1, sizeof(*have));
	size_t n = 0, n_have = 0;

	for (size_t i = 0; i < changes->len; i++) {
		struct abx_change *c = &changes->items[i];

		have[i] = !c->problem && !abx_back_judge(&host, c) && !c->problem;
		n_have += have[i];
	}
	changes->have = n_have ? abx_xcalloc(n_have, sizeof(*changes->have)) : NULL;
	for (size_t i = 0; i < changes->len; i++) {
		if (have[i])
			changes->have[changes->n_have++] = changes->items[i];
		else
			changes->items[n++] = changes->items[i];
	}
	changes->len = n;
}

char *abx_back_tmp_dir(const struct abx_back *back)
{
	const char *slash = strrchr(back->manifest, '/');

	return slash && slash != back->manifest
		       ? abx_xstrndup(back->manifest, (size_t)(slash - back->manifest))
		       : abx_xstrdup(slash ? "/" : ".");
}

int abx_back_no_workspace(const struct abx_back *back, int errnum, struct abx_err *err)
{
	char shown[300];

	abx_quote_text(back->workspace, shown, sizeof(shown));
	return abx_err_errno(err, errnum, "workspace '%s'", shown);
}

int abx_back_changes_io(const struct abx_box_io *io, const struct abx_back *back,
			struct abx_changes *ret, struct abx_err *err)
{
	abx_autofree char *tmp = abx_back_tmp_dir(back);
	abx_autoclose int root_fd = abx_fs_open_dir(AT_FDCWD, back->workspace);
	struct abx_manifest sent = {0};
	struct abx_changes changes = {0};
	int r = abx_back_check_tree(back, err);

	if (r < 0)
		return r;
	if (root_fd < 0)
		return abx_back_no_workspace(back, -root_fd, err);
	r = abx_sha1_open(err);
	if (r == 0)
		r = abx_manifest_load(back->manifest, &sent, err);
	if (r == 0)
		r = ask(io, back, &sent, tmp, &changes, err);
	if (r == 0) {
		judge(&changes, root_fd, &sent);
		abx_back_refuse_repositories(&changes, root_fd);
		r = check_links(io, back, tmp, &changes, err);
	}
	abx_manifest_release(&sent);
	if (r < 0)
		abx_changes_release(&changes);
	else
		*ret = changes;
	return r;
}

/* ---- by a cloud ---- */

int abx_back_changes(struct abx_cloud *cloud, const struct abx_call_opts *o,
		     const struct abx_sandbox *sandbox, const struct abx_back *back,
		     struct abx_changes *ret, struct abx_err *err)
{
	struct abx_box_of_cloud box = {cloud, o, sandbox};
	const struct abx_box_io io = abx_box_io_of_cloud(&box);

	return abx_back_changes_io(&io, back, ret, err);
}

int abx_back_apply(struct abx_cloud *cloud, const struct abx_call_opts *o,
		   const struct abx_sandbox *sandbox, const struct abx_back *back,
		   struct abx_changes *changes, abx_progress_fn progress, void *progress_ctx,
		   struct abx_err *err)
{
	struct abx_box_of_cloud box = {cloud, o, sandbox};
	const struct abx_box_io io = abx_box_io_of_cloud(&box);

	return abx_back_apply_io(&io, back, changes, progress, progress_ctx, err);
}
