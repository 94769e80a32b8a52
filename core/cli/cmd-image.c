/* SPDX-License-Identifier: MIT */
/* agentbox image */
#include <string.h>

#include "core/base/prepare.h"
#include "core/cli/cmd.h"
#include "core/cli/provider-of.h"
#include "core/util/mem.h"

#define N_COLUMNS 4

static int print_table(const struct abx_snapshot_list *images, struct abx_err *err)
{
	static const char *const head[N_COLUMNS] = {"NAME", "REF", "STATE", "CREATED"};
	abx_autofree const char **cells =
		abx_xcalloc((images->len + 1) * N_COLUMNS, sizeof(*cells));

	memcpy(cells, head, sizeof(head));
	for (size_t i = 0; i < images->len; i++) {
		const struct abx_snapshot *s = &images->items[i].s;
		const char **row = cells + (i + 1) * N_COLUMNS;

		row[0] = s->name;
		row[1] = s->ref;
		row[2] = s->state;
		row[3] = s->created_at;
	}
	return abx_out_table(cells, images->len + 1, N_COLUMNS, err);
}

static int list(struct abx_cli *cli, const struct abx_preparer *p, struct abx_err *err)
{
	struct abx_snapshot_list images = {NULL, 0};
	cJSON *doc;
	int r = abx_prepare_list(p, &images, err);

	if (r == 0 && cli->json) {
		doc = cJSON_CreateArray();
		for (size_t i = 0; i < images.len; i++) {
			const struct abx_snapshot *s = &images.items[i].s;
			cJSON *o = cJSON_CreateObject();

			abx_json_text(o, "name", s->name);
			abx_json_text(o, "ref", s->ref);
			abx_json_text(o, "state", s->state);
			abx_json_text(o, "created_at", s->created_at);
			(void)cJSON_AddNumberToObject(o, "size_bytes", (double)s->size_bytes);
			abx_json_text(o, "provider", abx_cloud_name(p->cloud));
			(void)cJSON_AddItemToArray(doc, o);
		}
		r = abx_out_json(doc, err);
	} else if (r == 0 && !images.len) {
		r = abx_out_line(err, "no images at %s (agentbox prepare makes one)",
				 abx_cloud_name(p->cloud));
	} else if (r == 0) {
		r = print_table(&images, err);
	}
	abx_snapshot_list_release(&images);
	return r;
}

static int remove_one(struct abx_cli *cli, const struct abx_preparer *p, const char *what,
		      struct abx_err *err)
{
	abx_autofree char *ref = NULL;
	bool there = false;
	int r = abx_prepare_find(p, what, &ref, &there, err);

	if (r == 0)
		r = abx_ask(cli, err, "remove image '%s'", what);
	if (r == 0)
		r = abx_prepare_remove(p, ref, there, err);
	return r < 0 ? r : abx_out_removed(cli, "image", what, err);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_preparer p;
	struct abx_args args;
	bool rm;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	rm = args.n_pos == 2 && strcmp(args.pos[0], "rm") == 0;
	if (args.n_rest || (!rm && !(args.n_pos == 1 && strcmp(args.pos[0], "ls") == 0)))
		return abx_usage(cli, err, "image: ls, or rm and a name");
	r = abx_cli_cloud(cli, &p.cloud, err);
	if (r < 0)
		return r;
	p.home = &cli->app.home;
	p.db = cli->app.db;
	return rm ? remove_one(cli, &p, args.pos[1], err) : list(cli, &p, err);
}

const struct abx_cmd abx_cmd_image = {
	.name = "image",
	.usage = "ls | rm NAME [--provider P]",
	.summary = "List or remove images that boxes boot from.",
	.help = "agentbox prepare makes one.\n",
	.run = run,
};
