/* SPDX-License-Identifier: MIT */
/* KEY=value files: secrets.env, --env-file. */
#include "core/state/envfile.h"

#include <fcntl.h>
#include <string.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "core/util/parse.h"

void abx_env_release(struct abx_env *e)
{
	for (size_t i = 0; i < e->len; i++) {
		explicit_bzero(e->items[i].value, strlen(e->items[i].value));
		free(e->items[i].key);
		free(e->items[i].value);
	}
	free(e->items);
	memset(e, 0, sizeof(*e));
}

static struct abx_kv_owned *find(const struct abx_env *e, const char *key)
{
	for (size_t i = 0; i < e->len; i++)
		if (strcmp(e->items[i].key, key) == 0)
			return &e->items[i];
	return NULL;
}

void abx_env_set(struct abx_env *e, const char *key, const char *value)
{
	struct abx_kv_owned *item = find(e, key);

	if (item) {
		abx_xreplace(&item->value, value);
		return;
	}
	e->items = abx_xreallocarray(e->items, e->len + 1, sizeof(*e->items));
	e->items[e->len].key = abx_xstrdup(key);
	e->items[e->len++].value = abx_xstrdup(value);
}

void abx_env_unset(struct abx_env *e, const char *key)
{
	struct abx_kv_owned *item = find(e, key);
	size_t after;

	if (!item)
		return;
	free(item->key);
	free(item->value);
	after = e->len - (size_t)(item - e->items) - 1;
	memmove(item, item + 1, after * sizeof(*item));
	e->len--;
}

const char *abx_env_get(const struct abx_env *e, const char *key)
{
	const struct abx_kv_owned *item = find(e, key);

	return item ? item->value : NULL;
}

