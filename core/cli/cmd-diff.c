/* SPDX-License-Identifier: MIT */
/* agentbox diff */
#include "core/cli/changes.h"

struct question {
	struct abx_cli *cli;
	bool stat;
};

static int show(void *ctx, struct abx_changes_session *s, struct abx_err *err)
{
	const struct question *q = ctx;
	const bool color = isatty(STDOUT_FILENO) && !secure_getenv("NO_COLOR");
	struct abx_changes found = {0};
	int r;

	if (!q->cli->json)
		return abx_back_diff(s->cloud, &s->opts, &s->sandbox, &s->back, q->stat, color,
				     STDOUT_FILENO, err);
	r = abx_back_changes(s->cloud, &s->opts, &s->sandbox, &s->back, &found, err);
	if (r == 0)
		r = abx_out_json(abx_changes_json(&found), err);
	abx_changes_release(&found);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct question q = {.cli = cli};
	const struct abx_opt opts[] = {
		{0, "stat", ABX_OPT_KIND_FLAG, &q.stat, NULL, "a summary only"}, {0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos > 1 || args.n_rest)
		return abx_usage(cli, err, "diff takes one box");
	return abx_changes_run(cli, args.n_pos ? args.pos[0] : NULL, show, &q, err);
}

const struct abx_cmd abx_cmd_diff = {
	.name = "diff",
	.usage = "[BOX] [--stat] [--json]",
	.summary = "Show what changed in a box since it was made.",
	.run = run,
};
