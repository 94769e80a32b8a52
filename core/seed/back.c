/* SPDX-License-Identifier: MIT */
/* What would come back from a box, and how it looks as a diff. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/back-fetch.h"
#include "core/seed/back-host.h"
#include "core/seed/back-io.h"
#include "core/seed/back-repo.h"
#include "core/seed/index.h"
#include "core/seed/seed-script.h"
#include "core/util/beneath.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/sha1.h"
#include "core/util/term.h"

#define MODE_LINK 0120000U
#define STDERR_MAX ((size_t)1 << 20)

static int check_tree(const struct abx_back *back, struct abx_err *err)
{
	if (back->seed_tree && abx_is_oid_hex(back->seed_tree))
		return 0;
	return abx_err_set(err, ABX_ESTATE, "what the box started from is not known");
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

static int ask(const struct abx_box_io *io, const struct abx_back *back, struct abx_changes *ret,
	       struct abx_err *err)
{
	const char *const args[] = {back->dir, back->seed_tree, NULL};
	struct text_sink sink = {ABX_BUF_INIT(ABX_CHANGES_BYTES_MAX), err};
	const struct abx_box_script script = {"list changes", abx_script_changes, args, -1, on_text,
					      &sink};
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(STDERR_MAX);
	int code = 0, r = abx_box_run(io, &script, &code, &said, err);

	if (r == 0 && code)
		r = abx_box_script_error("list changes", code, &said, err);
	if (r == 0)
		r = abx_changes_parse(&sink.text, &said, ret, err);
	abx_buf_release(&sink.text);
	return r;
}

/* ---- links: where they lead is part of what must be known before they are made ---- */

struct links {
	struct abx_change **changes;
	char target[PATH_MAX];
	size_t len;
};

static int link_begin(void *ctx, size_t i, uint64_t size, struct abx_err *err)
{
	struct links *l = ctx;

	(void)err;
	l->len = 0;
	if (size >= sizeof(l->target))
		abx_change_fail(l->changes[i], "a symbolic link that is too long");
	return 0;
}

static int link_data(void *ctx, size_t i, const void *data, size_t len, struct abx_err *err)
{
	struct links *l = ctx;

	(void)err;
	if (!l->changes[i]->problem) {
		memcpy(l->target + l->len, data, len);
		l->len += len;
	}
	return 0;
}

static int link_end(void *ctx, size_t i, struct abx_err *err)
{
	struct links *l = ctx;
	struct abx_change *c = l->changes[i];

	(void)err;
	if (c->problem)
		return 0;
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
	struct abx_fetch fetch = {ids, 0, link_begin, link_data, link_end, &links};

	for (size_t i = 0; i < changes->len; i++) {
		struct abx_change *c = &changes->items[i];

		if (c->problem || c->mode != MODE_LINK)
			continue;
		chosen[fetch.len] = c;
		ids[fetch.len++] = c->blob;
	}
	return abx_back_fetch(io, back->dir, tmp, &fetch, err);
}

/* Judge each, and drop those that the host has already. */
static void judge(struct abx_changes *changes, int root_fd, const struct abx_manifest *sent)
{
	const struct abx_back_host host = {root_fd, sent, changes};
	size_t n = 0;

	for (size_t i = 0; i < changes->len; i++)
		if (!changes->items[i].problem && !abx_back_judge(&host, &changes->items[i]) &&
		    !changes->items[i].problem)
			changes->items[i].kind = 0;
	for (size_t i = 0; i < changes->len; i++) {
		struct abx_change *c = &changes->items[i];

		if (c->kind) {
			changes->items[n++] = *c;
			continue;
		}
		free(c->path);
		free(c->blob);
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
	struct abx_changes changes = {NULL, 0};
	int r = check_tree(back, err);

	if (r < 0)
		return r;
	if (root_fd < 0)
		return abx_back_no_workspace(back, -root_fd, err);
	r = abx_sha1_open(err);
	if (r == 0)
		r = abx_manifest_load(back->manifest, &sent, err);
	if (r == 0)
		r = ask(io, back, &changes, err);
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

/* ---- diff ---- */

struct diff_sink {
	int fd;
	bool reader_gone;
	struct abx_term_filter *filter; /* NULL: fd is no terminal */
	struct abx_err *err;
};

static int on_diff(void *ctx, const void *data, size_t len)
{
	struct diff_sink *s = ctx;
	abx_auto(abx_buf) struct abx_buf safe = ABX_BUF_INIT(16 * len + 64);
	int r;

	if (s->filter) {
		abx_term_filter(s->filter, data, len, &safe);
		if (safe.failed)
			return abx_err_set(s->err, ABX_ENOMEM, "diff: out of memory");
		data = abx_buf_str(&safe);
		len = safe.len;
	}
	r = abx_fs_write_all(s->fd, data, len);
	s->reader_gone = r == -EPIPE;
	return r < 0 ? abx_err_errno(s->err, -r, "diff: write") : 0;
}

int abx_back_diff_io(const struct abx_box_io *io, const struct abx_back *back, bool stat,
		     bool color, int fd, struct abx_err *err)
{
	const char *const args[] = {back->dir, back->seed_tree, stat ? "stat" : "diff",
				    color ? "always" : "never", NULL};
	struct abx_term_filter filter = {.colors = color};
	struct diff_sink sink = {fd, false, isatty(fd) ? &filter : NULL, err};
	const struct abx_box_script script = {"diff", abx_script_diff, args, -1, on_diff, &sink};
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(STDERR_MAX);
	int code = 0, r = check_tree(back, err);

	if (r == 0)
		r = abx_box_run(io, &script, &code, &said, err);
	if (r < 0)
		return sink.reader_gone ? 0 : r;
	return code ? abx_box_script_error("diff", code, &said, err) : 0;
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

int abx_back_diff(struct abx_cloud *cloud, const struct abx_call_opts *o,
		  const struct abx_sandbox *sandbox, const struct abx_back *back, bool stat,
		  bool color, int fd, struct abx_err *err)
{
	struct abx_box_of_cloud box = {cloud, o, sandbox};
	const struct abx_box_io io = abx_box_io_of_cloud(&box);

	return abx_back_diff_io(&io, back, stat, color, fd, err);
}
