/* SPDX-License-Identifier: MIT */
/* A box's own account of what changed, read without trust. */
#include "core/seed/back-list.h"

#include <string.h>
#include <sys/stat.h>

#include "core/seed/back-path.h"
#include "core/seed/index.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define MODE_GITLINK 0160000U
/* ":100644 100755 <40> <40> M" */
#define RECORD_BYTES 98
#define NESTED "a repository of its own, not brought back"
#define NO_PATH "no path that git takes, not brought back"

void abx_change_fail(struct abx_change *c, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	if (c->problem)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->problem = abx_xstrdup(text);
}

void abx_changes_release(struct abx_changes *c)
{
	for (size_t i = 0; i < c->len; i++) {
		free(c->items[i].path);
		free(c->items[i].blob);
		free(c->items[i].problem);
	}
	free(c->items);
	memset(c, 0, sizeof(*c));
}

struct list {
	struct abx_changes *out;
	size_t cap;
};

static struct abx_change *add(struct list *l, const char *path, enum abx_change_kind kind,
			      uint32_t mode)
{
	struct abx_changes *c = l->out;

	if (c->len == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		c->items = abx_xreallocarray(c->items, l->cap, sizeof(*c->items));
	}
	c->items[c->len] = (struct abx_change){abx_xstrdup(path), kind, mode, NULL, NULL};
	return &c->items[c->len++];
}

static bool parse_mode(const char *text, uint32_t *ret)
{
	static const uint32_t known[] = {0, 0100644, 0100755, 0120000, MODE_GITLINK};
	uint32_t mode = 0;

	for (int i = 0; i < 6; i++) {
		if (text[i] < '0' || text[i] > '7')
			return false;
		mode = mode << 3 | (uint32_t)(text[i] - '0');
	}
	for (size_t i = 0; i < ABX_N_ELEMENTS(known); i++)
		if (mode == known[i]) {
			*ret = mode;
			return true;
		}
	return false;
}

static bool parse_oid(const char *text, char oid[2 * ABX_OID_BYTES + 1])
{
	memcpy(oid, text, 2 * ABX_OID_BYTES);
	oid[2 * ABX_OID_BYTES] = '\0';
	return abx_is_oid_hex(oid);
}

/* One record and its path. */
static bool parse_record(const char *r, const char *path, struct list *l)
{
	char old_oid[2 * ABX_OID_BYTES + 1], oid[2 * ABX_OID_BYTES + 1];
	uint32_t old_mode, mode;
	struct abx_change *c;
	enum abx_change_kind kind;

	if (strlen(r) != RECORD_BYTES || r[0] != ':' || r[7] != ' ' || r[14] != ' ' ||
	    r[55] != ' ' || r[96] != ' ' || !parse_mode(r + 1, &old_mode) ||
	    !parse_mode(r + 8, &mode) || !parse_oid(r + 15, old_oid) || !parse_oid(r + 56, oid) ||
	    !*path)
		return false;
	switch (r[97]) {
	case 'A':
		kind = ABX_CHANGE_ADDED;
		break;
	case 'M':
	case 'T':
		kind = ABX_CHANGE_MODIFIED;
		break;
	case 'D':
		kind = ABX_CHANGE_DELETED;
		break;
	default:
		return false;
	}
	if ((kind == ABX_CHANGE_DELETED) != (mode == 0) ||
	    (kind == ABX_CHANGE_ADDED) != (old_mode == 0))
		return false;
	c = add(l, path, kind, mode);
	if (mode)
		c->blob = abx_xstrdup(oid);
	if (mode == MODE_GITLINK || old_mode == MODE_GITLINK)
		abx_change_fail(c, NESTED);
	return true;
}

/* Text before the records: "partial" (optional) and the tree. */
static bool skip_head(const char **at, const char *end, bool *ret_partial)
{
	static const char partial[] = "partial\n", tree[] = "tree ";
	char oid[2 * ABX_OID_BYTES + 1];

	*ret_partial = (size_t)(end - *at) >= sizeof(partial) - 1 &&
		       memcmp(*at, partial, sizeof(partial) - 1) == 0;
	if (*ret_partial)
		*at += sizeof(partial) - 1;
	if (end - *at < 46 || memcmp(*at, tree, 5) != 0 || !parse_oid(*at + 5, oid) ||
	    (*at)[45] != '\n')
		return false;
	*at += 46;
	return true;
}

static const char *next_string(const char **at, const char *end)
{
	const char *s = *at, *nul = s < end ? memchr(s, '\0', (size_t)(end - s)) : NULL;

	if (!nul)
		return NULL;
	*at = nul + 1;
	return s;
}

static bool parse_records(const char *at, const char *end, struct list *l)
{
	const char *s;

	while ((s = next_string(&at, end))) {
		const char *path;

		if (strcmp(s, "end") == 0)
			return at == end;
		path = next_string(&at, end);
		if (!path || l->out->len >= ABX_CHANGES_MAX || !parse_record(s, path, l))
			return false;
	}
	return false;
}

