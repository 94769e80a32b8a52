/* SPDX-License-Identifier: MIT */
/* What diff and download share. */
#include "core/cli/changes.h"

#include "core/box/running.h"
#include "core/box/select.h"
#include "core/box/spec.h"
#include "core/cli/workdir.h"

struct job {
	struct abx_cli *cli;
	enum abx_changes_use use;
	abx_changes_fn fn;
	void *ctx;
};

static int call(const struct job *job, struct abx_box *box, struct abx_err *err)
{
	struct abx_changes_session s = {
		.opts = {.box_id = box->id, .has_mounts = abx_box_spec_has_mounts(box->spec)},
		.box = box};
	abx_autofree char *manifest = NULL;
	int r;

	if (!box->seed_tree) {
		(void)abx_err_set(err, ABX_ENOTSUP, "box '%s': what it started from is not known",
				  box->name);
		return abx_err_remedy(err, "its image has no git, or its record was recovered; "
					   "agentbox cp brings files back");
	}
	r = abx_box_reach(&job->cli->app, box, &s.cloud, &s.sandbox, err);
	if (r < 0)
		return r;
	manifest = abx_home_path(&job->cli->app.home, "boxes/%s/manifest", box->id);
	s.back.dir = "/workspace";
	s.back.seed_tree = box->seed_tree;
	s.back.manifest = manifest;
	s.back.workspace = box->workspace;
	s.back.notes = job->cli->app.notes;
	return job->fn(job->ctx, &s, err);
}

static int work(void *ctx, struct abx_box *box, struct abx_err *err)
{
	const struct job *job = ctx;
	struct abx_workdir dir = ABX_WORKDIR_INIT;
	int r = 0;

	if (job->use == ABX_CHANGES_APPLY) {
		r = abx_workdir_open(&job->cli->app.home, box, ABX_WORKDIR_RECORD, &dir, err);
		if (r == 0)
			r = abx_boxes_reload(job->cli->app.db, box, err);
	}
	if (r == 0)
		r = call(job, box, err);
	abx_workdir_close(&dir);
	return r;
}

int abx_changes_run(struct abx_cli *cli, const char *what, enum abx_changes_use use,
		    abx_changes_fn fn, void *ctx, struct abx_err *err)
{
	struct job job = {cli, use, fn, ctx};
	struct abx_box box = {0};
	int r = abx_select_box(&cli->app, what, &box, err);

	if (r == 0)
		r = abx_box_work(&cli->app, &box, work, &job, err);
	abx_box_release(&box);
	return r;
}

const char *abx_change_word(char status)
{
	switch (status) {
	case 'A':
		return "added";
	case 'D':
		return "deleted";
	case 'R':
		return "renamed";
	default: /* M, and T: a file that is a link now */
		return "modified";
	}
}

void abx_json_mode(cJSON *o, const char *key, uint32_t mode)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%06o", (unsigned int)mode);
	abx_json_text(o, key, mode ? text : NULL);
}

cJSON *abx_changes_json(const struct abx_changes *changes)
{
	cJSON *doc = cJSON_CreateArray();

	for (size_t i = 0; i < changes->len; i++) {
		const struct abx_change *c = &changes->items[i];
		cJSON *o = cJSON_CreateObject();

		abx_json_text(o, "path", c->path);
		abx_json_text(o, "kind", abx_change_word((char)c->kind));
		abx_json_mode(o, "mode", c->mode);
		abx_json_text(o, "problem", c->problem);
		(void)cJSON_AddItemToArray(doc, o);
	}
	return doc;
}
