/* SPDX-License-Identifier: MIT */
/* What a box uses, and which processes it has. */
#include <string.h>

#include "core/box/copy-io.h"
#include "core/box/exec-text.h"
#include "core/box/files.h"
#include "core/box/lifecycle.h"
#include "core/box/running.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define STATS_TIMEOUT_MS 30000
#define PROC_BYTES_MAX ((size_t)16 << 20)
/* What every Linux tells its programs, and what its pages are where boxes run. */
#define TICKS_PER_S 100
#define PAGE_BYTES 4096ULL

static const char script[] = "for f in /proc/[0-9]*/stat; do\n"
			     "	read -r line <\"$f\" && printf '%s\\n' \"$line\"\n"
			     "done 2>/dev/null\n"
			     "exit 0\n";

static void add_cell(struct abx_row *row, const char *key, char *value)
{
	row->cells = abx_xreallocarray(row->cells, row->len + 1, sizeof(*row->cells));
	row->cells[row->len].key = abx_xstrdup(key);
	row->cells[row->len++].value = value;
}

/* The n-th field of what follows the name in /proc/PID/stat, counted from 0. */
static bool field(const char *at, unsigned int n, uint64_t *ret)
{
	char digits[24];
	size_t len;

	for (; n; n--) {
		at = strchr(at, ' ');
		if (!at)
			return false;
		at++;
	}
	len = strcspn(at, " \n");
	if (len >= sizeof(digits))
		return false;
	memcpy(digits, at, len);
	digits[len] = '\0';
	return abx_parse_u64(digits, UINT64_MAX, ret);
}

/* "12 (name) S 1 ...": the name may hold anything, also ")". */
static bool parse_stat(const char *line, struct abx_row *row)
{
	const char *open = strchr(line, '('), *close = strrchr(line, ')');
	uint64_t pid = 0, utime = 0, stime = 0, pages = 0;
	char digits[24], name[80], state[2] = "";
	abx_autofree char *raw = NULL;

	if (!open || !close || close < open || close[1] != ' ' || open - line > 20)
		return false;
	memcpy(digits, line, (size_t)(open - line));
	digits[open - line] = '\0';
	digits[strcspn(digits, " ")] = '\0';
	if (!abx_parse_u64(digits, UINT32_MAX, &pid) || !field(close + 2, 11, &utime) ||
	    !field(close + 2, 12, &stime) || !field(close + 2, 21, &pages))
		return false;
	raw = abx_xstrndup(open + 1, (size_t)(close - open - 1));
	abx_quote_text(raw, name, sizeof(name));
	state[0] = close[2];
	add_cell(row, "kind", abx_xstrdup("process"));
	add_cell(row, "pid", abx_xasprintf("%llu", (unsigned long long)pid));
	add_cell(row, "state", abx_xstrdup(state));
	add_cell(row, "cpu_ms",
		 abx_xasprintf("%llu", (unsigned long long)((utime + stime) * 1000 / TICKS_PER_S)));
	add_cell(row, "mem_bytes", abx_xasprintf("%llu", pages * PAGE_BYTES));
	add_cell(row, "command", abx_xstrdup(name));
	return true;
}

static void parse_proc(struct abx_buf *text, struct abx_row_list *ret)
{
	char *at = text->data;

	while (at && *at) {
		char *end = strchr(at, '\n');
		struct abx_row row = {0};

		if (end)
			*end = '\0';
		if (parse_stat(at, &row)) {
			ret->items =
				abx_xreallocarray(ret->items, ret->len + 1, sizeof(*ret->items));
			ret->items[ret->len++] = row;
		}
		at = end ? end + 1 : NULL;
	}
}

static bool has_processes(const struct abx_row_list *rows)
{
	for (size_t i = 0; i < rows->len; i++) {
		const char *kind = abx_row_get(&rows->items[i], "kind");

		if (kind && strcmp(kind, "process") == 0)
			return true;
	}
	return false;
}

static int ask_box(struct abx_copier *c, struct abx_row_list *ret, struct abx_err *err)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(PROC_BYTES_MAX);
	int code = 0, r = abx_exec_text(c->cloud, &c->opts, &c->sandbox, argv, STATS_TIMEOUT_MS,
					&text, &code, err);

	if (r < 0)
		return r;
	if (code)
		return abx_err_set(err, ABX_EREMOTE,
				   "the box could not list its processes (exit code %d)", code);
	parse_proc(&text, ret);
	return 0;
}

int abx_box_stats(struct abx_app *app, struct abx_box *box, bool processes,
		  struct abx_row_list *ret, struct abx_err *err)
{
	struct abx_row_list rows = {0};
	struct abx_copier c = {.app = app};
	int r = abx_lifecycle_check_whole(box, err);

	if (r == 0)
		r = abx_app_cloud_of(app, box, &c.cloud, err);
	if (r < 0)
		return r;
	c.opts = (struct abx_call_opts){.timeout_ms = STATS_TIMEOUT_MS, .box_id = box->id};
	c.sandbox = abx_cloud_sandbox(box);
	if (!processes || abx_cloud_table(c.cloud)->stats)
		r = abx_cloud_stats(c.cloud, &c.opts, &c.sandbox, &rows, err);
	if (r == 0 && processes && !has_processes(&rows))
		r = ask_box(&c, &rows, err);
	if (r < 0) {
		abx_row_list_release(&rows);
		return abx_box_blame(app, box, r, err);
	}
	*ret = rows;
	return 0;
}
