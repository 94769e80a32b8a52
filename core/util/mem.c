/* SPDX-License-Identifier: MIT */
/* Memory for the program's own control structures. */
#include "core/util/mem.h"

#include <string.h>

static void out_of_memory(void) __attribute__((noreturn));

static void out_of_memory(void)
{
	static const char text[] = "agentbox: out of memory\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

void *abx_xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *abx_xreallocarray(void *p, size_t n, size_t size)
{
	void *q = reallocarray(p, n ? n : 1, size ? size : 1);

	if (!q)
		out_of_memory();
	return q;
}

char *abx_xstrdup(const char *s)
{
	char *p = strdup(s);

	if (!p)
		out_of_memory();
	return p;
}

char *abx_xstrndup(const char *s, size_t n)
{
	char *p = strndup(s, n);

	if (!p)
		out_of_memory();
	return p;
}

char *abx_xstrdup_null(const char *s)
{
	return s ? abx_xstrdup(s) : NULL;
}

void abx_xreplace(char **at, const char *s)
{
	char *copy = abx_xstrdup_null(s);

	free(*at);
	*at = copy;
}

char *abx_xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	if (vasprintf(&p, fmt, ap) < 0)
		out_of_memory();
	va_end(ap);
	return p;
}

void abx_strv_take(struct abx_strv *v, char *s)
{
	if (v->len + 2 > v->cap) {
		v->cap = v->cap ? v->cap * 2 : 8;
		v->items = abx_xreallocarray(v->items, v->cap, sizeof(*v->items));
	}
	v->items[v->len++] = s;
	v->items[v->len] = NULL;
}

void abx_strv_add(struct abx_strv *v, const char *s)
{
	abx_strv_take(v, abx_xstrdup(s));
}

void abx_strv_release(struct abx_strv *v)
{
	for (size_t i = 0; i < v->len; i++)
		free(v->items[i]);
	free(v->items);
	memset(v, 0, sizeof(*v));
}
