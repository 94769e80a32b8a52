/* SPDX-License-Identifier: MIT */
/* agentbox.db, the SQLite database of an install. */
#include "core/state/db.h"

#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "abxsdk/text.h"
#include "core/state/aside.h"
#include "core/state/lock.h"
#include "core/state/schema.h"
#include "core/util/mem.h"
#include "core/util/rand.h"

#define DB_NAME "agentbox.db"
#define INSTALL_NAME "install"
#define DB_BUSY_MS 30000
/* A short log is read back quickly by the next command; every so many pages it is moved into
 * the database, which is when even a database that is not durable waits for the disk. */
#define DB_CHECKPOINT_PAGES 128

int abx_db_fail(struct abx_db *db, int sqlite_code, struct abx_err *err)
{
	int os = sqlite3_system_errno(db->sql);
	const char *why = sqlite3_errmsg(db->sql);
	int code = ABX_EINTERNAL;
	const char *remedy;

	switch (sqlite_code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		(void)abx_err_set(err, ABX_ETIMEDOUT,
				  "database '%s': still in use by another "
				  "command after %d s",
				  db->path, DB_BUSY_MS / 1000);
		return ABX_ETIMEDOUT;
	case SQLITE_FULL:
	case SQLITE_IOERR:
		if ((sqlite_code & 0xff) == SQLITE_FULL)
			os = ENOSPC;
		code = ABX_EIO;
		(void)abx_err_set(err, code, "database '%s': %s", db->path,
				  os ? strerror(os) : why);
		/* SQLite does not always keep what the system said. */
		remedy = abx_remedy_of_errno(os);
		(void)abx_err_remedy(err, "%s",
				     remedy ? remedy : "free some space there, or check the disk");
		return code;
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		code = os == ENOSPC ? ABX_EIO : ABX_EPERM;
		(void)abx_err_set(err, code, "database '%s': %s", db->path,
				  os ? strerror(os) : why);
		return code;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		code = ABX_ECORRUPT;
		break;
	case SQLITE_CONSTRAINT:
		code = ABX_EEXIST;
		break;
	case SQLITE_NOMEM:
		code = ABX_ENOMEM;
		break;
	default:
		break;
	}
	return abx_err_set(err, code, "database '%s': %s", db->path, why);
}

static int bind_all(sqlite3_stmt *stmt, const char *fmt, va_list ap)
{
	int code = SQLITE_OK;

	for (int i = 1; *fmt && code == SQLITE_OK; fmt++, i++) {
		if (*fmt == 's')
			code = sqlite3_bind_text(stmt, i, va_arg(ap, const char *), -1,
						 SQLITE_TRANSIENT);
		else
			code = sqlite3_bind_int64(stmt, i, va_arg(ap, int64_t));
	}
	return code;
}

static int query_v(struct abx_db *db, sqlite3_stmt **ret, struct abx_err *err, const char *sql,
		   const char *fmt, va_list ap)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db->sql, sql, -1, &stmt, NULL);

	if (code == SQLITE_OK)
		code = bind_all(stmt, fmt, ap);
	if (code != SQLITE_OK) {
		(void)sqlite3_finalize(stmt);
		return abx_db_fail(db, code, err);
	}
	*ret = stmt;
	return 0;
}

int abx_db_query(struct abx_db *db, sqlite3_stmt **ret, struct abx_err *err, const char *sql,
		 const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = query_v(db, ret, err, sql, fmt, ap);
	va_end(ap);
	return r;
}

int abx_db_step(struct abx_db *db, sqlite3_stmt *stmt, struct abx_err *err)
{
	int code = sqlite3_step(stmt);

	if (code == SQLITE_ROW)
		return 1;
	return code == SQLITE_DONE ? 0 : abx_db_fail(db, code, err);
}

int abx_db_exec(struct abx_db *db, struct abx_err *err, const char *sql, const char *fmt, ...)
{
	sqlite3_stmt *stmt = NULL;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = query_v(db, &stmt, err, sql, fmt, ap);
	va_end(ap);
	if (r < 0)
		return r;
	do
		r = abx_db_step(db, stmt, err);
	while (r == 1);
	(void)sqlite3_finalize(stmt);
	return r;
}

int64_t abx_db_changes(struct abx_db *db)
{
	return sqlite3_changes(db->sql);
}

