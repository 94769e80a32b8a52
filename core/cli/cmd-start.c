/* SPDX-License-Identifier: MIT */
/* agentbox start */
#include "core/box/lifecycle.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_box box = {0};
	struct abx_args args;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos > 1 || args.n_rest)
		return abx_usage(cli, err, "start takes one box");
	r = abx_select_box(&cli->app, args.n_pos ? args.pos[0] : NULL, &box, err);
	if (r == 0)
		r = abx_lifecycle_start(&cli->app, &box, err);
	if (r == 0)
		r = cli->json ? abx_out_json(abx_json_box(&box), err)
			      : abx_out_line(err, "box '%s' is running", box.name);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_start = {
	.name = "start",
	.usage = "[BOX]",
	.summary = "Start a stopped box; its files are as they were.",
	.run = run,
};
