/* SPDX-License-Identifier: MIT */
/* The plan of a box: what its first process is told to put together. */
#include "providers/local/local.h"

#include <stdarg.h>

void local_plan_add(struct local_plan *p, const char *key, const char *fmt, ...)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);
	va_list ap;

	abx_buf_addf(&b, "%s:", key);
	va_start(ap, fmt);
	abx_buf_addv(&b, fmt, ap);
	va_end(ap);
	if (p->n + 2 > p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 16;
		char **argv = reallocarray(p->argv, cap, sizeof(*argv));

		if (!argv) {
			p->failed = true;
			return;
		}
		p->argv = argv;
		p->cap = cap;
	}
	p->argv[p->n] = b.failed ? NULL : abx_buf_steal(&b);
	if (p->argv[p->n])
		p->argv[++p->n] = NULL;
	else
		p->failed = true;
}

void local_plan_release(struct local_plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->argv[i]);
	free(p->argv);
	*p = (struct local_plan){0};
}