/* What stands between `before` and `after`, which are the whole line; NULL otherwise. */
static char *between(const char *line, const char *before, const char *after)
{
	const size_t len = strlen(line), n_before = strlen(before), n_after = strlen(after);

	if (len <= n_before + n_after || strncmp(line, before, n_before) != 0 ||
	    strcmp(line + len - n_after, after) != 0)
		return NULL;
	return abx_xstrndup(line + n_before, len - n_before - n_after);
}

/* One line of git add; false for what is no change of its own. */
static bool take_unadded_line(const char *line, struct list *l)
{
	abx_autofree char *nested =
		between(line, "error: '", "/' does not have a commit checked out");
	abx_autofree char *invalid = between(line, "error: invalid path '", "'");
	abx_autofree char *again = between(line, "error: unable to add '", "' to index");
	const struct abx_changes *c = l->out;

	if (nested)
		abx_change_fail(add(l, nested, ABX_CHANGE_ADDED, MODE_GITLINK), NESTED);
	else if (invalid)
		abx_change_fail(add(l, invalid, ABX_CHANGE_ADDED, 0100644), NO_PATH);
	/* The line before has named it and said why. */
	return nested || invalid ||
	       (again && c->len && c->items[c->len - 1].problem &&
		strcmp(again, c->items[c->len - 1].path) == 0);
}

/* git add goes on past what it cannot take, and says so: a repository without a commit and a
 * path like .GIT/config are changes of their own, anything else would be missing without a
 * word. */
static int take_unadded(const struct abx_buf *said, struct list *l, struct abx_err *err)
{
	const char *at = abx_buf_str(said);

	while (*at) {
		const size_t len = strcspn(at, "\n");
		abx_autofree char *line = abx_xstrndup(at, len);
		char shown[300];

		at += len + (at[len] ? 1 : 0);
		if (strncmp(line, "error: ", 7) != 0 && strncmp(line, "fatal: ", 7) != 0)
			continue;
		if (take_unadded_line(line, l))
			continue;
		abx_quote_text(line + 7, shown, sizeof(shown));
		(void)abx_err_set(err, ABX_EREMOTE, "read the box's workspace: %s", shown);
		return abx_err_remedy(err, "make it readable in the box, or remove it");
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct abx_change *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static bool sort_and_check(struct abx_changes *c)
{
	if (c->len)
		qsort(c->items, c->len, sizeof(*c->items), by_path);
	for (size_t i = 0; i < c->len; i++) {
		const char *problem = abx_back_path_problem(c->items[i].path);

		if (i && strcmp(c->items[i - 1].path, c->items[i].path) == 0)
			return false;
		if (problem)
			abx_change_fail(&c->items[i], "%s", problem);
	}
	return true;
}

int abx_changes_parse(const struct abx_buf *text, const struct abx_buf *said,
		      struct abx_changes *ret, struct abx_err *err)
{
	struct abx_changes changes = {NULL, 0};
	struct list l = {&changes, 0};
	const char *at = abx_buf_str(text), *end = at + text->len;
	bool partial = false;
	int r = 0;

	if (!skip_head(&at, end, &partial) || !parse_records(at, end, &l))
		r = abx_err_set(err, ABX_EPROTO, "the box's list of changes is not understood");
	else if (partial)
		r = take_unadded(said, &l, err);
	if (r == 0 && !sort_and_check(&changes))
		r = abx_err_set(err, ABX_EPROTO, "the box's list of changes has a path twice");
	if (r < 0)
		abx_changes_release(&changes);
	else
		*ret = changes;
	return r;
}

struct abx_change *abx_changes_find(const struct abx_changes *c, const char *path)
{
	const struct abx_change key = {.path = (char *)(uintptr_t)path};

	return c->len ? bsearch(&key, c->items, c->len, sizeof(*c->items), by_path) : NULL;
}

/* The first change whose path is not before `path`. */
static size_t lower_bound(const struct abx_changes *c, const char *path)
{
	size_t low = 0, high = c->len;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (strcmp(c->items[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool counts(const struct abx_change *c, bool deletion)
{
	return !c->problem && (c->kind == ABX_CHANGE_DELETED) == deletion;
}

bool abx_changes_below(const struct abx_changes *c, const char *path, bool deletion)
{
	abx_autofree char *prefix = abx_xasprintf("%s/", path);
	const size_t len = strlen(prefix);

	for (size_t i = lower_bound(c, prefix);
	     i < c->len && strncmp(c->items[i].path, prefix, len) == 0; i++)
		if (counts(&c->items[i], deletion))
			return true;
	return false;
}

bool abx_changes_above(const struct abx_changes *c, const char *path, bool deletion)
{
	abx_autofree char *above = abx_xstrdup(path);
	char *slash;

	while ((slash = strrchr(above, '/'))) {
		const struct abx_change *found;

		*slash = '\0';
		found = abx_changes_find(c, above);
		if (found && counts(found, deletion))
			return true;
	}
	return false;
}
