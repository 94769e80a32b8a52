/* SPDX-License-Identifier: MIT */
/* agentbox.db: new, old, newer, damaged, contended, on a full disk. */
#include "core/state/db.h"
#include "core/state/schema.h"
#include "tests/unit/unit.h"

#define MANY 50

static struct abx_db *open_db(void)
{
	struct abx_db *db = NULL;

	unit_ok(abx_db_open(unit_home(), &db, &unit_err));
	return db;
}

static void raw(const char *sql)
{
	sqlite3 *sq = NULL;

	ck_assert_int_eq(sqlite3_open(unit_path("agentbox.db"), &sq), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(sq, sql, NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(sq);
}

/* Everything into the file itself: what stays in the log would mend it. */
static void settle(void)
{
	raw("PRAGMA wal_checkpoint(TRUNCATE)");
	ck_assert_uint_eq(unit_count("agentbox.db-wal", ""), 0);
}

static int64_t read_int(struct abx_db *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	int64_t n;

	unit_ok(abx_db_query(db, &stmt, &unit_err, sql, ""));
	ck_assert_int_eq(abx_db_step(db, stmt, NULL), 1);
	n = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return n;
}

START_TEST(new_and_again)
{
	struct abx_db *db = open_db();
	char uuid[sizeof(db->install)];
	struct stat st;

	memcpy(uuid, db->install, sizeof(uuid));
	ck_assert_uint_eq(strlen(uuid), 36);
	ck_assert_int_eq(read_int(db, "PRAGMA foreign_keys"), 1);
	ck_assert_int_eq(read_int(db, "PRAGMA busy_timeout"), 30000);
	ck_assert_int_eq(read_int(db, "PRAGMA user_version"), abx_schema_version());
	ck_assert_int_eq(stat(unit_path("agentbox.db"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(stat(unit_path("agentbox.db-wal"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	abx_db_close(db);
	db = open_db();
	ck_assert_str_eq(db->install, uuid);
	unit_ok(abx_db_check(db, &unit_err));
	abx_db_close(db);
	ck_assert_uint_eq(unit_count("agentbox.db.damaged-", "Z"), 0);
}
END_TEST

START_TEST(statements)
{
	struct abx_db *db = open_db();
	sqlite3_stmt *stmt = NULL;
	abx_autofree char *text = NULL;
	struct abx_err err = ABX_ERR_INIT;

	unit_ok(abx_db_exec(db, &unit_err, "CREATE TABLE t (a TEXT, b INTEGER UNIQUE)", ""));
	unit_ok(abx_db_exec(db, &unit_err, "INSERT INTO t VALUES (?, ?)", "si", "it's", INT64_MIN));
	unit_ok(abx_db_exec(db, &unit_err, "INSERT INTO t VALUES (?, ?)", "si", NULL, (int64_t)7));
	ck_assert_int_eq(abx_db_changes(db), 1);
	ck_assert_int_eq(
		abx_db_exec(db, &err, "INSERT INTO t VALUES (?, ?)", "si", "x", (int64_t)7),
		ABX_EEXIST);
	unit_has(err.text, "agentbox.db");
	ck_assert_int_lt(abx_db_exec(db, &err, "SELEKT", ""), 0);
	unit_ok(abx_db_query(db, &stmt, &unit_err, "SELECT a, b FROM t ORDER BY b", ""));
	ck_assert_int_eq(abx_db_step(db, stmt, NULL), 1);
	text = abx_db_text(stmt, 0);
	ck_assert_str_eq(text, "it's");
	ck_assert_int_eq(sqlite3_column_int64(stmt, 1), INT64_MIN);
	ck_assert_int_eq(abx_db_step(db, stmt, NULL), 1);
	ck_assert_ptr_null(abx_db_text(stmt, 0));
	ck_assert_int_eq(abx_db_step(db, stmt, NULL), 0);
	(void)sqlite3_finalize(stmt);
	abx_db_close(db);
}
END_TEST

START_TEST(rollback_undoes)
{
	struct abx_db *db = open_db();

	unit_ok(abx_db_set_durable(db, false, &unit_err));
	unit_ok(abx_db_begin(db, &unit_err));
	unit_ok(abx_db_exec(db, &unit_err, "INSERT INTO projects VALUES ('k', '/p', 1)", ""));
	abx_db_rollback(db);
	abx_db_rollback(db);
	ck_assert_int_eq(read_int(db, "SELECT count(*) FROM projects"), 0);
	unit_ok(abx_db_begin(db, &unit_err));
	unit_ok(abx_db_exec(db, &unit_err, "INSERT INTO projects VALUES ('k', '/p', 1)", ""));
	unit_ok(abx_db_commit(db, &unit_err));
	ck_assert_int_eq(read_int(db, "SELECT count(*) FROM projects"), 1);
	abx_db_close(db);
}
END_TEST

START_TEST(newer_is_refused_and_left_alone)
{
	struct abx_err err = ABX_ERR_INIT;
	abx_autofree char *before = NULL, *after = NULL;
	struct abx_db *db = open_db();
	char number[32];

	abx_db_close(db);
	raw("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA user_version = 4711;"
	    "PRAGMA wal_checkpoint(TRUNCATE)");
	before = unit_read("agentbox.db");
	db = NULL;
	ck_assert_int_eq(abx_db_open(unit_home(), &db, &err), ABX_ESTATE);
	ck_assert_ptr_null(db);
	unit_has(err.text, "4711");
	(void)snprintf(number, sizeof(number), " %lld ", (long long)abx_schema_version());
	unit_has(err.text, number);
	unit_has(err.remedy, "upgrade agentbox");
	after = unit_read("agentbox.db");
	ck_assert_mem_eq(before, after, 4096);
	ck_assert_uint_eq(unit_count("agentbox.db.damaged-", "Z"), 0);
}
END_TEST

START_TEST(empty_file_is_new)
{
	unit_write("agentbox.db", "", 0);
	abx_db_close(open_db());
	ck_assert_uint_eq(unit_count("agentbox.db.damaged-", "Z"), 0);
}
END_TEST

/* Written over with `len` bytes of garbage from `at`, or cut there when len is 0. */
static void damage(off_t at, size_t len)
{
	abx_autoclose int fd = open(unit_path("agentbox.db"), O_RDWR | O_CLOEXEC);
	char garbage[4096];

	ck_assert_int_ge(fd, 0);
	memset(garbage, 0xa5, sizeof(garbage));
	if (len)
		ck_assert_int_eq(pwrite(fd, garbage, len, at), (ssize_t)len);
	else
		ck_assert_int_eq(ftruncate(fd, at), 0);
}

static void damage_case(int which)
{
	switch (which) {
	case 0:
		unit_write_text("agentbox.db", "this is no database at all, only text\n");
		break;
	case 1: /* header gone */
		damage(0, 100);
		break;
	case 2: /* the schema's page */
		damage(100, 3900);
		break;
	case 3: /* all pages but the first */
		damage(4096, 0);
		break;
	case 4: /* somebody else's database */
		(void)unlink(unit_path("agentbox.db"));
		raw("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
		break;
	case 5: /* right version, wrong tables */
		(void)unlink(unit_path("agentbox.db"));
		raw("CREATE TABLE theirs (x); PRAGMA user_version = 1");
		break;
	case 6: /* install id lost */
		raw("DELETE FROM install");
		break;
	default: /* shorter than a header */
		damage(50, 0);
		break;
	}
}

START_TEST(damaged_is_set_aside)
{
	abx_autofree char *said = NULL;
	struct abx_db *db = open_db();

	abx_db_close(db);
	settle();
	damage_case(_i);
	unit_stderr_begin();
	db = open_db();
	said = unit_stderr_end();
	unit_has(said, "agentbox: warning: ");
	unit_has(said, unit_path("agentbox.db"));
	unit_has(said, ".damaged-");
	ck_assert_uint_eq(unit_count("agentbox.db.damaged-", "Z"), 1);
	unit_ok(abx_db_check(db, &unit_err));
	ck_assert_int_eq(read_int(db, "SELECT count(*) FROM boxes"), 0);
	abx_db_close(db);
}
END_TEST

/* Boxes elsewhere carry the install's id: it must not change with the database. */
START_TEST(install_id_outlives_the_database)
{
	abx_autofree char *said = NULL;
	struct abx_db *db = open_db();
	char uuid[sizeof(db->install)];

	memcpy(uuid, db->install, sizeof(uuid));
	abx_db_close(db);
	settle();
	damage_case(_i);
	unit_stderr_begin();
	db = open_db();
	said = unit_stderr_end();
	ck_assert_str_eq(db->install, uuid);
	abx_db_close(db);
}
END_TEST

START_TEST(install_id_that_is_none)
{
	static const char *const texts[] = {"", "x", "00000000-0000-4000-8000-00000000000",
					    "00000000-0000-4000-8000-00000000000Z\n"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(texts); i++) {
		abx_autofree char *said = NULL;
		struct abx_db *db;

		unit_write_text("install", texts[i]);
		(void)unlink(unit_path("agentbox.db"));
		(void)unlink(unit_path("agentbox.db-wal"));
		unit_stderr_begin();
		db = open_db();
		said = unit_stderr_end();
		unit_has(said, unit_path("install"));
		ck_assert_uint_eq(strlen(db->install), 36);
		abx_db_close(db);
		ck_assert_uint_eq(unit_count("install.damaged-", "Z"), i + 1);
	}
}
END_TEST

START_TEST(damaged_copies_are_bounded)
{
	abx_autofree char *said = NULL;

	unit_stderr_begin();
	for (int i = 0; i < 8; i++) {
		unit_write_text("agentbox.db", "text");
		abx_db_close(open_db());
		settle();
	}
	said = unit_stderr_end();
	ck_assert_uint_eq(unit_count("agentbox.db.damaged-", ""), 5);
	unit_has(said, "removing");
}
END_TEST

/* Found only by those who look closely: a row and its index disagree. */
START_TEST(check_finds_what_open_does_not)
{
	static const char path[] = "/one/path/of/a/project";
	struct abx_err err = ABX_ERR_INIT;
	struct abx_db *db = open_db();
	struct abx_buf text = ABX_BUF_INIT(1 << 20);
	char *at;

	unit_ok(abx_db_exec(db, &unit_err, "INSERT INTO projects VALUES ('k', ?, 1)", "s", path));
	abx_db_close(db);
	settle();
	ck_assert_int_eq(abx_fs_read(AT_FDCWD, unit_path("agentbox.db"), &text), 0);
	at = memmem(text.data, text.len, path, sizeof(path) - 1);
	ck_assert_ptr_nonnull(at);
	*at = '!';
	unit_write("agentbox.db", text.data, text.len);
	abx_buf_release(&text);
	db = open_db();
	ck_assert_int_eq(abx_db_check(db, &err), ABX_ECORRUPT);
	unit_has(err.text, unit_path("agentbox.db"));
	abx_db_close(db);
}
END_TEST

static int open_and_write(unsigned int i)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_home h = ABX_HOME_INIT;
	struct abx_db *db = NULL;
	char key[16];
	int r = abx_home_open(&h, &err);

	(void)snprintf(key, sizeof(key), "k%u", i);
	if (r == 0)
		r = abx_db_open(&h, &db, &err);
	if (r == 0)
		r = abx_db_exec(db, &err, "INSERT INTO projects VALUES (?, ?, 1)", "ss", key, key);
	if (r < 0)
		(void)fprintf(stderr, "# %u: %s\n", i, err.text);
	abx_db_close(db);
	abx_home_release(&h);
	return r;
}

START_TEST(many_open_a_new_home)
{
	struct abx_db *db;

	(void)setenv("AGENTBOX_HOME", unit_path("fresh/home"), 1);
	ck_assert_uint_eq(unit_together(MANY, open_and_write), MANY);
	abx_home_release(unit_home());
	unit_ok(abx_home_open(unit_home(), &unit_err));
	db = open_db();
	ck_assert_int_eq(read_int(db, "SELECT count(*) FROM projects"), MANY);
	ck_assert_int_eq(read_int(db, "SELECT count(*) FROM install"), 1);
	abx_db_close(db);
}
END_TEST

START_TEST(many_open_a_damaged_one)
{
	abx_autofree char *said = NULL;
	struct abx_db *db;
	unsigned int good;

	abx_db_close(open_db());
	settle();
	unit_write_text("agentbox.db", "text, and more than enough of it to be no database");
	unit_stderr_begin();
	good = unit_together(MANY, open_and_write);
	said = unit_stderr_end();
	ck_assert_msg(good == MANY, "%u of %u: %s", good, MANY, said);
	ck_assert_uint_eq(unit_count("agentbox.db.damaged-", "Z"), 1);
	db = open_db();
	ck_assert_int_eq(read_int(db, "SELECT count(*) FROM projects"), MANY);
	abx_db_close(db);
}
END_TEST

/* At every size of the disk either it works, or it says so and works once there is room. */
START_TEST(full_disk_when_new)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_db *db = NULL;
	bool failed = false, worked = false;

	for (rlim_t room = 0; room <= 256 * 1024; room += 4096 + 1000) {
		int r;

		unit_disk_full_at(room);
		r = abx_db_open(unit_home(), &db, &err);
		unit_disk_free();
		if (r == 0) {
			abx_db_close(db);
			worked = true;
		} else {
			ck_assert_int_eq(r, ABX_EIO);
			unit_has(err.text, unit_dir());
			/* The limit is what the disk is made full by here. */
			ck_assert_msg(strstr(err.remedy, "space") || strstr(err.remedy, "ulimit"),
				      "%s", err.text);
			failed = true;
		}
		db = open_db();
		abx_db_close(db);
		for (const char *const *s = (const char *const[]){"", "-wal", "-shm", NULL}; *s;
		     s++) {
			abx_autofree char *name = abx_xasprintf("agentbox.db%s", *s);

			(void)unlink(unit_path(name));
		}
	}
	ck_assert(failed && worked);
	ck_assert_uint_eq(unit_count("agentbox.db.damaged-", "Z"), 0);
}
END_TEST

START_TEST(full_disk_later)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_db *db = open_db();
	abx_autofree char *big = abx_xcalloc(1, 400001);
	int r;

	memset(big, 'x', 400000);
	unit_ok(abx_db_exec(db, &unit_err, "INSERT INTO projects VALUES ('a', 'a', 1)", ""));
	unit_disk_full_at(200 * 1024);
	r = abx_db_exec(db, &err, "INSERT INTO projects VALUES (?, ?, 1)", "ss", big, big);
	unit_disk_free();
	ck_assert_int_eq(r, ABX_EIO);
	unit_has(err.text, unit_path("agentbox.db"));
	ck_assert_int_eq(read_int(db, "SELECT count(*) FROM projects"), 1);
	unit_ok(abx_db_exec(db, &unit_err, "INSERT INTO projects VALUES ('b', 'b', 1)", ""));
	abx_db_close(db);
	db = open_db();
	ck_assert_int_eq(read_int(db, "SELECT count(*) FROM projects"), 2);
	unit_ok(abx_db_check(db, &unit_err));
	abx_db_close(db);
}
END_TEST

/* A process that is killed while it writes leaves a database that the next one reads. */
START_TEST(killed_while_writing)
{
	struct abx_db *db = open_db();
	int ready[2], status;
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct abx_db *mine = NULL;

		if (abx_db_open(unit_home(), &mine, NULL) < 0 || abx_db_begin(mine, NULL) < 0 ||
		    abx_db_exec(mine, NULL, "INSERT INTO projects VALUES ('z', 'z', 1)", "") < 0)
			_exit(1);
		(void)!write(ready[1], "", 1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	unit_ok(abx_db_exec(db, &unit_err, "INSERT INTO projects VALUES ('y', 'y', 1)", ""));
	ck_assert_int_eq(read_int(db, "SELECT count(*) FROM projects"), 1);
	abx_db_close(db);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("db");
	TCase *tc = tcase_create("db");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, unit_home_setup, unit_dir_teardown);
	tcase_add_test(tc, new_and_again);
	tcase_add_test(tc, statements);
	tcase_add_test(tc, rollback_undoes);
	tcase_add_test(tc, newer_is_refused_and_left_alone);
	tcase_add_test(tc, empty_file_is_new);
	tcase_add_loop_test(tc, damaged_is_set_aside, 0, 8);
	tcase_add_loop_test(tc, install_id_outlives_the_database, 0, 8);
	tcase_add_test(tc, install_id_that_is_none);
	tcase_add_test(tc, damaged_copies_are_bounded);
	tcase_add_test(tc, check_finds_what_open_does_not);
	tcase_add_test(tc, many_open_a_new_home);
	tcase_add_test(tc, many_open_a_damaged_one);
	tcase_add_test(tc, full_disk_when_new);
	tcase_add_test(tc, full_disk_later);
	tcase_add_test(tc, killed_while_writing);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
