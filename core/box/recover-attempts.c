/* SPDX-License-Identifier: MIT */
/* What dead processes were making outside of any box. */
#include <string.h>

#include "core/box/recover.h"
#include "core/state/attempt.h"
#include "core/state/labels.h"
#include "core/state/lock.h"
#include "core/util/log.h"

#define DELETE_TIMEOUT_MS 60000

static int delete_row(struct abx_app *app, const char *attempt, struct abx_err *err)
{
	return abx_db_exec(app->db, err, "DELETE FROM resources WHERE attempt = ?", "s", attempt);
}

/* Its answer may have been lost: then its label finds it. */
static int delete_labelled(struct abx_app *app, struct abx_cloud *cloud,
			   const struct abx_call_opts *o, const char *attempt, struct abx_err *err)
{
	const struct abx_kv labels[] = {{ABX_LABEL_MARK, "true"},
					{ABX_LABEL_INSTALL, app->db->install},
					{ABX_LABEL_ATTEMPT, attempt}};
	struct abx_snapshot_list found = {0};
	int r = abx_cloud_snapshot_list(cloud, o, labels, ABX_N_ELEMENTS(labels), &found, err);

	for (size_t i = 0; i < found.len && r == 0; i++)
		r = abx_cloud_snapshot_delete(cloud, o, found.items[i].s.ref, err);
	abx_snapshot_list_release(&found);
	return r;
}

static int delete_made(struct abx_app *app, const struct abx_resource_row *row, struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = DELETE_TIMEOUT_MS, .cleanup = true};
	struct abx_config *config = NULL;
	struct abx_cloud *cloud;
	int r = abx_config_open(&app->home, NULL, NULL, &config, err);

	if (r == 0)
		r = abx_app_cloud(app, row->provider, config, &cloud, err);
	abx_config_close(config);
	if (r < 0)
		return r;
	r = row->id ? abx_cloud_snapshot_delete(cloud, &o, row->id, err)
		    : delete_labelled(app, cloud, &o, row->attempt, err);
	return r == 0 ? delete_row(app, row->attempt, err) : r;
}

/* It may have been ended between the listing and the lock. */
static int still_there(struct abx_app *app, const char *attempt, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(app->db, &stmt, err, "SELECT 1 FROM resources WHERE attempt = ?", "s",
			     attempt);

	if (r < 0)
		return r;
	r = abx_db_step(app->db, stmt, err);
	(void)sqlite3_finalize(stmt);
	return r;
}

/* A volume is the user's by its name, however far it came. */
static bool is_kept(struct abx_app *app, const struct abx_resource_row *row)
{
	return strcmp(row->kind, "volume") == 0 || abx_attempt_is_kept(&app->home, row);
}

static bool is_known(const struct abx_resource_row *row)
{
	return row->attempt &&
	       (strcmp(row->kind, "snapshot") == 0 || strcmp(row->kind, "volume") == 0);
}

static int finish(struct abx_app *app, const struct abx_resource_row *row,
		  enum abx_recover_mode mode, struct abx_leftovers *ret, struct abx_err *err)
{
	abx_autoclose int lock = -1;
	struct abx_err why = ABX_ERR_INIT;
	int r;

	if (abx_lock_box(&app->home, row->attempt, 0, &lock, NULL) < 0)
		return 0;
	r = still_there(app, row->attempt, err);
	if (r == 1 && is_kept(app, row)) {
		r = delete_row(app, row->attempt, err);
	} else if (r == 1 && mode == ABX_RECOVER_LOOK) {
		(void)abx_leftovers_add(ret, ABX_LEFT_SNAPSHOT, row->provider, row->name,
					row->id ? row->id : row->attempt);
		return 0;
	} else if (r == 1) {
		r = delete_made(app, row, &why);
		if (r == ABX_ESTATE)
			abx_log(ABX_LOG_INFO, "recover", "%s", why.text);
		else
			abx_leftover_settle(abx_leftovers_add(ret, ABX_LEFT_SNAPSHOT, row->provider,
							      row->name,
							      row->id ? row->id : row->attempt),
					    r, "removed", &why);
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
		if (is_known(&rows.items[i]))
			r = finish(app, &rows.items[i], mode, ret, err);
	abx_resource_rows_release(&rows);
	return r;
}
