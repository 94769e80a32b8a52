/* SPDX-License-Identifier: MIT */
/* A YAML mapping as a list of dotted keys. */
#include "core/state/config-yaml.h"

#include <string.h>
#include <yaml.h>

#include "abxsdk/buf.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

/* Reads events one by one: nothing is expanded, and memory is bounded by the text. */
struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the current one */
	bool have_event;
	const char *name, *root, *text;
	struct abx_yaml_items out;
	const char *section; /* looked for by abx_yaml_find_section() */
	struct abx_yaml_section found;
	struct abx_err *err;
};

void abx_yaml_items_release(struct abx_yaml_items *l)
{
	for (size_t i = 0; i < l->len; i++) {
		free(l->items[i].key);
		free(l->items[i].value);
	}
	free(l->items);
	for (size_t i = 0; i < l->n_others; i++)
		free(l->others[i].key);
	free(l->others);
	memset(l, 0, sizeof(*l));
}

static int bad_at(struct reader *r, size_t line, const char *why)
{
	return abx_err_set(r->err, ABX_EINVAL, "%s: line %zu: %s", r->name, line + 1, why);
}

static int bad(struct reader *r, const char *why)
{
	return bad_at(r, r->event.start_mark.line, why);
}

static size_t problem_line(const struct reader *r)
{
	size_t line = 0;

	/* What is not text at all has an offset and no mark. */
	if (r->parser.error != YAML_READER_ERROR)
		return r->parser.problem_mark.line;
	for (size_t i = 0; i < r->parser.problem_offset; i++)
		line += r->text[i] == '\n';
	return line;
}

static int next(struct reader *r)
{
	if (r->have_event)
		yaml_event_delete(&r->event);
	r->have_event = false;
	if (!yaml_parser_parse(&r->parser, &r->event)) {
		const char *why = r->parser.problem ? r->parser.problem : "not readable";

		return bad_at(r, problem_line(r), why);
	}
	r->have_event = true;
	return 0;
}

static const char *scalar_text(const yaml_event_t *e)
{
	return (const char *)e->data.scalar.value;
}

static bool scalar_is_null(const yaml_event_t *e)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

	if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (size_t i = 0; i < ABX_N_ELEMENTS(nulls); i++)
		if (strcmp(scalar_text(e), nulls[i]) == 0)
			return true;
	return false;
}

static bool scalar_has_nul(const yaml_event_t *e)
{
	return strlen(scalar_text(e)) != e->data.scalar.length;
}

/* Pass over the current node, whatever it is. */
static int skip_node(struct reader *r)
{
	unsigned int depth = 0;

	for (;;) {
		int code;

		switch (r->event.type) {
		case YAML_MAPPING_START_EVENT:
		case YAML_SEQUENCE_START_EVENT:
			if (++depth > ABX_YAML_MAX_DEPTH)
				return bad(r, "nested too deeply");
			break;
		case YAML_MAPPING_END_EVENT:
		case YAML_SEQUENCE_END_EVENT:
			depth--;
			break;
		case YAML_NO_EVENT:
		case YAML_STREAM_START_EVENT:
		case YAML_STREAM_END_EVENT:
		case YAML_DOCUMENT_START_EVENT:
		case YAML_DOCUMENT_END_EVENT:
		case YAML_ALIAS_EVENT:
		case YAML_SCALAR_EVENT:
			break;
		}
		if (depth == 0)
			return 0;
		code = next(r);
		if (code < 0)
			return code;
	}
}

static int add_item(struct reader *r, const struct abx_yaml_item *item)
{
	for (size_t i = 0; i < r->out.len; i++) {
		const char *old = r->out.items[i].key;
		size_t n = strlen(old), m = strlen(item->key), shorter = n < m ? n : m;

		/* `a.b` beside `a: {b: }`, or a value where there is a section too. */
		if (strncmp(old, item->key, shorter) == 0 &&
		    (n == m || (n < m ? item->key : old)[shorter] == '.')) {
			char shown[128], why[192];

			abx_quote_text(item->key, shown, sizeof(shown));
			(void)snprintf(why, sizeof(why), "'%s' is there twice", shown);
			return bad_at(r, item->line - 1, why);
		}
	}
	if (r->out.len >= 4096)
		return bad_at(r, item->line - 1, "too many keys");
	r->out.items = abx_xreallocarray(r->out.items, r->out.len + 1, sizeof(*r->out.items));
	r->out.items[r->out.len] = *item;
	r->out.items[r->out.len].key = abx_xstrdup(item->key);
	r->out.items[r->out.len++].value = abx_xstrdup_null(item->value);
	return 0;
}

