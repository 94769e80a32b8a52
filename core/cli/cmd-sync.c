/* SPDX-License-Identifier: MIT */
/* agentbox sync */
#include <string.h>

#include "core/box/running.h"
#include "core/box/select.h"
#include "core/box/spec.h"
#include "core/cli/cmd.h"
#include "core/cli/workdir.h"
#include "core/seed/sync.h"
#include "core/util/parse.h"

struct job {
	struct abx_cli *cli;
	bool dry;
	struct abx_synced got;
};

struct recorder {
	struct abx_app *app;
	struct abx_box *box;
};

static int record(void *ctx, const struct abx_synced *s, struct abx_err *err)
{
	const struct recorder *rec = ctx;
	/* Other commands may have changed the rest of it since. */
	int r = abx_boxes_reload(rec->app->db, rec->box, err);

	if (r < 0)
		return r;
	abx_xreplace(&rec->box->seed_tree, s->seed_tree);
	if (s->base_moved)
		abx_xreplace(&rec->box->base_commit, s->head);
	return abx_boxes_update(rec->app->db, rec->box, err);
}

static int ask(struct job *job, struct abx_box *box, const char *spool, struct abx_err *err)
{
	struct abx_cli *cli = job->cli;
	const struct abx_call_opts opts = {.box_id = box->id,
					   .has_mounts = abx_box_spec_has_mounts(box->spec)};
	abx_autofree char *manifest = abx_home_path(&cli->app.home, "boxes/%s/manifest", box->id);
	struct recorder rec = {&cli->app, box};
	struct abx_sync_ask a = {.dir = "/workspace",
				 .workspace = box->workspace,
				 .manifest = manifest,
				 .spool = spool,
				 .keep_out = cli->app.home.path,
				 .dry_run = job->dry,
				 .record = record,
				 .ctx = &rec};
	abx_autofree char *seed_tree = abx_xstrdup(box->seed_tree);
	abx_autofree char *base = abx_xstrdup_null(box->base_commit);
	struct abx_cloud *cloud;
	struct abx_sandbox sandbox;
	int r = abx_box_reach(&cli->app, box, &cloud, &sandbox, err);

	if (r < 0)
		return r;
	a.seed_tree = seed_tree;
	a.base_commit = base;
	return abx_sync(cloud, &opts, &sandbox, &a, &job->got, err);
}

/* What is checked out here is not what the box began with. */
static int check_began(const struct abx_box *box, struct abx_err *err)
{
	struct abx_box_spec spec = {0};
	const int r = abx_box_spec_parse(box->spec, &spec, err);
	const bool committed = spec.committed;

	abx_box_spec_release(&spec);
	if (r < 0 || !committed)
		return r;
	(void)abx_err_set(
		err, ABX_ENOTSUP,
		"box '%s': it was made with --from-branch, --use-branch or --no-dirty, and "
		"sync brings what is checked out here",
		box->name);
	return abx_err_remedy(err, "agentbox cp brings files into it");
}

static int check_can(const struct abx_box *box, struct abx_err *err)
{
	int r = check_began(box, err);

	if (r < 0 || box->seed_tree)
		return r;
	(void)abx_err_set(err, ABX_ENOTSUP, "box '%s': what it started from is not known",
			  box->name);
	return abx_err_remedy(err, "its image has no git, or its record was recovered; "
				   "agentbox cp brings files into it");
}

static int work(void *ctx, struct abx_box *box, struct abx_err *err)
{
	struct job *job = ctx;
	struct abx_workdir dir = ABX_WORKDIR_INIT;
	int r = check_can(box, err);

	if (r == 0)
		r = abx_workdir_open(&job->cli->app.home, box, ABX_WORKDIR_RECORD, &dir, err);
	if (r == 0)
		r = abx_boxes_reload(job->cli->app.db, box, err);
	if (r == 0)
		r = ask(job, box, dir.path, err);
	abx_workdir_close(&dir);
	return r;
}

/* ---- what is said ---- */

static cJSON *paths_json(const struct abx_strv *v)
{
	cJSON *list = cJSON_CreateArray();

	for (size_t i = 0; i < v->len; i++) {
		cJSON *o = cJSON_CreateObject();

		abx_json_text(o, "path", v->items[i]);
		(void)cJSON_AddItemToArray(list, o);
	}
	return list;
}

static int report_json(const struct job *job, struct abx_err *err)
{
	const struct abx_synced *s = &job->got;
	cJSON *doc = cJSON_CreateObject();

	(void)cJSON_AddItemToObject(doc, "files", paths_json(&s->taken));
	(void)cJSON_AddItemToObject(doc, "conflicts", paths_json(&s->conflicts));
	abx_json_text(doc, "branch", s->branch);
	abx_json_text(doc, "branch_problem", s->why);
	(void)cJSON_AddItemToObject(doc, "branch_conflicts", paths_json(&s->unmerged));
	abx_json_text(doc, "host_commit", s->head);
	abx_json_text(doc, "host_ref", s->host_ref);
	return abx_out_json(doc, err);
}

