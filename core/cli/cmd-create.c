/* SPDX-License-Identifier: MIT */
/* agentbox create */
#include "core/box/create.h"
#include "core/cli/build-log.h"
#include "core/cli/cmd.h"
#include "core/cli/create-many.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

/* What was said on the command line. */
struct create_cmd {
	struct abx_create req;
	struct abx_spec_args spec;
	struct abx_strv vars, files, mounts, volumes, ports;
	struct abx_strv included;
	const char *count, *depth;
	bool share_objects;
};

static void report_left_out(const struct abx_created *c)
{
	if (c->ignored)
		(void)printf("%llu ignored %s stay%s here (%s): --include-ignored GLOB takes %s "
			     "along\n",
			     (unsigned long long)c->ignored,
			     c->ignored == 1 ? "file or directory" : "files and directories",
			     c->ignored == 1 ? "s" : "", c->ignored_names,
			     c->ignored == 1 ? "it" : "them");
	if (c->skipped)
		(void)printf("%llu socket%s, FIFO%s or device%s stay%s here, first '%s'\n",
			     (unsigned long long)c->skipped, c->skipped == 1 ? "" : "s",
			     c->skipped == 1 ? "" : "s", c->skipped == 1 ? "" : "s",
			     c->skipped == 1 ? "s" : "", c->skipped_name);
}

/* What is about to be sent somewhere else; more than configured is asked about. */
static int on_amount(void *ctx, const struct abx_seed_info *info, const char *largest,
		     struct abx_err *err)
{
	struct abx_cli *cli = ctx;
	abx_autofree char *text = abx_amount_text(info);

	if (!cli->json && (!largest || cli->yes))
		(void)fprintf(stderr, "sending %s\n", text);
	if (!largest || cli->yes)
		return 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return abx_create_too_large(info, largest, err);
	return abx_ask(cli, err, "%s: more than box.max_seed: %s; send them", text, largest);
}

/* The same on many threads, where nothing can be asked. */
static int on_amount_of_many(void *ctx, const struct abx_seed_info *info, const char *largest,
			     struct abx_err *err)
{
	const struct abx_cli *cli = ctx;

	return largest && !cli->yes ? abx_create_too_large(info, largest, err) : 0;
}

static int report(struct abx_cli *cli, const struct abx_box *box, const struct abx_created *c,
		  struct abx_err *err)
{
	if (cli->json)
		return abx_out_json(abx_json_box(box), err);
	if (box->checkpoint)
		(void)printf("box %u '%s' is running (%s, from '%s')\n", box->index, box->name,
			     box->provider, box->checkpoint);
	else
		(void)printf("box %u '%s' is running (%s, %llu file%s, %.1f MiB)\n", box->index,
			     box->name, box->provider, (unsigned long long)c->files,
			     c->files == 1 ? "" : "s", (double)c->bytes / (1 << 20));
	if (box->base_commit)
		(void)printf("branch %s at %.12s\n", box->branch, box->base_commit);
	for (size_t i = 0; i < c->notes.len; i++)
		(void)printf("note: %s\n", c->notes.items[i]);
	if (c->commits)
		(void)printf("history: the newest %llu commit%s; all of it with --depth full\n",
			     (unsigned long long)c->commits, c->commits == 1 ? "" : "s");
	report_left_out(c);
	return abx_out_line(err,
			    "next: agentbox exec %s -- COMMAND; agentbox diff %s; "
			    "agentbox download %s; agentbox destroy %s",
			    box->name, box->name, box->name, box->name);
}

static int create_one(struct abx_cli *cli, struct abx_create *req, struct abx_err *err)
{
	struct abx_build_log *log = abx_xcalloc(1, sizeof(*log));
	const struct abx_log_sink sink = abx_build_log_sink(log, cli->verbose);
	struct abx_box box = {0};
	struct abx_created created = {0};
	int r;

	req->build_log = &sink;
	r = abx_create_box(&cli->app, req, &box, &created, err);
	req->build_log = NULL;
	abx_progress_end(cli);
	if (r < 0)
		abx_build_log_tail(log);
	free(log);
	if (r == 0)
		r = report(cli, &box, &created, err);
	abx_strv_release(&created.notes);
	abx_box_release(&box);
	return r;
}

