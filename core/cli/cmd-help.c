/* SPDX-License-Identifier: MIT */
/* agentbox help */
#include "core/cli/cmd.h"
#include "core/util/parse.h"

static int print_commands(struct abx_err *err)
{
	(void)printf("agentbox gives a coding agent a disposable computer with your project in "
		     "it,\nand brings the work back.\n\n"
		     "Usage: agentbox COMMAND ...        agentbox PROVIDER COMMAND ...\n\n");
	for (size_t i = 0; abx_commands[i]; i++)
		if (!abx_commands[i]->hidden)
			(void)printf("  %-10s %s\n", abx_commands[i]->name,
				     abx_commands[i]->summary);
	return abx_out_line(err, "\nagentbox help COMMAND says more.  A box is meant by its "
				 "index, name or id,\nor not at all when the project has one.");
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	const struct abx_cmd *cmd;
	struct abx_args args;
	char shown[64];
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos == 0)
		return print_commands(err);
	cmd = abx_cmd_find(args.pos[0]);
	if (cmd) {
		abx_cmd_print_help(cmd);
		return 0;
	}
	abx_quote_text(args.pos[0], shown, sizeof(shown));
	return abx_usage(cli, err, "unknown command '%s'", shown);
}

const struct abx_cmd abx_cmd_help = {
	.name = "help",
	.usage = "[COMMAND]",
	.summary = "List the commands, or explain one.",
	.run = run,
};
