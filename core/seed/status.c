/* SPDX-License-Identifier: MIT */
/* Reading `git status --porcelain=v2 -z --branch` without renames. */
#include "core/seed/status.h"

#include <string.h>

#include "core/seed/ignore.h"

const char *const abx_status_args[] = {"status",
				       "--porcelain=v2",
				       "-z",
				       "--branch",
				       "--untracked-files=all",
				       "--ignored=matching",
				       "--no-renames",
				       "--no-ahead-behind",
				       "--ignore-submodules=none",
				       NULL};

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct abx_strv *v)
{
	if (v->len)
		qsort(v->items, v->len, sizeof(char *), by_bytes);
}

/* The field that begins after `n` blanks, or NULL. */
static const char *field(const char *record, int n)
{
	while (n-- && record) {
		record = strchr(record, ' ');
		record = record ? record + 1 : NULL;
	}
	return record;
}

static bool take_header(struct abx_status *s, const char *record)
{
	static const char oid[] = "# branch.oid ";

	if (strncmp(record, oid, sizeof(oid) - 1) == 0 &&
	    strcmp(record + sizeof(oid) - 1, "(initial)") != 0)
		abx_xreplace(&s->head, record + sizeof(oid) - 1);
	return true;
}

/* "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2 h3 path", "? path". */
const char *abx_status_path(const char *record)
{
	const char *path = NULL;

	if (record[0] == '?' && record[1] == ' ')
		path = record + 2;
	else if (record[0] == '1' || record[0] == 'u')
		path = strlen(record) < 4 ? NULL : field(record, record[0] == 'u' ? 10 : 8);
	return path && *path ? path : NULL;
}

static bool take(struct abx_status *s, const char *record)
{
	const char *path = abx_status_path(record);

	if (record[0] == '#')
		return take_header(s, record);
	if (record[0] == '!' && record[1] == ' ' && record[2]) {
		abx_strv_add(&s->ignored, record + 2);
		return true;
	}
	if (!path)
		return false;
	if (record[0] == '?')
		abx_strv_add(&s->untracked, path);
	else if (record[0] == 'u' || record[3] != '.')
		abx_strv_add(&s->dirty, path);
	abx_buf_add(&s->changes, record, strlen(record) + 1);
	return true;
}

int abx_status_parse(const struct abx_buf *out, struct abx_status *ret, struct abx_err *err)
{
	struct abx_status s = {.changes = ABX_BUF_INIT(out->len)};
	const char *at = abx_buf_str(out), *end = at + out->len;

	for (; at < end; at += strlen(at) + 1) {
		if (!memchr(at, '\0', (size_t)(end - at)) || !take(&s, at) || s.changes.failed) {
			abx_status_release(&s);
			return abx_err_set(err, ABX_EIO,
					   "git status: its output is not understood");
		}
	}
	sort(&s.dirty);
	sort(&s.untracked);
	*ret = s;
	return 0;
}

void abx_status_forget(struct abx_status *s, const struct abx_strv *paths)
{
	struct abx_buf left = ABX_BUF_INIT(s->changes.len + 1);
	const char *at = abx_buf_str(&s->changes), *end = at + s->changes.len;

	if (!paths->len)
		return;
	for (; at < end; at += strlen(at) + 1)
		if (at[0] != '?' || !abx_paths_have(paths, at + 2))
			abx_buf_add(&left, at, strlen(at) + 1);
	abx_buf_release(&s->changes);
	s->changes = left;
	abx_paths_drop(&s->untracked, paths);
}

void abx_status_release(struct abx_status *s)
{
	free(s->head);
	abx_buf_release(&s->changes);
	abx_strv_release(&s->dirty);
	abx_strv_release(&s->untracked);
	abx_strv_release(&s->ignored);
	memset(s, 0, sizeof(*s));
}

bool abx_status_is_dirty(const struct abx_status *s, const char *path)
{
	return s->dirty.len &&
	       bsearch(&path, s->dirty.items, s->dirty.len, sizeof(char *), by_bytes);
}
