/* SPDX-License-Identifier: MIT */
/* The records of boxes and projects. */
#include "core/state/boxes.h"

#include <string.h>

#include "core/state/journal.h"
#include "core/state/names.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/rand.h"

#define BOX_ID_DIGITS 16
#define ATTEMPT_DIGITS 32
#define PROJECT_NAME_BYTES 40
/* More boxes than that many random draws miss do not fit on a disk. */
#define MAX_DRAWS 1000

static const char *const state_names[] = {
	[ABX_BOX_UNKNOWN] = "unknown",	 [ABX_BOX_CREATING] = "creating",
	[ABX_BOX_STARTING] = "starting", [ABX_BOX_RUNNING] = "running",
	[ABX_BOX_PAUSING] = "pausing",	 [ABX_BOX_PAUSED] = "paused",
	[ABX_BOX_STOPPING] = "stopping", [ABX_BOX_STOPPED] = "stopped",
	[ABX_BOX_FAILED] = "failed",	 [ABX_BOX_GONE] = "gone",
};

const char *abx_box_state_name(enum abx_box_state state)
{
	return (size_t)state < ABX_N_ELEMENTS(state_names) ? state_names[state] : "unknown";
}

enum abx_box_state abx_box_state_of_name(const char *name)
{
	for (size_t i = 0; name && i < ABX_N_ELEMENTS(state_names); i++)
		if (strcmp(name, state_names[i]) == 0)
			return (enum abx_box_state)i;
	return ABX_BOX_UNKNOWN;
}

enum abx_box_state abx_box_state_of_sandbox(uint32_t state)
{
	switch (state) {
	case ABX_STATE_STARTING:
		return ABX_BOX_STARTING;
	case ABX_STATE_RUNNING:
		return ABX_BOX_RUNNING;
	case ABX_STATE_PAUSING:
		return ABX_BOX_PAUSING;
	case ABX_STATE_PAUSED:
		return ABX_BOX_PAUSED;
	case ABX_STATE_STOPPING:
		return ABX_BOX_STOPPING;
	case ABX_STATE_STOPPED:
	case ABX_STATE_ARCHIVED:
		return ABX_BOX_STOPPED;
	case ABX_STATE_FAILED:
		return ABX_BOX_FAILED;
	default:
		return ABX_BOX_UNKNOWN;
	}
}

void abx_box_release(struct abx_box *b)
{
	free(b->id);
	free(b->name);
	free(b->project);
	free(b->workspace);
	free(b->provider);
	free(b->sandbox_id);
	free(b->account);
	free(b->provider_data);
	free(b->attempt);
	free(b->branch);
	free(b->base_commit);
	free(b->seed_tree);
	free(b->checkpoint);
	free(b->spec);
	free(b->pending);
	free(b->error);
	memset(b, 0, sizeof(*b));
}

void abx_box_list_release(struct abx_box_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		abx_box_release(&l->items[i]);
	free(l->items);
	memset(l, 0, sizeof(*l));
}

char *abx_project_key(const char *path)
{
	const char *base = strrchr(path, '/');
	char name[PROJECT_NAME_BYTES + 1];
	size_t len = 0;

	for (base = base ? base + 1 : path; *base && len < PROJECT_NAME_BYTES; base++) {
		char c = *base >= 'A' && *base <= 'Z' ? (char)(*base - 'A' + 'a') : *base;

		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			name[len++] = c;
		else if (len && name[len - 1] != '-')
			name[len++] = '-';
	}
	while (len && name[len - 1] == '-')
		len--;
	return abx_xasprintf("%.*s-%016llx", len ? (int)len : 7, len ? name : "project",
			     (unsigned long long)abx_hash_text(path));
}

#define BOX_COLUMNS                                                                        \
	"id, name, idx, project, workspace, provider, sandbox_id, account, provider_data," \
	" attempt, branch, base_commit, seed_tree, checkpoint, pending, error, state,"     \
	" created_at, expires_at, spec"

