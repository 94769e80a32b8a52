/* SPDX-License-Identifier: MIT */
/* agentbox shell */
#include "core/cli/run-in-box.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	return abx_run_in_box(cli, argc, argv, /* login_shell= */ true, err);
}

const struct abx_cmd abx_cmd_shell = {
	.name = "shell",
	.usage = "[BOX] [-e K=V] [--cwd DIR] [--user U] [--timeout T] -- SCRIPT | COMMAND ARG...",
	.summary = "Run a line of shell in a box, with a login shell's environment.",
	.help = "One word behind `--` is a script for the shell; several are a command with its\n"
		"arguments.  Exit codes are those of exec.\n",
	.run = run,
	.own_exit_code = true,
};
