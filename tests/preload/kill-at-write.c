/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD: the program dies by SIGKILL right after its Nth committed database write, which
 * is after every journal row in turn.  N comes in KILL_AT_WRITE; 0 or none: never.
 */
#include <dlfcn.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) int sqlite3_step(sqlite3_stmt *stmt);

static int writes_wanted(void)
{
	const char *text = secure_getenv("KILL_AT_WRITE");
	int n = 0;

	for (; text && *text >= '0' && *text <= '9' && n < 100000; text++)
		n = n * 10 + (*text - '0');
	return n;
}

int sqlite3_step(sqlite3_stmt *stmt)
{
	static int (*real)(sqlite3_stmt *);
	static int seen, changes;
	sqlite3 *db = sqlite3_db_handle(stmt);
	int code, now;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sqlite3_step");
	code = real(stmt);
	now = sqlite3_total_changes(db);
	if (now == changes || !sqlite3_get_autocommit(db))
		return code;
	changes = now;
	if (++seen == writes_wanted())
		(void)kill(getpid(), SIGKILL);
	return code;
}
