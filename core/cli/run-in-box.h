/* SPDX-License-Identifier: MIT */
/* core/cli/run-in-box.h: what exec and shell share. */
#ifndef ABX_RUN_IN_BOX_H
#define ABX_RUN_IN_BOX_H

#include "core/cli/cmd.h"

/* Parse the options of exec, find the box, run the command and return its exit code.
 * login_shell: the words behind `--` are run by the box user's login shell. */
int abx_run_in_box(struct abx_cli *cli, int argc, char **argv, bool login_shell,
		   struct abx_err *err);

#endif
