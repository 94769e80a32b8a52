/* SPDX-License-Identifier: MIT */
/* agentbox cp */
#include <string.h>

#include "core/box/copy.h"
#include "core/box/running.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/mem.h"

/* "box:path": the part before the first colon, unless a slash comes earlier (./a:b). */
static size_t box_prefix(const char *arg)
{
	size_t len = strcspn(arg, ":/");

	return arg[len] == ':' ? len : 0;
}

static int say_refusals(const struct abx_tar_result *result, struct abx_err *err)
{
	for (int kind = 0; kind < ABX_TAR_REFUSALS; kind++) {
		abx_autofree char *text = abx_tar_refusal_text(result, (enum abx_tar_refusal)kind);

		if (text)
			(void)fprintf(stderr, "agentbox: %s\n", text);
	}
	if (!result->n_refused)
		return 0;
	return abx_err_set(err, ABX_EPERM, "%llu entries of the box were left out",
			   (unsigned long long)result->n_refused);
}

static bool is_stream(const char *arg)
{
	return strcmp(arg, "-") == 0;
}

/* With a stream on one side: stdout is the box's, so nothing is said there. */
static int copy_stream(struct abx_cli *cli, const char *box_name, bool in, const char *path,
		       struct abx_err *err)
{
	struct abx_box box = {0};
	int r = abx_select_box(&cli->app, box_name, &box, err);

	if (r == 0)
		r = in ? abx_copy_stream_in(&cli->app, &box, STDIN_FILENO, path, err)
		       : abx_copy_stream_out(&cli->app, &box, path, STDOUT_FILENO, err);
	/* What went through a stream cannot be had again. */
	r = abx_box_blame(&cli->app, &box, r, err);
	abx_progress_end(cli);
	if (r == 0 && in && cli->json)
		r = abx_out_json(cJSON_CreateObject(), err);
	abx_box_release(&box);
	return r;
}

struct job {
	struct abx_cli *cli;
	bool in;
	const struct abx_copy *what;
	struct abx_tar_result result;
};

static int work(void *ctx, struct abx_box *box, struct abx_err *err)
{
	struct job *job = ctx;

	abx_tar_result_release(&job->result);
	return job->in ? abx_copy_in(&job->cli->app, box, job->what, err)
		       : abx_copy_out(&job->cli->app, box, job->what, &job->result, err);
}

static int copy(struct abx_cli *cli, const char *box_name, bool in, const struct abx_copy *what,
		struct abx_err *err)
{
	struct job job = {.cli = cli, .in = in, .what = what};
	struct abx_box box = {0};
	int r = abx_select_box(&cli->app, box_name, &box, err);

	if (r == 0)
		r = abx_box_work(&cli->app, &box, work, &job, err);
	abx_progress_end(cli);
	if (r == 0)
		r = say_refusals(&job.result, err);
	if (r == 0 && cli->json)
		r = abx_out_json(cJSON_CreateObject(), err);
	abx_tar_result_release(&job.result);
	abx_box_release(&box);
	return r;
}

/* All sources on one side, and in one box. */
static int check_sides(struct abx_cli *cli, const struct abx_args *args, bool in,
		       struct abx_err *err)
{
	size_t first = box_prefix(args->pos[0]);

	for (int i = 0; i + 1 < args->n_pos; i++) {
		size_t len = box_prefix(args->pos[i]);

		if (args->n_pos > 2 &&
		    (is_stream(args->pos[i]) || is_stream(args->pos[args->n_pos - 1])))
			return abx_usage(cli, err, "a stream is one thing: only one source");
		if ((len != 0) == in)
			return abx_usage(cli, err, "one side is BOX:PATH, the other is here");
		if (len != first || strncmp(args->pos[i], args->pos[0], len) != 0)
			return abx_usage(cli, err, "all sources come from one box");
	}
	return 0;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	abx_autofree const char **sources = NULL;
	abx_autofree char *box_name = NULL;
	struct abx_args args;
	struct abx_copy what;
	const char *target, *with_box;
	size_t prefix;
	bool in;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos < 2 || args.n_rest)
		return abx_usage(cli, err, "cp takes sources and a destination");
	target = args.pos[args.n_pos - 1];
	in = box_prefix(target) != 0;
	r = check_sides(cli, &args, in, err);
	if (r < 0)
		return r;
	with_box = in ? target : args.pos[0];
	prefix = box_prefix(with_box);
	box_name = abx_xstrndup(with_box, prefix);
	if (in && is_stream(args.pos[0]))
		return copy_stream(cli, box_name, in, target + prefix + 1, err);
	if (!in && is_stream(target))
		return copy_stream(cli, box_name, in, args.pos[0] + prefix + 1, err);
	sources = abx_xcalloc((size_t)args.n_pos, sizeof(*sources));
	for (int i = 0; i + 1 < args.n_pos; i++)
		sources[i] = in ? args.pos[i] : args.pos[i] + prefix + 1;
	what.sources = sources;
	what.n_sources = (size_t)args.n_pos - 1;
	what.target = in ? target + prefix + 1 : target;
	return copy(cli, box_name, in, &what, err);
}

const struct abx_cmd abx_cmd_cp = {
	.name = "cp",
	.usage = "SRC...|- BOX:PATH | BOX:SRC... PATH|-",
	.summary = "Copy files and directories into a box, or out of it.",
	.help = "Paths in a box are relative to /workspace.  A directory as destination takes the\n"
		"sources in; anything else is the new name.  A file here whose name has a colon "
		"is\n"
		"written ./a:b.  A - is stdin or stdout: the bytes of a file, or, where the path "
		"in the\n"
		"box is a directory, what it holds as a tar stream.\n",
	.run = run,
};