static void box_from_row(sqlite3_stmt *stmt, struct abx_box *b)
{
	b->id = abx_db_text(stmt, 0);
	b->name = abx_db_text(stmt, 1);
	b->index = (uint32_t)sqlite3_column_int64(stmt, 2);
	b->project = abx_db_text(stmt, 3);
	b->workspace = abx_db_text(stmt, 4);
	b->provider = abx_db_text(stmt, 5);
	b->sandbox_id = abx_db_text(stmt, 6);
	b->account = abx_db_text(stmt, 7);
	b->provider_data = abx_db_text(stmt, 8);
	b->attempt = abx_db_text(stmt, 9);
	b->branch = abx_db_text(stmt, 10);
	b->base_commit = abx_db_text(stmt, 11);
	b->seed_tree = abx_db_text(stmt, 12);
	b->checkpoint = abx_db_text(stmt, 13);
	b->pending = abx_db_text(stmt, 14);
	b->error = abx_db_text(stmt, 15);
	b->state = abx_box_state_of_name((const char *)sqlite3_column_text(stmt, 16));
	b->created_at_ms = sqlite3_column_int64(stmt, 17);
	b->expires_at_ms = sqlite3_column_int64(stmt, 18);
	b->spec = abx_db_text(stmt, 19);
}

static int collect(struct abx_db *db, sqlite3_stmt *stmt, struct abx_box_list *ret,
		   struct abx_err *err)
{
	struct abx_box_list list = {NULL, 0};
	size_t cap = 0;
	int r;

	while ((r = abx_db_step(db, stmt, err)) == 1) {
		if (list.len == cap) {
			cap = cap ? cap * 2 : 8;
			list.items = abx_xreallocarray(list.items, cap, sizeof(*list.items));
		}
		box_from_row(stmt, &list.items[list.len++]);
	}
	(void)sqlite3_finalize(stmt);
	if (r < 0) {
		abx_box_list_release(&list);
		return r;
	}
	*ret = list;
	return 0;
}

int abx_boxes_list(struct abx_db *db, const char *project, struct abx_box_list *ret,
		   struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err,
			     "SELECT " BOX_COLUMNS " FROM boxes"
			     " WHERE ?1 IS NULL OR project = ?1 ORDER BY project, idx",
			     "s", project);

	return r < 0 ? r : collect(db, stmt, ret, err);
}

int abx_boxes_load(struct abx_db *db, const char *id, struct abx_box *ret, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err, "SELECT " BOX_COLUMNS " FROM boxes WHERE id = ?", "s",
			     id);

	if (r < 0)
		return r;
	r = abx_db_step(db, stmt, err);
	if (r == 1)
		box_from_row(stmt, ret);
	(void)sqlite3_finalize(stmt);
	if (r == 0)
		return abx_err_set(err, ABX_ENOBOX, "box '%s': no such box", id);
	return r < 0 ? r : 0;
}

int abx_boxes_reload(struct abx_db *db, struct abx_box *box, struct abx_err *err)
{
	struct abx_box fresh = {0};
	int r = abx_boxes_load(db, box->id, &fresh, err);

	if (r < 0)
		return r;
	abx_box_release(box);
	*box = fresh;
	return 0;
}

/* 1 when the query has a row, 0 when not. */
static int exists(struct abx_db *db, const char *sql, const char *text, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err, sql, "s", text);

	if (r < 0)
		return r;
	r = abx_db_step(db, stmt, err);
	(void)sqlite3_finalize(stmt);
	return r;
}

static int check_name_free(struct abx_db *db, const char *name, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	struct abx_box other;
	int r = abx_db_query(db, &stmt, err,
			     "SELECT " BOX_COLUMNS " FROM boxes"
			     " WHERE name = ?1 OR id = ?1 ORDER BY name = ?1 DESC LIMIT 1",
			     "s", name);

	if (r < 0)
		return r;
	r = abx_db_step(db, stmt, err);
	if (r == 1)
		box_from_row(stmt, &other);
	(void)sqlite3_finalize(stmt);
	if (r != 1)
		return r;
	if (strcmp(other.name, name) == 0) {
		(void)abx_err_set(err, ABX_EEXIST,
				  "name '%s': taken by box %s of '%s', which is %s", name, other.id,
				  other.workspace, abx_box_state_name(other.state));
		(void)abx_err_remedy(err, "choose another name, or: agentbox destroy %s", name);
	} else {
		(void)abx_err_set(err, ABX_EEXIST, "name '%s': that is the id of box %s (%s)", name,
				  other.id, other.name);
		(void)abx_err_remedy(err, "choose another name");
	}
	abx_box_release(&other);
	return ABX_EEXIST;
}

