/* SPDX-License-Identifier: MIT */
/* A box's own account of what changed, read without trust. */
#include "core/seed/back-list.h"

#include <string.h>
#include <sys/stat.h>

#include "core/seed/back-path.h"
#include "core/seed/index.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define NESTED "a repository of its own, not brought back"
#define LARGE "larger than what may come back (--max-file)"
#define MANY "too many new files in it, which stay in the box"
#define SPECIAL "neither a file nor a directory nor a symbolic link"
#define LEFT "git in the box cannot take it (unreadable, or a name that git keeps for itself)"

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

static void release_all(struct abx_change *items, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		free(items[i].path);
		free(items[i].blob);
		free(items[i].old_blob);
		free(items[i].problem);
	}
	free(items);
}

void abx_changes_release(struct abx_changes *c)
{
	release_all(c->items, c->len);
	release_all(c->have, c->n_have);
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
	c->items[c->len] =
		(struct abx_change){.path = abx_xstrdup(path), .kind = kind, .mode = mode};
	return &c->items[c->len++];
}

static bool parse_mode(const char *text, uint32_t *ret)
{
	static const uint32_t known[] = {0, ABX_MODE_FILE, ABX_MODE_EXEC, ABX_MODE_LINK,
					 ABX_MODE_GITLINK};
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

bool abx_parse_raw(const char *r, uint32_t *ret_old_mode, uint32_t *ret_mode,
		   char ret_oid[ABX_SHA1_HEX_BYTES])
{
	char old_oid[2 * ABX_OID_BYTES + 1];

	/* ":100644 100755 <40> <40> M" */
	return strlen(r) > ABX_RAW_BYTES && r[0] == ':' && r[7] == ' ' && r[14] == ' ' &&
	       r[55] == ' ' && r[96] == ' ' && parse_mode(r + 1, ret_old_mode) &&
	       parse_mode(r + 8, ret_mode) && parse_oid(r + 15, old_oid) &&
	       parse_oid(r + 56, ret_oid);
}

/* One record and its path. */
static bool parse_record(const char *r, const char *path, struct list *l)
{
	char oid[2 * ABX_OID_BYTES + 1];
	uint32_t old_mode, mode;
	struct abx_change *c;
	enum abx_change_kind kind;

	if (!abx_parse_raw(r, &old_mode, &mode, oid) || r[ABX_RAW_BYTES + 1] || !*path)
		return false;
	switch (r[ABX_RAW_BYTES]) {
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
	c->old_mode = old_mode;
	if (old_mode)
		c->old_blob = abx_xstrndup(r + 15, 2 * ABX_OID_BYTES);
	if (mode == ABX_MODE_GITLINK || old_mode == ABX_MODE_GITLINK)
		abx_change_fail(c, NESTED);
	return true;
}

/* Before the records: the tree. */
static bool skip_head(const char **at, const char *end)
{
	char oid[2 * ABX_OID_BYTES + 1];

	if (end - *at < 46 || memcmp(*at, "tree ", 5) != 0 || !parse_oid(*at + 5, oid) ||
	    (*at)[45] != '\n')
		return false;
	*at += 46;
	return true;
}

const char *abx_next_string(const char **at, const char *end)
{
	const char *s = *at, *nul = s < end ? memchr(s, '\0', (size_t)(end - s)) : NULL;

	if (!nul)
		return NULL;
	*at = nul + 1;
	return s;
}

/* What stands behind `word` and a blank, or NULL. */
static const char *behind(const char *s, const char *word)
{
	const size_t len = strlen(word);

	return strncmp(s, word, len) == 0 && s[len] == ' ' ? s + len + 1 : NULL;
}

static void note(struct list *notes, const char *path, uint32_t mode, const char *why)
{
	struct abx_change *c = add(notes, path, ABX_CHANGE_ADDED, mode);
	const char *problem = abx_back_path_problem(path);

	abx_change_fail(c, "%s", problem ? problem : why);
}

/* The workspace itself is named with a dot. */
static void note_many(struct list *notes, const char *path)
{
	if (strcmp(path, ".") == 0)
		abx_change_fail(add(notes, path, ABX_CHANGE_ADDED, 0), MANY);
	else
		note(notes, path, 0, MANY);
}

/* Paths below `prefix`, and an empty one behind them. */
static bool parse_left(const char *prefix, const char **at, const char *end, struct list *notes)
{
	const char *s;

	while ((s = abx_next_string(at, end)) && *s) {
		abx_autofree char *path = abx_xasprintf("%s%s%s", prefix, *prefix ? "/" : "", s);

		if (notes->out->len >= ABX_CHANGES_MAX)
			return false;
		/* A repository in which there is nothing. */
		if (s[strlen(s) - 1] != '/')
			note(notes, path, ABX_MODE_FILE, LEFT);
	}
	return s != NULL;
}

static bool parse_note(const char *s, const char **at, const char *end, struct list *notes)
{
	const char *path;

	if (notes->out->len >= ABX_CHANGES_MAX)
		return false;
	if ((path = behind(s, "large")) && *path)
		note(notes, path, ABX_MODE_FILE, LARGE);
	else if ((path = behind(s, "many")) && *path)
		note_many(notes, path);
	else if ((path = behind(s, "special")) && *path)
		note(notes, path, 0, SPECIAL);
	else
		return (path = behind(s, "left")) && parse_left(path, at, end, notes);
	return true;
}

static bool parse_records(const char *at, const char *end, struct list *l, struct list *notes)
{
	const char *s;

	while ((s = abx_next_string(&at, end))) {
		const char *path;

		if (strcmp(s, "end") == 0)
			return at == end;
		if (*s != ':') {
			if (!parse_note(s, &at, end, notes))
				return false;
			continue;
		}
		path = abx_next_string(&at, end);
		if (!path || l->out->len >= ABX_CHANGES_MAX || !parse_record(s, path, l))
			return false;
	}
	return false;
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

/* A note about a path that changed as well is about that change. */
static void merge_notes(struct list *l, struct abx_changes *notes)
{
	struct abx_changes *c = l->out;
	const size_t n = c->len;

	if (notes->len)
		qsort(notes->items, notes->len, sizeof(*notes->items), by_path);
	for (size_t i = 0; i < notes->len; i++) {
		const struct abx_change *from = &notes->items[i];
		const struct abx_changes records = {.items = c->items, .len = n};
		struct abx_change *same = abx_changes_find(&records, from->path);

		if (i && strcmp(notes->items[i - 1].path, from->path) == 0)
			continue;
		if (!same)
			same = add(l, from->path, from->kind, from->mode);
		abx_change_fail(same, "%s", from->problem);
	}
	if (c->len > n)
		qsort(c->items, c->len, sizeof(*c->items), by_path);
}

int abx_changes_parse(const struct abx_buf *text, struct abx_changes *ret, struct abx_err *err)
{
	struct abx_changes changes = {0}, notes = {0};
	struct list l = {&changes, 0}, n = {&notes, 0};
	const char *at = abx_buf_str(text), *end = at + text->len;
	int r = 0;

	if (!skip_head(&at, end) || !parse_records(at, end, &l, &n))
		r = abx_err_set(err, ABX_EPROTO, "the box's list of changes is not understood");
	else if (!sort_and_check(&changes))
		r = abx_err_set(err, ABX_EPROTO, "the box's list of changes has a path twice");
	else
		merge_notes(&l, &notes);
	abx_changes_release(&notes);
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
