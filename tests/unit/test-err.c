/* SPDX-License-Identifier: MIT */
/* Errors: texts, codes, exit codes. */
#include "core/util/redact.h"
#include "tests/unit/unit.h"

START_TEST(set_wrap_remedy)
{
	struct abx_err err = ABX_ERR_INIT;

	ck_assert_int_eq(abx_err_set(&err, ABX_EQUOTA, "disk of '%s' is full", "x"), ABX_EQUOTA);
	ck_assert_int_eq(abx_err_wrap(&err, "provision '%s'", "y"), ABX_EQUOTA);
	ck_assert_int_eq(abx_err_remedy(&err, "free %d bytes", 5), ABX_EQUOTA);
	ck_assert_str_eq(err.text, "provision 'y': disk of 'x' is full");
	ck_assert_str_eq(err.remedy, "free 5 bytes");
	ck_assert_int_eq(err.retry_after_ms, -1);
	/* A new error has nothing of the old one. */
	(void)abx_err_set(&err, ABX_EIO, "x");
	ck_assert_str_eq(err.remedy, "");
}
END_TEST

START_TEST(errno_codes)
{
	static const struct {
		int errnum, code;
	} cases[] = {
		{ENOENT, ABX_ENOTFOUND}, {EEXIST, ABX_EEXIST},	     {ENOMEM, ABX_ENOMEM},
		{EACCES, ABX_EPERM},	 {EPERM, ABX_EPERM},	     {ENOSPC, ABX_EIO},
		{EINVAL, ABX_EINVAL},	 {ETIMEDOUT, ABX_ETIMEDOUT},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		struct abx_err err = ABX_ERR_INIT;

		ck_assert_int_eq(abx_err_errno(&err, cases[i].errnum, "open '%s'", "f"),
				 cases[i].code);
		ck_assert_int_eq(abx_err_errno(&err, -cases[i].errnum, "open '%s'", "f"),
				 cases[i].code);
		ck_assert_int_eq(strncmp(err.text, "open 'f': ", 10), 0);
		unit_has(err.text, strerror(cases[i].errnum));
		ck_assert_int_eq(abx_err_errno(NULL, cases[i].errnum, "x"), cases[i].code);
	}
}
END_TEST

START_TEST(without_an_object)
{
	ck_assert_int_eq(abx_err_set(NULL, ABX_EIO, "x"), ABX_EIO);
	ck_assert_int_lt(abx_err_wrap(NULL, "x"), 0);
	ck_assert_int_lt(abx_err_remedy(NULL, "x"), 0);
}
END_TEST

START_TEST(long_texts_are_cut)
{
	struct abx_err err = ABX_ERR_INIT;
	char text[4000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	(void)abx_err_set(&err, ABX_EIO, "%s", text);
	ck_assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
	(void)abx_err_wrap(&err, "%s", text);
	(void)abx_err_remedy(&err, "%s", text);
	(void)abx_err_errno(&err, EIO, "%s", text);
	ck_assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
}
END_TEST

START_TEST(redacted_before_they_are_cut)
{
	struct abx_err err = ABX_ERR_INIT;
	char filler[sizeof(err.text)];

	abx_redact_add("abcdefghijklmnopqrstuvwxyz");
	memset(filler, '.', sizeof(filler) - 1);
	filler[sizeof(filler) - 10] = '\0';
	(void)abx_err_set(&err, ABX_EIO, "%sabcdefghijklmnopqrstuvwxyz", filler);
	unit_has(err.text, "***");
	ck_assert_ptr_null(strstr(err.text, "abc"));
	(void)abx_err_remedy(&err, "use abcdefghijklmnopqrstuvwxyz");
	ck_assert_str_eq(err.remedy, "use ***");
}
END_TEST

START_TEST(exit_codes)
{
	static const struct {
		int code, exit_code;
	} cases[] = {
		{ABX_OK, 0},	      {ABX_EINTERNAL, 1}, {ABX_EUSAGE, 2},  {ABX_ENOBOX, 3},
		{ABX_EAUTH, 4},	      {ABX_EPROVIDER, 5}, {ABX_EPOLICY, 6}, {ABX_EDENIED, 10},
		{ABX_ECANCELED, 130}, {-4711, 1},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++)
		ck_assert_int_eq(abx_err_exit_code(cases[i].code), cases[i].exit_code);
}
END_TEST

/* Every code has a name of its own. */
START_TEST(names)
{
	for (int a = ABX_EPROTO; a <= ABX_OK; a++)
		for (int b = ABX_EPROTO; b < a; b++)
			ck_assert_str_ne(abx_err_name(a), abx_err_name(b));
	for (int a = ABX_EDENIED; a <= ABX_EUSAGE; a++)
		ck_assert_str_ne(abx_err_name(a), "internal");
	ck_assert_str_eq(abx_err_name(-4711), "internal");
	ck_assert(abx_err_retryable(ABX_ERATE));
	ck_assert(!abx_err_retryable(ABX_EAUTH));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("err");
	TCase *tc = tcase_create("err");

	tcase_add_test(tc, set_wrap_remedy);
	tcase_add_test(tc, errno_codes);
	tcase_add_test(tc, without_an_object);
	tcase_add_test(tc, long_texts_are_cut);
	tcase_add_test(tc, redacted_before_they_are_cut);
	tcase_add_test(tc, exit_codes);
	tcase_add_test(tc, names);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
