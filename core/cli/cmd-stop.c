/* SPDX-License-Identifier: MIT */
/* agentbox stop */
#include "core/box/lifecycle.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_box box = {0};
	int64_t grace_ms = -1;
	const struct abx_opt opts[] = {{0, "grace", ABX_OPT_KIND_DURATION, &grace_ms, "T",
					"wait this long before killing (default 5s)"},
				       {0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos > 1 || args.n_rest)
		return abx_usage(cli, err, "stop takes one box");
	r = abx_select_box(&cli->app, args.n_pos ? args.pos[0] : NULL, &box, err);
	if (r == 0)
		r = abx_lifecycle_stop(&cli->app, &box, grace_ms, err);
	if (r == 0)
		r = cli->json ? abx_out_json(abx_json_box(&box), err)
			      : abx_out_line(err, "box '%s' is stopped", box.name);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_stop = {
	.name = "stop",
	.usage = "[BOX] [--grace T]",
	.summary = "End the processes of a box; its files stay.",
	.run = run,
};
