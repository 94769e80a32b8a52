/* SPDX-License-Identifier: MIT */
/* Typed access to JSON: bounds, wrong types, unknown members. */
#include "abxsdk/json.h"

#include "tests/unit/unit.h"

static cJSON *parse(const char *text)
{
	cJSON *doc = NULL;

	ck_assert_int_eq(abx_json_parse(text, strlen(text), 4096, &doc), 0);
	return doc;
}

START_TEST(only_one_object)
{
	static const char *const bad[] = {"", "[]", "7", "{", "{} {}", "{\"a\": }", "\"s\""};
	cJSON *doc = NULL;

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++)
		ck_assert_int_eq(abx_json_parse(bad[i], strlen(bad[i]), 4096, &doc), -EPROTO);
	ck_assert_int_eq(abx_json_parse("{}        ", 10, 9, &doc), -EFBIG);
	ck_assert_ptr_eq(doc, NULL);
	cJSON_Delete(parse(" {} \n"));
}
END_TEST

START_TEST(members_by_type)
{
	cJSON *doc = parse(
		"{\"s\": \"abc\", \"n\": 9007199254740992, \"b\": true, \"o\": {\"k\": \"v\"},"
		" \"null\": null, \"f\": 1.5, \"big\": 1e300, \"S\": 1}");
	const char *s = "untouched";
	const cJSON *o = NULL;
	int64_t n = 4711;
	bool b = false;

	ck_assert_int_eq(abx_json_str(doc, "s", 3, &s), 0);
	ck_assert_str_eq(s, "abc");
	ck_assert_int_eq(abx_json_str(doc, "s", 2, &s), -EPROTO);
	ck_assert_int_eq(abx_json_str(doc, "n", 99, &s), -EPROTO);
	ck_assert_str_eq(s, "abc");
	ck_assert_int_eq(abx_json_str(doc, "absent", 99, &s), 0);
	ck_assert_ptr_eq(s, NULL);
	ck_assert_int_eq(abx_json_i64(doc, "n", &n), 0);
	ck_assert_int_eq(n, INT64_C(9007199254740992));
	ck_assert_int_eq(abx_json_i64(doc, "f", &n), -EPROTO);
	ck_assert_int_eq(abx_json_i64(doc, "big", &n), -EPROTO);
	ck_assert_int_eq(abx_json_i64(doc, "s", &n), -EPROTO);
	ck_assert_int_eq(abx_json_i64(doc, "null", &n), -ENOENT);
	ck_assert_int_eq(abx_json_bool(doc, "b", false, &b), 0);
	ck_assert(b);
	ck_assert_int_eq(abx_json_bool(doc, "absent", true, &b), 0);
	ck_assert(b);
	ck_assert_int_eq(abx_json_bool(doc, "s", true, &b), -EPROTO);
	ck_assert_int_eq(abx_json_obj(doc, "o", &o), 0);
	ck_assert_ptr_ne(o, NULL);
	ck_assert_int_eq(abx_json_obj(doc, "s", &o), -EPROTO);
	cJSON_Delete(doc);
}
END_TEST

static int count(void *ctx, const char *key, const char *value)
{
	ck_assert_int_eq(key[0], value[0]);
	return ++*(int *)ctx == 3 ? -ECANCELED : 0;
}

START_TEST(strings_of_an_object)
{
	cJSON *doc = parse("{\"a\": \"a\", \"b\": \"b\"}"),
	      *more = parse("{\"a\":\"a\",\"b\":\"b\",\"c\":\"c\"}");
	cJSON *mixed = parse("{\"a\": \"a\", \"b\": 1}");
	int n = 0;

	ck_assert_int_eq(abx_json_each_str(doc, count, &n), 0);
	ck_assert_int_eq(n, 2);
	ck_assert_int_eq(abx_json_each_str(NULL, count, &n), 0);
	n = 0;
	ck_assert_int_eq(abx_json_each_str(more, count, &n), -ECANCELED);
	n = 0;
	ck_assert_int_eq(abx_json_each_str(mixed, count, &n), -EPROTO);
	cJSON_Delete(doc);
	cJSON_Delete(more);
	cJSON_Delete(mixed);
}
END_TEST

START_TEST(what_is_written_is_read)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(4096), small = ABX_BUF_INIT(8);
	cJSON *doc = cJSON_CreateObject(), *back = NULL;
	const char *s = NULL;
	int64_t n = 0;
	bool yes = false;

	ck_assert_int_eq(abx_json_add_str(doc, "s", "\xff\"\n"), 0);
	ck_assert_int_eq(abx_json_add_str(doc, "none", NULL), 0);
	ck_assert_int_eq(abx_json_add_i64(doc, "n", -7), 0);
	ck_assert_int_eq(abx_json_add_bool(doc, "b", true), 0);
	ck_assert_int_eq(abx_json_print(doc, &b), 0);
	ck_assert_int_eq(abx_json_print(doc, &small), -ENOMEM);
	ck_assert_int_eq(abx_json_parse(b.data, b.len, 4096, &back), 0);
	ck_assert_int_eq(abx_json_str(back, "s", 9, &s), 0);
	ck_assert_str_eq(s, "\xff\"\n");
	ck_assert_int_eq(abx_json_str(back, "none", 9, &s), 0);
	ck_assert_ptr_eq(s, NULL);
	ck_assert_int_eq(abx_json_i64(back, "n", &n), 0);
	ck_assert_int_eq(n, -7);
	ck_assert_int_eq(abx_json_bool(back, "b", false, &yes), 0);
	ck_assert(yes);
	cJSON_Delete(doc);
	cJSON_Delete(back);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("json");
	TCase *tc = tcase_create("json");

	tcase_add_test(tc, only_one_object);
	tcase_add_test(tc, members_by_type);
	tcase_add_test(tc, strings_of_an_object);
	tcase_add_test(tc, what_is_written_is_read);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
