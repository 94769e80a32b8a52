/* SPDX-License-Identifier: MIT */
/* The tables of agentbox.db and how they came to be. */
#include "core/state/schema.h"

#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/mem.h"

/* migrations[i] leads from version i to i + 1. */
static const char *const migrations[] = {
	"CREATE TABLE install ("
	" one INTEGER PRIMARY KEY CHECK (one = 1),"
	" uuid TEXT NOT NULL,"
	" created_at INTEGER NOT NULL"
	");"
	"CREATE TABLE projects ("
	" key TEXT PRIMARY KEY,"
	" path TEXT NOT NULL UNIQUE,"
	" created_at INTEGER NOT NULL"
	") WITHOUT ROWID;"
	"CREATE TABLE boxes ("
	" id TEXT PRIMARY KEY,"
	" name TEXT NOT NULL UNIQUE,"
	" project TEXT NOT NULL REFERENCES projects(key),"
	" idx INTEGER NOT NULL CHECK (idx > 0),"
	" workspace TEXT NOT NULL,"
	" provider TEXT NOT NULL,"
	" sandbox_id TEXT, account TEXT, provider_data TEXT,"
	" attempt TEXT NOT NULL,"
	" branch TEXT, base_commit TEXT, seed_tree TEXT, checkpoint TEXT,"
	" pending TEXT, error TEXT,"
	" state TEXT NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" expires_at INTEGER NOT NULL DEFAULT 0,"
	" UNIQUE (project, idx)"
	") WITHOUT ROWID;"
	"CREATE TABLE journal ("
	" seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	" at INTEGER NOT NULL,"
	" box TEXT NOT NULL REFERENCES boxes(id) ON DELETE CASCADE,"
	" op TEXT NOT NULL, step TEXT NOT NULL,"
	" phase INTEGER NOT NULL,"
	" detail TEXT"
	");"
	"CREATE INDEX journal_box ON journal(box);"
	"CREATE TABLE resources ("
	" seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	" provider TEXT NOT NULL,"
	" box TEXT REFERENCES boxes(id) ON DELETE CASCADE,"
	" kind TEXT NOT NULL,"
	" id TEXT, name TEXT, sandbox_id TEXT,"
	" phase INTEGER NOT NULL"
	");"
	"CREATE INDEX resources_box ON resources(box);",

	"ALTER TABLE boxes ADD COLUMN spec TEXT;"
	"ALTER TABLE resources ADD COLUMN attempt TEXT;"
	"ALTER TABLE resources ADD COLUMN record TEXT;"
	"CREATE INDEX resources_attempt ON resources(attempt);",

	/* For who watches: a state may have been left again before anybody looked. */
	"CREATE TABLE changes ("
	" seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	" box TEXT NOT NULL, was TEXT NOT NULL, state TEXT NOT NULL"
	");"
	"CREATE TRIGGER boxes_changed AFTER UPDATE OF state ON boxes"
	" WHEN OLD.state IS NOT NEW.state BEGIN"
	" INSERT INTO changes (box, was, state) VALUES (NEW.id, OLD.state, NEW.state);"
	" DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes) - 1000;"
	" END;",
};

int64_t abx_schema_version(void)
{
	return (int64_t)ABX_N_ELEMENTS(migrations);
}

static int read_int(struct abx_db *db, const char *sql, int64_t *ret, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err, sql, "");

	if (r < 0)
		return r;
	r = abx_db_step(db, stmt, err);
	if (r == 1)
		*ret = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	if (r == 0)
		return abx_err_set(err, ABX_ECORRUPT, "database '%s': no answer to '%s'", db->path,
				   sql);
	return r < 0 ? r : 0;
}

int abx_schema_read_version(struct abx_db *db, int64_t *ret, struct abx_err *err)
{
	return read_int(db, "PRAGMA user_version", ret, err);
}

/* The write-ahead mode is stored in the file, so this is needed once in its life. */
static int enter_wal(struct abx_db *db, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err, "PRAGMA journal_mode = WAL", "");

	if (r < 0)
		return r;
	r = abx_db_step(db, stmt, err);
	(void)sqlite3_finalize(stmt);
	return r < 0 ? r : 0;
}

static int insert_install(struct abx_db *db, const char *uuid, struct abx_err *err)
{
	return abx_db_exec(db, err, "INSERT INTO install (one, uuid, created_at) VALUES (1, ?, ?)",
			   "si", uuid, abx_wall_ms());
}

static int migrate_step(struct abx_db *db, int64_t version, const char *uuid, struct abx_err *err)
{
	abx_autofree char *bump =
		abx_xasprintf("PRAGMA user_version = %lld", (long long)version + 1);
	int r = abx_db_begin(db, err), code;

	if (r < 0)
		return r;
	code = sqlite3_exec(db->sql, migrations[version], NULL, NULL, NULL);
	/* Our own SQL does not fit what is there: that is not what we wrote. */
	if ((code & 0xff) == SQLITE_ERROR)
		r = abx_err_set(err, ABX_ECORRUPT, "database '%s': %s", db->path,
				sqlite3_errmsg(db->sql));
	else
		r = code == SQLITE_OK ? 0 : abx_db_fail(db, code, err);
	if (r == 0 && version == 0)
		r = insert_install(db, uuid, err);
	if (r == 0)
		r = abx_db_exec(db, err, bump, "");
	if (r == 0)
		r = abx_db_commit(db, err);
	if (r < 0) {
		abx_db_rollback(db);
		(void)abx_err_wrap(err, "schema version %lld", (long long)version + 1);
	}
	return r;
}

int abx_schema_migrate(struct abx_db *db, const char *uuid, struct abx_err *err)
{
	int64_t version = 0, tables = 0;
	int r = abx_schema_read_version(db, &version, err);

	if (r == 0 && version == 0)
		r = read_int(db, "SELECT count(*) FROM sqlite_master", &tables, err);
	if (r == 0 && (version < 0 || tables > 0))
		return abx_err_set(err, ABX_ECORRUPT, "database '%s': not one of agentbox",
				   db->path);
	if (r == 0)
		r = enter_wal(db, err);
	for (; r == 0 && version < abx_schema_version(); version++) {
		abx_log(ABX_LOG_DEBUG, "state", "schema version %lld", (long long)version + 1);
		r = migrate_step(db, version, uuid, err);
	}
	return r;
}
