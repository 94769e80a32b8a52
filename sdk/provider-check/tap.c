/* SPDX-License-Identifier: MIT */
/* Test points. */
#include "core/host/text.h"
#include "sdk/provider-check/check.h"

static void point(struct check *c, bool ok, const char *fmt, va_list ap) ABX_PRINTF(3, 0);

static void point(struct check *c, bool ok, const char *fmt, va_list ap)
{
	char text[512], line[512];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	abx_text_line(text, sizeof(text), line, sizeof(line));
	(void)fprintf(c->tap, "%s %u - %s\n", ok ? "ok" : "not ok", ++c->n, line);
	(void)fflush(c->tap);
	c->failed += !ok;
}

bool tap_ok(struct check *c, bool ok, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	point(c, ok, fmt, ap);
	va_end(ap);
	return ok;
}

bool tap_r(struct check *c, int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	point(c, r == 0, fmt, ap);
	va_end(ap);
	if (r != 0)
		tap_note(c, "%s: %s", abx_err_name(r), c->err.text);
	return r == 0;
}

bool tap_code(struct check *c, int r, int wanted, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	point(c, r == wanted, fmt, ap);
	va_end(ap);
	if (r != wanted)
		tap_note(c, "got %s, wanted %s: %s", abx_err_name(r), abx_err_name(wanted),
			 r < 0 ? c->err.text : "");
	return r == wanted;
}

void tap_note(struct check *c, const char *fmt, ...)
{
	char text[1536], line[1536];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	abx_text_line(text, sizeof(text), line, sizeof(line));
	(void)fprintf(c->tap, "# %s\n", line);
	(void)fflush(c->tap);
}

void tap_bail(struct check *c, const char *why)
{
	tap_note(c, "the rest was not tried: %s", why);
}

void tap_plan(struct check *c)
{
	(void)fprintf(c->tap, "1..%u\n", c->n);
	(void)fflush(c->tap);
}
