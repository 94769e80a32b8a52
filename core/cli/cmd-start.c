/* SPDX-License-Identifier: MIT */
/* agentbox start */
#include "core/box/lifecycle.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_box box = {0};
	const char *what;
	int r = abx_opts_one_box(cli, NULL, argc, argv, &what, err);

	if (r != ABX_OPTS_GO)
		return r;
	r = abx_select_box(&cli->app, what, &box, err);
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