static int parse_count(struct abx_cli *cli, const char *text, unsigned int *ret,
		       struct abx_err *err)
{
	uint64_t n = 1;

	if (text && (!abx_parse_u64(text, ABX_CREATE_MAX_COUNT, &n) || !n))
		return abx_usage(cli, err, "--count: '%.20s' is not a number from 1 to %d", text,
				 ABX_CREATE_MAX_COUNT);
	*ret = (unsigned int)n;
	return 0;
}

static int parse_depth(struct abx_cli *cli, const char *text, int64_t *ret, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;

	return abx_parse_depth(text, ret, &why) == 0 ? 0 : abx_usage(cli, err, "--%s", why.text);
}

/* git here may pack or prune objects whenever it likes, and nothing of ours may stand in the
 * repository to keep those of a box; its forks and checkpoints outlive it, and want them too. */
static int refuse_sharing(struct abx_err *err)
{
	(void)abx_err_set(
		err, ABX_ENOTSUP,
		"create: --share-objects: the objects of a repository here are not mounted "
		"into boxes: git gc here would take away what a box, its forks and its "
		"checkpoints need, and the box could read every branch");
	return abx_err_remedy(err,
			      "leave it out: what the branch needs is copied, and --depth makes "
			      "that less");
}

static int create(struct abx_cli *cli, struct create_cmd *c, struct abx_err *err)
{
	struct abx_env env = {0};
	unsigned int count = 1;
	int r = parse_count(cli, c->count, &count, err);

	if (r == 0 && c->share_objects)
		r = refuse_sharing(err);
	if (r == 0 && c->depth)
		r = parse_depth(cli, c->depth, &c->req.seed.depth, err);
	if (r == 0)
		r = abx_env_collect(&env, &c->files, &c->vars, err);
	c->spec.mounts = &c->mounts;
	c->spec.volumes = &c->volumes;
	c->spec.ports = &c->ports;
	c->req.spec = &c->spec;
	c->req.seed.include_ignored = &c->included;
	c->req.amount = c->count ? on_amount_of_many : on_amount;
	c->req.amount_ctx = cli;
	c->req.provider = cli->provider;
	c->req.env = &env;
	c->req.has_timeout = c->req.timeout_ms >= 0;
	if (!c->req.has_timeout)
		c->req.timeout_ms = 0;
	if (r == 0)
		r = c->count ? abx_create_many(cli, &c->req, count, err)
			     : create_one(cli, &c->req, err);
	c->req.env = NULL;
	abx_env_release(&env);
	return r;
}

