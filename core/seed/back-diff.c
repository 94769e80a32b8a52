/* SPDX-License-Identifier: MIT */
/* How a box's work looks as a diff. */
#include "core/seed/back-diff.h"

#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/back-io.h"
#include "core/seed/back-list.h"
#include "core/seed/seed-script.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/term.h"

#define STDERR_MAX ((size_t)1 << 20)

static int run(const struct abx_box_io *io, const struct abx_back *back, bool since_create,
	       const char *form, bool color, struct abx_box_script *script, bool *ret_more,
	       struct abx_err *err)
{
	abx_autofree char *max = abx_back_limits(back);
	const char *const args[] = {back->dir, back->seed_tree,
				    max,       since_create ? "seed" : "base",
				    form,      color ? "always" : "never",
				    NULL};
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(STDERR_MAX);
	int code = 0, r = abx_back_check_tree(back, err);

	script->what = "diff";
	script->text = abx_script_diff;
	script->args = args;
	script->stdin_fd = -1;
	if (r == 0)
		r = abx_box_run(io, script, &code, &said, err);
	script->args = NULL;
	if (r < 0)
		return r;
	if (ret_more)
		*ret_more = strncmp(abx_buf_str(&said), "left out\n", 9) == 0;
	return code ? abx_box_script_error("diff", code, &said, err) : 0;
}

/* ---- as text ---- */

struct text_sink {
	int fd;
	bool reader_gone;
	struct abx_term_filter *filter; /* NULL: fd is no terminal */
	struct abx_err *err;
};

