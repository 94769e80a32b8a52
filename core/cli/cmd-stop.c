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
	const char *what;
	int r = abx_opts_one_box(cli, opts, argc, argv, &what, err);

	if (r != ABX_OPTS_GO)
		return r;
	r = abx_select_box(&cli->app, what, &box, err);
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
