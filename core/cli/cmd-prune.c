/* SPDX-License-Identifier: MIT */
/* agentbox prune */
#include "core/cli/leftovers.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_leftovers found = {0};
	bool dry = false;
	const struct abx_opt opts[] = {
		{0, "dry-run", ABX_OPT_KIND_FLAG, &dry, NULL, "only say what would go"}, {0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "prune takes no argument");
	r = abx_recover(&cli->app, ABX_RECOVER_LOOK, cli->provider, &found, err);
	if (r == 0 && found.len && !dry) {
		r = abx_ask(cli, err, "remove %zu thing%s that %s left behind", found.len,
			    found.len == 1 ? "" : "s", found.len == 1 ? "was" : "were");
		if (r == 0) {
			abx_leftovers_release(&found);
			r = abx_recover(&cli->app, ABX_RECOVER_PRUNE, cli->provider, &found, err);
		}
	}
	if (r == 0)
		r = abx_leftovers_report(cli, &found, err);
	abx_leftovers_release(&found);
	return r;
}

const struct abx_cmd abx_cmd_prune = {
	.name = "prune",
	.usage = "[--dry-run] [-y]",
	.summary = "Remove what interrupted commands left behind.",
	.help = "Only what this install made is looked at, recognised by its labels.\n",
	.run = run,
};