static bool name_start(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool name_char(char c)
{
	return name_start(c) || (c >= '0' && c <= '9');
}

bool abx_env_key_ok(const char *key)
{
	if (!name_start(*key))
		return false;
	while (name_char(*key))
		key++;
	return *key == '\0';
}

struct scan {
	const char *at, *end, *name;
	unsigned int line;
	struct abx_err *err;
};

static int bad(const struct scan *s, unsigned int line, const char *why)
{
	return abx_err_set(s->err, ABX_EINVAL, "%s: line %u: %s", s->name, line, why);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool at_line_end(const struct scan *s)
{
	return s->at == s->end || *s->at == '\n' ||
	       (*s->at == '\r' && (s->at + 1 == s->end || s->at[1] == '\n'));
}

static void skip_blanks(struct scan *s)
{
	while (s->at < s->end && is_blank(*s->at))
		s->at++;
}

static void skip_line(struct scan *s)
{
	while (s->at < s->end && *s->at != '\n')
		s->at++;
	if (s->at < s->end)
		s->at++;
	s->line++;
}

static void scan_bare(struct scan *s, struct abx_buf *value)
{
	const char *begin = s->at, *end = s->at;

	while (!at_line_end(s)) {
		if (*s->at == '#' && is_blank(s->at[-1]))
			break;
		s->at++;
		if (!is_blank(s->at[-1]))
			end = s->at;
	}
	abx_buf_add(value, begin, (size_t)(end - begin));
}

static void scan_escape(struct scan *s, struct abx_buf *value)
{
	static const char from[] = "nrt\"\\$`", to[] = "\n\r\t\"\\$`";
	const char *found = s->at + 1 < s->end ? strchr(from, s->at[1]) : NULL;

	if (found && *found) {
		abx_buf_addc(value, to[found - from]);
		s->at += 2;
	} else {
		abx_buf_addc(value, *s->at++);
	}
}

/* The lines of a quoted value in a file with CRLF ends are meant to end in LF. */
static void drop_cr(struct abx_buf *value)
{
	size_t to = 0;

	for (size_t i = 0; i < value->len; i++)
		if (value->data[i] != '\r' || i + 1 == value->len || value->data[i + 1] != '\n')
			value->data[to++] = value->data[i];
	value->len = to;
	if (value->data)
		value->data[to] = '\0';
}

static int scan_quoted(struct scan *s, struct abx_buf *value)
{
	const char quote = *s->at++;
	unsigned int first = s->line;
	bool raw_newline = false;

	while (s->at < s->end && *s->at != quote) {
		if (*s->at == '\n') {
			s->line++;
			raw_newline = true;
		}
		if (quote == '"' && *s->at == '\\')
			scan_escape(s, value);
		else
			abx_buf_addc(value, *s->at++);
	}
	if (s->at == s->end)
		return bad(s, first, "the quote is not closed");
	s->at++;
	if (!at_line_end(s) && !is_blank(*s->at))
		return bad(s, s->line, "text behind the closing quote");
	skip_blanks(s);
	if (!at_line_end(s) && *s->at != '#')
		return bad(s, s->line, "text behind the closing quote");
	while (!at_line_end(s))
		s->at++;
	if (raw_newline && s->at < s->end && *s->at == '\r')
		drop_cr(value);
	return 0;
}

static int scan_name(struct scan *s, char **ret)
{
	const char *begin;

	if (s->end - s->at > 7 && strncmp(s->at, "export", 6) == 0 && is_blank(s->at[6])) {
		const char *after = s->at + 6;

		/* `export = 1` is a variable of that name. */
		while (after < s->end && is_blank(*after))
			after++;
		if (after < s->end && *after != '=')
			s->at = after;
	}
	begin = s->at;
	while (s->at < s->end && name_char(*s->at))
		s->at++;
	if (s->at == begin || !name_start(*begin))
		return bad(s, s->line,
			   "no name of a variable (A-Z, a-z, 0-9 and _, not "
			   "beginning with a digit)");
	*ret = abx_xstrndup(begin, (size_t)(s->at - begin));
	skip_blanks(s);
	if (s->at == s->end || *s->at != '=')
		return bad(s, s->line,
			   at_line_end(s) ? "no = behind the name"
					  : "a name has only A-Z, a-z, 0-9 and _");
	s->at++;
	return 0;
}

static int scan_assignment(struct scan *s, struct abx_env *e)
{
	abx_auto(abx_buf) struct abx_buf value = ABX_BUF_INIT(ABX_ENV_FILE_MAX_BYTES);
	abx_autofree char *name = NULL;
	int r = scan_name(s, &name);

	if (r < 0)
		return r;
	skip_blanks(s);
	if (s->at < s->end && (*s->at == '"' || *s->at == '\''))
		r = scan_quoted(s, &value);
	else
		scan_bare(s, &value);
	if (r < 0)
		return r;
	if (value.failed)
		return bad(s, s->line, "the value is too long");
	if (e->len >= ABX_ENV_MAX_VARIABLES)
		return bad(s, s->line, "too many variables");
	abx_env_set(e, name, abx_buf_str(&value));
	return 0;
}

static int begin_scan(struct scan *s, const char *name, const char *text, size_t len,
		      struct abx_err *err)
{
	const char *nul = len ? memchr(text, '\0', len) : NULL;

	*s = (struct scan){text, text + len, name, 1, err};
	if (nul) {
		for (const char *at = text; at < nul; at++)
			s->line += *at == '\n';
		return bad(s, s->line, "a NUL byte");
	}
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		s->at += 3;
	return 0;
}

/* A line, and those that its value goes on over. */
static int scan_lines(struct scan *s, struct abx_env *e)
{
	int r = 0;

	skip_blanks(s);
	if (!at_line_end(s) && *s->at != '#')
		r = scan_assignment(s, e);
	skip_line(s);
	return r;
}

int abx_env_parse(struct abx_env *e, const char *name, const char *text, size_t len,
		  struct abx_err *err)
{
	struct scan s;
	int r = begin_scan(&s, name, text, len, err);

	while (r == 0 && s.at < s.end)
		r = scan_lines(&s, e);
	return r;
}

static void format_value(struct abx_buf *b, const char *value)
{
	if (!strchr(value, '\'')) {
		abx_buf_addf(b, "'%s'", value);
		return;
	}
	abx_buf_addc(b, '"');
	for (; *value; value++) {
		if (strchr("\"\\$`", *value))
			abx_buf_addc(b, '\\');
		abx_buf_addc(b, *value);
	}
	abx_buf_addc(b, '"');
}

static void add_assignment(struct abx_buf *b, const char *key, const char *value)
{
	abx_buf_addf(b, "%s=", key);
	format_value(b, value);
	abx_buf_addc(b, '\n');
}

int abx_env_edit(const char *name, const char *text, size_t len, const char *key, const char *value,
		 struct abx_buf *ret, struct abx_err *err)
{
	struct scan s;
	int r = begin_scan(&s, name, text, len, err);

	if (r == 0)
		abx_buf_add(ret, text, (size_t)(s.at - text));
	while (r == 0 && s.at < s.end) {
		const char *begin = s.at;
		struct abx_env one = {NULL, 0};

		r = scan_lines(&s, &one);
		if (r == 0 && !abx_env_get(&one, key))
			abx_buf_add(ret, begin, (size_t)(s.at - begin));
		abx_env_release(&one);
	}
	if (r < 0)
		return r;
	if (value && ret->len && ret->data[ret->len - 1] != '\n')
		abx_buf_addc(ret, '\n');
	if (value)
		add_assignment(ret, key, value);
	return ret->failed ? abx_err_set(err, ABX_EINVAL, "%s: the file is too long", name) : 0;
}

int abx_env_load(struct abx_env *e, const char *path, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_ENV_FILE_MAX_BYTES);
	int r = abx_fs_read(AT_FDCWD, path, &text);

	if (r < 0)
		return abx_err_errno(err, r, "read '%s'", path);
	r = abx_env_parse(e, path, abx_buf_str(&text), text.len, err);
	if (text.data)
		explicit_bzero(text.data, text.len);
	return r;
}

int abx_env_add_arg(struct abx_env *e, const char *arg, struct abx_err *err)
{
	const char *equals = strchr(arg, '='), *value;
	abx_autofree char *key =
		equals ? abx_xstrndup(arg, (size_t)(equals - arg)) : abx_xstrdup(arg);
	char shown[64];

	if (!abx_env_key_ok(key)) {
		abx_quote_text(key, shown, sizeof(shown));
		return abx_err_set(err, ABX_EUSAGE, "'%s' is not the name of a variable", shown);
	}
	value = equals ? equals + 1 : secure_getenv(key);
	if (!value) {
		(void)abx_err_set(err, ABX_EUSAGE, "variable '%s' is not set here", key);
		(void)abx_err_remedy(err, "give it a value: %s=...", key);
		return ABX_EUSAGE;
	}
	abx_env_set(e, key, value);
	return 0;
}

int abx_env_collect(struct abx_env *e, const struct abx_strv *files, const struct abx_strv *args,
		    struct abx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < files->len && r == 0; i++)
		r = abx_env_load(e, files->items[i], err);
	for (size_t i = 0; i < args->len && r == 0; i++)
		r = abx_env_add_arg(e, args->items[i], err);
	return r;
}

char *abx_env_format(const struct abx_env *e)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(SIZE_MAX / 4);
	char *text;

	for (size_t i = 0; i < e->len; i++)
		add_assignment(&b, e->items[i].key, e->items[i].value);
	text = abx_buf_steal(&b);
	return text ? text : abx_xstrdup("");
}

struct abx_kv *abx_env_kv(const struct abx_env *e)
{
	struct abx_kv *kv = abx_xcalloc(e->len, sizeof(*kv));

	for (size_t i = 0; i < e->len; i++) {
		kv[i].key = e->items[i].key;
		kv[i].value = e->items[i].value;
	}
	return kv;
}
