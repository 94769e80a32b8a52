/* SPDX-License-Identifier: MIT */
/* Numbers, durations, sizes, names, and bytes shown as text. */
#include "core/util/parse.h"

#include "tests/unit/unit.h"

START_TEST(numbers)
{
	static const char *const bad[] = {"",
					  " 1",
					  "1 ",
					  "+1",
					  "-1",
					  "0x1",
					  "1e3",
					  "1.0",
					  "a",
					  "18446744073709551616",
					  "99999999999999999999999"};
	uint64_t n = 0;

	ck_assert(abx_parse_u64("0", UINT64_MAX, &n) && n == 0);
	ck_assert(abx_parse_u64("0010", UINT64_MAX, &n) && n == 10);
	ck_assert(abx_parse_u64("18446744073709551615", UINT64_MAX, &n) && n == UINT64_MAX);
	ck_assert(abx_parse_u64("255", 255, &n) && n == 255);
	ck_assert(!abx_parse_u64("256", 255, &n));
	ck_assert(!abx_parse_u64("9", 5, &n));
	ck_assert(!abx_parse_u64("1", 0, &n));
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++)
		ck_assert_msg(!abx_parse_u64(bad[i], UINT64_MAX, &n), "%s", bad[i]);
	ck_assert_uint_eq(n, 255);
}
END_TEST

START_TEST(durations)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{"0", 0},	{"90", 90000},	 {"250ms", 250},   {"1s", 1000},
		{"5m", 300000}, {"2h", 7200000}, {"1d", 86400000}, {"3660d", INT64_C(316224000000)},
	};
	static const char *const bad[] = {
		"",   "s",  "1 s", "1S", "-1s", "1.5h", "1h30m", "3661d", "99999999999999999999",
		"1y", "1s "};
	int64_t ms = -1;

	for (size_t i = 0; i < ABX_N_ELEMENTS(good); i++) {
		ck_assert_int_eq(abx_parse_duration_ms(good[i].text, &ms, NULL), 0);
		ck_assert_int_eq(ms, good[i].ms);
	}
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		struct abx_err err = ABX_ERR_INIT;

		ck_assert_int_eq(abx_parse_duration_ms(bad[i], &ms, &err), ABX_EINVAL);
		unit_has(err.text, "duration");
	}
}
END_TEST

START_TEST(sizes)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"1024", 1024},
		{"64K", 65536},
		{"512M", UINT64_C(536870912)},
		{"2G", UINT64_C(2147483648)},
		{"1T", UINT64_C(1099511627776)},
		{"8388607T", UINT64_C(8388607) << 40},
	};
	static const char *const bad[] = {"", "K", "1k", "1KB", "-1", "1.5G", "8388608T", "1 G"};
	uint64_t bytes = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(good); i++) {
		ck_assert_int_eq(abx_parse_size_bytes(good[i].text, &bytes, NULL), 0);
		ck_assert_uint_eq(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++)
		ck_assert_int_eq(abx_parse_size_bytes(bad[i], &bytes, NULL), ABX_EINVAL);
}
END_TEST

START_TEST(booleans)
{
	static const char *const yes[] = {"true", "yes", "on", "1"};
	static const char *const no[] = {"false", "no", "off", "0"};
	bool value = false;

	for (size_t i = 0; i < ABX_N_ELEMENTS(yes); i++) {
		ck_assert_int_eq(abx_parse_bool(yes[i], &value, NULL), 0);
		ck_assert(value);
		ck_assert_int_eq(abx_parse_bool(no[i], &value, NULL), 0);
		ck_assert(!value);
	}
	ck_assert_int_eq(abx_parse_bool("", &value, NULL), ABX_EINVAL);
	ck_assert_int_eq(abx_parse_bool("TRUE", &value, NULL), ABX_EINVAL);
	ck_assert_int_eq(abx_parse_bool("yes ", &value, NULL), ABX_EINVAL);
}
END_TEST

START_TEST(box_names)
{
	static const char *const good[] = {"a", "a1", "1a", "quiet-otter", "a--b", "x-2"};
	static const char *const bad[] = {"",	 "1",	"12",  "-",   "-a",	  "a-", "A",
					  "a_b", "a.b", "a b", "a/b", "\xc3\xa4", "a\n"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(good); i++)
		ck_assert_int_eq(abx_check_box_name(good[i], NULL), 0);
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		struct abx_err err = ABX_ERR_INIT;

		ck_assert_int_eq(abx_check_box_name(bad[i], &err), ABX_EUSAGE);
		ck_assert_int_ne(err.remedy[0], '\0');
		ck_assert_ptr_null(strchr(err.text, '\n'));
		ck_assert_int_eq(abx_check_box_name(bad[i], NULL), ABX_EUSAGE);
	}
}
END_TEST

START_TEST(provider_names)
{
	ck_assert(abx_is_provider_name("e2b"));
	ck_assert(abx_is_provider_name("a"));
	ck_assert(abx_is_provider_name("abcdefghijklmnopqrstuvwxyz01234"));
	ck_assert(!abx_is_provider_name("abcdefghijklmnopqrstuvwxyz012345"));
	ck_assert(!abx_is_provider_name(""));
	ck_assert(!abx_is_provider_name("2eb"));
	ck_assert(!abx_is_provider_name("E2b"));
	ck_assert(!abx_is_provider_name("a/b"));
	ck_assert(!abx_is_provider_name("../a"));
}
END_TEST

START_TEST(quoting)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{"plain text", "plain text"},
		{"", ""},
		{"a\nb\tc", "a\\x0ab\\x09c"},
		{"it's \\", "it\\x27s \\x5c"},
		{"\x1b[31m", "\\x1b[31m"},
		{"\x7f", "\\x7f"},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xb3", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xb3"},
		{"\xff\xfe", "\\xff\\xfe"},
		{"\xc3", "\\xc3"},
		{"\xe2\x82", "\\xe2\\x82"},
		{"\xf0\x9f\x90", "\\xf0\\x9f\\x90"},
		{"\xc0\x80", "\\xc0\\x80"},		      /* overlong */
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},	      /* surrogate */
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* beyond Unicode */
		{"\xc2\x9b", "\\xc2\\x9b"},		      /* C1 control */
		{"\xe2\x80\xae", "\\xe2\\x80\\xae"},	      /* right-to-left override */
		{"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},
	};
	char text[64];

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		abx_quote_text(cases[i].bytes, text, sizeof(text));
		ck_assert_str_eq(text, cases[i].text);
	}
}
END_TEST

/* Whatever the size: it fits, ends, and is cut only between characters. */
START_TEST(quoting_fits)
{
	char text[40];

	for (size_t size = 4; size < sizeof(text); size++) {
		memset(text, 'Z', sizeof(text));
		abx_quote_text("ab\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xb3xyz\x01 and much more",
			       text, size);
		ck_assert_uint_lt(strnlen(text, size), size);
		ck_assert_int_eq(text[size], 'Z');
		ck_assert_str_eq(text + strlen(text) - 3, "...");
	}
	abx_quote_text("abc", text, 8);
	ck_assert_str_eq(text, "abc");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("parse");
	TCase *tc = tcase_create("parse");

	tcase_add_test(tc, numbers);
	tcase_add_test(tc, durations);
	tcase_add_test(tc, sizes);
	tcase_add_test(tc, booleans);
	tcase_add_test(tc, box_names);
	tcase_add_test(tc, provider_names);
	tcase_add_test(tc, quoting);
	tcase_add_test(tc, quoting_fits);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
