/* SPDX-License-Identifier: MIT */
/* Numbers, and what the kernel says of a process. */
#include "abxsdk/number.h"
#include "abxsdk/proc-stat.h"
#include "tests/unit/unit.h"

START_TEST(digits_and_no_more)
{
	const char *at = "12:34";
	uint64_t v = 7;

	ck_assert(abx_parse_digits(&at, 99, &v));
	ck_assert_uint_eq(v, 12);
	ck_assert_str_eq(at, ":34");
	ck_assert(!abx_parse_digits(&at, 99, &v));
	ck_assert_str_eq(at, ":34");
	ck_assert_uint_eq(v, 12);
	ck_assert(abx_parse_u64("18446744073709551615", UINT64_MAX, &v));
	ck_assert_uint_eq(v, UINT64_MAX);
	ck_assert(!abx_parse_u64("18446744073709551616", UINT64_MAX, &v));
	ck_assert(!abx_parse_u64("100", 99, &v));
	ck_assert(!abx_parse_u64("", 99, &v));
	ck_assert(!abx_parse_u64("-1", 99, &v));
	ck_assert(!abx_parse_u64(" 1", 99, &v));
	ck_assert(!abx_parse_u64("1 ", 99, &v));
	ck_assert_int_eq(abx_parse_pid("123"), 123);
	ck_assert_int_eq(abx_parse_pid("self"), 0);
	ck_assert_int_eq(abx_parse_pid("99999999999"), 0);
}
END_TEST

#define REST                                                                  \
	" S 1 12 12 0 -1 4194560 9 8 7 6 500 20 3 4 20 0 1 0 8812 10000 321 " \
	"18446744073709551615 1 1 0\n"

START_TEST(a_process_by_its_line)
{
	struct abx_proc_stat p;

	ck_assert(abx_proc_stat_parse("12 (sh)" REST, &p));
	ck_assert_int_eq(p.pid, 12);
	ck_assert_int_eq(p.parent, 1);
	ck_assert_str_eq(p.name, "sh");
	ck_assert_int_eq(p.state, 'S');
	ck_assert_uint_eq(p.flags, 4194560);
	ck_assert_uint_eq(p.ticks, 520);
	ck_assert_uint_eq(p.children_ticks, 7);
	ck_assert_uint_eq(p.start, 8812);
	ck_assert_uint_eq(p.rss_pages, 321);
}
END_TEST

/* Whoever names a process wants to be taken for another one. */
START_TEST(a_name_is_only_a_name)
{
	struct abx_proc_stat p;

	ck_assert(abx_proc_stat_parse("12 (x) Z 99 (y\n)" REST, &p));
	ck_assert_str_eq(p.name, "x) Z 99 (y\n");
	ck_assert_int_eq(p.parent, 1);
	ck_assert_int_eq(p.state, 'S');
	ck_assert(abx_proc_stat_parse("12 ()" REST, &p));
	ck_assert_str_eq(p.name, "");
}
END_TEST

START_TEST(what_is_no_such_line)
{
	static const char *const wrong[] = {
		"",	     "12",	     "12 (sh",		"12 (sh)",
		"12 (sh) ",  "12 (sh) S",    "12 (sh) S 1 2 3", "x (sh)" REST,
		"(sh)" REST, "12 )sh(" REST,
	};
	struct abx_proc_stat p;

	for (size_t i = 0; i < ABX_N_ELEMENTS(wrong); i++)
		ck_assert_msg(!abx_proc_stat_parse(wrong[i], &p), "%s", wrong[i]);
}
END_TEST

START_TEST(ourselves)
{
	struct abx_proc_stat p;
	char path[32];

	ck_assert_int_eq(abx_proc_stat_read(AT_FDCWD, "/proc/self", &p), 0);
	ck_assert_int_eq(p.pid, getpid());
	ck_assert_int_eq(p.parent, getppid());
	ck_assert_int_eq(p.state, 'R');
	(void)snprintf(path, sizeof(path), "/proc/%d", INT32_MAX);
	ck_assert_int_eq(abx_proc_stat_read(AT_FDCWD, path, &p), -ENOENT);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("proc-stat");
	TCase *tc = tcase_create("proc-stat");

	tcase_add_test(tc, digits_and_no_more);
	tcase_add_test(tc, a_process_by_its_line);
	tcase_add_test(tc, a_name_is_only_a_name);
	tcase_add_test(tc, what_is_no_such_line);
	tcase_add_test(tc, ourselves);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
