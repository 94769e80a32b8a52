/* SPDX-License-Identifier: MIT */
/* What is about to exist, and what does. */
#include "core/state/journal.h"

#include <string.h>

#include "core/util/clock.h"
#include "core/util/mem.h"
#include "core/util/redact.h"

void abx_journal_rows_release(struct abx_journal_rows *rows)
{
	for (size_t i = 0; i < rows->len; i++) {
		free(rows->items[i].box_id);
		free(rows->items[i].op);
		free(rows->items[i].step);
		free(rows->items[i].detail);
	}
	free(rows->items);
	memset(rows, 0, sizeof(*rows));
}

int abx_journal_add(struct abx_db *db, const char *box_id, const char *op, const char *step,
		    enum abx_journal_phase phase, const char *detail, struct abx_err *err)
{
	abx_autofree char *text = abx_xstrdup_null(detail);
	int r;

	if (text)
		abx_redact(text);
	r = abx_db_exec(db, err,
			"INSERT INTO journal (at, box, op, step, phase, detail)"
			" VALUES (?, ?, ?, ?, ?, ?)",
			"isssis", abx_wall_ms(), box_id, op, step, (int64_t)phase, text);
	return r < 0 ? abx_err_wrap(err, "journal of box '%s'", box_id) : 0;
}

int abx_journal_list(struct abx_db *db, const char *box_id, struct abx_journal_rows *ret,
		     struct abx_err *err)
{
	struct abx_journal_rows rows = {NULL, 0};
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err,
			     "SELECT seq, at, box, op, step, phase, detail FROM journal"
			     " WHERE box = ? ORDER BY seq",
			     "s", box_id);

	if (r < 0)
		return r;
	while ((r = abx_db_step(db, stmt, err)) == 1) {
		struct abx_journal_row *row;

		rows.items = abx_xreallocarray(rows.items, rows.len + 1, sizeof(*rows.items));
		row = &rows.items[rows.len++];
		row->seq = sqlite3_column_int64(stmt, 0);
		row->at_ms = sqlite3_column_int64(stmt, 1);
		row->box_id = abx_db_text(stmt, 2);
		row->op = abx_db_text(stmt, 3);
		row->step = abx_db_text(stmt, 4);
		row->phase = (enum abx_journal_phase)sqlite3_column_int(stmt, 5);
		row->detail = abx_db_text(stmt, 6);
	}
	(void)sqlite3_finalize(stmt);
	if (r < 0) {
		abx_journal_rows_release(&rows);
		return r;
	}
	*ret = rows;
	return 0;
}

void abx_resource_rows_release(struct abx_resource_rows *rows)
{
	for (size_t i = 0; i < rows->len; i++) {
		free(rows->items[i].box_id);
		free(rows->items[i].provider);
		free(rows->items[i].kind);
		free(rows->items[i].id);
		free(rows->items[i].name);
		free(rows->items[i].sandbox_id);
		free(rows->items[i].attempt);
		free(rows->items[i].record);
	}
	free(rows->items);
	memset(rows, 0, sizeof(*rows));
}

/* The same thing has the same id, or the same name while its id is not known. */
#define SAME_RESOURCE                                      \
	" WHERE provider = ?1 AND box IS ?2 AND kind = ?3" \
	" AND ((?4 IS NOT NULL AND id = ?4)"               \
	"  OR (name IS ?5 AND name IS NOT NULL AND (id IS NULL OR ?4 IS NULL)))"

static int note_exists(struct abx_db *db, const char *provider, const char *box_id,
		       const char *attempt, const struct abx_resource *res, uint32_t phase,
		       struct abx_err *err)
{
	int r = abx_db_exec(
		db, err,
		"UPDATE resources SET id = coalesce(?4, id), name = coalesce(?5, name),"
		" sandbox_id = coalesce(?6, sandbox_id), phase = max(phase, ?7)" SAME_RESOURCE
		" AND attempt IS ?8",
		"ssssssis", provider, box_id, res->kind, res->id, res->name, res->sandbox_id,
		(int64_t)phase, attempt);

	if (r < 0 || abx_db_changes(db) > 0)
		return r;
	return abx_db_exec(
		db, err,
		"INSERT INTO resources (provider, box, kind, id, name, sandbox_id, phase, attempt)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		"ssssssis", provider, box_id, res->kind, res->id, res->name, res->sandbox_id,
		(int64_t)phase, attempt);
}

int abx_resources_note(struct abx_db *db, const char *provider, const char *box_id,
		       const struct abx_resource *res, uint32_t phase, struct abx_err *err)
{
	return abx_resources_note_of(db, provider, box_id, /* attempt= */ NULL, res, phase, err);
}

int abx_resources_note_of(struct abx_db *db, const char *provider, const char *box_id,
			  const char *attempt, const struct abx_resource *res, uint32_t phase,
			  struct abx_err *err)
{
	/* May be called inside a transaction of the caller's. */
	bool own = sqlite3_get_autocommit(db->sql) != 0;
	int r = own ? abx_db_begin(db, err) : 0;

	if (r == 0 && phase == ABX_PHASE_GONE)
		r = abx_db_exec(db, err, "DELETE FROM resources" SAME_RESOURCE, "sssss", provider,
				box_id, res->kind, res->id, res->name);
	else if (r == 0)
		r = note_exists(db, provider, box_id, attempt, res, phase, err);
	if (r == 0 && own)
		r = abx_db_commit(db, err);
	if (r < 0 && own)
		abx_db_rollback(db);
	return r < 0 ? abx_err_wrap(err, "%s '%s'", res->kind, res->name ? res->name : res->id) : 0;
}

int abx_resources_made(struct abx_db *db, const char *attempt, const char *id, struct abx_err *err)
{
	/* The first row is the one that it was begun with. */
	return abx_db_exec(db, err,
			   "UPDATE resources SET id = ?2, phase = ?3 WHERE seq ="
			   " (SELECT min(seq) FROM resources WHERE attempt = ?1)",
			   "ssi", attempt, id, (int64_t)ABX_PHASE_EXISTS);
}

int abx_resources_list(struct abx_db *db, const char *provider, const char *box_id,
		       struct abx_resource_rows *ret, struct abx_err *err)
{
	struct abx_resource_rows rows = {NULL, 0};
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err,
			     "SELECT seq, box, provider, kind, id, name, sandbox_id, phase,"
			     " attempt, record FROM resources WHERE (?1 IS NULL OR provider = ?1)"
			     " AND (?2 IS NULL OR box = ?2) ORDER BY seq",
			     "ss", provider, box_id);

	if (r < 0)
		return r;
	while ((r = abx_db_step(db, stmt, err)) == 1) {
		struct abx_resource_row *row;

		rows.items = abx_xreallocarray(rows.items, rows.len + 1, sizeof(*rows.items));
		row = &rows.items[rows.len++];
		row->seq = sqlite3_column_int64(stmt, 0);
		row->box_id = abx_db_text(stmt, 1);
		row->provider = abx_db_text(stmt, 2);
		row->kind = abx_db_text(stmt, 3);
		row->id = abx_db_text(stmt, 4);
		row->name = abx_db_text(stmt, 5);
		row->sandbox_id = abx_db_text(stmt, 6);
		row->phase = (uint32_t)sqlite3_column_int(stmt, 7);
		row->attempt = abx_db_text(stmt, 8);
		row->record = abx_db_text(stmt, 9);
	}
	(void)sqlite3_finalize(stmt);
	if (r < 0) {
		abx_resource_rows_release(&rows);
		return r;
	}
	*ret = rows;
	return 0;
}
