/* SPDX-License-Identifier: MIT */
/* agentbox fetch */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/box/running.h"
#include "core/box/select.h"
#include "core/box/spec.h"
#include "core/cli/cmd.h"
#include "core/cli/workdir.h"
#include "core/seed/fetch.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define TEXT_MAX ((size_t)64 << 20)

struct job {
	struct abx_cli *cli;
	const char *as;
	uint64_t max_bytes;
	char *ref;
	struct abx_fetched got;
};

static const char *short_ref(const char *ref)
{
	return strncmp(ref, "refs/heads/", 11) == 0 ? ref + 11 : ref;
}

static int ask(struct job *job, struct abx_box *box, const char *spool, struct abx_err *err)
{
	struct abx_cli *cli = job->cli;
	const struct abx_call_opts opts = {.box_id = box->id,
					   .has_mounts = abx_box_spec_has_mounts(box->spec)};
	abx_autofree char *memory = abx_home_path(&cli->app.home, "boxes/%s/fetched", box->id);
	const struct abx_fetch_ask a = {.dir = "/workspace",
					.workspace = box->workspace,
					.base_commit = box->base_commit,
					.ref = job->ref,
					.spool = spool,
					.memory = memory,
					.notes = cli->app.notes,
					.max_bytes = job->max_bytes,
					.progress = abx_progress_show,
					.progress_ctx = cli};
	struct abx_cloud *cloud;
	struct abx_sandbox sandbox;
	int r = abx_box_reach(&cli->app, box, &cloud, &sandbox, err);

	if (r < 0)
		return r;
	r = abx_fetch(cloud, &opts, &sandbox, &a, &job->got, err);
	abx_progress_end(cli);
	return r;
}

static int work(void *ctx, struct abx_box *box, struct abx_err *err)
{
	struct job *job = ctx;
	struct abx_workdir dir = ABX_WORKDIR_INIT;
	int r = 0;

	if (!job->ref && job->as)
		r = abx_fetch_ref(job->as, &job->ref, err);
	else if (!job->ref)
		job->ref = abx_xasprintf("refs/heads/agentbox/%s", box->name);
	if (r == 0)
		r = abx_workdir_open(&job->cli->app.home, box, ABX_WORKDIR_FETCH, &dir, err);
	if (r == 0)
		r = ask(job, box, dir.path, err);
	abx_workdir_close(&dir);
	return r;
}

/* ---- what is said ---- */

static cJSON *repo_json(const struct abx_fetched_repo *r, const char *ref)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_CreateArray();

	abx_json_text(o, "path", *r->path ? r->path : ".");
	abx_json_text(o, "result", abx_fetch_result_name(r->result));
	abx_json_text(o, "ref", ref);
	abx_json_text(o, "old", r->old_id);
	abx_json_text(o, "new", r->new_id);
	(void)cJSON_AddNumberToObject(o, "commits", (double)r->commits);
	for (size_t i = 0; i < r->n_subjects; i++) {
		cJSON *c = cJSON_CreateObject();
		const size_t len = strcspn(r->subjects[i], " ");
		abx_autofree char *id = abx_xstrndup(r->subjects[i], len);

		abx_json_text(c, "id", id);
		abx_json_text(c, "subject", r->subjects[i] + len + (r->subjects[i][len] == ' '));
		(void)cJSON_AddItemToArray(list, c);
	}
	(void)cJSON_AddItemToObject(o, "newest", list);
	abx_json_text(o, "box_branch", r->branch);
	abx_json_text(o, "under_way", r->under_way);
	(void)cJSON_AddNumberToObject(o, "uncommitted", (double)r->uncommitted);
	(void)cJSON_AddNumberToObject(o, "stashes", (double)r->stashes);
	abx_json_text(o, "problem", r->problem);
	return o;
}

static int report_json(const struct job *job, struct abx_err *err)
{
	cJSON *doc = cJSON_CreateObject(), *list = cJSON_CreateArray();

	abx_json_text(doc, "ref", job->ref);
	for (size_t i = 0; i < job->got.len; i++)
		(void)cJSON_AddItemToArray(list, repo_json(&job->got.items[i], job->ref));
	(void)cJSON_AddItemToObject(doc, "repositories", list);
	return abx_out_json(doc, err);
}

static const char *result_text(const struct abx_fetched_repo *r)
{
	switch (r->result) {
	case ABX_FETCH_FORWARD:
		return "moved forward";
	case ABX_FETCH_MOVED:
		return "moved, for the box's history was rewritten";
	case ABX_FETCH_NEW:
		return "new";
	case ABX_FETCH_SAME:
		return "up to date";
	case ABX_FETCH_NOTHING:
	case ABX_FETCH_FAILED:
	default:
		return NULL;
	}
}