static int run_options(struct abx_cli *cli, struct create_cmd *c, int argc, char **argv,
		       struct abx_err *err)
{
	struct abx_create *req = &c->req;
	struct abx_spec_args *spec = &c->spec;
	struct abx_seed_options *seed = &req->seed;
	const struct abx_opt opts[] = {
		{'w', "workspace", ABX_OPT_KIND_TEXT, &req->workspace, "DIR",
		 "the project (default: the current directory)"},
		{'n', "name", ABX_OPT_KIND_TEXT, &req->name, "NAME", "name of the box"},
		{'b', "use-branch", ABX_OPT_KIND_TEXT, &seed->use_branch, "NAME",
		 "go on with this branch, not with a new one"},
		{0, "from-branch", ABX_OPT_KIND_TEXT, &seed->from_branch, "REF",
		 "what is committed at that branch, tag or commit"},
		{0, "no-dirty", ABX_OPT_KIND_FLAG, &seed->no_dirty, NULL, "only what is committed"},
		{0, "skip-lfs", ABX_OPT_KIND_FLAG, &seed->skip_lfs, NULL,
		 "of files that Git LFS keeps only the pointers"},
		{0, "depth", ABX_OPT_KIND_TEXT, &c->depth, "N",
		 "commits of history that go along, or full (default: all where it is small)"},
		{0, "include-ignored", ABX_OPT_KIND_LIST, &c->included, "GLOB",
		 "ignored files that go along all the same"},
		{0, "image", ABX_OPT_KIND_TEXT, &req->image, "IMAGE",
		 "boot from this; local: also a directory or tar of a root file system"},
		{0, "snapshot", ABX_OPT_KIND_TEXT, &req->snapshot, "NAME",
		 "start from a checkpoint, or from the provider's snapshot of that name"},
		{'e', "env", ABX_OPT_KIND_LIST, &c->vars, "K[=V]",
		 "set in every command of the box; without =V from your environment"},
		{0, "env-file", ABX_OPT_KIND_LIST, &c->files, "FILE", "the same, from a file"},
		{0, "setup", ABX_OPT_KIND_TEXT, &req->setup, "SCRIPT",
		 "a line of shell, run in the box's workspace once it is there"},
		{0, "timeout", ABX_OPT_KIND_DURATION, &req->timeout_ms, "T",
		 "life of the box: 45m, 2h; 0: the provider's own, whatever is configured"},
		{0, "egress", ABX_OPT_KIND_TEXT, &spec->egress, "SPEC",
		 "where it may connect to: all, none, or a list of networks and domains"},
		{0, "cpu", ABX_OPT_KIND_TEXT, &spec->cpu, "N", "processors: 2, 0.5"},
		{0, "memory", ABX_OPT_KIND_TEXT, &spec->memory, "SIZE", "memory: 512M, 2G"},
		{0, "disk", ABX_OPT_KIND_TEXT, &spec->disk, "SIZE", "what it may write: 10G"},
		{0, "pids", ABX_OPT_KIND_TEXT, &spec->pids, "N", "processes at once"},
		{0, "mount", ABX_OPT_KIND_LIST, &c->mounts, "SRC:DST[:rw]",
		 "a file or directory of this machine, read-only unless :rw"},
		{0, "volume", ABX_OPT_KIND_LIST, &c->volumes, "NAME:DST",
		 "a volume, made if there is none; it outlives the box"},
		{'p', "port", ABX_OPT_KIND_LIST, &c->ports, "N", "a port that is to be reached"},
		{0, "readonly", ABX_OPT_KIND_FLAG, &spec->read_only, NULL,
		 "nobody in the box changes its workspace"},
		{0, "share-objects", ABX_OPT_KIND_FLAG, &c->share_objects, NULL,
		 "refused: the history is always copied"},
		{0, "private-urls", ABX_OPT_KIND_FLAG, &spec->private_urls, NULL,
		 "what its ports offer is not for everybody"},
		{0, "size", ABX_OPT_KIND_TEXT, &spec->size, "SIZE", "a size the provider names"},
		{0, "location", ABX_OPT_KIND_TEXT, &spec->location, "PLACE",
		 "where the provider makes it"},
		{0, "sandbox-id", ABX_OPT_KIND_TEXT, &c->req.sandbox_id, "ID",
		 "use this sandbox, which is there already; it is never ended"},
		{0, "count", ABX_OPT_KIND_TEXT, &c->count, "N",
		 "so many at once: NAME-1 to NAME-N"},
		{0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "create takes no argument; a name goes with -n");
	if (c->req.sandbox_id && c->count)
		return abx_usage(cli, err, "--sandbox-id: one sandbox is one box");
	if (c->req.sandbox_id && (c->vars.len || c->files.len))
		return abx_usage(cli, err,
				 "--sandbox-id: a sandbox that is there keeps its "
				 "environment; exec takes -e");
	return create(cli, c, err);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct create_cmd c = {.req = {.timeout_ms = -1}};
	int r = run_options(cli, &c, argc, argv, err);

	abx_strv_release(&c.vars);
	abx_strv_release(&c.included);
	abx_strv_release(&c.files);
	abx_strv_release(&c.mounts);
	abx_strv_release(&c.volumes);
	abx_strv_release(&c.ports);
	return r;
}

const struct abx_cmd abx_cmd_create = {
	.name = "create",
	.usage = "[-w DIR] [-n NAME] [--provider P] [-e K=V] [--egress SPEC] [--count N] ...",
	.summary = "Make a box with your project in it.",
	.help = "The box gets the project as it is now: committed, staged, changed and untracked\n"
		"files, on a branch agentbox/NAME.  Ignored files stay here.  Nothing of the\n"
		"project on this machine is changed.\n"
		"With --count each box is made or not by itself; what is made stays.\n",
	.run = run,
};
