/* SPDX-License-Identifier: MIT */
/* agentbox recover */
#include "core/cli/leftovers.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_leftovers found = {0};
	struct abx_args args;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "recover takes no argument");
	r = abx_recover(&cli->app, ABX_RECOVER_ADOPT, cli->provider, &found, err);
	if (r == 0)
		r = abx_leftovers_report(cli, &found, err);
	abx_leftovers_release(&found);
	return r;
}

const struct abx_cmd abx_cmd_recover = {
	.name = "recover",
	.usage = "[--provider P]",
	.summary = "Find boxes whose record was lost, and finish what was interrupted.",
	.help = "A sandbox with this install's label but without a record becomes a box of the\n"
		"current directory's project again.  Creates that were interrupted are undone.\n",
	.run = run,
};