static int choose_name(struct abx_db *db, const char *wanted, char **ret, struct abx_err *err)
{
	char text[ABX_NAME_BYTES];
	int r;

	if (wanted) {
		r = abx_check_box_name(wanted, err);
		if (r == 0)
			r = check_name_free(db, wanted, err);
		if (r == 0)
			*ret = abx_xstrdup(wanted);
		return r;
	}
	for (unsigned int attempt = 0; attempt < MAX_DRAWS; attempt++) {
		abx_name_make(attempt, text);
		r = exists(db, "SELECT 1 FROM boxes WHERE name = ?", text, err);
		if (r < 0)
			return r;
		if (r == 0) {
			*ret = abx_xstrdup(text);
			return 0;
		}
	}
	return abx_err_set(err, ABX_EINTERNAL, "no free name was found");
}

void abx_box_new_id(char id[17])
{
	do
		abx_rand_hex(id, BOX_ID_DIGITS);
	while (strspn(id, "0123456789") == BOX_ID_DIGITS);
}

/* A name of another box that an id begins with does no harm when it came first: names are
 * looked for before prefixes.  An id that can still be chosen avoids it all the same. */
static int choose_id(struct abx_db *db, const char *wanted, char **ret, struct abx_err *err)
{
	char id[BOX_ID_DIGITS + 1];
	int r;

	if (wanted) {
		if (strlen(wanted) != BOX_ID_DIGITS ||
		    strspn(wanted, "0123456789abcdef") != BOX_ID_DIGITS)
			return abx_err_set(err, ABX_EINVAL, "'%.40s' is not a box id", wanted);
		r = exists(db, "SELECT 1 FROM boxes WHERE id = ?", wanted, err);
		if (r == 1)
			return abx_err_set(err, ABX_EEXIST, "box '%s': is here already", wanted);
		if (r == 0)
			*ret = abx_xstrdup(wanted);
		return r;
	}
	for (unsigned int attempt = 0; attempt < MAX_DRAWS; attempt++) {
		abx_box_new_id(id);
		r = exists(db,
			   "SELECT 1 FROM boxes WHERE id = ?1"
			   " OR substr(?1, 1, length(name)) = name",
			   id, err);
		if (r < 0)
			return r;
		if (r == 0) {
			*ret = abx_xstrdup(id);
			return 0;
		}
	}
	return abx_err_set(err, ABX_EINTERNAL, "no free box id was found");
}

static int ensure_project(struct abx_db *db, const char *key, const char *path, struct abx_err *err)
{
	return abx_db_exec(db, err,
			   "INSERT INTO projects (key, path, created_at) VALUES (?, ?, ?)"
			   " ON CONFLICT (key) DO UPDATE SET path = excluded.path"
			   " WHERE path <> excluded.path",
			   "ssi", key, path, abx_wall_ms());
}

static int lowest_index(struct abx_db *db, const char *project, uint32_t *ret, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err,
			     "SELECT min(i) FROM (SELECT 1 AS i UNION ALL"
			     " SELECT idx + 1 FROM boxes WHERE project = ?1)"
			     " WHERE i NOT IN (SELECT idx FROM boxes WHERE project = ?1)",
			     "s", project);

	if (r < 0)
		return r;
	r = abx_db_step(db, stmt, err);
	if (r == 1)
		*ret = (uint32_t)sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return r < 0 ? r : 0;
}

static int insert_box(struct abx_db *db, const struct abx_box *b, struct abx_err *err)
{
	return abx_db_exec(
		db, err,
		"INSERT INTO boxes (id, name, idx, project, workspace, provider, attempt,"
		" pending, state, created_at, spec) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		"ssissssssis", b->id, b->name, (int64_t)b->index, b->project, b->workspace,
		b->provider, b->attempt, b->pending, abx_box_state_name(b->state), b->created_at_ms,
		b->spec);
}

static int reserve_in_transaction(struct abx_db *db, const struct abx_reserve *in,
				  struct abx_box *b, struct abx_err *err)
{
	int r = ensure_project(db, b->project, in->project_path, err);

	if (r == 0)
		r = choose_name(db, in->name, &b->name, err);
	if (r == 0)
		r = choose_id(db, in->id, &b->id, err);
	if (r == 0)
		r = lowest_index(db, b->project, &b->index, err);
	if (r == 0)
		r = insert_box(db, b, err);
	if (r == 0)
		r = abx_journal_add(db, b->id, "create", "reserve", ABX_JOURNAL_DONE, NULL, err);
	return r == 0 ? abx_db_commit(db, err) : r;
}

int abx_boxes_reserve(struct abx_db *db, const struct abx_reserve *in, struct abx_box *ret,
		      struct abx_err *err)
{
	struct abx_box b = {.state = ABX_BOX_CREATING, .created_at_ms = abx_wall_ms()};
	char attempt[ATTEMPT_DIGITS + 1];
	int r = abx_db_begin(db, err);

