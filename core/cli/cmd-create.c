/* SPDX-License-Identifier: MIT */
/* agentbox create */
#include "core/box/create.h"
#include "core/cli/cmd.h"
#include "core/util/mem.h"

static int report(struct abx_cli *cli, const struct abx_box *box, uint64_t files, uint64_t bytes,
		  struct abx_err *err)
{
	if (cli->json)
		return abx_out_json(abx_json_box(box), err);
	if (box->checkpoint)
		(void)printf("box %u '%s' is running (%s, from '%s')\n", box->index, box->name,
			     box->provider, box->checkpoint);
	else
		(void)printf("box %u '%s' is running (%s, %llu file%s, %.1f MiB)\n", box->index,
			     box->name, box->provider, (unsigned long long)files,
			     files == 1 ? "" : "s", (double)bytes / (1 << 20));
	if (box->base_commit)
		(void)printf("branch %s at %.12s\n", box->branch, box->base_commit);
	return abx_out_line(err,
			    "next: agentbox exec %s -- COMMAND; agentbox diff %s; "
			    "agentbox download %s; agentbox destroy %s",
			    box->name, box->name, box->name, box->name);
}

static int create(struct abx_cli *cli, struct abx_create *req, const struct abx_strv *vars,
		  const struct abx_strv *files, struct abx_err *err)
{
	struct abx_env env = {0};
	struct abx_box box = {0};
	uint64_t n_files = 0, n_bytes = 0;
	int r = abx_env_collect(&env, files, vars, err);

	if (r == 0) {
		req->provider = cli->provider;
		req->env = &env;
		r = abx_create_box(&cli->app, req, &box, &n_files, &n_bytes, err);
		abx_progress_end(cli);
	}
	if (r == 0)
		r = report(cli, &box, n_files, n_bytes, err);
	req->env = NULL;
	abx_box_release(&box);
	abx_env_release(&env);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_create req = {0};
	struct abx_strv vars = {0}, files = {0};
	const struct abx_opt opts[] = {
		{'w', "workspace", ABX_OPT_KIND_TEXT, &req.workspace, "DIR",
		 "the project (default: the current directory)"},
		{'n', "name", ABX_OPT_KIND_TEXT, &req.name, "NAME", "name of the box"},
		{0, "image", ABX_OPT_KIND_TEXT, &req.image, "IMAGE",
		 "boot from this; local: a directory or tar of a root file system"},
		{0, "snapshot", ABX_OPT_KIND_TEXT, &req.snapshot, "NAME",
		 "start from a checkpoint, or from the provider's snapshot of that name"},
		{'e', "env", ABX_OPT_KIND_LIST, &vars, "K[=V]",
		 "set in every command of the box; without =V from your environment"},
		{0, "env-file", ABX_OPT_KIND_LIST, &files, "FILE", "the same, from a file"},
		{0, "setup", ABX_OPT_KIND_TEXT, &req.setup, "SCRIPT",
		 "a line of shell, run in the box's workspace once it is there"},
		{0, "timeout", ABX_OPT_KIND_DURATION, &req.timeout_ms, "T",
		 "life of the box: 45m, 2h (default: the provider's)"},
		{0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r == ABX_OPTS_GO) {
		if (args.n_pos || args.n_rest)
			r = abx_usage(cli, err, "create takes no argument; a name goes with -n");
		else
			r = create(cli, &req, &vars, &files, err);
	}
	abx_strv_release(&vars);
	abx_strv_release(&files);
	return r;
}

const struct abx_cmd abx_cmd_create = {
	.name = "create",
	.usage = "[-w DIR] [-n NAME] [--provider P] [-e K=V] [--env-file F] [--setup S]",
	.summary = "Make a box with your project in it.",
	.help = "The box gets the project as it is now: committed, staged, changed and untracked\n"
		"files, on a branch agentbox/NAME.  Ignored files stay here.  Nothing of the\n"
		"project on this machine is changed.\n",
	.run = run,
};
