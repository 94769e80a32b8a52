/* SPDX-License-Identifier: MIT */
/* Provider local: the fingerprint of a tree, also by what was kept of it. */
#include "tests/unit/unit.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "providers/local/print.h"

#define AT_ONCE -1000 /* settled_s: whenever it changed */

static int keep_fd = -1;

static void setup(void)
{
	unit_dir_setup();
	ck_assert_int_eq(mkdir(unit_path("tree"), 0755), 0);
	ck_assert_int_eq(mkdir(unit_path("tree/sub"), 0755), 0);
	ck_assert_int_eq(mkdir(unit_path("keep"), 0755), 0);
	unit_write_text("tree/a", "a");
	unit_write_text("tree/sub/b", "b");
	ck_assert_int_eq(symlink("a", unit_path("tree/link")), 0);
	keep_fd = open(unit_path("keep"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(keep_fd, 0);
}

static void teardown(void)
{
	(void)close(keep_fd);
	unit_dir_teardown();
}

/* The print of the tree, which has to be the one of a walk. */
static struct local_print print(int settled_s)
{
	struct local_print walked = LOCAL_PRINT_INIT, p = LOCAL_PRINT_INIT;

	local_print_walk(&walked, AT_FDCWD, unit_path("tree"), NULL, NULL);
	local_print_tree(&p, unit_path("tree"), keep_fd, "list", settled_s, INT64_MAX);
	ck_assert_uint_eq(p.a, walked.a);
	ck_assert_uint_eq(p.b, walked.b);
	return p;
}

static bool is_kept(void)
{
	return faccessat(keep_fd, "list", F_OK, 0) == 0;
}

/* Until whatever changes now has a time of its own. */
static void await_tick(void)
{
	struct stat st, now;

	unit_write_text("tick", "");
	ck_assert_int_eq(stat(unit_path("tick"), &st), 0);
	do {
		unit_write_text("tick", "");
		ck_assert_int_eq(stat(unit_path("tick"), &now), 0);
	} while (now.st_ctim.tv_sec == st.st_ctim.tv_sec &&
		 now.st_ctim.tv_nsec == st.st_ctim.tv_nsec);
}

START_TEST(a_kept_list_is_used)
{
	struct local_print p = print(AT_ONCE);
	struct stat before, after;

	ck_assert(is_kept());
	ck_assert_int_eq(fstatat(keep_fd, "list", &before, 0), 0);
	ck_assert_uint_eq(print(AT_ONCE).a, p.a);
	ck_assert_int_eq(fstatat(keep_fd, "list", &after, 0), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

START_TEST(what_changed_just_now_is_not_kept)
{
	(void)print(LOCAL_PRINT_SETTLED_S);
	ck_assert(!is_kept());
}
END_TEST

static void change(int how)
{
	static const struct timespec old[2] = {{1, 0}, {1, 0}};

	switch (how) {
	case 0:
		unit_write_text("tree/a", "c");
		break;
	case 1:
		unit_write_text("tree/sub/c", "");
		break;
	case 2:
		ck_assert_int_eq(unlink(unit_path("tree/sub/b")), 0);
		break;
	case 3:
		ck_assert_int_eq(chmod(unit_path("tree/sub/b"), 0640), 0);
		break;
	case 4:
		ck_assert_int_eq(unlink(unit_path("tree/link")), 0);
		ck_assert_int_eq(symlink("b", unit_path("tree/link")), 0);
		break;
	case 5:
		ck_assert_int_eq(rename(unit_path("tree/sub"), unit_path("tree/bus")), 0);
		break;
	case 6: /* with its time set back */
		unit_write_text("tree/a", "cc");
		ck_assert_int_eq(utimensat(AT_FDCWD, unit_path("tree/a"), old, 0), 0);
		break;
	default:
		ck_assert_int_eq(mkdir(unit_path("tree/sub/new"), 0755), 0);
		break;
	}
}

START_TEST(a_change_is_seen)
{
	struct local_print before = print(AT_ONCE), after;

	await_tick();
	change(_i);
	after = print(AT_ONCE);
	ck_assert(before.a != after.a && before.b != after.b);
	ck_assert_uint_eq(print(AT_ONCE).a, after.a);
}
END_TEST

static int64_t now_ns(void)
{
	struct timespec t;

	ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &t), 0);
	return (int64_t)t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* What was seen by others since one asked is as good as a look of one's own, and no older one. */
START_TEST(a_look_since_is_enough)
{
	const int64_t before = now_ns();
	const struct local_print seen = print(AT_ONCE);
	struct local_print since = LOCAL_PRINT_INIT, later = LOCAL_PRINT_INIT;

	await_tick();
	change(0);
	local_print_tree(&since, unit_path("tree"), keep_fd, "list", AT_ONCE, before);
	ck_assert_uint_eq(since.a, seen.a);
	local_print_tree(&later, unit_path("tree"), keep_fd, "list", AT_ONCE, now_ns());
	ck_assert_uint_ne(later.a, seen.a);
	/* That look was one as well. */
	change(1);
	since = (struct local_print)LOCAL_PRINT_INIT;
	local_print_tree(&since, unit_path("tree"), keep_fd, "list", AT_ONCE, before);
	ck_assert_uint_eq(since.a, later.a);
}
END_TEST

/* The clock was set back since. */
START_TEST(a_look_in_the_future_is_none)
{
	static const struct timespec future[2] = {{INT32_MAX, 0}, {INT32_MAX, 0}};
	const int64_t before = now_ns();
	const struct local_print seen = print(AT_ONCE);
	struct local_print p = LOCAL_PRINT_INIT;

	await_tick();
	change(0);
	ck_assert_int_eq(utimensat(keep_fd, "list", future, 0), 0);
	local_print_tree(&p, unit_path("tree"), keep_fd, "list", AT_ONCE, before);
	ck_assert_uint_ne(p.a, seen.a);
}
END_TEST

START_TEST(a_damaged_list_is_none)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);

	(void)print(AT_ONCE);
	ck_assert_int_eq(abx_fs_read(keep_fd, "list", &b), 0);
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 1;
		unit_write("keep/list", b.data, b.len);
		(void)print(AT_ONCE);
		b.data[i] ^= 1;
		unit_write("keep/list", b.data, i);
		(void)print(AT_ONCE);
	}
}
END_TEST

START_TEST(names_too_long_for_a_path_are_walked)
{
	char name[NAME_MAX + 1];
	int at = open(unit_path("tree"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	for (int i = 0; i < PATH_MAX / NAME_MAX + 1; i++) {
		int below;

		ck_assert_int_eq(mkdirat(at, name, 0755), 0);
		below = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)close(at);
		at = below;
		ck_assert_int_ge(at, 0);
	}
	(void)close(at);
	(void)print(AT_ONCE);
	ck_assert(!is_kept());
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local-print");
	TCase *tc = tcase_create("kept");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_kept_list_is_used);
	tcase_add_test(tc, what_changed_just_now_is_not_kept);
	tcase_add_loop_test(tc, a_change_is_seen, 0, 8);
	tcase_add_test(tc, a_look_since_is_enough);
	tcase_add_test(tc, a_look_in_the_future_is_none);
	tcase_add_test(tc, a_damaged_list_is_none);
	tcase_add_test(tc, names_too_long_for_a_path_are_walked);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
