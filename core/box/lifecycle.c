/* SPDX-License-Identifier: MIT */
/* Boxes that exist: their state, starting, stopping, pausing, destroying. */
#include "core/box/lifecycle.h"

#include <string.h>

#include "core/box/recover.h"
#include "core/box/spec.h"
#include "core/box/undo.h"
#include "core/state/labels.h"
#include "core/state/lock.h"
#include "core/util/log.h"
#include "core/util/mem.h"

#define LOCK_WAIT_MS 30000
#define LIST_TIMEOUT_MS 30000
#define START_TIMEOUT_MS 300000
#define STOP_TIMEOUT_MS 120000
#define DEFAULT_GRACE_MS 5000

static const struct abx_sandbox *find_sandbox(const struct abx_sandbox_list *list,
					      const struct abx_box *box)
{
	for (size_t i = 0; i < list->len; i++) {
		const struct abx_sandbox *s = &list->items[i].s;
		const char *label = abx_sandbox_label(s, ABX_LABEL_BOX);

		if (box->sandbox_id ? strcmp(s->id, box->sandbox_id) == 0
				    : label && strcmp(label, box->id) == 0)
			return s;
	}
	return NULL;
}

/* What is on record of a state is a copy: a disk with no room for it changes nothing about the
 * box, and the next command that can will write it. */