char *abx_db_text(sqlite3_stmt *stmt, int column)
{
	return abx_xstrdup_null((const char *)sqlite3_column_text(stmt, column));
}

int abx_db_begin(struct abx_db *db, struct abx_err *err)
{
	return abx_db_exec(db, err, "BEGIN IMMEDIATE", "");
}

int abx_db_commit(struct abx_db *db, struct abx_err *err)
{
	return abx_db_exec(db, err, "COMMIT", "");
}

void abx_db_rollback(struct abx_db *db)
{
	/* Some failures have ended the transaction already. */
	if (!sqlite3_get_autocommit(db->sql))
		(void)sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
}

int abx_db_set_durable(struct abx_db *db, bool durable, struct abx_err *err)
{
	return abx_db_exec(
		db, err, durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", "");
}

int abx_db_check(struct abx_db *db, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err, "PRAGMA integrity_check(1)", "");

	if (r < 0)
		return r;
	r = abx_db_step(db, stmt, err);
	if (r == 1) {
		const char *found = (const char *)sqlite3_column_text(stmt, 0);

		r = found && strcmp(found, "ok") == 0
			    ? 0
			    : abx_err_set(err, ABX_ECORRUPT, "database '%s': %s", db->path,
					  found ? found : "unreadable");
	}
	(void)sqlite3_finalize(stmt);
	return r;
}

/* Created here and not by SQLite, which would leave the mode to the umask. */
static int make_file(const char *path, struct abx_err *err)
{
	abx_autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return abx_err_errno(err, errno, "create database '%s'", path);
	return 0;
}

static int connect_db(struct abx_db *db, struct abx_err *err)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOFOLLOW;
	int code = sqlite3_open_v2(db->path, &db->sql, flags, NULL), r;

	if (!db->sql)
		return abx_err_set(err, ABX_ENOMEM, "database '%s': out of memory", db->path);
	if (code == SQLITE_CANTOPEN && sqlite3_system_errno(db->sql) == ENOENT) {
		r = make_file(db->path, err);
		if (r < 0)
			return r;
		(void)sqlite3_close(db->sql);
		db->sql = NULL;
		code = sqlite3_open_v2(db->path, &db->sql, flags, NULL);
	}
	if (code != SQLITE_OK)
		return abx_db_fail(db, code, err);
	(void)sqlite3_busy_timeout(db->sql, DB_BUSY_MS);
	(void)sqlite3_extended_result_codes(db->sql, 1);
	(void)sqlite3_wal_autocheckpoint(db->sql, DB_CHECKPOINT_PAGES);
	/* Moving the log at the end of each short command would wait for the disk each time. */
	(void)sqlite3_db_config(db->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	(void)sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	(void)sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(db->sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return 0;
}

static int refuse_newer(struct abx_db *db, int64_t version, struct abx_err *err)
{
	(void)abx_err_set(err, ABX_ESTATE,
			  "database '%s': its schema version %lld is newer than the %lld that "
			  "this agentbox knows",
			  db->path, (long long)version, (long long)abx_schema_version());
	(void)abx_err_remedy(err, "upgrade agentbox");
	return ABX_ESTATE;
}

static int read_install(struct abx_db *db, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db->sql, "SELECT uuid FROM install", -1, &stmt, NULL);
	const char *uuid = NULL;
	int r;

	/* The right version without the table: what is there is not what we wrote. */
	if ((code & 0xff) == SQLITE_ERROR)
		return abx_err_set(err, ABX_ECORRUPT, "database '%s': %s", db->path,
				   sqlite3_errmsg(db->sql));
	if (code != SQLITE_OK)
		return abx_db_fail(db, code, err);
	r = abx_db_step(db, stmt, err);
	if (r == 1)
		uuid = (const char *)sqlite3_column_text(stmt, 0);
	if (uuid && strlen(uuid) == sizeof(db->install) - 1)
		memcpy(db->install, uuid, sizeof(db->install));
	else if (r >= 0)
		r = abx_err_set(err, ABX_ECORRUPT, "database '%s': no install id", db->path);
	(void)sqlite3_finalize(stmt);
	return r < 0 ? r : 0;
}

