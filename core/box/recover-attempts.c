/* SPDX-License-Identifier: MIT */
/* What dead processes were making outside of any box. */
#include <string.h>

#include "core/box/recover.h"
#include "core/state/attempt.h"
#include "core/state/labels.h"
#include "core/state/lock.h"
#include "core/util/log.h"

#define DELETE_TIMEOUT_MS 60000

enum kind { SNAPSHOT, IMAGE, VOLUME, OTHER };

static enum kind kind_of(const struct abx_resource_row *row)
{
	return strcmp(row->kind, "snapshot") == 0 ? SNAPSHOT
	       : strcmp(row->kind, "image") == 0  ? IMAGE
	       : strcmp(row->kind, "volume") == 0 ? VOLUME
						  : OTHER;
}

static int delete_row(struct abx_app *app, const struct abx_resource_row *row, struct abx_err *err)
{
	return abx_db_exec(app->db, err, "DELETE FROM resources WHERE seq = ?", "i", row->seq);
}

static int delete_ref(struct abx_cloud *cloud, const struct abx_call_opts *o, enum kind kind,
		      const char *ref, struct abx_err *err)
{
	return kind == IMAGE ? abx_cloud_image_delete(cloud, o, ref, err)
			     : abx_cloud_snapshot_delete(cloud, o, ref, err);
}

/* Its answer may have been lost: then its label finds it. */
static int delete_labelled(struct abx_app *app, struct abx_cloud *cloud,
			   const struct abx_call_opts *o, enum kind kind, const char *attempt,
			   struct abx_err *err)
{
	const struct abx_kv labels[] = {{ABX_LABEL_MARK, "true"},
					{ABX_LABEL_INSTALL, app->db->install},
					{ABX_LABEL_ATTEMPT, attempt}};
	const uint32_t n = ABX_N_ELEMENTS(labels);
	struct abx_snapshot_list found = {0};
	int r = kind == IMAGE ? abx_cloud_image_list(cloud, o, labels, n, &found, err)
			      : abx_cloud_snapshot_list(cloud, o, labels, n, &found, err);

	for (size_t i = 0; i < found.len && r == 0; i++)
		r = delete_ref(cloud, o, kind, found.items[i].s.ref, err);
	abx_snapshot_list_release(&found);
	return r;
}

/* What a provider announced beside what it was to make. */
static int delete_resource(struct abx_cloud *cloud, const struct abx_call_opts *o,
			   const struct abx_resource_row *row, struct abx_err *err)
{
	struct abx_resource res = {ABX_INIT(struct abx_resource)};

	res.kind = row->kind;
	res.id = row->id;
	res.name = row->name;
	res.sandbox_id = row->sandbox_id;
	return abx_cloud_resource_delete(cloud, o, &res, err);
}

static int delete_made(struct abx_app *app, const struct abx_resource_row *row, struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = DELETE_TIMEOUT_MS, .cleanup = true};
	const enum kind kind = kind_of(row);
	struct abx_config *config = NULL;
	struct abx_cloud *cloud;
	int r = abx_config_open(&app->home, NULL, NULL, &config, err);

	if (r == 0)
		r = abx_app_cloud(app, row->provider, config, &cloud, err);
	abx_config_close(config);
	if (r < 0)
		return r;
	if (kind == OTHER)
		r = delete_resource(cloud, &o, row, err);
	else if (row->id)
		r = delete_ref(cloud, &o, kind, row->id, err);
	else
		r = delete_labelled(app, cloud, &o, kind, row->attempt, err);
	return r == 0 ? delete_row(app, row, err) : r;
}

/* It may have been ended between the listing and the lock. */
static int still_there(struct abx_app *app, const struct abx_resource_row *row, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(app->db, &stmt, err, "SELECT 1 FROM resources WHERE seq = ?", "i",
			     row->seq);

	if (r < 0)
		return r;
	r = abx_db_step(app->db, stmt, err);
	(void)sqlite3_finalize(stmt);
	return r;
}

/* A volume goes by its name, and only when somebody says so. */
static bool stays(struct abx_app *app, const struct abx_resource_row *row)
{
	return kind_of(row) == VOLUME || abx_attempt_is_kept(&app->home, row);
}

static int finish(struct abx_app *app, const struct abx_resource_row *row,
		  enum abx_recover_mode mode, struct abx_leftovers *ret, struct abx_err *err)
{
	static const enum abx_leftover_kind shown[] = {ABX_LEFT_SNAPSHOT, ABX_LEFT_IMAGE,
						       ABX_LEFT_RESOURCE, ABX_LEFT_RESOURCE};
	const enum abx_leftover_kind kind = shown[kind_of(row)];
	const char *id = row->id ? row->id : row->attempt;
	abx_autoclose int lock = -1;
	struct abx_err why = ABX_ERR_INIT;
	int r;

	if (abx_lock_box(&app->home, row->attempt, 0, &lock, NULL) < 0)
		return 0;
	r = still_there(app, row, err);
	if (r == 1 && stays(app, row)) {
		r = delete_row(app, row, err);
	} else if (r == 1 && mode == ABX_RECOVER_LOOK) {
		(void)abx_leftovers_add(ret, kind, row->provider, row->name, id);
		return 0;
	} else if (r == 1) {
		r = delete_made(app, row, &why);
		if (r == ABX_ESTATE)
			abx_log(ABX_LOG_INFO, "recover", "%s", why.text);
		else
			abx_leftover_settle(
				abx_leftovers_add(ret, kind, row->provider, row->name, id), r,
				"removed", &why);
		r = 0;
	}
	abx_lock_forget(&app->home, row->attempt);
	return r;
}

int abx_recover_attempts(struct abx_app *app, enum abx_recover_mode mode, const char *provider,
			 struct abx_leftovers *ret, struct abx_err *err)
{
	struct abx_resource_rows rows = {0};
	int r = abx_resources_list(app->db, provider, NULL, &rows, err);

	for (size_t i = 0; i < rows.len && r == 0; i++)
		if (rows.items[i].attempt)
			r = finish(app, &rows.items[i], mode, ret, err);
	abx_resource_rows_release(&rows);
	return r;
}
