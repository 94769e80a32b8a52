/* SPDX-License-Identifier: MIT */
/* Secrets never come out, in any of the forms that they take on the way. */
#include "core/util/redact.h"

#include <pthread.h>

#include "core/util/log.h"
#include "tests/unit/unit.h"

#define SECRET "s3cr3t/+token=value"

static void expect(const char *in, const char *out)
{
	abx_autofree char *text = abx_xstrdup(in);

	abx_redact(text);
	ck_assert_str_eq(text, out);
}

START_TEST(plain)
{
	abx_redact_add(SECRET);
	expect(SECRET, "***");
	expect("a " SECRET " b " SECRET, "a *** b ***");
	expect(SECRET SECRET, "******");
	expect("s3cr3t/+token=valu", "s3cr3t/+token=valu");
	expect("", "");
}
END_TEST

START_TEST(percent_encoded)
{
	abx_redact_add(SECRET);
	expect("https://x/?t=s3cr3t%2F%2Btoken%3Dvalue&y", "https://x/?t=***&y");
}
END_TEST

START_TEST(percent_encoded_in_lower_case)
{
	abx_redact_add(SECRET);
	expect("https://x/?t=s3cr3t%2f%2btoken%3dvalue&y", "https://x/?t=***&y");
}
END_TEST

/* Behind "user:", "us:" and nothing: the three alignments of base64. */
START_TEST(base64)
{
	static const char *const encoded[] = {
		"czNjcjN0Lyt0b2tlbj12YWx1ZQ==",	    /* secret */
		"dTpzM2NyM3QvK3Rva2VuPXZhbHVl",	    /* u:secret */
		"OnMzY3IzdC8rdG9rZW49dmFsdWU=",	    /* :secret */
		"dXNlcjpzM2NyM3QvK3Rva2VuPXZhbHVl", /* user:secret */
	};

	abx_redact_add(SECRET);
	for (size_t i = 0; i < ABX_N_ELEMENTS(encoded); i++) {
		abx_autofree char *text = abx_xasprintf("Authorization: Basic %s", encoded[i]);

		abx_redact(text);
		unit_has(text, "***");
		ck_assert_ptr_null(strstr(text, "dG9rZW4"));
		ck_assert_ptr_null(strstr(text, "b2tlbj1"));
		ck_assert_ptr_null(strstr(text, "Rva2Vu"));
	}
}
END_TEST

/* One secret inside another, in either order: nothing of the longer one is left. */
START_TEST(overlapping)
{
	if (_i) {
		abx_redact_add("abcdef");
		abx_redact_add("abcdefghijkl");
	} else {
		abx_redact_add("abcdefghijkl");
		abx_redact_add("abcdef");
	}
	expect("x abcdefghijkl y", "x *** y");
	expect("x abcdef y", "x *** y");
}
END_TEST

START_TEST(short_ones_are_left_alone)
{
	abx_redact_add("yes");
	abx_redact_add("");
	abx_redact_add(NULL);
	abx_redact_add("12345");
	expect("yes 12345", "yes 12345");
}
END_TEST

START_TEST(forgotten)
{
	abx_redact_add(SECRET);
	abx_redact_forget_all();
	expect(SECRET, SECRET);
}
END_TEST

static void *add_and_use(void *arg)
{
	for (int i = 0; i < 200; i++) {
		abx_autofree char *secret = abx_xasprintf("secret-%d-%d", *(const int *)arg, i);
		abx_autofree char *text = abx_xstrdup(secret);

		abx_redact_add(secret);
		abx_redact(text);
		if (strncmp(text, "***", 3) != 0)
			return arg;
	}
	return NULL;
}

START_TEST(many_threads)
{
	pthread_t threads[4];
	int ids[4];

	for (int i = 0; i < 4; i++) {
		ids[i] = i;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, add_and_use, &ids[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		void *failed = NULL;

		ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
		ck_assert_ptr_null(failed);
	}
}
END_TEST

START_TEST(what_is_logged)
{
	abx_autofree char *said = NULL;

	abx_redact_add(SECRET);
	unit_stderr_begin();
	errno = EDOM;
	abx_warn("token %s", SECRET);
	/* Each of many boxes may lack the same. */
	abx_warn("token %s", SECRET);
	abx_log(ABX_LOG_WARN, "local", "token %s", SECRET);
	abx_log(ABX_LOG_ERROR, "http", "token %s", SECRET);
	abx_log(ABX_LOG_DEBUG, "http", "never shown");
	ck_assert_int_eq(errno, EDOM);
	said = unit_stderr_end();
	ck_assert_str_eq(said, "agentbox: warning: token ***\nagentbox: error: token ***\n");
}
END_TEST

/* Cut by the size of a log line, a secret must not show its first half. */
START_TEST(at_the_end_of_a_long_line)
{
	abx_autofree char *said = NULL;
	char filler[2048];

	abx_redact_add("abcdefghijklmnopqrstuvwxyz0123456789");
	for (size_t n = 2000; n < sizeof(filler); n += 5) {
		memset(filler, '.', n);
		filler[n] = '\0';
		unit_stderr_begin();
		abx_warn("%sabcdefghijklmnopqrstuvwxyz0123456789", filler);
		free(said);
		said = unit_stderr_end();
		ck_assert_ptr_null(strstr(said, "abcdef"));
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("redact");
	TCase *tc = tcase_create("redact");

	tcase_add_checked_fixture(tc, unit_dir_setup, unit_dir_teardown);
	tcase_add_test(tc, plain);
	tcase_add_test(tc, percent_encoded);
	tcase_add_test(tc, percent_encoded_in_lower_case);
	tcase_add_test(tc, base64);
	tcase_add_loop_test(tc, overlapping, 0, 2);
	tcase_add_test(tc, short_ones_are_left_alone);
	tcase_add_test(tc, forgotten);
	tcase_add_test(tc, many_threads);
	tcase_add_test(tc, what_is_logged);
	tcase_add_test(tc, at_the_end_of_a_long_line);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
