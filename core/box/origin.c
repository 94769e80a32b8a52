/* SPDX-License-Identifier: MIT */
/* What a new box starts from when that is not the project but a snapshot. */
#include "core/box/origin.h"

#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/box/spec.h"
#include "core/checkpoint/store.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define EXISTS_TIMEOUT_MS 30000

void abx_origin_release(struct abx_origin *o)
{
	abx_checkpoint_release(&o->point);
	free(o->seed);
	o->seed = NULL;
}

/* A fork's: only what a box needs of it. */
static void take_over(const struct abx_create *req, struct abx_origin *ret)
{
	const struct abx_checkpoint *from = req->from;

	*ret = (struct abx_origin){.point = {.name = abx_xstrdup_null(from->name),
					     .account = abx_xstrdup_null(from->account),
					     .ref = abx_xstrdup(from->ref),
					     .branch = abx_xstrdup_null(from->branch),
					     .base_commit = abx_xstrdup_null(from->base_commit),
					     .seed_tree = abx_xstrdup_null(from->seed_tree),
					     .spec = abx_xstrdup_null(from->spec)},
				   .seed = abx_xstrdup_null(req->from_seed)};
}

/* Not one of ours: then the provider must know it. */
static int find_ref(struct abx_cloud *cloud, const char *ref, struct abx_origin *ret,
		    struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = EXISTS_TIMEOUT_MS};
	struct abx_err why = ABX_ERR_INIT;
	char shown[80];
	bool exists = false;
	int r = abx_cloud_snapshot_exists(cloud, &o, ref, &exists, &why);

	/* Where it cannot be asked, it is tried. */
	if (r == 0 ? exists : r == ABX_ENOTSUP) {
		*ret = (struct abx_origin){.point = {.ref = abx_xstrdup(ref)}};
		return 0;
	}
	if (r < 0 && r != ABX_EINVAL && r != ABX_ENOTFOUND) {
		if (err)
			*err = why;
		return r;
	}
	abx_quote_text(ref, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_ENOBOX,
			  "no checkpoint '%s' of this project at %s, and no snapshot of that name",
			  shown, abx_cloud_name(cloud));
	return abx_err_remedy(err, "agentbox checkpoint ls shows all");
}

int abx_origin_find(struct abx_app *app, struct abx_cloud *cloud, const char *project,
		    const struct abx_create *req, struct abx_origin *ret, struct abx_err *err)
{
	struct abx_checkpoint c = {0};
	struct abx_err why = ABX_ERR_INIT;
	int r = ABX_ENOBOX;

	if (req->from) {
		take_over(req, ret);
		return 0;
	}
	if (!abx_cloud_table(cloud)->snapshot_create)
		return abx_err_set(err, ABX_ENOTSUP, "provider '%s': cannot start from snapshots",
				   abx_cloud_name(cloud));
	if (abx_check_box_name(req->snapshot, NULL) == 0)
		r = abx_checkpoint_load(&app->home, abx_cloud_name(cloud), project, req->snapshot,
					&c, &why);
	if (r == ABX_ENOBOX)
		return find_ref(cloud, req->snapshot, ret, err);
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	/* Where it comes from may be long gone, and so may what was mounted there. */
	r = abx_box_spec_drop_mounts(&c.spec, err);
	if (r < 0) {
		abx_checkpoint_release(&c);
		return abx_err_wrap(err, "checkpoint '%s'", req->snapshot);
	}
	*ret = (struct abx_origin){.point = c, .seed = abx_checkpoint_seed_path(&app->home, &c)};
	return 0;
}

char *abx_origin_elsewhere(struct abx_app *app, const char *provider, const char *project,
			   const char *name)
{
	struct abx_checkpoint_list found = {0};
	const char *at = NULL;
	char *only;
	size_t n = 0;

	abx_checkpoints_list(&app->home, NULL, project, &found);
	for (size_t i = 0; i < found.len && n < 2; i++) {
		if (strcmp(found.items[i].name, name) != 0)
			continue;
		at = found.items[i].provider;
		n = strcmp(at, provider) == 0 ? 2 : n + 1;
	}
	only = n == 1 ? abx_xstrdup(at) : NULL;
	abx_checkpoint_list_release(&found);
	return only;
}

static char *env_path(const struct abx_app *app, const char *box_id)
{
	return abx_home_path(&app->home, "boxes/%s/env", box_id);
}

int abx_origin_env_load(const struct abx_app *app, const char *box_id, struct abx_env *env,
			struct abx_err *err)
{
	abx_autofree char *path = env_path(app, box_id);

	return access(path, F_OK) < 0 ? 0 : abx_env_load(env, path, err);
}

int abx_origin_env_save(const struct abx_app *app, const char *box_id, const struct abx_env *env,
			struct abx_err *err)
{
	abx_autofree char *path = env_path(app, box_id), *text = abx_env_format(env), *dir = NULL;
	int r;

	if (!env->len)
		return 0;
	r = abx_home_dir(&app->home, &dir, err, "boxes/%s", box_id);
	if (r < 0)
		return r;
	r = abx_fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, /* durable= */ false);
	explicit_bzero(text, strlen(text));
	return r < 0 ? abx_err_errno(err, r, "write '%s'", path) : 0;
}

int abx_origin_adopt(struct abx_app *app, const struct abx_origin *o, struct abx_box *box,
		     struct abx_err *err)
{
	abx_autofree char *dir = NULL, *manifest = NULL;
	int r;

	abx_xreplace(&box->branch, o->point.branch);
	abx_xreplace(&box->base_commit, o->point.base_commit);
	abx_xreplace(&box->seed_tree, o->point.seed_tree);
	if (!o->seed || access(o->seed, F_OK) < 0)
		return 0;
	r = abx_home_dir(&app->home, &dir, err, "boxes/%s", box->id);
	if (r < 0)
		return r;
	manifest = abx_xasprintf("%s/manifest", dir);
	return abx_checkpoint_share_file(o->seed, manifest, err);
}

int abx_origin_explain(const struct abx_origin *o, int code, struct abx_err *err)
{
	if (code != ABX_ENOTFOUND || !o->point.ref)
		return code;
	if (o->point.account)
		return abx_err_remedy(err, "its snapshot belongs to account %s", o->point.account);
	return code;
}