/* A list of plain texts, joined by commas; *ret stays NULL for any other list. */
static int read_list(struct reader *r, char **ret, size_t *ret_end)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(ABX_YAML_MAX_BYTES);
	bool fits = true, first = true;
	int code = next(r);

	for (; code == 0 && r->event.type != YAML_SEQUENCE_END_EVENT; code = next(r)) {
		if (r->event.type == YAML_ALIAS_EVENT)
			return bad(r, "aliases are not understood here");
		if (r->event.type != YAML_SCALAR_EVENT || strchr(scalar_text(&r->event), ',')) {
			fits = false;
			code = skip_node(r);
			if (code < 0)
				return code;
		} else if (!scalar_has_nul(&r->event)) {
			abx_buf_addf(&b, "%s%s", first ? "" : ",", scalar_text(&r->event));
		}
		*ret_end = r->event.end_mark.index;
		first = false;
	}
	if (code < 0)
		return code;
	if (r->event.end_mark.index > r->event.start_mark.index)
		*ret_end = r->event.end_mark.index;
	*ret = fits ? abx_buf_steal(&b) : NULL;
	return 0;
}

static int read_mapping(struct reader *r, const char *prefix, unsigned int depth, bool in_flow);

static int read_scalar(struct reader *r, struct abx_yaml_item *item)
{
	if (scalar_has_nul(&r->event))
		return bad(r, "a NUL byte in a value");
	item->is_null = scalar_is_null(&r->event);
	item->value_at = r->event.start_mark.index;
	item->value_end = r->event.end_mark.index;
	if (!item->is_null)
		item->value = abx_xstrdup(scalar_text(&r->event));
	return 0;
}

static int read_value(struct reader *r, struct abx_yaml_item *item, unsigned int depth)
{
	bool flow;
	int code;

	switch (r->event.type) {
	case YAML_MAPPING_START_EVENT:
		flow = item->in_flow ||
		       r->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
		return read_mapping(r, item->key, depth + 1, flow);
	case YAML_SEQUENCE_START_EVENT:
		item->value_at = r->event.start_mark.index;
		item->value_end = r->event.end_mark.index;
		item->is_list = true;
		code = read_list(r, &item->value, &item->value_end);
		break;
	case YAML_SCALAR_EVENT:
		code = read_scalar(r, item);
		break;
	case YAML_ALIAS_EVENT:
		return bad(r, "aliases are not understood here");
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
	default:
		return bad(r, "unexpected structure");
	}
	return code < 0 ? code : add_item(r, item);
}

/* The current event is a key. */
static int read_key(struct reader *r, const char *prefix, char **ret)
{
	const char *text;

	if (r->event.type != YAML_SCALAR_EVENT)
		return bad(r, "a key must be text");
	text = scalar_text(&r->event);
	if (!*text || scalar_has_nul(&r->event))
		return bad(r, "an empty key");
	if (strcmp(text, "<<") == 0)
		return bad(r, "merge keys are not understood here");
	*ret = *prefix ? abx_xasprintf("%s.%s", prefix, text) : abx_xstrdup(text);
	return 0;
}

static int read_mapping(struct reader *r, const char *prefix, unsigned int depth, bool in_flow)
{
	int code = next(r);

	if (depth > ABX_YAML_MAX_DEPTH)
		return bad(r, "nested too deeply");
	while (code == 0 && r->event.type != YAML_MAPPING_END_EVENT) {
		struct abx_yaml_item item = {.in_flow = in_flow};

		code = read_key(r, prefix, &item.key);
		if (code == 0) {
			item.line = (unsigned int)r->event.start_mark.line + 1;
			item.key_at = r->event.start_mark.index;
			code = next(r);
		}
		if (code == 0)
			code = read_value(r, &item, depth);
		if (code == 0)
			code = next(r);
		free(item.key);
		free(item.value);
	}
	return code;
}

/* The current event is the value of the section that is edited. */
static void note_section(struct reader *r, size_t key_at)
{
	r->found.found = true;
	r->found.key_at = key_at;
	r->found.value_at = r->event.start_mark.index;
	r->found.value_end = r->event.end_mark.index;
	r->found.is_null = r->event.type == YAML_SCALAR_EVENT && scalar_is_null(&r->event);
	r->found.in_flow = r->event.type == YAML_MAPPING_START_EVENT &&
			   r->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
}

