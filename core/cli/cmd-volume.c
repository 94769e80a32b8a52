/* SPDX-License-Identifier: MIT */
/* agentbox volume */
#include <string.h>

#include "core/box/volumes.h"
#include "core/cli/cmd.h"
#include "core/cli/provider-of.h"
#include "core/util/mem.h"

static int list(struct abx_cli *cli, struct abx_cloud *cloud, struct abx_err *err)
{
	struct abx_resource_list volumes = {NULL, 0};
	cJSON *doc = NULL;
	int r = abx_volumes_list(&cli->app, cloud, &volumes, err);

	if (r < 0)
		return r;
	if (cli->json) {
		doc = cJSON_CreateArray();
		for (size_t i = 0; i < volumes.len; i++) {
			cJSON *o = cJSON_CreateObject();

			abx_json_text(o, "name", volumes.items[i].r.name);
			abx_json_text(o, "id", volumes.items[i].r.id);
			abx_json_text(o, "provider", abx_cloud_name(cloud));
			(void)cJSON_AddItemToArray(doc, o);
		}
		r = abx_out_json(doc, err);
	} else if (!volumes.len) {
		r = abx_out_line(err, "no volumes at %s", abx_cloud_name(cloud));
	} else {
		abx_autofree const char **cells =
			abx_xcalloc((volumes.len + 1) * 2, sizeof(*cells));

		cells[0] = "NAME";
		cells[1] = "ID";
		for (size_t i = 0; i < volumes.len; i++) {
			cells[2 * i + 2] = volumes.items[i].r.name;
			cells[2 * i + 3] = volumes.items[i].r.id;
		}
		r = abx_out_table(cells, volumes.len + 1, 2, err);
	}
	abx_resource_list_release(&volumes);
	return r;
}

static int remove_one(struct abx_cli *cli, struct abx_cloud *cloud, const char *name,
		      struct abx_err *err)
{
	abx_autofree char *id = NULL;
	int r = abx_volumes_find(&cli->app, cloud, name, &id, err);

	if (r == 0)
		r = abx_ask(cli, err, "remove volume '%s' and all that is in it", name);
	if (r == 0)
		r = abx_volumes_remove(&cli->app, cloud, name, id, err);
	return r < 0 ? r : abx_out_removed(cli, "volume", name, err);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_cloud *cloud;
	struct abx_args args;
	bool rm;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	rm = args.n_pos == 2 && strcmp(args.pos[0], "rm") == 0;
	if (args.n_rest || (!rm && !(args.n_pos == 1 && strcmp(args.pos[0], "ls") == 0)))
		return abx_usage(cli, err, "volume: ls, or rm and a name");
	r = abx_cli_cloud(cli, &cloud, err);
	if (r < 0)
		return r;
	return rm ? remove_one(cli, cloud, args.pos[1], err) : list(cli, cloud, err);
}

const struct abx_cmd abx_cmd_volume = {
	.name = "volume",
	.usage = "ls | rm NAME [--provider P]",
	.summary = "List or remove volumes, which outlive boxes.",
	.help = "create --volume NAME:DST makes one.\n",
	.run = run,
};
