/* SPDX-License-Identifier: MIT */
/* agentbox diff */
#include "core/cli/changes.h"
#include "core/seed/back-diff.h"
#include "core/util/log.h"

struct question {
	struct abx_cli *cli;
	struct abx_diff_how how;
};

static cJSON *entry_json(const struct abx_diff_entry *e)
{
	cJSON *o = cJSON_CreateObject();

	abx_json_text(o, "path", e->path);
	abx_json_text(o, "old_path", e->old_path);
	abx_json_text(o, "kind", abx_change_word(e->status));
	abx_json_mode(o, "mode", e->mode);
	abx_json_mode(o, "old_mode", e->old_mode);
	(void)cJSON_AddBoolToObject(o, "binary", e->binary);
	if (e->binary) {
		(void)cJSON_AddNullToObject(o, "added");
		(void)cJSON_AddNullToObject(o, "deleted");
	} else {
		(void)cJSON_AddNumberToObject(o, "added", (double)e->added);
		(void)cJSON_AddNumberToObject(o, "deleted", (double)e->deleted);
	}
	return o;
}

static int show_json(const struct question *q, struct abx_changes_session *s, struct abx_err *err)
{
	struct abx_diff_list list = {NULL, 0};
	cJSON *doc;
	int r = abx_back_diff_list(s->cloud, &s->opts, &s->sandbox, &s->back, q->how.since_create,
				   &list, err);

	if (r < 0)
		return r;
	doc = cJSON_CreateArray();
	for (size_t i = 0; i < list.len; i++)
		(void)cJSON_AddItemToArray(doc, entry_json(&list.items[i]));
	abx_diff_list_release(&list);
	return abx_out_json(doc, err);
}

static int show(void *ctx, struct abx_changes_session *s, struct abx_err *err)
{
	const struct question *q = ctx;
	bool more = false;
	int r;

	if (q->cli->json)
		return show_json(q, s, err);
	r = abx_back_diff(s->cloud, &s->opts, &s->sandbox, &s->back, &q->how, STDOUT_FILENO, &more,
			  err);
	if (r == 0 && more)
		abx_warn("the box has files that no diff can show; download --dry-run names them");
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct question q = {.cli = cli};
	bool stat = false;
	const struct abx_opt opts[] = {
		{0, "stat", ABX_OPT_KIND_FLAG, &stat, NULL, "a summary only"},
		{0, "since-create", ABX_OPT_KIND_FLAG, &q.how.since_create, NULL,
		 "only what the box changed, which is what download brings"},
		{0}};
	const char *what;
	int r = abx_opts_one_box(cli, opts, argc, argv, &what, err);

	if (r != ABX_OPTS_GO)
		return r;
	q.how.form = stat ? ABX_DIFF_STAT : ABX_DIFF_TEXT;
	q.how.color = isatty(STDOUT_FILENO) && !secure_getenv("NO_COLOR");
	return abx_changes_run(cli, what, ABX_CHANGES_READ, show, &q, err);
}

const struct abx_cmd abx_cmd_diff = {
	.name = "diff",
	.usage = "[BOX] [--stat | --json] [--since-create]",
	.summary = "Show the work in a box.",
	.help = "Compares with the commits that the box began with: edits that were sent along,\n"
		"commits, and files that nobody added are all in it, ignored ones are not.  A\n"
		"directory without a repository is compared with what was sent.\n",
	.run = run,
};
