/* SPDX-License-Identifier: MIT */
/*
 * core/state/db.h: agentbox.db, the SQLite database of an install.
 *
 * WAL, foreign keys, a busy timeout of 30 s; two agentbox commands at once are normal.  A
 * schema that is older is migrated in one transaction; a newer one is refused and left
 * alone; a damaged file is set aside as agentbox.db.damaged-<time> with a warning and a new
 * one is started, for what exists at providers is found again by its labels.
 *
 * A handle may be used from several threads (SQLite serialises), except that a transaction
 * belongs to one thread.
 */
#ifndef ABX_DB_H
#define ABX_DB_H

#include <sqlite3.h>
#include <stdbool.h>

#include "core/state/home.h"
#include "core/util/err.h"

struct abx_db {
	sqlite3 *sql;
	char install[37]; /* uuid of this install, in every label */
	char *path;
};

int abx_db_open(const struct abx_home *home, struct abx_db **ret, struct abx_err *err);
void abx_db_close(struct abx_db *db);

/* Read all of it and compare (doctor): 0, or ABX_ECORRUPT with the first thing found. */
int abx_db_check(struct abx_db *db, struct abx_err *err);

/* Power-loss durability of each commit.  On for boxes elsewhere, which go on billing; off for
 * boxes that end with this machine anyway (a SIGKILL loses nothing either way). */
int abx_db_set_durable(struct abx_db *db, bool durable, struct abx_err *err);

/* BEGIN IMMEDIATE: the write lock is held until commit or rollback. */
int abx_db_begin(struct abx_db *db, struct abx_err *err);
int abx_db_commit(struct abx_db *db, struct abx_err *err);
void abx_db_rollback(struct abx_db *db);

/*
 * Statements.  Types in `fmt`: s text (NULL allowed), i int64, one per `?`.
 *
 *	r = abx_db_exec(db, err, "UPDATE boxes SET state = ? WHERE id = ?", "is",
 *			(int64_t)state, id);
 */
int abx_db_exec(struct abx_db *db, struct abx_err *err, const char *sql, const char *fmt, ...);
/* The prepared statement with its values bound; sqlite3_finalize() it. */
int abx_db_query(struct abx_db *db, sqlite3_stmt **ret, struct abx_err *err, const char *sql,
		 const char *fmt, ...);
/* Next row: 1, 0 at the end, negative on error. */
int abx_db_step(struct abx_db *db, sqlite3_stmt *stmt, struct abx_err *err);
/* Rows that the last INSERT, UPDATE or DELETE of this handle touched. */
int64_t abx_db_changes(struct abx_db *db);
/* Fill `err` from the handle's last error. */
int abx_db_fail(struct abx_db *db, int sqlite_code, struct abx_err *err);
/* A copy of a text column, NULL for NULL; free it. */
char *abx_db_text(sqlite3_stmt *stmt, int column);

#endif
