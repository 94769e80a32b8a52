/* SPDX-License-Identifier: MIT */
/* AGENTBOX_HOME: where it is, and when it is refused. */
#include "tests/unit/unit.h"

static void set_home(const char *path)
{
	ck_assert_int_eq(setenv("AGENTBOX_HOME", path, 1), 0);
}

static int open_it(struct abx_home *h, struct abx_err *err)
{
	*h = (struct abx_home)ABX_HOME_INIT;
	return abx_home_open(h, err);
}

START_TEST(created_private_with_parents)
{
	struct abx_home h = ABX_HOME_INIT;
	struct stat st;

	set_home(unit_path("a/b/home"));
	(void)umask(0);
	unit_ok(abx_home_open(&h, &unit_err));
	ck_assert_str_eq(h.path, unit_path("a/b/home"));
	ck_assert_int_eq(fstat(h.fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_ne(fcntl(h.fd, F_GETFD) & FD_CLOEXEC, 0);
	abx_home_release(&h);
}
END_TEST

START_TEST(below_home_by_default)
{
	struct abx_home h = ABX_HOME_INIT;

	ck_assert_int_eq(setenv("HOME", unit_dir(), 1), 0);
	set_home("");
	unit_ok(abx_home_open(&h, &unit_err));
	ck_assert_str_eq(h.path, unit_path(".agentbox"));
	abx_home_release(&h);
}
END_TEST

START_TEST(relative_is_made_absolute)
{
	struct abx_home h = ABX_HOME_INIT;

	ck_assert_int_eq(chdir(unit_dir()), 0);
	set_home("rel/home");
	unit_ok(abx_home_open(&h, &unit_err));
	ck_assert_str_eq(h.path, unit_path("rel/home"));
	ck_assert_int_eq(chdir("/"), 0);
	abx_home_release(&h);
}
END_TEST

START_TEST(link_is_resolved)
{
	struct abx_home h = ABX_HOME_INIT;

	ck_assert_int_eq(mkdir(unit_path("real"), 0700), 0);
	ck_assert_int_eq(symlink("real", unit_path("link")), 0);
	set_home(unit_path("link"));
	unit_ok(abx_home_open(&h, &unit_err));
	ck_assert_str_eq(h.path, unit_path("real"));
	abx_home_release(&h);
}
END_TEST

START_TEST(writable_by_others_is_refused)
{
	static const mode_t modes[] = {0770, 0702, 0777};

	ck_assert_int_eq(mkdir(unit_path("h"), 0700), 0);
	set_home(unit_path("h"));
	for (size_t i = 0; i < ABX_N_ELEMENTS(modes); i++) {
		struct abx_err err = ABX_ERR_INIT;
		struct abx_home h;

		ck_assert_int_eq(chmod(unit_path("h"), modes[i]), 0);
		ck_assert_int_eq(open_it(&h, &err), ABX_EPERM);
		unit_has(err.text, unit_path("h"));
		unit_has(err.remedy, "chmod 700");
		ck_assert_int_eq(h.fd, -1);
	}
}
END_TEST

START_TEST(not_a_directory_is_refused)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_home h;

	unit_write_text("file", "x");
	set_home(unit_path("file"));
	ck_assert_int_lt(open_it(&h, &err), 0);
	unit_has(err.text, "Not a directory");
	ck_assert_int_ne(err.remedy[0], '\0');
}
END_TEST

/* As another user, where the test may become one; as itself where it may not. */
START_TEST(foreign_or_unwritable_is_refused)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_home h;

	ck_assert_int_eq(mkdir(unit_path("h"), 0700), 0);
	set_home(unit_path("h"));
	if (geteuid() == 0) {
		ck_assert_int_eq(chmod(unit_dir(), 0755), 0);
		ck_assert_int_eq(chmod(unit_path("h"), 0755), 0);
		ck_assert_int_eq(seteuid(65534), 0);
	} else {
		ck_assert_int_eq(chmod(unit_path("h"), 0500), 0);
	}
	ck_assert_int_eq(open_it(&h, &err), ABX_EPERM);
	unit_has(err.text, unit_path("h"));
	ck_assert_int_ne(err.remedy[0], '\0');
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	else
		ck_assert_int_eq(chmod(unit_path("h"), 0700), 0);
}
END_TEST

START_TEST(paths_below)
{
	abx_autofree char *path = abx_home_path(unit_home(), "locks/%s", "x"), *dir = NULL;
	abx_autofree char *again = NULL;
	struct stat st;

	ck_assert_str_eq(path, unit_path("locks/x"));
	ck_assert_int_ne(stat(path, &st), 0);
	unit_ok(abx_home_dir(unit_home(), &dir, &unit_err, "tmp/%d/y", 7));
	unit_ok(abx_home_dir(unit_home(), &again, &unit_err, "tmp/%d/y", 7));
	ck_assert_str_eq(dir, unit_path("tmp/7/y"));
	ck_assert_int_eq(stat(unit_path("tmp/7"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
}
END_TEST

START_TEST(dir_in_the_way_of_a_file)
{
	struct abx_err err = ABX_ERR_INIT;
	char *dir = NULL;

	unit_write_text("logs", "x");
	ck_assert_int_lt(abx_home_dir(unit_home(), &dir, &err, "logs"), 0);
	ck_assert_ptr_null(dir);
	unit_has(err.text, unit_path("logs"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("home");
	TCase *where = tcase_create("where"), *below = tcase_create("below");

	tcase_add_checked_fixture(where, unit_dir_setup, unit_dir_teardown);
	tcase_add_test(where, created_private_with_parents);
	tcase_add_test(where, below_home_by_default);
	tcase_add_test(where, relative_is_made_absolute);
	tcase_add_test(where, link_is_resolved);
	tcase_add_test(where, writable_by_others_is_refused);
	tcase_add_test(where, not_a_directory_is_refused);
	tcase_add_test(where, foreign_or_unwritable_is_refused);
	suite_add_tcase(s, where);
	tcase_add_checked_fixture(below, unit_home_setup, unit_dir_teardown);
	tcase_add_test(below, paths_below);
	tcase_add_test(below, dir_in_the_way_of_a_file);
	suite_add_tcase(s, below);
	return s;
}

UNIT_MAIN(suite)
