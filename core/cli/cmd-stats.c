/* SPDX-License-Identifier: MIT */
/* agentbox stats */
#include <string.h>

#include "core/box/files.h"
#include "core/box/select.h"
#include "core/cli/cells.h"
#include "core/util/mem.h"

static int print_json(const struct abx_box *box, const struct abx_row_list *rows,
		      struct abx_err *err)
{
	cJSON *o = cJSON_CreateObject(), *processes = cJSON_CreateArray(), *own = NULL;

	abx_json_text(o, "id", box->id);
	abx_json_text(o, "name", box->name);
	abx_json_text(o, "state", abx_box_state_name(box->state));
	for (size_t i = 0; i < rows->len; i++) {
		const struct abx_row *row = &rows->items[i];

		if (abx_row_is(row, "process"))
			(void)cJSON_AddItemToArray(processes, abx_cell_json(row, "kind"));
		else if (!own && abx_row_is(row, "box"))
			own = abx_cell_json(row, "kind");
	}
	(void)cJSON_AddItemToObject(o, "stats", own ? own : cJSON_CreateObject());
	(void)cJSON_AddItemToObject(o, "processes", processes);
	return abx_out_json(o, err);
}

static void print_row(const struct abx_row *row)
{
	for (size_t i = 0; i < row->len; i++) {
		abx_autofree char *label = NULL, *text = NULL;

		if (strcmp(row->cells[i].key, "kind") == 0)
			continue;
		label = abx_cell_label(row->cells[i].key);
		text = abx_cell_text(row->cells[i].key, row->cells[i].value);
		(void)printf("%-16s%s\n", label, text);
	}
}

static int print_text(const struct abx_box *box, const struct abx_row_list *rows,
		      struct abx_err *err)
{
	for (size_t i = 0; i < rows->len; i++)
		if (abx_row_is(&rows->items[i], "box"))
			print_row(&rows->items[i]);
	return abx_out_line(err, "%-16s%s", "state", abx_box_state_name(box->state));
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_row_list rows = {0};
	struct abx_box box = {0};
	const char *what;
	int r = abx_opts_one_box(cli, NULL, argc, argv, &what, err);

	if (r != ABX_OPTS_GO)
		return r;
	r = abx_select_box(&cli->app, what, &box, err);
	if (r == 0)
		r = abx_box_stats(&cli->app, &box, /* processes= */ false, &rows, err);
	if (r == 0)
		r = cli->json ? print_json(&box, &rows, err) : print_text(&box, &rows, err);
	abx_row_list_release(&rows);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_stats = {
	.name = "stats",
	.usage = "[BOX] [--json]",
	.summary = "Show what a box uses.",
	.run = run,
};