	if (r < 0)
		return r;
	abx_rand_hex(attempt, ATTEMPT_DIGITS);
	b.attempt = abx_xstrdup(attempt);
	b.project = abx_project_key(in->project_path);
	b.workspace = abx_xstrdup(in->workspace);
	b.provider = abx_xstrdup(in->provider);
	b.spec = abx_xstrdup_null(in->spec);
	b.pending = abx_xstrdup("create");
	r = reserve_in_transaction(db, in, &b, err);
	if (r < 0) {
		abx_db_rollback(db);
		abx_box_release(&b);
		return r;
	}
	*ret = b;
	return 0;
}

static int check_touched(struct abx_db *db, const char *id, struct abx_err *err)
{
	return abx_db_changes(db) > 0 ? 0
				      : abx_err_set(err, ABX_ENOBOX, "box '%s': no such box", id);
}

int abx_boxes_update(struct abx_db *db, const struct abx_box *b, struct abx_err *err)
{
	int r = abx_db_exec(db, err,
			    "UPDATE boxes SET workspace = ?, provider = ?, sandbox_id = ?,"
			    " account = ?, provider_data = ?, attempt = ?, branch = ?,"
			    " base_commit = ?, seed_tree = ?, checkpoint = ?, pending = ?,"
			    " error = ?, state = ?, expires_at = ?, spec = ? WHERE id = ?",
			    "sssssssssssssiss", b->workspace, b->provider, b->sandbox_id,
			    b->account, b->provider_data, b->attempt, b->branch, b->base_commit,
			    b->seed_tree, b->checkpoint, b->pending, b->error,
			    abx_box_state_name(b->state), b->expires_at_ms, b->spec, b->id);

	return r < 0 ? r : check_touched(db, b->id, err);
}

int abx_boxes_set_sandbox(struct abx_db *db, const char *id, const struct abx_sandbox *s,
			  struct abx_err *err)
{
	enum abx_box_state state = abx_box_state_of_sandbox(s->state);
	const char *name = state == ABX_BOX_UNKNOWN ? NULL : abx_box_state_name(state);
	int r = abx_db_exec(db, err,
			    "UPDATE boxes SET sandbox_id = coalesce(?, sandbox_id),"
			    " account = coalesce(?, account),"
			    " provider_data = coalesce(?, provider_data), expires_at = ?,"
			    " state = CASE WHEN pending IS NULL THEN coalesce(?, state)"
			    " ELSE state END WHERE id = ?",
			    "sssiss", s->id, s->account, s->provider_data, s->expires_at_ms, name,
			    id);

	return r < 0 ? r : check_touched(db, id, err);
}

int abx_boxes_delete(struct abx_db *db, const char *id, struct abx_err *err)
{
	int r = abx_db_begin(db, err);

	if (r < 0)
		return r;
	r = abx_db_exec(db, err, "DELETE FROM boxes WHERE id = ?", "s", id);
	if (r == 0)
		r = check_touched(db, id, err);
	if (r == 0)
		r = abx_db_exec(db, err,
				"DELETE FROM projects WHERE key NOT IN (SELECT project FROM boxes)",
				"");
	if (r == 0)
		r = abx_db_commit(db, err);
	if (r < 0)
		abx_db_rollback(db);
	return r;
}

int abx_boxes_changes(struct abx_db *db, int64_t *seq, abx_box_change_fn fn, void *ctx,
		      struct abx_err *err)
{
	const bool past = *seq < 0;
	sqlite3_stmt *stmt = NULL;
	int told = 0;
	int r = past ? abx_db_query(db, &stmt, err, "SELECT coalesce(max(seq), 0) FROM changes", "")
		     : abx_db_query(db, &stmt, err,
				    "SELECT seq, box, was, state FROM changes WHERE seq > ?"
				    " ORDER BY seq",
				    "i", *seq);

	if (r < 0)
		return r;
	while (told == 0 && (r = abx_db_step(db, stmt, err)) == 1) {
		abx_autofree char *id = NULL, *was = NULL, *state = NULL;

		*seq = sqlite3_column_int64(stmt, 0);
		if (past)
			continue;
		id = abx_db_text(stmt, 1);
		was = abx_db_text(stmt, 2);
		state = abx_db_text(stmt, 3);
		told = fn(ctx, id, abx_box_state_of_name(was), abx_box_state_of_name(state));
	}
	(void)sqlite3_finalize(stmt);
	return told ? told : r;
}
