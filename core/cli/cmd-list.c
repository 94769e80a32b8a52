/* SPDX-License-Identifier: MIT */
/* agentbox list */
#include <string.h>

#include "core/box/lifecycle.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/clock.h"
#include "core/util/mem.h"

#define N_COLUMNS 7

static int print_table(const struct abx_box_list *boxes, bool global, struct abx_err *err)
{
	static const char *const head[N_COLUMNS] = {"#",    "NAME",    "STATE",	   "PROVIDER",
						    "BASE", "CREATED", "WORKSPACE"};
	abx_autofree const char **cells = abx_xcalloc((boxes->len + 1) * N_COLUMNS, sizeof(*cells));
	struct abx_strv texts = {0};
	size_t n_columns = global ? N_COLUMNS : N_COLUMNS - 1, at = 0;
	int r;

	for (size_t i = 0; i < n_columns; i++)
		cells[at++] = head[i];
	for (size_t i = 0; i < boxes->len; i++) {
		const struct abx_box *b = &boxes->items[i];
		char created[ABX_TIME_TEXT_BYTES];

		abx_time_text(b->created_at_ms, created);
		abx_strv_take(&texts, abx_xasprintf("%u", b->index));
		cells[at++] = texts.items[texts.len - 1];
		cells[at++] = b->name;
		cells[at++] = b->pending ? "unfinished" : abx_box_state_name(b->state);
		cells[at++] = b->provider;
		abx_strv_take(&texts, abx_xasprintf("%.12s", b->base_commit ? b->base_commit : ""));
		cells[at++] = texts.items[texts.len - 1];
		abx_strv_add(&texts, created);
		cells[at++] = texts.items[texts.len - 1];
		if (global)
			cells[at++] = b->workspace;
	}
	r = abx_out_table(cells, boxes->len + 1, n_columns, err);
	abx_strv_release(&texts);
	return r;
}

static int print_json(const struct abx_box_list *boxes, struct abx_err *err)
{
	cJSON *doc = cJSON_CreateArray();

	for (size_t i = 0; i < boxes->len; i++)
		(void)cJSON_AddItemToArray(doc, abx_json_box(&boxes->items[i]));
	return abx_out_json(doc, err);
}

/* Only the boxes of one provider. */
static void keep_provider(struct abx_box_list *boxes, const char *provider)
{
	size_t n = 0;

	for (size_t i = 0; i < boxes->len; i++) {
		if (strcmp(boxes->items[i].provider, provider) == 0)
			boxes->items[n++] = boxes->items[i];
		else
			abx_box_release(&boxes->items[i]);
	}
	boxes->len = n;
}

static int choose(struct abx_cli *cli, bool global, struct abx_box_list *ret, struct abx_err *err)
{
	abx_autofree char *path = NULL, *key = NULL;
	int r = global ? abx_app_open(&cli->app, err)
		       : abx_select_project(&cli->app, &path, &key, err);

	if (r == 0)
		r = abx_boxes_list(cli->app.db, key, ret, err);
	if (r == 0 && cli->provider)
		keep_provider(ret, cli->provider);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_box_list boxes = {0};
	bool global = false;
	const struct abx_opt opts[] = {
		{'g', "global", ABX_OPT_KIND_FLAG, &global, NULL, "boxes of all projects"}, {0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "list takes no argument");
	r = choose(cli, global, &boxes, err);
	if (r == 0)
		r = abx_lifecycle_refresh(&cli->app, &boxes, err);
	if (r == 0 && cli->json)
		r = print_json(&boxes, err);
	else if (r == 0 && boxes.len)
		r = print_table(&boxes, global, err);
	else if (r == 0)
		r = abx_out_line(err, global ? "no boxes" : "no boxes in this project");
	abx_box_list_release(&boxes);
	return r;
}

const struct abx_cmd abx_cmd_list = {
	.name = "list",
	.alias = "ls",
	.usage = "[-g] [--json]",
	.summary = "List the boxes of this project.",
	.run = run,
};
