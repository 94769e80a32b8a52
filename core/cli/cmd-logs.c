/* SPDX-License-Identifier: MIT */
/* agentbox logs */

#include "core/box/logs.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/parse.h"

static int show(struct abx_cli *cli, const struct abx_args *args, struct abx_logs_request *req,
		struct abx_err *err)
{
	struct abx_box box = {0};
	struct abx_err only = ABX_ERR_INIT;
	int r = abx_select_box(&cli->app, args->n_pos ? args->pos[0] : NULL, &box, &only);

	/* With one box, the only word may be the command. */
	if (r == ABX_ENOBOX && args->n_pos == 1 && !req->exec_id) {
		req->exec_id = args->pos[0];
		r = abx_select_box(&cli->app, NULL, &box, NULL);
	}
	if (r < 0) {
		r = only.code;
		if (err)
			*err = only;
	}
	if (r == 0)
		r = abx_box_logs(&cli->app, &box, req, err);
	abx_box_release(&box);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_logs_request req = {.fd_out = STDOUT_FILENO};
	const char *lines = NULL;
	const struct abx_opt opts[] = {
		{'n', "lines", ABX_OPT_KIND_TEXT, &lines, "N", "the last N lines (default: all)"},
		{'f', "follow", ABX_OPT_KIND_FLAG, &req.follow, NULL, "go on as more comes"},
		{0, "user", ABX_OPT_KIND_TEXT, &req.user, "USER", "what USER started"},
		{0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (cli->json)
		return abx_usage(cli, err, "--json: what a command has said is no document");
	if (args.n_pos > 2 || args.n_rest)
		return abx_usage(cli, err, "one box and one command");
	if (lines && (!abx_parse_u64(lines, UINT32_MAX, &req.lines) || !req.lines))
		return abx_usage(cli, err, "--lines: '%.40s' is not a number of lines", lines);
	if (args.n_pos == 2)
		req.exec_id = args.pos[1];
	return show(cli, &args, &req, err);
}

const struct abx_cmd abx_cmd_logs = {
	.name = "logs",
	.usage = "[BOX] [-n N] [-f] [EXEC-ID]",
	.summary = "Show what a detached command has said.",
	.help = "EXEC-ID is what `exec -d` printed; without it, the latest command's.\n",
	.run = run,
};
