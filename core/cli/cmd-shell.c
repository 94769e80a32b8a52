/* SPDX-License-Identifier: MIT */
/* agentbox shell */
#include "core/cli/run-in-box.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	return abx_run_in_box(cli, argc, argv, /* login_shell= */ true, err);
}

const struct abx_cmd abx_cmd_shell = {
	.name = "shell",
	.usage = "[BOX] [-e K=V] [--cwd DIR] [--user U] [-t|-T] [--timeout T] "
		 "[-- SCRIPT | COMMAND ARG...]",
	.summary = "A login shell in a box: interactive, or for one line.",
	.help = "Without words behind `--` it reads what you type.  One word is a script for the\n"
		"shell; several are a command with its arguments.  Exit codes are those of exec.\n",
	.run = run,
	.own_exit_code = true,
};
