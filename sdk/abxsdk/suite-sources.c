/* SPDX-License-Identifier: MIT */
/* Where apt of this machine gets its packages: sources.list(5), both forms. */
#include "abxsdk/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abxsdk/fs.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define FIELD_MAX 4096

struct visitor {
	int (*visit)(void *ctx, const struct abx_apt_source *);
	void *ctx;
};

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (; *words; words += strcspn(words, " \t")) {
		words += strspn(words, " \t");
		if (strncmp(words, word, n) == 0 && strchr(" \t", words[n]))
			return true;
	}
	return false;
}

/* "deb [opt=value ...] URI SUITE COMPONENT...", changed in place. */
static int one_line(const struct visitor *v, char *line)
{
	struct abx_apt_source s = {.signed_by = ""};
	char *save = NULL, *options = NULL, *at;

	line[strcspn(line, "#\n")] = '\0';
	at = strchr(line, '[');
	if (at && strchr(at, ']')) {
		options = at + 1;
		*at = ' ';
		at = strchr(options, ']');
		*at = '\0';
		line[options - 1 - line] = '\0';
		at++;
	} else {
		at = NULL;
	}
	line = strtok_r(line, " \t", &save);
	if (!line || strcmp(line, "deb") != 0)
		return 0;
	s.uri = at ? strtok_r(at, " \t", &save) : strtok_r(NULL, " \t", &save);
	s.suite = s.uri ? strtok_r(NULL, " \t", &save) : NULL;
	s.components = s.suite ? strtok_r(NULL, "", &save) : NULL;
	if (!s.components)
		return 0;
	options = options ? strstr(options, "signed-by=") : NULL;
	if (options) {
		s.signed_by = options + strlen("signed-by=");
		options[strcspn(options, " \t")] = '\0';
	}
	return v->visit(v->ctx, &s);
}

static int read_lines(const struct visitor *v, char *text)
{
	int r = 0;

	while (text && *text && r == 0) {
		char *next = strchr(text, '\n');

		if (next)
			*next++ = '\0';
		r = one_line(v, text);
		text = next;
	}
	return r;
}

struct stanza {
	char types[FIELD_MAX], uris[FIELD_MAX], suites[FIELD_MAX];
	char components[FIELD_MAX], signed_by[FIELD_MAX], enabled[16];
};

static char *field_of(struct stanza *st, const char *line, size_t *ret_size)
{
	const struct {
		const char *name;
		char *value;
		size_t size;
	} fields[] = {
		{"Types:", st->types, sizeof(st->types)},
		{"URIs:", st->uris, sizeof(st->uris)},
		{"Suites:", st->suites, sizeof(st->suites)},
		{"Components:", st->components, sizeof(st->components)},
		{"Signed-By:", st->signed_by, sizeof(st->signed_by)},
		{"Enabled:", st->enabled, sizeof(st->enabled)},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(fields); i++)
		if (strncasecmp(line, fields[i].name, strlen(fields[i].name)) == 0) {
			*ret_size = fields[i].size;
			fields[i].value[0] = '\0';
			return fields[i].value;
		}
	return NULL;
}

static int end_stanza(const struct visitor *v, struct stanza *st)
{
	char *uri, *save = NULL;
	int r = 0;

	if (!has_word(st->types, "deb") || has_word(st->enabled, "no")) {
		memset(st, 0, sizeof(*st));
		return 0;
	}
	st->signed_by[strcspn(st->signed_by, " \t")] = '\0';
	for (uri = strtok_r(st->uris, " \t", &save); uri && r == 0;
	     uri = strtok_r(NULL, " \t", &save)) {
		char suites[FIELD_MAX], *suite, *inner = NULL;

		memcpy(suites, st->suites, sizeof(suites));
		for (suite = strtok_r(suites, " \t", &inner); suite && r == 0;
		     suite = strtok_r(NULL, " \t", &inner)) {
			const struct abx_apt_source s = {uri, suite, st->components, st->signed_by};

			r = v->visit(v->ctx, &s);
		}
	}
	memset(st, 0, sizeof(*st));
	return r;
}

static int read_stanzas(const struct visitor *v, char *text)
{
	struct stanza *st = calloc(1, sizeof(*st));
	char *value = NULL;
	size_t size = 0;
	int r = st ? 0 : -ENOMEM;

	while (text && r == 0) {
		char *next = strchr(text, '\n');

		if (next)
			*next++ = '\0';
		if (!text[strspn(text, " \t")]) {
			r = end_stanza(v, st);
			value = NULL;
		} else if (*text != '#') {
			const char *more = text;

			if (*text != ' ' && *text != '\t') {
				value = field_of(st, text, &size);
				more = strchr(text, ':');
				more = more ? more + 1 : "";
			}
			/* What does not fit is not one of the sources that are looked for. */
			if (value && strlen(value) + strlen(more) + 2 <= size)
				(void)snprintf(value + strlen(value), size - strlen(value), " %s",
					       more + strspn(more, " \t"));
		}
		text = next;
	}
	if (r == 0)
		r = end_stanza(v, st);
	free(st);
	return r;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

static int read_file(const struct visitor *v, int dir_fd, const char *name)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(FILE_MAX_BYTES);
	bool stanzas = ends_in(name, ".sources");

	if ((!stanzas && !ends_in(name, ".list")) || abx_fs_read(dir_fd, name, &b) < 0 || !b.len)
		return 0;
	return stanzas ? read_stanzas(v, b.data) : read_lines(v, b.data);
}

int abx_apt_sources_each(const char *dir, int (*visit)(void *ctx, const struct abx_apt_source *),
			 void *ctx)
{
	const struct visitor v = {visit, ctx};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **names = NULL;
	int r, n, parts;

	if (fd < 0)
		return 0;
	r = read_file(&v, fd, "sources.list");
	parts = openat(fd, "sources.list.d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)close(fd);
	if (parts < 0)
		return r;
	n = scandirat(parts, ".", &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = read_file(&v, parts, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	(void)close(parts);
	return r;
}
