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

static const char *cell_text(const char *cell)
{
	return cell && *cell ? cell : "-";
}

int abx_out_table(const char *const *cells, size_t n_rows, size_t n_columns, struct abx_err *err)
{
	abx_autofree size_t *widths = abx_xcalloc(n_columns, sizeof(*widths));

	for (size_t i = 0; i < n_rows * n_columns; i++) {
		size_t width = text_width(cell_text(cells[i]));

		if (width > widths[i % n_columns])
			widths[i % n_columns] = width;
	}
	for (size_t row = 0; row < n_rows; row++) {
		for (size_t col = 0; col < n_columns; col++) {
			const char *text = cell_text(cells[row * n_columns + col]);
			size_t pad = col + 1 < n_columns ? widths[col] - text_width(text) + 2 : 0;

			(void)printf("%s%*s", text, (int)pad, "");
		}
		(void)putchar('\n');
	}
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

cJSON *abx_json_box(const struct abx_box *box)
{
	cJSON *o = cJSON_CreateObject();

	abx_json_text(o, "id", box->id);
	abx_json_text(o, "name", box->name);
	(void)cJSON_AddNumberToObject(o, "index", box->index);
	abx_json_text(o, "provider", box->provider);
	abx_json_text(o, "sandbox_id", box->sandbox_id);
	abx_json_text(o, "account", box->account);
	abx_json_text(o, "state", abx_box_state_name(box->state));
	abx_json_text(o, "project", box->project);
	abx_json_text(o, "workspace", box->workspace);
	abx_json_text(o, "branch", box->branch);
	abx_json_text(o, "base_commit", box->base_commit);
	abx_json_time(o, "created_at", box->created_at_ms);
	abx_json_time(o, "expires_at", box->expires_at_ms);
	abx_json_text(o, "checkpoint", box->checkpoint);
	(void)cJSON_AddArrayToObject(o, "urls");
	(void)cJSON_AddArrayToObject(o, "agents");
	return o;
}