static int on_text(void *ctx, const void *data, size_t len)
{
	struct text_sink *s = ctx;
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

int abx_back_diff_io(const struct abx_box_io *io, const struct abx_back *back,
		     const struct abx_diff_how *how, int fd, bool *ret_more, struct abx_err *err)
{
	struct abx_term_filter filter = {.colors = how->color};
	struct text_sink sink = {fd, false, isatty(fd) ? &filter : NULL, err};
	struct abx_box_script script = {.output = on_text, .ctx = &sink};
	const int r = run(io, back, how->since_create, how->form == ABX_DIFF_STAT ? "stat" : "diff",
			  how->color, &script, ret_more, err);

	return r < 0 && sink.reader_gone ? 0 : r;
}

/* ---- as a list ---- */

void abx_diff_list_release(struct abx_diff_list *l)
{
	for (size_t i = 0; i < l->len; i++) {
		free(l->items[i].path);
		free(l->items[i].old_path);
	}
	free(l->items);
	memset(l, 0, sizeof(*l));
}

/* "R087": similarity behind the letter. */
static bool parse_status(const char *s, char *ret)
{
	uint64_t percent;

	if (!strchr("AMDRT", s[0]) || (s[0] == 'R' ? !abx_parse_u64(s + 1, 100, &percent) : s[1]))
		return false;
	*ret = s[0];
	return true;
}

static bool parse_raw(const char *record, const char **at, const char *end,
		      struct abx_diff_entry *e)
{
	char oid[ABX_SHA1_HEX_BYTES];
	const char *path, *new_path = NULL;

	if (!abx_parse_raw(record, &e->old_mode, &e->mode, oid) ||
	    !parse_status(record + ABX_RAW_BYTES, &e->status))
		return false;
	path = abx_next_string(at, end);
	if (path && e->status == 'R')
		new_path = abx_next_string(at, end);
	if (!path || !*path || (e->status == 'R' && (!new_path || !*new_path)))
		return false;
	e->path = abx_xstrdup(new_path ? new_path : path);
	e->old_path = new_path ? abx_xstrdup(path) : NULL;
	return true;
}

/* "ADDED TAB DELETED TAB PATH", or with both paths behind it; of the entry that comes next. */
static bool parse_numbers(const char *s, const char **at, const char *end, struct abx_diff_entry *e)
{
	const char *tab = strchr(s, '\t'), *tab2 = tab ? strchr(tab + 1, '\t') : NULL;
	const char *path, *old_path = NULL;
	abx_autofree char *added = NULL, *deleted = NULL;

	if (!tab2)
		return false;
	added = abx_xstrndup(s, (size_t)(tab - s));
	deleted = abx_xstrndup(tab + 1, (size_t)(tab2 - tab - 1));
	path = tab2 + 1;
	if (!*path) {
		old_path = abx_next_string(at, end);
		path = abx_next_string(at, end);
	}
	if (!path || strcmp(path, e->path) != 0 || (old_path != NULL) != (e->old_path != NULL) ||
	    (old_path && strcmp(old_path, e->old_path) != 0))
		return false;
	e->binary = strcmp(added, "-") == 0;
	if (e->binary)
		return strcmp(deleted, "-") == 0;
	return abx_parse_u64(added, UINT32_MAX, &e->added) &&
	       abx_parse_u64(deleted, UINT32_MAX, &e->deleted);
}

static bool parse_list(const struct abx_buf *text, struct abx_diff_list *l)
{
	const char *at = abx_buf_str(text), *end = at + text->len, *s;
	size_t cap = 0, counted = 0;

	while ((s = abx_next_string(&at, end))) {
		if (strcmp(s, "end") == 0)
			return at == end && counted == l->len;
		if (*s != ':') {
			if (counted == l->len || !parse_numbers(s, &at, end, &l->items[counted++]))
				return false;
			continue;
		}
		if (counted || l->len >= ABX_CHANGES_MAX)
			return false;
		if (l->len == cap) {
			cap = cap ? cap * 2 : 64;
			l->items = abx_xreallocarray(l->items, cap, sizeof(*l->items));
		}
		l->items[l->len] = (struct abx_diff_entry){.path = NULL};
		if (!parse_raw(s, &at, end, &l->items[l->len]))
			return false;
		l->len++;
	}
	return false;
}

struct list_sink {
	struct abx_buf text;
	struct abx_err *err;
};

static int on_list(void *ctx, const void *data, size_t len)
{
	struct list_sink *s = ctx;

	abx_buf_add(&s->text, data, len);
	return s->text.failed ? abx_err_set(s->err, ABX_EPROTO, "diff: the box's list is too long")
			      : 0;
}

int abx_back_diff_list_io(const struct abx_box_io *io, const struct abx_back *back,
			  bool since_create, struct abx_diff_list *ret, struct abx_err *err)
{
	struct list_sink sink = {ABX_BUF_INIT(ABX_CHANGES_BYTES_MAX), err};
	struct abx_box_script script = {.output = on_list, .ctx = &sink};
	struct abx_diff_list list = {NULL, 0};
	int r = run(io, back, since_create, "list", false, &script, NULL, err);

	if (r == 0 && !parse_list(&sink.text, &list))
		r = abx_err_set(err, ABX_EPROTO, "diff: the box's list is not understood");
	abx_buf_release(&sink.text);
	if (r < 0)
		abx_diff_list_release(&list);
	else
		*ret = list;
	return r;
}

/* ---- by a cloud ---- */

int abx_back_diff(struct abx_cloud *cloud, const struct abx_call_opts *o,
		  const struct abx_sandbox *sandbox, const struct abx_back *back,
		  const struct abx_diff_how *how, int fd, bool *ret_more, struct abx_err *err)
{
	struct abx_box_of_cloud box = {cloud, o, sandbox};
	const struct abx_box_io io = abx_box_io_of_cloud(&box);

	return abx_back_diff_io(&io, back, how, fd, ret_more, err);
}

int abx_back_diff_list(struct abx_cloud *cloud, const struct abx_call_opts *o,
		       const struct abx_sandbox *sandbox, const struct abx_back *back,
		       bool since_create, struct abx_diff_list *ret, struct abx_err *err)
{
	struct abx_box_of_cloud box = {cloud, o, sandbox};
	const struct abx_box_io io = abx_box_io_of_cloud(&box);

	return abx_back_diff_list_io(&io, back, since_create, ret, err);
}
