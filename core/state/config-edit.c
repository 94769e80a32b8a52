/* SPDX-License-Identifier: MIT */
/* One key of a YAML text changed, everything else as it was. */
#include "core/state/config-edit.h"

#include <string.h>

#include "core/state/config-yaml.h"
#include "core/util/mem.h"

struct edit {
	const char *name, *text;
	size_t len;
	struct abx_yaml_items items;
	const char *key, *value;
	struct abx_buf *out;
	struct abx_err *err;
};

/* Byte offset of a character. */
static size_t byte_at(const struct edit *e, size_t index)
{
	size_t at = e->len >= 3 && memcmp(e->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (index && at < e->len) {
		at++;
		while (at < e->len && ((unsigned char)e->text[at] & 0xc0) == 0x80)
			at++;
		index--;
	}
	return at;
}

static size_t line_start(const struct edit *e, size_t at)
{
	while (at > 0 && e->text[at - 1] != '\n')
		at--;
	return at;
}

static size_t line_end(const struct edit *e, size_t at)
{
	while (at < e->len && e->text[at] != '\n')
		at++;
	return at < e->len ? at + 1 : at;
}

static bool is_plain(const char *s)
{
	static const char *const special[] = {"null", "Null", "NULL"};
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_/.+-";

	for (size_t i = 0; i < ABX_N_ELEMENTS(special); i++)
		if (strcmp(s, special[i]) == 0)
			return false;
	return *s && !strchr(".+-", *s) && s[strspn(s, plain)] == '\0';
}

static void add_scalar(struct abx_buf *b, const char *s)
{
	if (is_plain(s)) {
		abx_buf_adds(b, s);
		return;
	}
	abx_buf_addc(b, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			abx_buf_addf(b, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			abx_buf_addf(b, "\\x%02x", (unsigned char)*s);
		else
			abx_buf_addc(b, *s);
	}
	abx_buf_addc(b, '"');
}

static void splice_head(struct edit *e, size_t from)
{
	abx_buf_add(e->out, e->text, from);
}

static void splice_tail(struct edit *e, size_t to)
{
	abx_buf_add(e->out, e->text + to, e->len - to);
}

static const struct abx_yaml_item *find_item(const struct abx_yaml_items *l, const char *key)
{
	for (size_t i = 0; i < l->len; i++)
		if (strcmp(l->items[i].key, key) == 0)
			return &l->items[i];
	return NULL;
}

static void replace_value(struct edit *e, const struct abx_yaml_item *item)
{
	size_t from = byte_at(e, item->value_at), to = byte_at(e, item->value_end);

	splice_head(e, from);
	if (from > 0 && e->text[from - 1] == ':')
		abx_buf_addc(e->out, ' ');
	/* A list may stand as far left as its key, a text may not. */
	if (from + 1 < to && e->text[from] == '-' && strchr(" \r\n", e->text[from + 1]))
		abx_buf_adds(e->out, "  ");
	add_scalar(e->out, e->value);
	/* A block text ends with its last line. */
	if (to > from && e->text[to - 1] == '\n')
		abx_buf_addc(e->out, '\n');
	splice_tail(e, to);
}

static void remove_item(struct edit *e, const struct abx_yaml_item *item)
{
	size_t from = byte_at(e, item->key_at), to = byte_at(e, item->value_end);

	if (item->in_flow) {
		splice_head(e, byte_at(e, item->value_at));
		abx_buf_adds(e->out, "null");
		splice_tail(e, to);
		return;
	}
	splice_head(e, line_start(e, from));
	/* A block text ends behind the end of its last line. */
	splice_tail(e, to > 0 && e->text[to - 1] == '\n' ? to : line_end(e, to));
}

static void append_section(struct edit *e, const char *section, const char *leaf)
{
	splice_head(e, e->len);
	if (e->len && e->text[e->len - 1] != '\n')
		abx_buf_addc(e->out, '\n');
	abx_buf_addf(e->out, "%s:\n  %s: ", section, leaf);
	add_scalar(e->out, e->value);
	abx_buf_addc(e->out, '\n');
}

static int insert_item(struct edit *e)
{
	const char *leaf = strchr(e->key, '.') + 1;
	abx_autofree char *section = abx_xstrndup(e->key, (size_t)(leaf - 1 - e->key));
	struct abx_yaml_section at = {.found = false};
	int r = abx_yaml_find_section(e->name, e->text, e->len, section, &at, e->err);
	size_t from, begin;

	if (r < 0)
		return r;
	if (!at.found) {
		append_section(e, section, leaf);
		return 0;
	}
	from = byte_at(e, at.value_at);
	begin = line_start(e, from);
	if (at.in_flow) {
		splice_head(e, from + 1);
		abx_buf_addf(e->out, "%s: ", leaf);
		add_scalar(e->out, e->value);
		abx_buf_adds(e->out, ", ");
		splice_tail(e, from + 1);
	} else if (at.is_null) {
		splice_head(e, from);
		abx_buf_addf(e->out, "\n  %s: ", leaf);
		add_scalar(e->out, e->value);
		splice_tail(e, byte_at(e, at.value_end));
	} else {
		splice_head(e, from);
		abx_buf_addf(e->out, "%s: ", leaf);
		add_scalar(e->out, e->value);
		abx_buf_addc(e->out, '\n');
		abx_buf_add(e->out, e->text + begin, from - begin);
		splice_tail(e, from);
	}
	return 0;
}

static bool same_value(const struct abx_yaml_item *a, const struct abx_yaml_item *b)
{
	if (!a || !b)
		return (!a || a->is_null) && (!b || b->is_null);
	return a->value && b->value ? strcmp(a->value, b->value) == 0
				    : !a->value == !b->value && a->is_null == b->is_null;
}

/* Does the new text say the same as the old one, but for the key? */
static int verify(struct edit *e)
{
	struct abx_yaml_items now = {0};
	struct abx_err why = ABX_ERR_INIT;
	int r = e->out->failed ? ABX_EINVAL
			       : abx_yaml_read(e->name, abx_buf_str(e->out), e->out->len, NULL,
					       &now, &why);
	bool good = r == 0;
	const struct abx_yaml_item *item;

	for (size_t i = 0; good && i < e->items.len; i++)
		if (strcmp(e->items.items[i].key, e->key) != 0)
			good = same_value(&e->items.items[i],
					  find_item(&now, e->items.items[i].key));
	for (size_t i = 0; good && i < now.len; i++)
		if (strcmp(now.items[i].key, e->key) != 0)
			good = same_value(find_item(&e->items, now.items[i].key), &now.items[i]);
	item = good ? find_item(&now, e->key) : NULL;
	if (e->value)
		good = good && item && item->value && strcmp(item->value, e->value) == 0;
	else
		good = good && (!item || item->is_null);
	abx_yaml_items_release(&now);
	if (good)
		return 0;
	(void)abx_err_set(e->err, ABX_EINVAL, "%s: cannot write '%s' there", e->name, e->key);
	(void)abx_err_remedy(e->err, "edit the file by hand");
	return ABX_EINVAL;
}

int abx_yaml_edit(const char *name, const char *text, size_t len, const char *key,
		  const char *value, struct abx_buf *ret, struct abx_err *err)
{
	struct edit e = {.name = name,
			 .text = text,
			 .len = len,
			 .key = key,
			 .value = value,
			 .out = ret,
			 .err = err};
	const struct abx_yaml_item *item;
	int r = abx_yaml_read(name, text, len, NULL, &e.items, err);

	if (r < 0)
		return r;
	item = find_item(&e.items, key);
	if (item && value)
		replace_value(&e, item);
	else if (item)
		remove_item(&e, item);
	else if (value)
		r = insert_item(&e);
	else
		abx_buf_add(ret, text, len);
	if (r == 0)
		r = verify(&e);
	abx_yaml_items_release(&e.items);
	return r;
}
