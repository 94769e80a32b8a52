/* SPDX-License-Identifier: MIT */
/* agentbox logs */

#include "core/box/logs.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/log.h"
#include "core/util/parse.h"

static int print_json(const struct abx_box *box, const struct abx_logs_result *got,
		      struct abx_err *err)
{
	static const char *const states[] = {
		[ABX_LOGS_UNKNOWN] = "unknown",
		[ABX_LOGS_RUNNING] = "running",
		[ABX_LOGS_ENDED] = "ended",
		[ABX_LOGS_LOST] = "lost",
	};
	const bool ended = got->state == ABX_LOGS_ENDED;
	cJSON *o = cJSON_CreateObject();

	abx_json_text(o, "box", box->id);
	abx_json_text(o, "exec_id", got->exec_id);
	abx_json_text(o, "state", states[got->state]);
	if (ended)
		(void)cJSON_AddNumberToObject(o, "exit_code", got->code);
	else
		(void)cJSON_AddNullToObject(o, "exit_code");
	if (ended && got->signo)
		(void)cJSON_AddNumberToObject(o, "signal", got->signo);
	else
		(void)cJSON_AddNullToObject(o, "signal");
	(void)cJSON_AddBoolToObject(o, "timed_out", got->timed_out);
	abx_json_text(o, "log", got->path);
	return abx_out_json(o, err);
}

/* On stderr: stdout is what the command has said, and nothing else. */
static void say_end(const struct abx_logs_result *got)
{
	switch (got->state) {
	case ABX_LOGS_ENDED:
		if (got->timed_out)
			abx_note("logs: %s ran out of time (exit code %d)", got->exec_id,
				 got->code);
		else if (got->signo)
			abx_note("logs: %s was ended by signal %d (exit code %d)", got->exec_id,
				 got->signo, got->code);
		else
			abx_note("logs: %s ended with exit code %d", got->exec_id, got->code);
		break;
	case ABX_LOGS_RUNNING:
		abx_note("logs: %s is still running", got->exec_id);
		break;
	case ABX_LOGS_LOST:
		abx_note("logs: %s ended when its box was stopped, or was killed", got->exec_id);
		break;
	case ABX_LOGS_UNKNOWN:
	default:
		abx_note("logs: %s: how it ended was not kept", got->exec_id);
	}
}

static int show(struct abx_cli *cli, const struct abx_args *args, struct abx_logs_request *req,
		struct abx_err *err)
{
	struct abx_logs_result got = {.state = ABX_LOGS_UNKNOWN};
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
		r = abx_box_logs(&cli->app, &box, req, &got, err);
	if (r == 0 && cli->json)
		r = print_json(&box, &got, err);
	else if (r == 0)
		say_end(&got);
	abx_box_release(&box);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_logs_request req = {.fd_out = STDOUT_FILENO};
	const char *lines = NULL;
	const struct abx_opt opts[] = {
		{'n', "lines", ABX_OPT_KIND_TEXT, &lines, "N", "the last N lines (default: all)"},
		{'f', "follow", ABX_OPT_KIND_FLAG, &req.follow, NULL, "go on until it ends"},
		{0, "user", ABX_OPT_KIND_TEXT, &req.user, "USER", "what USER started"},
		{0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (cli->json && lines)
		return abx_usage(cli, err, "--json says how it ended, and has no lines");
	if (args.n_pos > 2 || args.n_rest)
		return abx_usage(cli, err, "one box and one command");
	if (lines && (!abx_parse_u64(lines, UINT32_MAX, &req.lines) || !req.lines))
		return abx_usage(cli, err, "--lines: '%.40s' is not a number of lines", lines);
	if (args.n_pos == 2)
		req.exec_id = args.pos[1];
	if (cli->json)
		req.fd_out = -1;
	return show(cli, &args, &req, err);
}

const struct abx_cmd abx_cmd_logs = {
	.name = "logs",
	.usage = "[BOX] [-n N] [-f] [EXEC-ID] [--json]",
	.summary = "Show what a detached command has said, and how it ended.",
	.help = "EXEC-ID is what `exec -d` printed; without it, the latest command's.  How it "
		"ended\n"
		"is said on stderr, with --json in a document instead of all else.  The exit code\n"
		"is 0 whatever the command's was.\n",
	.run = run,
};
