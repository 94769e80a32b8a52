/* SPDX-License-Identifier: MIT */
/* agentbox exec */
#include "core/cli/run-in-box.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	return abx_run_in_box(cli, argc, argv, /* login_shell= */ false, err);
}

const struct abx_cmd abx_cmd_exec = {
	.name = "exec",
	.usage = "[BOX] [-e K=V] [--cwd DIR] [--user U] [-t|-T] [-d] [--timeout T] -- COMMAND "
		 "[ARG...]",
	.summary = "Run a command in a box.",
	.help = "Arguments, input and output pass unchanged, as with ssh, and the exit code is\n"
		"the command's own; 125 means that agentbox itself failed.  A stopped box is\n"
		"started first.  Ctrl-C ends the command and everything that it started.\n"
		"It is on a terminal when you are (-t: always, -T: never).\n",
	.run = run,
	.own_exit_code = true,
};
