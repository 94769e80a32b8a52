/* SPDX-License-Identifier: MIT */
/* Making a box not exist any more, from whatever state it is in. */
#include "core/box/undo.h"

#include <string.h>

#include "abxsdk/fs.h"
#include "core/state/journal.h"
#include "core/state/labels.h"
#include "core/state/lock.h"
#include "core/util/log.h"
#include "core/util/mem.h"

#define DESTROY_TIMEOUT_MS 120000
#define LIST_TIMEOUT_MS 60000

static int destroy_sandbox(struct abx_cloud *cloud, const struct abx_call_opts *o,
			   const struct abx_sandbox *s, const struct abx_undo *how,
			   struct abx_err *err)
{
	struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};
	int r;

	req.grace_ms = how->grace_ms;
	r = abx_cloud_destroy(cloud, o, s, &req, err);
	return r == ABX_ENOTFOUND ? 0 : r;
}

/* Everything there that carries the box's label: also what an answer that was lost made. */
static int destroy_labelled(struct abx_app *app, struct abx_cloud *cloud,
			    const struct abx_call_opts *o, const struct abx_box *box,
			    const struct abx_undo *how, struct abx_err *err)
{
	struct abx_kv labels[ABX_N_LABELS];
	struct abx_sandbox_list found = {0};
	struct abx_call_opts list_opts = *o;
	int r;

	abx_labels_of_box(app->db, box, labels);
	list_opts.box_id = NULL;
	list_opts.timeout_ms = LIST_TIMEOUT_MS;
	/* Mark, install, box: name and attempt may differ after a rename or a second try. */
	r = abx_cloud_list(cloud, &list_opts, labels, 3, &found, err);
	for (size_t i = 0; i < found.len && r == 0; i++)
		r = destroy_sandbox(cloud, o, &found.items[i].s, how, err);
	abx_sandbox_list_release(&found);
	return r;
}

static int delete_resources(struct abx_app *app, struct abx_cloud *cloud,
			    const struct abx_call_opts *o, const struct abx_box *box,
			    struct abx_err *err)
{
	struct abx_resource_rows rows = {0};
	int r = abx_resources_list(app->db, box->provider, box->id, &rows, err);

	for (size_t i = 0; i < rows.len && r == 0; i++) {
		struct abx_resource res = {ABX_INIT(struct abx_resource)};

		res.kind = rows.items[i].kind;
		res.id = rows.items[i].id;
		res.name = rows.items[i].name;
		res.sandbox_id = rows.items[i].sandbox_id;
		r = abx_cloud_resource_delete(cloud, o, &res, err);
		if (r == ABX_ENOTFOUND)
			r = 0;
		if (r == 0)
			r = abx_resources_note(app->db, box->provider, box->id, &res,
					       ABX_PHASE_GONE, err);
	}
	abx_resource_rows_release(&rows);
	return r;
}

static int undo_outside(struct abx_app *app, const struct abx_box *box, const struct abx_undo *how,
			struct abx_err *err)
{
	struct abx_call_opts o = {
		.timeout_ms = DESTROY_TIMEOUT_MS, .cleanup = true, .box_id = box->id};
	struct abx_cloud *cloud;
	int r = abx_app_cloud_of(app, box, &cloud, err);

	if (r < 0)
		return r;
	if (box->sandbox_id) {
		struct abx_sandbox s = abx_cloud_sandbox(box);

		r = destroy_sandbox(cloud, &o, &s, how, err);
	}
	/* A box that came up in one piece has one sandbox, the one that its record names. */
	if (r == 0 && (!box->sandbox_id || box->error ||
		       (box->pending && strcmp(box->pending, "create") == 0)))
		r = destroy_labelled(app, cloud, &o, box, how, err);
	if (r == 0)
		r = delete_resources(app, cloud, &o, box, err);
	return r;
}

static int remove_below(const struct abx_home *home, const char *dir, const char *id,
			struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/%s", dir, id);
	int r = abx_fs_remove_tree(home->fd, path);

	return r < 0 ? abx_err_errno(err, r, "remove '%s/%s'", home->path, path) : 0;
}

int abx_undo_record(struct abx_app *app, const struct abx_box *box, struct abx_err *err)
{
	int r = remove_below(&app->home, "tmp", box->id, err);

	if (r == 0)
		r = remove_below(&app->home, "boxes", box->id, err);
	if (r == 0)
		r = abx_boxes_delete(app->db, box->id, err);
	if (r == 0)
		abx_lock_forget(&app->home, box->id);
	return r;
}

/* The row and the record's new state are one transaction: from here on it goes, whoever
 * finishes it. */
static int begin_undo(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	int r = abx_db_begin(app->db, err);

	if (r < 0)
		return r;
	r = abx_journal_add(app->db, box->id, "destroy", "sandbox", ABX_JOURNAL_INTENT,
			    box->sandbox_id, err);
	/* A create that is undone stays one: more may exist than its record says. */
	if (r == 0 && !(box->pending && strcmp(box->pending, "create") == 0)) {
		abx_xreplace(&box->pending, "destroy");
		box->state = ABX_BOX_STOPPING;
		r = abx_boxes_update(app->db, box, err);
	}
	if (r == 0)
		r = abx_db_commit(app->db, err);
	if (r < 0)
		abx_db_rollback(app->db);
	return r;
}

int abx_undo_box(struct abx_app *app, struct abx_box *box, const struct abx_undo *how,
		 struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	int r = begin_undo(app, box, err);

	/* A disk that the box itself has filled: what it has goes first, and makes room.  Its
	 * record is still there, so nothing is lost if that is interrupted. */
	if (r == ABX_EIO && undo_outside(app, box, how, &why) == 0 &&
	    remove_below(&app->home, "tmp", box->id, &why) == 0)
		r = begin_undo(app, box, err);
	if (r < 0)
		return r;
	r = undo_outside(app, box, how, &why);
	if (r < 0 && !how->force) {
		(void)abx_journal_add(app->db, box->id, "destroy", "sandbox", ABX_JOURNAL_FAILED,
				      why.text, NULL);
		if (err)
			*err = why;
		return r;
	}
	if (r < 0)
		abx_warn("%s: what '%s' has at %s may still be there: sandbox %s", why.text,
			 box->name, box->provider, box->sandbox_id ? box->sandbox_id : "unknown");
	r = abx_journal_add(app->db, box->id, "destroy", "sandbox", ABX_JOURNAL_DONE, NULL, err);
	if (r == 0)
		r = abx_undo_record(app, box, err);
	return r;
}
