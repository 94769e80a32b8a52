/* SPDX-License-Identifier: MIT */
/* Locks on boxes: exclusive, free when their owner dies, gone with their box. */
#include "core/state/lock.h"

#include "core/util/clock.h"
#include "tests/unit/unit.h"

#define ID "0123456789abcdef"

START_TEST(one_at_a_time)
{
	struct abx_err err = ABX_ERR_INIT;
	int first = -1, second = -1;

	unit_ok(abx_lock_box(unit_home(), ID, 0, &first, &unit_err));
	ck_assert_int_ne(fcntl(first, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(abx_lock_box(unit_home(), ID, 0, &second, &err), ABX_ESTATE);
	ck_assert_int_eq(second, -1);
	unit_has(err.text, ID);
	(void)close(first);
	unit_ok(abx_lock_box(unit_home(), ID, 0, &second, &unit_err));
	(void)close(second);
}
END_TEST

START_TEST(different_boxes_do_not_meet)
{
	int first = -1, second = -1;

	unit_ok(abx_lock_box(unit_home(), ID, 0, &first, &unit_err));
	unit_ok(abx_lock_box(unit_home(), "fedcba9876543210", 0, &second, &unit_err));
	(void)close(first);
	(void)close(second);
}
END_TEST

START_TEST(directory_is_a_lock)
{
	int first = -1, second = -1;

	unit_ok(abx_lock_dir(unit_path("."), 0, &first));
	ck_assert_int_ne(fcntl(first, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(abx_lock_dir(unit_path("."), 10, &second), -EWOULDBLOCK);
	ck_assert_int_eq(second, -1);
	ck_assert_int_eq(abx_lock_dir(unit_path("none"), 0, &second), -ENOENT);
	(void)close(first);
	unit_ok(abx_lock_dir(unit_path("."), 0, &second));
	(void)close(second);
}
END_TEST

START_TEST(waiting_ends)
{
	int64_t begin, waited;
	int first = -1, second = -1;

	unit_ok(abx_lock_box(unit_home(), ID, 0, &first, &unit_err));
	begin = abx_now_ms();
	ck_assert_int_eq(abx_lock_box(unit_home(), ID, 150, &second, NULL), ABX_ESTATE);
	waited = abx_now_ms() - begin;
	ck_assert_int_ge(waited, 150);
	ck_assert_int_lt(waited, 5000);
	(void)close(first);
}
END_TEST

/* A killed owner lets go, and whoever waits for it gets the lock. */
START_TEST(dead_owner_does_not_hold_it)
{
	int ready[2], fd = -1, status;
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (abx_lock_box(unit_home(), ID, 0, &fd, NULL) < 0)
			_exit(1);
		(void)!write(ready[1], "", 1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert_int_eq(abx_lock_box(unit_home(), ID, 0, &fd, NULL), ABX_ESTATE);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	unit_ok(abx_lock_box(unit_home(), ID, 10000, &fd, &unit_err));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	(void)close(fd);
}
END_TEST

/* Whoever waited on the file of a box that was removed must not think it holds the lock of
 * the next one of that name. */
START_TEST(forgotten_while_waited_for)
{
	int first = -1, status, fd = -1;
	struct stat named, held;
	pid_t pid;

	unit_ok(abx_lock_box(unit_home(), ID, 0, &first, &unit_err));
	pid = fork();
	if (pid == 0) {
		(void)close(first);
		if (abx_lock_box(unit_home(), ID, 20000, &fd, NULL) < 0)
			_exit(1);
		_exit(fstat(fd, &held) == 0 && stat(unit_path("locks/" ID), &named) == 0 &&
				      held.st_ino == named.st_ino
			      ? 0
			      : 2);
	}
	abx_lock_forget(unit_home(), ID);
	ck_assert_int_ne(stat(unit_path("locks/" ID), &named), 0);
	(void)close(first);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static int add_one(unsigned int i)
{
	abx_autoclose int lock = -1, fd = -1;
	char text[16] = "";
	int value = 0;

	(void)i;
	lock = abx_lock_home(unit_home(), NULL);
	if (lock < 0)
		return 1;
	fd = open(unit_path("counter"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return 1;
	for (const char *at = text; *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (*at - '0');
	(void)snprintf(text, sizeof(text), "%d", value + 1);
	return pwrite(fd, text, strlen(text), 0) > 0 ? 0 : 1;
}

START_TEST(home_lock_excludes)
{
	abx_autofree char *text = NULL;

	ck_assert_uint_eq(unit_together(40, add_one), 40);
	text = unit_read("counter");
	ck_assert_str_eq(text, "40");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("lock");
	TCase *tc = tcase_create("lock");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, unit_home_setup, unit_dir_teardown);
	tcase_add_test(tc, one_at_a_time);
	tcase_add_test(tc, different_boxes_do_not_meet);
	tcase_add_test(tc, directory_is_a_lock);
	tcase_add_test(tc, waiting_ends);
	tcase_add_test(tc, dead_owner_does_not_hold_it);
	tcase_add_test(tc, forgotten_while_waited_for);
	tcase_add_test(tc, home_lock_excludes);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
