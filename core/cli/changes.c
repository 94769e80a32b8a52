/* SPDX-License-Identifier: MIT */
/* What diff and download share. */
#include "core/cli/changes.h"

#include "core/box/lifecycle.h"
#include "core/box/select.h"

int abx_changes_open(struct abx_cli *cli, const char *what, const char *workspace,
		     struct abx_changes_session *ret, struct abx_err *err)
{
	struct abx_box *box = &ret->box;
	int r = abx_select_box(&cli->app, what, box, err);

	if (r == 0)
		r = abx_lifecycle_ensure_running(&cli->app, box, err);
	if (r == 0 && !box->seed_tree) {
		(void)abx_err_set(err, ABX_ENOTSUP, "box '%s': what it started from is not known",
				  box->name);
		return abx_err_remedy(err, "its image has no git, or its record was recovered; "
					   "agentbox cp brings files back");
	}
	if (r == 0)
		r = abx_app_cloud_of(&cli->app, box, &ret->cloud, err);
	if (r < 0)
		return r;
	ret->manifest = abx_home_path(&cli->app.home, "boxes/%s/manifest", box->id);
	ret->opts.box_id = box->id;
	ret->sandbox = abx_cloud_sandbox(box);
	ret->back.dir = "/workspace";
	ret->back.seed_tree = box->seed_tree;
	ret->back.manifest = ret->manifest;
	ret->back.workspace = workspace ? workspace : box->workspace;
	return 0;
}

void abx_changes_close(struct abx_changes_session *s)
{
	free(s->manifest);
	abx_box_release(&s->box);
}

cJSON *abx_changes_json(const struct abx_changes *changes)
{
	cJSON *doc = cJSON_CreateArray();

	for (size_t i = 0; i < changes->len; i++) {
		const struct abx_change *c = &changes->items[i];
		const char kind[2] = {(char)c->kind, '\0'};
		cJSON *o = cJSON_CreateObject();

		abx_json_text(o, "path", c->path);
		abx_json_text(o, "change", kind);
		(void)cJSON_AddNumberToObject(o, "mode", c->mode);
		abx_json_text(o, "problem", c->problem);
		(void)cJSON_AddItemToArray(doc, o);
	}
	return doc;
}
