/* SPDX-License-Identifier: MIT */
/* Checkpoints of boxes, and forks. */
#include "core/box/checkpoint.h"

#include <string.h>

#include "core/box/create.h"
#include "core/box/lifecycle.h"
#include "core/box/recover.h"
#include "core/box/running.h"
#include "core/box/undo.h"
#include "core/checkpoint/store.h"
#include "core/checkpoint/take.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

/* Opens what is needed, and locks the box.  Elsewhere only what runs can be copied; *ret_was is
 * how it was before. */
static int begin(struct abx_app *app, struct abx_box *box, bool stop, struct abx_checkpointer *ret,
		 int *ret_lock, enum abx_box_state *ret_was, struct abx_err *err)
{
	struct abx_cloud *cloud;
	int r = abx_app_cloud_of(app, box, &cloud, err);

	if (r < 0)
		return r;
	*ret = (struct abx_checkpointer){&app->home, app->db, cloud, stop};
	r = abx_checkpoint_supported(ret, err);
	if (r == 0)
		abx_recover_abandoned(app, box->provider);
	if (r == 0)
		r = abx_lifecycle_lock(app, box, ret_lock, err);
	if (r < 0)
		return r;
	*ret_was = box->state;
	if (box->state == ABX_BOX_RUNNING || (abx_cloud_caps(cloud) & ABX_CAP_LOCAL))
		return 0;
	return abx_lifecycle_start_locked(app, box, err);
}

static char *seed_path(const struct abx_app *app, const struct abx_box *box)
{
	return abx_home_path(&app->home, "boxes/%s/manifest", box->id);
}

/* Some providers stop or pause the source, and say so while they take the snapshot.  What had to
 * be started goes back to rest, for it may cost. */
static int settle(struct abx_app *app, struct abx_box *box, enum abx_box_state was,
		  struct abx_err *err)
{
	int r = abx_boxes_reload(app->db, box, err);

	if (r < 0)
		return r;
	if (box->state != ABX_BOX_RUNNING || was == ABX_BOX_RUNNING)
		return 0;
	if (was == ABX_BOX_PAUSED)
		return abx_lifecycle_pause_locked(app, box, err);
	if (was == ABX_BOX_STOPPED)
		return abx_lifecycle_stop_locked(app, box, /* grace_ms= */ -1, err);
	return 0;
}

int abx_box_checkpoint(struct abx_app *app, struct abx_box *box, const char *name, bool stop,
		       struct abx_checkpoint *ret, struct abx_err *err)
{
	abx_autofree char *seed = NULL;
	abx_autoclose int lock = -1;
	enum abx_box_state was = ABX_BOX_RUNNING;
	struct abx_err why = ABX_ERR_INIT;
	struct abx_checkpointer k;
	int r = abx_check_box_name(name, err);

	if (r == 0)
		r = begin(app, box, stop, &k, &lock, &was, err);
	if (r < 0)
		return r;
	seed = seed_path(app, box);
	r = abx_checkpoint_take(&k, box, name, seed, ret, err);
	if (r == ABX_ENOTFOUND)
		r = abx_box_blame(app, box, r, err);
	/* There is a checkpoint, whatever becomes of the box. */
	if (settle(app, box, was, &why) < 0)
		abx_warn("%s", why.text);
	return r;
}

int abx_box_checkpoint_remove(struct abx_app *app, const char *provider, const char *project,
			      const char *name, struct abx_err *err)
{
	struct abx_checkpointer k = {.home = &app->home, .db = app->db};
	struct abx_config *config = NULL;
	struct abx_checkpoint c = {0};
	struct abx_err why = ABX_ERR_INIT;
	int loaded, r = abx_check_box_name(name, err);

	if (r < 0)
		return r;
	loaded = abx_checkpoint_load(&app->home, provider, project, name, &c, &why);
	if (loaded < 0 && loaded != ABX_ECORRUPT) {
		if (err)
			*err = why;
		return loaded;
	}
	r = abx_config_open(&app->home, project, /* workspace= */ NULL, &config, err);
	if (r == 0)
		r = abx_app_cloud(app, provider, config, &k.cloud, err);
	if (r == 0)
		r = loaded == 0 ? abx_checkpoint_remove(&k, &c, err)
				: abx_checkpoint_remove_damaged(&k, project, name, err);
	abx_config_close(config);
	abx_checkpoint_release(&c);
	return r;
}

static int make_boxes(struct abx_app *app, const struct abx_box *source,
		      const struct abx_checkpoint *point, const char *seed,
		      const struct abx_fork *how, struct abx_box_list *ret, struct abx_err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < how->count && r == 0; i++) {
		abx_autofree char *name = how->name && how->count > 1
						  ? abx_xasprintf("%s-%u", how->name, i + 1)
						  : abx_xstrdup_null(how->name);
		const struct abx_create req = {.workspace = source->workspace,
					       .name = name,
					       .provider = source->provider,
					       .from = point,
					       .from_seed = seed};
		struct abx_created created = {0};

		r = abx_create_box(app, &req, &ret->items[ret->len], &created, err);
		abx_strv_release(&created.notes);
		if (r == 0)
			ret->len++;
	}
	return r;
}

/* All or none: those that are there already go again. */
static void destroy_boxes(struct abx_app *app, struct abx_box_list *boxes)
{
	for (size_t i = 0; i < boxes->len; i++) {
		struct abx_err why = ABX_ERR_INIT;

		if (abx_lifecycle_destroy(app, &boxes->items[i], /* force= */ false, &why) < 0)
			abx_warn("box '%s' could not be removed again: %s",
				 boxes->items[i].name ? boxes->items[i].name : "?", why.text);
	}
	abx_box_list_release(boxes);
}

static int check_names(const struct abx_fork *how, struct abx_err *err)
{
	abx_autofree char *longest = NULL;

	if (!how->name)
		return 0;
	longest = how->count > 1 ? abx_xasprintf("%s-%u", how->name, how->count)
				 : abx_xstrdup(how->name);
	return abx_check_box_name(longest, err);
}

int abx_box_fork(struct abx_app *app, struct abx_box *box, const struct abx_fork *how,
		 struct abx_box_list *ret, struct abx_err *err)
{
	struct abx_box_list boxes = {abx_xcalloc(how->count, sizeof(*boxes.items)), 0};
	abx_autofree char *seed = NULL;
	struct abx_attempt attempt = ABX_ATTEMPT_INIT;
	struct abx_checkpoint point = {0};
	abx_autoclose int lock = -1;
	enum abx_box_state was = ABX_BOX_RUNNING;
	struct abx_err why = ABX_ERR_INIT;
	struct abx_checkpointer k;
	int r = check_names(how, err);

	if (r == 0)
		r = begin(app, box, how->stop, &k, &lock, &was, err);
	if (r == 0)
		r = abx_checkpoint_snapshot(&k, box, &attempt, &point, err);
	if (lock >= 0 && r == ABX_ENOTFOUND)
		r = abx_box_blame(app, box, r, err);
	if (lock >= 0 && settle(app, box, was, &why) < 0)
		abx_warn("%s", why.text);
	abx_cleanup_close(&lock);
	lock = -1;
	if (r < 0) {
		abx_box_list_release(&boxes);
		return r;
	}
	seed = seed_path(app, box);
	r = make_boxes(app, box, &point, seed, how, &boxes, err);
	if (r < 0)
		destroy_boxes(app, &boxes);
	abx_checkpoint_discard(&k, &point, &attempt);
	abx_checkpoint_release(&point);
	if (r == 0)
		*ret = boxes;
	return r;
}
