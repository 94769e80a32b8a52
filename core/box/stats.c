/* SPDX-License-Identifier: MIT */
/* What a box uses, and which processes it has. */
#include <string.h>

#include "abxsdk/proc-stat.h"
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

static bool parse_stat(const char *line, struct abx_row *row)
{
	struct abx_proc_stat p;
	char name[80], state[2] = "";

	if (!abx_proc_stat_parse(line, &p))
		return false;
	abx_quote_text(p.name, name, sizeof(name));
	state[0] = p.state;
	add_cell(row, "kind", abx_xstrdup("process"));
	add_cell(row, "pid", abx_xasprintf("%d", p.pid));
	add_cell(row, "state", abx_xstrdup(state));
	add_cell(row, "cpu_ms",
		 abx_xasprintf("%llu", (unsigned long long)(p.ticks * 1000 / TICKS_PER_S)));
	add_cell(row, "mem_bytes",
		 abx_xasprintf("%llu", (unsigned long long)(p.rss_pages * PAGE_BYTES)));
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
	int code = 0, r = abx_exec_text(c->cloud, &c->opts, &c->sandbox, argv, /* user= */ NULL,
					STATS_TIMEOUT_MS, &text, &code, err);

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
