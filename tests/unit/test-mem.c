/* SPDX-License-Identifier: MIT */
/* Memory of our own structures, and scope-bound clean-up. */
#include "tests/unit/unit.h"

START_TEST(strings)
{
	abx_autofree char *a = abx_xstrdup("abc"), *b = abx_xstrndup("abcdef", 2);
	abx_autofree char *c = abx_xasprintf("%s/%d", "x", 3), *d = abx_xstrdup_null(NULL);

	ck_assert_str_eq(a, "abc");
	ck_assert_str_eq(b, "ab");
	ck_assert_str_eq(c, "x/3");
	ck_assert_ptr_null(d);
	abx_xreplace(&a, a + 1);
	ck_assert_str_eq(a, "bc");
	abx_xreplace(&d, "new");
	ck_assert_str_eq(d, "new");
	abx_xreplace(&d, NULL);
	ck_assert_ptr_null(d);
}
END_TEST

START_TEST(lists)
{
	struct abx_strv v = {NULL, 0, 0};

	for (int i = 0; i < 1000; i++) {
		abx_strv_take(&v, abx_xasprintf("%d", i));
		ck_assert_ptr_null(v.items[v.len]);
	}
	abx_strv_add(&v, "last");
	ck_assert_uint_eq(v.len, 1001);
	ck_assert_str_eq(v.items[999], "999");
	ck_assert_str_eq(v.items[1000], "last");
	abx_strv_release(&v);
	ck_assert_ptr_null(v.items);
	abx_strv_release(&v);
}
END_TEST

START_TEST(nothing_is_something)
{
	abx_autofree void *a = abx_xcalloc(0, 0), *b = abx_xreallocarray(NULL, 0, 8);

	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
}
END_TEST

/* A size that overflows ends the program with a message instead of giving a small block. */
START_TEST(overflow_ends_the_program)
{
	abx_autofree char *said = NULL;
	size_t volatile huge = SIZE_MAX / 2;
	int status;
	pid_t pid;

	unit_stderr_begin();
	pid = fork();
	if (pid == 0) {
		free(abx_xreallocarray(NULL, huge, 3));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	said = unit_stderr_end();
	ck_assert(WIFEXITED(status));
	ck_assert_int_ne(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(clean_up_keeps_errno)
{
	int pair[2], kept = -1;

	ck_assert_int_eq(pipe(pair), 0);
	errno = EDOM;
	{
		abx_autoclose int fd = pair[0];
		abx_autoclose int none = -1, other = pair[1];
		abx_autofree char *text = abx_xstrdup("x"), *moved = abx_steal_ptr(&text);

		ck_assert_ptr_null(text);
		ck_assert_str_eq(moved, "x");
		ck_assert_int_eq(none, -1);
		ck_assert_int_ge(fd, 0);
		kept = abx_steal_fd(&other);
		ck_assert_int_eq(other, -1);
	}
	ck_assert_int_eq(errno, EDOM);
	ck_assert_int_eq(fcntl(pair[0], F_GETFD), -1);
	ck_assert_int_ne(fcntl(kept, F_GETFD), -1);
	(void)close(kept);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("mem");
	TCase *tc = tcase_create("mem");

	tcase_add_checked_fixture(tc, unit_dir_setup, unit_dir_teardown);
	tcase_add_test(tc, strings);
	tcase_add_test(tc, lists);
	tcase_add_test(tc, nothing_is_something);
	tcase_add_test(tc, overflow_ends_the_program);
	tcase_add_test(tc, clean_up_keeps_errno);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
