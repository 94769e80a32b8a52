/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/unit.h: what the unit tests share.
 *
 *	static Suite *suite(void) { ... }
 *	UNIT_MAIN(suite)
 *
 * unit_dir() is a fresh directory, removed when the test ends; unit_home() makes it an
 * AGENTBOX_HOME and opens it.  unit_stderr_begin() and _end() catch what is said meanwhile.
 */
#ifndef ABX_UNIT_H
#define ABX_UNIT_H

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "core/state/home.h"
#include "core/util/err.h"
#include "core/util/mem.h"

#define UNIT_MAIN(suite_fn)                               \
	int main(void)                                    \
	{                                                 \
		SRunner *sr = srunner_create(suite_fn()); \
		int failed;                               \
                                                          \
		srunner_set_tap(sr, "-");                 \
		srunner_run_all(sr, CK_SILENT);           \
		failed = srunner_ntests_failed(sr);       \
		srunner_free(sr);                         \
		return failed ? 1 : 0;                    \
	}

/* unit_ok(f(x, &unit_err)): fails with the error's text. */
extern struct abx_err unit_err;
#define unit_ok(call)                                                                     \
	do {                                                                              \
		int unit_r_ = (call);                                                     \
                                                                                          \
		ck_assert_msg(unit_r_ == 0, "%s: %d: %s", #call, unit_r_, unit_err.text); \
	} while (0)

/* Fixtures: tcase_add_checked_fixture(tc, unit_home_setup, unit_dir_teardown). */
void unit_dir_setup(void);
void unit_home_setup(void);
void unit_dir_teardown(void);

const char *unit_dir(void);
struct abx_home *unit_home(void);
/* A path in the test's directory; valid until the eighth next call. */
const char *unit_path(const char *name);
void unit_write(const char *name, const void *data, size_t len);
void unit_write_text(const char *name, const char *text);
/* The contents of a file of the test's directory; free it. */
char *unit_read(const char *name);
/* How many entries of the test's directory begin and end so. */
size_t unit_count(const char *prefix, const char *suffix);

void unit_stderr_begin(void);
char *unit_stderr_end(void);

/* Set what a signal does. */
void unit_signal(int signo, void (*handler)(int));
/* No file may grow beyond `bytes`: a full disk that needs no privileges. */
void unit_disk_full_at(rlim_t bytes);
void unit_disk_free(void);

/* Run `work` in n processes that start together; the number of those that returned 0. */
unsigned int unit_together(unsigned int n, int (*work)(unsigned int i));

/* Is `part` in `text`? */
#define unit_has(text, part) \
	ck_assert_msg(strstr((text), (part)) != NULL, "'%s' is not in: %s", (part), (text))

#endif
