/* SPDX-License-Identifier: MIT */
/* agentbox version */
#include "config.h"

#include "core/cli/cmd.h"

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_args args;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);
	cJSON *doc;

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "version takes no argument");
	if (!cli->json)
		return abx_out_line(err, "agentbox %s (provider ABI %d.%d)", PACKAGE_VERSION,
				    ABX_ABI_MAJOR, ABX_ABI_MINOR);
	doc = cJSON_CreateObject();
	abx_json_text(doc, "version", PACKAGE_VERSION);
	(void)cJSON_AddNumberToObject(doc, "abi_major", ABX_ABI_MAJOR);
	(void)cJSON_AddNumberToObject(doc, "abi_minor", ABX_ABI_MINOR);
	return abx_out_json(doc, err);
}

const struct abx_cmd abx_cmd_version = {
	.name = "version",
	.usage = "[--json]",
	.summary = "Print the version of agentbox and of the provider ABI it speaks.",
	.run = run,
};