static void print_repo(struct abx_buf *b, const struct abx_fetched_repo *r, const char *ref)
{
	const char *what = result_text(r);
	char shown[1024];

	if (*r->path) {
		abx_quote_text(r->path, shown, sizeof(shown));
		abx_buf_addf(b, "%s: ", shown);
	}
	if (r->problem)
		abx_buf_addf(b, "not fetched: %s\n", r->problem);
	else if (!what)
		abx_buf_addf(b, "nothing to fetch: %s\n",
			     r->new_id ? "the box has no commits of its own"
				       : "the box has no commits yet");
	else if (r->result == ABX_FETCH_SAME)
		abx_buf_addf(b, "%s is up to date at %.10s\n", short_ref(ref), r->new_id);
	else
		abx_buf_addf(b, "%s is at %.10s (%s), %llu commit%s\n", short_ref(ref), r->new_id,
			     what, (unsigned long long)r->commits, r->commits == 1 ? "" : "s");
	for (size_t i = 0; i < r->n_subjects && !r->problem && what; i++) {
		abx_show_text(r->subjects[i], shown, sizeof(shown));
		abx_buf_addf(b, "  %s\n", shown);
	}
	if (r->commits > r->n_subjects && !r->problem && what)
		abx_buf_addf(b, "  and %llu more\n",
			     (unsigned long long)(r->commits - r->n_subjects));
}

/* What is in the box and not in its commits. */
static void note(const struct abx_fetched *f, const char *name)
{
	unsigned long long uncommitted = 0, stashes = 0;

	for (size_t i = 0; i < f->len; i++) {
		uncommitted += f->items[i].uncommitted;
		stashes += f->items[i].stashes;
		if (f->items[i].under_way)
			abx_note("%s is under way in the box; its commits so far were fetched",
				 f->items[i].under_way);
		else if (!*f->items[i].path && !f->items[i].branch)
			abx_note("HEAD is detached in the box");
	}
	if (uncommitted)
		abx_note("%llu file%s not committed in the box (agentbox download %s)", uncommitted,
			 uncommitted == 1 ? " is" : "s are", name);
	if (stashes)
		abx_note("%llu stash%s in the box (git stash branch NAME there makes commits of "
			 "one)",
			 stashes, stashes == 1 ? " stays" : "es stay");
}

static int report(const struct job *job, const char *name, struct abx_err *err)
{
	const struct abx_fetched_repo *failed = NULL;
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(TEXT_MAX);
	size_t n_failed = 0;
	int r = 0;

	for (size_t i = 0; i < job->got.len; i++) {
		if (!job->got.items[i].problem)
			continue;
		failed = failed ? failed : &job->got.items[i];
		n_failed++;
	}
	/* The workspace's own alone: its problem is the error. */
	if (failed && job->got.len == 1) {
		(void)abx_err_set(err, ABX_EIO, "fetch: box '%s': %s", name, failed->problem);
		return failed->remedy ? abx_err_remedy(err, "%s", failed->remedy) : ABX_EIO;
	}
	if (job->cli->json) {
		r = report_json(job, err);
		return r < 0 ? r : n_failed != 0;
	}
	for (size_t i = 0; i < job->got.len; i++)
		if (!i || job->got.items[i].result != ABX_FETCH_NOTHING)
			print_repo(&text, &job->got.items[i], job->ref);
	if (text.len)
		text.data[--text.len] = '\0';
	r = abx_out_line(err, "%s", abx_buf_str(&text));
	note(&job->got, name);
	if (!failed || r < 0)
		return r;
	(void)abx_err_set(err, ABX_EIO, "fetch: %zu of %zu repositories were not fetched", n_failed,
			  job->got.len);
	return failed->remedy ? abx_err_remedy(err, "%s", failed->remedy) : ABX_EIO;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct job job = {.cli = cli};
	const struct abx_opt opts[] = {
		{0, "as", ABX_OPT_KIND_TEXT, &job.as, "REF",
		 "a branch, or a name that begins with refs/ (agentbox/NAME)"},
		{0, "max-size", ABX_OPT_KIND_SIZE, &job.max_bytes, "SIZE",
		 "refuse more than this (8G)"},
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
	abx_fetched_release(&job.got);
	free(job.ref);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_fetch = {
	.name = "fetch",
	.usage = "[BOX] [--as REF] [--max-size SIZE] [--json]",
	.summary = "Bring the commits of a box into the repository, as a branch.",
	.help = "The branch agentbox/NAME, or REF, becomes what HEAD is in the box.  Nothing else\n"
		"changes here: no work tree, index, settings or other branch.  A branch that is\n"
		"checked out, or that is not the box's history, is left alone.\n",
	.run = run,
};