static int record_state(struct abx_app *app, const struct abx_box *box, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	int r = abx_boxes_update(app->db, box, &why);

	if (r == ABX_EIO) {
		abx_warn("box '%s' is %s, which could not be written down: %s", box->name,
			 abx_box_state_name(box->state), why.text);
		return 0;
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int note_state(struct abx_app *app, struct abx_box *box, const struct abx_sandbox *s,
		      struct abx_err *err)
{
	enum abx_box_state state = s ? abx_box_state_of_sandbox(s->state) : ABX_BOX_GONE;

	/* Under way, or abandoned: that is not for a listing to decide. */
	if (box->pending)
		return 0;
	if (s && s->expires_at_ms != box->expires_at_ms && s->expires_at_ms)
		box->expires_at_ms = s->expires_at_ms;
	else if (state == box->state)
		return 0;
	box->state = state;
	return record_state(app, box, err);
}

/* Not listed: it is gone, or there and not whole, which only asking for it by its id tells. */
static int note_unlisted(struct abx_app *app, struct abx_cloud *cloud, struct abx_box *box,
			 struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = LIST_TIMEOUT_MS};
	struct abx_sandbox_copy found = {0};
	struct abx_sandbox s;
	struct abx_err why = ABX_ERR_INIT;
	int r = ABX_ENOTFOUND;

	if (box->sandbox_id && !box->pending && box->state != ABX_BOX_GONE) {
		s = abx_cloud_sandbox(box);
		r = abx_cloud_get(cloud, &o, &s, &found, &why);
	}
	if (r == ABX_ECANCELED)
		return abx_err_set(err, r, "%s", why.text);
	if (r == 0)
		r = note_state(app, box, &found.s, err);
	else if (r == ABX_ENOTFOUND)
		r = note_state(app, box, NULL, err);
	else {
		abx_warn("%s: the state of box '%s' is not known", why.text, box->name);
		box->state = ABX_BOX_UNKNOWN;
		r = 0;
	}
	abx_sandbox_copy_release(&found);
	return r;
}

static int refresh_provider(struct abx_app *app, struct abx_box_list *boxes,
			    const struct abx_box *first, struct abx_err *err)
{
	struct abx_call_opts o = {.timeout_ms = LIST_TIMEOUT_MS};
	struct abx_kv labels[ABX_N_INSTALL_LABELS];
	struct abx_sandbox_list found = {0};
	struct abx_err why = ABX_ERR_INIT;
	struct abx_cloud *cloud;
	int noted = 0, r = abx_app_cloud_of(app, first, &cloud, &why);

	abx_labels_of_install(app->db, labels);
	if (r == 0)
		r = abx_cloud_list(cloud, &o, labels, ABX_N_INSTALL_LABELS, &found, &why);
	if (r == ABX_ECANCELED)
		return abx_err_set(err, r, "%s", why.text);
	if (r < 0)
		abx_warn("%s: the state of its boxes is not known", why.text);
	for (struct abx_box *b = boxes->items; b < boxes->items + boxes->len && noted == 0; b++) {
		if (strcmp(b->provider, first->provider) != 0)
			continue;
		if (r == 0) {
			const struct abx_sandbox *s = find_sandbox(&found, b);

			noted = s ? note_state(app, b, s, err) : note_unlisted(app, cloud, b, err);
		} else if (!b->pending)
			b->state = ABX_BOX_UNKNOWN;
	}
	abx_sandbox_list_release(&found);
	return noted;
}

int abx_lifecycle_refresh(struct abx_app *app, struct abx_box_list *boxes, struct abx_err *err)
{
	for (size_t i = 0; i < boxes->len; i++) {
		bool seen = false;
		int r;

		for (size_t j = 0; j < i && !seen; j++)
			seen = strcmp(boxes->items[i].provider, boxes->items[j].provider) == 0;
		if (seen)
			continue;
		r = refresh_provider(app, boxes, &boxes->items[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* With the lock held the record may have moved on: read it again. */
static int lock_and_reload(struct abx_app *app, struct abx_box *box, int *ret_lock,
			   struct abx_err *err)
{
	abx_autoclose int lock = -1;
	int r = abx_lock_box(&app->home, box->id, LOCK_WAIT_MS, &lock, err);

	if (r < 0)
		return abx_err_wrap(err, "box '%s'", box->name);
	r = abx_boxes_reload(app->db, box, err);
	if (r < 0)
		return r;
	*ret_lock = abx_steal_fd(&lock);
	return 0;
}

/* Only destroying and pruning may go on with what an unfinished operation left. */
int abx_lifecycle_check_whole(const struct abx_box *box, struct abx_err *err)
{
	if (!box->pending && box->sandbox_id)
		return 0;
	(void)abx_err_set(err, ABX_ESTATE, "box '%s': its %s was not finished", box->name,
			  box->pending ? box->pending : "create");
	return abx_err_remedy(err, "agentbox prune removes what is left of it");
}

static int set_state(struct abx_app *app, struct abx_box *box, enum abx_box_state state,
		     struct abx_err *err)
{
	box->state = state;
	return record_state(app, box, err);
}

int abx_lifecycle_say_gone(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	(void)set_state(app, box, ABX_BOX_GONE, NULL);
	(void)abx_err_set(err, ABX_ENOBOX, "box '%s' is gone: %s does not have it any more",
			  box->name, box->provider);
	(void)abx_err_remedy(err, "agentbox destroy %s removes the record", box->name);
	return ABX_ENOBOX;
}

/* The provider's own words on it were recorded while it changed. */
static int settle_state(struct abx_app *app, struct abx_box *box, enum abx_box_state state,
			struct abx_err *err)
{
	int r = abx_boxes_reload(app->db, box, err);

	return r < 0 ? r : set_state(app, box, state, err);
}

/* What is on record may be older than what is: the other way round is tried as well. */
static int start_or_resume(struct abx_cloud *cloud, const struct abx_box *box, struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = START_TIMEOUT_MS, .box_id = box->id};
	const struct abx_start_req req = abx_box_start_req(box);
	struct abx_sandbox s = abx_cloud_sandbox(box);
	bool can_resume = abx_cloud_table(cloud)->resume;
	bool resume = can_resume && (box->state == ABX_BOX_PAUSED || box->state == ABX_BOX_PAUSING);
	struct abx_err why = ABX_ERR_INIT;
	int r;

	for (int attempt = 0;; attempt++) {
		r = resume ? abx_cloud_resume(cloud, &o, &s, &req, &why)
			   : abx_cloud_start(cloud, &o, &s, &req, &why);
		if (r != ABX_ESTATE || !can_resume || attempt)
			break;
		resume = !resume;
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int abx_lifecycle_start_locked(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	struct abx_cloud *cloud;
	int r = abx_app_cloud_of(app, box, &cloud, err);

	if (r == 0)
		r = start_or_resume(cloud, box, err);
	if (r == ABX_ENOTFOUND)
		return abx_lifecycle_say_gone(app, box, err);
	return r < 0 ? r : settle_state(app, box, ABX_BOX_RUNNING, err);
}

int abx_lifecycle_lock(struct abx_app *app, struct abx_box *box, int *ret_lock, struct abx_err *err)
{
	abx_autoclose int lock = -1;
	int r = lock_and_reload(app, box, &lock, err);

	if (r == 0)
		r = abx_lifecycle_check_whole(box, err);
	if (r == 0)
		*ret_lock = abx_steal_fd(&lock);
	return r;
}

int abx_lifecycle_start(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	abx_autoclose int lock = -1;
	int r = abx_lifecycle_lock(app, box, &lock, err);

	return r < 0 ? r : abx_lifecycle_start_locked(app, box, err);
}

int abx_lifecycle_stop_locked(struct abx_app *app, struct abx_box *box, int64_t grace_ms,
			      struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = STOP_TIMEOUT_MS, .box_id = box->id};
	struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};
	struct abx_sandbox s = abx_cloud_sandbox(box);
	struct abx_cloud *cloud;
	int r = abx_app_cloud_of(app, box, &cloud, err);

	if (r < 0)
		return r;
	req.grace_ms = grace_ms >= 0 ? grace_ms : DEFAULT_GRACE_MS;
	r = abx_cloud_stop(cloud, &o, &s, &req, err);
	if (r == ABX_ENOTFOUND)
		return abx_lifecycle_say_gone(app, box, err);
	return r < 0 ? r : set_state(app, box, ABX_BOX_STOPPED, err);
}

int abx_lifecycle_stop(struct abx_app *app, struct abx_box *box, int64_t grace_ms,
		       struct abx_err *err)
{
	abx_autoclose int lock = -1;
	int r = abx_lifecycle_lock(app, box, &lock, err);

	return r < 0 ? r : abx_lifecycle_stop_locked(app, box, grace_ms, err);
}

int abx_lifecycle_pause_locked(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = STOP_TIMEOUT_MS, .box_id = box->id};
	struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};
	struct abx_sandbox s = abx_cloud_sandbox(box);
	struct abx_cloud *cloud;
	int r = abx_app_cloud_of(app, box, &cloud, err);

	if (r < 0)
		return r;
	if (!abx_cloud_table(cloud)->pause)
		return abx_lifecycle_stop_locked(app, box, /* grace_ms= */ -1, err);
	r = abx_cloud_pause(cloud, &o, &s, &req, err);
	if (r == ABX_ENOTFOUND)
		return abx_lifecycle_say_gone(app, box, err);
	return r < 0 ? r : settle_state(app, box, ABX_BOX_PAUSED, err);
}

int abx_lifecycle_pause(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	abx_autoclose int lock = -1;
	int r = abx_lifecycle_lock(app, box, &lock, err);

	return r < 0 ? r : abx_lifecycle_pause_locked(app, box, err);
}

/* It may have been the last one that needed the snapshot which it was made of. */
static void drop_unneeded(struct abx_app *app, const char *provider)
{
	struct abx_leftovers found = {0};
	struct abx_err why = ABX_ERR_INIT;

	if (abx_recover_attempts(app, ABX_RECOVER_PRUNE, provider, &found, &why) < 0)
		abx_log(ABX_LOG_INFO, "recover", "%s", why.text);
	abx_leftovers_release(&found);
}

int abx_lifecycle_destroy(struct abx_app *app, struct abx_box *box, bool force, struct abx_err *err)
{
	struct abx_undo how = {.force = force};
	abx_autoclose int lock = -1;
	int r = lock_and_reload(app, box, &lock, err);

	/* Somebody else destroyed it while we waited. */
	if (r == ABX_ENOBOX)
		return 0;
	if (r == 0)
		r = abx_undo_box(app, box, &how, err);
	if (r == 0)
		drop_unneeded(app, box->provider);
	return r;
}

int abx_lifecycle_forget(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	abx_autoclose int lock = -1;
	int r = lock_and_reload(app, box, &lock, err);

	return r < 0 ? r : abx_undo_record(app, box, err);
}