static void note_other(struct reader *r, const char *key, unsigned int line)
{
	struct abx_yaml_items *out = &r->out;

	if (r->section)
		return;
	out->others = abx_xreallocarray(out->others, out->n_others + 1, sizeof(*out->others));
	out->others[out->n_others].key = abx_xstrdup(key);
	out->others[out->n_others++].line = line;
}

/* Keys of the top level, when only one of them is wanted. */
static int read_only(struct reader *r, const char *wanted)
{
	struct abx_strv seen = {NULL, 0, 0};
	int code = next(r);

	while (code == 0 && r->event.type != YAML_MAPPING_END_EVENT) {
		abx_autofree char *key = NULL;
		size_t key_at = r->event.start_mark.index;
		unsigned int line = (unsigned int)r->event.start_mark.line + 1;

		code = read_key(r, "", &key);
		for (size_t i = 0; code == 0 && i < seen.len; i++)
			if (strcmp(seen.items[i], key) == 0)
				code = bad(r, "a key that is there twice");
		if (code == 0 && seen.len >= 4096)
			code = bad(r, "too many keys");
		if (code < 0)
			break;
		abx_strv_add(&seen, key);
		code = next(r);
		if (code < 0)
			break;
		if (r->section && strcmp(key, wanted) == 0) {
			note_section(r, key_at);
			code = skip_node(r);
		} else if (strcmp(key, wanted) != 0) {
			note_other(r, key, line);
			code = skip_node(r);
		} else if (r->event.type == YAML_MAPPING_START_EVENT) {
			code = read_mapping(r, "", 1, false);
		} else if (r->event.type != YAML_SCALAR_EVENT || !scalar_is_null(&r->event)) {
			code = bad(r, "must be a mapping of keys to values");
		}
		if (code == 0)
			code = next(r);
	}
	abx_strv_release(&seen);
	return code;
}

static int read_document(struct reader *r)
{
	const char *wanted = r->section ? r->section : r->root;
	int code = next(r); /* start of the stream */

	if (code == 0)
		code = next(r);
	if (code < 0 || r->event.type == YAML_STREAM_END_EVENT)
		return code;
	code = next(r);
	if (code < 0)
		return code;
	if (r->event.type == YAML_MAPPING_START_EVENT) {
		bool flow = r->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;

		code = wanted ? read_only(r, wanted) : read_mapping(r, "", 1, flow);
	} else if (r->event.type != YAML_SCALAR_EVENT || !scalar_is_null(&r->event)) {
		code = bad(r, "not a mapping of keys to values");
	}
	if (code == 0)
		code = next(r); /* end of the document */
	if (code == 0)
		code = next(r);
	if (code == 0 && r->event.type != YAML_STREAM_END_EVENT)
		code = bad(r, "a second document");
	return code;
}

static int run(struct reader *r, const char *text, size_t len)
{
	int code;

	if (len > ABX_YAML_MAX_BYTES)
		return abx_err_set(r->err, ABX_EINVAL, "%s: larger than %u bytes", r->name,
				   ABX_YAML_MAX_BYTES);
	if (!yaml_parser_initialize(&r->parser))
		return abx_err_set(r->err, ABX_ENOMEM, "%s: out of memory", r->name);
	yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
	/* libyaml would count a byte order mark as a column of the first line. */
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	}
	r->text = text;
	yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, len);
	code = read_document(r);
	if (r->have_event)
		yaml_event_delete(&r->event);
	yaml_parser_delete(&r->parser);
	return code;
}

int abx_yaml_read(const char *name, const char *text, size_t len, const char *root,
		  struct abx_yaml_items *ret, struct abx_err *err)
{
	struct reader r = {.name = name, .root = root, .err = err};
	int code = run(&r, text, len);

	if (code < 0) {
		abx_yaml_items_release(&r.out);
		return code;
	}
	*ret = r.out;
	return 0;
}

int abx_yaml_find_section(const char *name, const char *text, size_t len, const char *key,
			  struct abx_yaml_section *ret, struct abx_err *err)
{
	struct reader r = {.name = name, .section = key, .err = err};
	int code = run(&r, text, len);

	if (code == 0)
		*ret = r.found;
	return code;
}
