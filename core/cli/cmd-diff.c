/* SPDX-License-Identifier: MIT */
/* agentbox diff */
#include "core/cli/changes.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_changes_session s = {0};
	struct abx_changes found = {0};
	bool stat = false;
	const struct abx_opt opts[] = {
		{0, "stat", ABX_OPT_KIND_FLAG, &stat, NULL, "a summary only"}, {0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos > 1 || args.n_rest)
		return abx_usage(cli, err, "diff takes one box");
	r = abx_changes_open(cli, args.n_pos ? args.pos[0] : NULL, /* workspace= */ NULL, &s, err);
	if (r == 0 && cli->json) {
		r = abx_back_changes(s.cloud, &s.opts, &s.sandbox, &s.back, &found, err);
		if (r == 0)
			r = abx_out_json(abx_changes_json(&found), err);
	} else if (r == 0) {
		bool color = isatty(STDOUT_FILENO) && !secure_getenv("NO_COLOR");

		r = abx_back_diff(s.cloud, &s.opts, &s.sandbox, &s.back, stat, color, STDOUT_FILENO,
				  err);
	}
	abx_changes_release(&found);
	abx_changes_close(&s);
	return r;
}

const struct abx_cmd abx_cmd_diff = {
	.name = "diff",
	.usage = "[BOX] [--stat] [--json]",
	.summary = "Show what changed in a box since it was made.",
	.run = run,
};
