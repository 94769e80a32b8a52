/* SPDX-License-Identifier: MIT */
/* agentbox status */
#include "core/box/lifecycle.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/clock.h"

static void print_field(const char *name, const char *value)
{
	if (value && *value)
		(void)printf("%-12s%s\n", name, value);
}

static int print_text(const struct abx_box *b, struct abx_err *err)
{
	char created[ABX_TIME_TEXT_BYTES], expires[ABX_TIME_TEXT_BYTES];

	abx_time_text(b->created_at_ms, created);
	abx_time_text(b->expires_at_ms, expires);
	print_field("name", b->name);
	print_field("id", b->id);
	print_field("state", abx_box_state_name(b->state));
	print_field("unfinished", b->pending);
	print_field("error", b->error);
	print_field("provider", b->provider);
	print_field("sandbox", b->sandbox_id);
	print_field("account", b->account);
	print_field("workspace", b->workspace);
	print_field("branch", b->branch);
	print_field("base", b->base_commit);
	print_field("created", created);
	print_field("expires", expires);
	return abx_out_line(err, "%-12s%u", "index", b->index);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_box box = {0};
	struct abx_box_list one = {&box, 1};
	struct abx_args args;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos > 1 || args.n_rest)
		return abx_usage(cli, err, "status takes one box");
	r = abx_select_box(&cli->app, args.n_pos ? args.pos[0] : NULL, &box, err);
	if (r == 0)
		r = abx_lifecycle_refresh(&cli->app, &one, err);
	if (r == 0)
		r = cli->json ? abx_out_json(abx_json_box(&box), err) : print_text(&box, err);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_status = {
	.name = "status",
	.usage = "[BOX] [--json]",
	.summary = "Show one box.",
	.run = run,
};