static void print_paths(const struct abx_strv *v, const char *what)
{
	char shown[1024];

	for (size_t i = 0; i < v->len; i++) {
		abx_quote_text(v->items[i], shown, sizeof(shown));
		(void)printf("%s%s\n", shown, what);
	}
}

static void print_branch(const struct abx_synced *s, bool dry)
{
	const char *would = dry ? " would be" : "";
	char shown[300], why[300];

	abx_quote_text(s->host_ref ? s->host_ref : "", shown, sizeof(shown));
	if (strcmp(s->branch, "forward") == 0)
		(void)printf("the branch%s moved to %s, %.10s\n", would, shown, s->head);
	else if (strcmp(s->branch, "merged") == 0)
		(void)printf("the branch%s merged with %s, %.10s\n", would, shown, s->head);
	if (strcmp(s->branch, "left") != 0)
		return;
	abx_show_text(s->why ? s->why : "", why, sizeof(why));
	(void)printf("the branch stays: %s; the commits of this machine are %s in the box\n", why,
		     shown);
	print_paths(&s->unmerged, ": its commits conflict");
}

/* The box began with a repository, and has none now that could take commits. */
static bool no_commits(const struct abx_synced *s)
{
	return s->why && strcmp(s->branch, "none") == 0;
}

static int say_left(const struct abx_synced *s, const char *name, struct abx_err *err)
{
	char text[300];

	if (no_commits(s)) {
		abx_show_text(s->why, text, sizeof(text));
		(void)abx_err_set(err, ABX_EIO,
				  "sync: box '%s': no commits went there, git in the box does not "
				  "take its repository: %s",
				  name, text);
		return abx_err_remedy(err, "mend it there, or agentbox create makes a new box");
	}
	abx_quote_text(s->host_ref ? s->host_ref : "", text, sizeof(text));
	(void)abx_err_set(err, ABX_EIO, "sync: box '%s': its branch stays where it is", name);
	return abx_err_remedy(err, "agentbox exec %s -- git merge %s, or sync again later", name,
			      text);
}

static int report(const struct job *job, const char *name, struct abx_err *err)
{
	const struct abx_synced *s = &job->got;
	const bool left = strcmp(s->branch, "left") == 0;
	int r;

	if (job->cli->json) {
		r = report_json(job, err);
		return r < 0 ? r : s->conflicts.len || left || no_commits(s);
	}
	print_paths(&s->taken, "");
	print_paths(&s->conflicts, ": changed in the box too: the box's stays");
	print_branch(s, job->dry);
	if (!s->taken.len && !s->conflicts.len && strcmp(s->branch, "forward") != 0 &&
	    strcmp(s->branch, "merged") != 0 && !left && !no_commits(s))
		return abx_out_line(err, "box '%s' is up to date", name);
	r = abx_out_line(err, "%zu file%s %sbrought into box '%s'", s->taken.len,
			 s->taken.len == 1 ? "" : "s", job->dry ? "would be " : "", name);
	if (r == 0 && s->conflicts.len)
		return abx_err_set(err, ABX_EIO,
				   "sync: box '%s': %zu files were changed here and "
				   "in the box",
				   name, s->conflicts.len);
	return r == 0 && (left || no_commits(s)) ? say_left(s, name, err) : r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct job job = {.cli = cli};
	const struct abx_opt opts[] = {
		{0, "dry-run", ABX_OPT_KIND_FLAG, &job.dry, NULL, "only say what would happen"},
		{0}};
	struct abx_box box = {0};
	const char *what;
	int r = abx_opts_one_box(cli, opts, argc, argv, &what, err);

	if (r != ABX_OPTS_GO)
		return r;
	r = abx_select_box(&cli->app, what, &box, err);
	if (r == 0)
		r = abx_box_work(&cli->app, &box, work, &job, err);
	if (r == 0)
		r = report(&job, box.name, err);
	abx_synced_release(&job.got);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_sync = {
	.name = "sync",
	.usage = "[BOX] [--dry-run] [--json]",
	.summary = "Bring newer commits and edits of the project into a box.",
	.help = "A file that was changed here and in the box stays as it is there, and is named.\n"
		"The box's branch follows the commits of this machine, or is merged with them\n"
		"where that is clean; otherwise it stays, and they are host/BRANCH in the box.\n"
		"The exit code is 1 when anything stays.\n",
	.run = run,
};