/* The install's uuid outlives its database: what boxes there are is found again by it. */
static int ensure_install_id(const struct abx_home *home, char uuid[ABX_UUID_BYTES],
			     struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(ABX_UUID_BYTES);
	int r = abx_fs_read(home->fd, INSTALL_NAME, &b);

	if (r == 0 && b.len == ABX_UUID_BYTES && b.data[b.len - 1] == '\n' &&
	    strspn(b.data, "0123456789abcdef-") == ABX_UUID_BYTES - 1) {
		memcpy(uuid, b.data, ABX_UUID_BYTES - 1);
		uuid[ABX_UUID_BYTES - 1] = '\0';
		return 0;
	}
	if (r < 0 && r != -ENOENT && r != -EFBIG)
		return abx_err_errno(err, r, "read '%s/" INSTALL_NAME "'", home->path);
	if (r != -ENOENT) {
		r = abx_set_aside(home, INSTALL_NAME, NULL, "not the id of an install", err);
		if (r < 0)
			return r;
	}
	abx_rand_uuid(uuid);
	abx_buf_reset(&b);
	abx_buf_addf(&b, "%s\n", uuid);
	r = abx_fs_write_atomic(home->fd, INSTALL_NAME, b.data, b.len, 0600, true);
	if (r == 0)
		return 0;
	(void)abx_err_errno(err, r, "write '%s/" INSTALL_NAME "'", home->path);
	return r == -EACCES || r == -EPERM ? ABX_EPERM : ABX_EIO;
}

static int migrate(struct abx_db *db, const struct abx_home *home, struct abx_err *err)
{
	char uuid[ABX_UUID_BYTES];
	int r = ensure_install_id(home, uuid, err);

	return r < 0 ? r : abx_schema_migrate(db, uuid, err);
}

/* Everything that can go wrong with the file itself; cheap when it is in order. */
static int open_file(struct abx_db *db, const struct abx_home *home, bool locked,
		     bool *ret_needs_lock, struct abx_err *err)
{
	int64_t version = 0;
	int r = connect_db(db, err);

	if (r == 0)
		r = abx_schema_read_version(db, &version, err);
	if (r < 0)
		return r;
	if (version > abx_schema_version())
		return refuse_newer(db, version, err);
	if (version != abx_schema_version()) {
		if (!locked) {
			*ret_needs_lock = true;
			return 0;
		}
		r = migrate(db, home, err);
	}
	if (r == 0)
		r = read_install(db, err);
	return r;
}

/* The error without the path in front, which is said anyway. */
static const char *reason_of(const struct abx_err *err)
{
	const char *at = strstr(err->text, "': ");

	return at ? at + 3 : err->text;
}

static void disconnect(struct abx_db *db)
{
	(void)sqlite3_close(db->sql);
	db->sql = NULL;
}

/* New, old or damaged: one process at a time looks again and puts it in order. */
static int open_locked(struct abx_db *db, const struct abx_home *home, struct abx_err *err)
{
	static const char *const companions[] = {"-wal", "-shm", NULL};
	abx_autoclose int lock_fd = abx_lock_home(home, err);
	struct abx_err why = ABX_ERR_INIT;
	int r;

	if (lock_fd < 0)
		return lock_fd;
	r = open_file(db, home, true, NULL, &why);
	if (r == ABX_ECORRUPT) {
		disconnect(db);
		r = abx_set_aside(home, DB_NAME, companions, reason_of(&why), err);
		return r < 0 ? r : open_file(db, home, true, NULL, err);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int abx_db_open(const struct abx_home *home, struct abx_db **ret, struct abx_err *err)
{
	struct abx_db *db = abx_xcalloc(1, sizeof(*db));
	struct abx_err why = ABX_ERR_INIT;
	bool needs_lock = false;
	int r;

	db->path = abx_home_path(home, "%s", DB_NAME);
	r = open_file(db, home, false, &needs_lock, &why);
	if (needs_lock || r == ABX_ECORRUPT) {
		disconnect(db);
		r = open_locked(db, home, &why);
	}
	if (r < 0) {
		abx_db_close(db);
		if (err)
			*err = why;
		return r;
	}
	*ret = db;
	return 0;
}

void abx_db_close(struct abx_db *db)
{
	if (!db)
		return;
	disconnect(db);
	free(db->path);
	free(db);
}
