/* SPDX-License-Identifier: MIT */
/* agentbox forget */
#include "core/box/lifecycle.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/mem.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_box box = {0};
	struct abx_args args;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos != 1 || args.n_rest)
		return abx_usage(cli, err, "forget takes one box");
	r = abx_select_box(&cli->app, args.pos[0], &box, err);
	if (r == 0)
		r = abx_ask(cli, err, "forget box '%s'; what it has at %s stays there until prune",
			    box.name, box.provider);
	if (r == 0) {
		abx_autofree char *name = abx_xstrdup(box.name);

		r = abx_lifecycle_forget(&cli->app, &box, err);
		if (r == 0 && !cli->json)
			r = abx_out_line(err,
					 "box '%s' is forgotten (agentbox recover finds its "
					 "sandbox again, agentbox prune removes it)",
					 name);
		else if (r == 0)
			r = abx_out_json(cJSON_CreateObject(), err);
	}
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_forget = {
	.name = "forget",
	.usage = "BOX [-y]",
	.summary = "Drop the record of a box without touching its sandbox.",
	.run = run,
};
