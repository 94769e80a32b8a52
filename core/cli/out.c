/* SPDX-License-Identifier: MIT */
/* What goes to stdout. */
#include <string.h>

#include "abxsdk/buf.h"
#include "core/cli/cmd.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

static int flushed(struct abx_err *err)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	/* Nobody is left to read it: head, less. */
	if (errno == EPIPE)
		return 0;
	return abx_err_errno(err, errno, "write to stdout");
}

int abx_out_json(cJSON *doc, struct abx_err *err)
{
	abx_autofree char *text = cJSON_Print(doc);

	cJSON_Delete(doc);
	if (!text)
		return abx_err_set(err, ABX_ENOMEM, "out of memory for the JSON document");
	(void)puts(text);
	return flushed(err);
}

int abx_out_line(struct abx_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)putchar('\n');
	return flushed(err);
}

/* Columns on a terminal: one for each character, not for each byte. */
static size_t text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* Names come from anywhere: a cell is one line, and no control sequence. */
static char *cell_text(const char *cell)
{
	const size_t size = cell ? strlen(cell) * 4 + 8 : 0;
	char *text;

	if (!cell || !*cell)
		return abx_xstrdup("-");
	text = abx_xcalloc(1, size);
	abx_show_text(cell, text, size);
	return text;
}

int abx_out_table(const char *const *cells, size_t n_rows, size_t n_columns, struct abx_err *err)
{
	abx_autofree size_t *widths = abx_xcalloc(n_columns, sizeof(*widths));
	struct abx_strv texts = {0};

	for (size_t i = 0; i < n_rows * n_columns; i++) {
		size_t width;

		abx_strv_take(&texts, cell_text(cells[i]));
		width = text_width(texts.items[i]);
		if (width > widths[i % n_columns])
			widths[i % n_columns] = width;
	}
	for (size_t i = 0; i < texts.len; i++) {
		const size_t col = i % n_columns;
		const bool last = col + 1 == n_columns;
		size_t pad = last ? 0 : widths[col] - text_width(texts.items[i]) + 2;

		(void)printf("%s%*s%s", texts.items[i], (int)pad, "", last ? "\n" : "");
	}
	abx_strv_release(&texts);
	return flushed(err);
}

void abx_json_text(cJSON *object, const char *key, const char *text)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(16 << 20);

	if (!text) {
		(void)cJSON_AddNullToObject(object, key);
		return;
	}
	while (*text) {
		size_t n = abx_utf8_len((const unsigned char *)text);

		if (n)
			abx_buf_add(&b, text, n);
		else
			abx_buf_addf(&b, "\\x%02x", (unsigned char)*text);
		text += n ? n : 1;
	}
	(void)cJSON_AddStringToObject(object, key, abx_buf_str(&b));
}

void abx_json_time(cJSON *object, const char *key, int64_t wall_ms)
{
	char text[ABX_TIME_TEXT_BYTES];

	abx_time_text(wall_ms, text);
	abx_json_text(object, key, wall_ms ? text : NULL);
}

cJSON *abx_json_error(const struct abx_err *err, const char *provider, const char *box)
{
	cJSON *e = cJSON_CreateObject();

	abx_json_text(e, "code", abx_err_name(err->code));
	abx_json_text(e, "message", err->text);
	abx_json_text(e, "remedy", err->remedy[0] ? err->remedy : NULL);
	abx_json_text(e, "provider", provider);
	abx_json_text(e, "box", box);
	(void)cJSON_AddBoolToObject(e, "retryable", abx_err_retryable(err->code));
	abx_json_text(e, "request_id", err->request_id[0] ? err->request_id : NULL);
	return e;
}

int abx_out_removed(const struct abx_cli *cli, const char *kind, const char *name,
		    struct abx_err *err)
{
	cJSON *doc;

	if (!cli->json)
		return abx_out_line(err, "%s '%s' is removed", kind, name);
	doc = cJSON_CreateObject();
	abx_json_text(doc, "name", name);
	return abx_out_json(doc, err);
}
