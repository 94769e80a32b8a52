/* SPDX-License-Identifier: MIT */
/* When something is tried again. */
#include "core/host/retry.h"
#include "tests/unit/unit.h"

START_TEST(only_what_may_pass)
{
	ck_assert(abx_retry_code(ABX_ERATE));
	ck_assert(abx_retry_code(ABX_ENETWORK));
	ck_assert(abx_retry_code(ABX_EREMOTE));
	for (int code = ABX_EPROTO; code <= 0; code++)
		if (code != ABX_ERATE && code != ABX_ENETWORK && code != ABX_EREMOTE)
			ck_assert_int_eq(abx_retry_delay_ms(code, -1, 1, INT64_MAX), -1);
}
END_TEST

START_TEST(waits_double_with_jitter)
{
	int64_t full = 200;

	for (uint32_t attempt = 1; attempt < ABX_RETRY_MAX_ATTEMPTS; attempt++) {
		int64_t least = INT64_MAX, most = 0;

		for (int i = 0; i < 500; i++) {
			int64_t ms = abx_retry_delay_ms(ABX_ERATE, -1, attempt, INT64_MAX);

			least = ms < least ? ms : least;
			most = ms > most ? ms : most;
		}
		ck_assert_int_ge(least, full / 2);
		ck_assert_int_le(most, full);
		ck_assert_int_gt(most - least, full / 4);
		full = full * 2 > 10000 ? 10000 : full * 2;
	}
}
END_TEST

START_TEST(attempts_are_counted)
{
	ck_assert_int_eq(abx_retry_delay_ms(ABX_ERATE, 0, ABX_RETRY_MAX_ATTEMPTS, INT64_MAX), -1);
	ck_assert_int_eq(abx_retry_delay_ms(ABX_ERATE, 0, UINT32_MAX, INT64_MAX), -1);
	ck_assert_int_eq(abx_retry_delay_ms(ABX_ERATE, 0, 0, INT64_MAX), -1);
}
END_TEST

START_TEST(the_service_says_when)
{
	ck_assert_int_eq(abx_retry_delay_ms(ABX_ERATE, 5000, 1, INT64_MAX), 5000);
	/* Less than our own wait does not shorten it. */
	ck_assert_int_ge(abx_retry_delay_ms(ABX_ERATE, 0, 1, INT64_MAX), 100);
	/* At most a minute. */
	ck_assert_int_eq(abx_retry_delay_ms(ABX_ERATE, 3600000, 1, INT64_MAX), 60000);
}
END_TEST

START_TEST(nonsense_is_ignored)
{
	ck_assert_int_le(abx_retry_delay_ms(ABX_ERATE, -5000, 1, INT64_MAX), 200);
	ck_assert_int_le(abx_retry_delay_ms(ABX_ERATE, INT64_MAX, 1, INT64_MAX), 200);
	ck_assert_int_le(abx_retry_delay_ms(ABX_ERATE, INT64_MIN, 1, INT64_MAX), 200);
}
END_TEST

START_TEST(a_wait_ends_before_the_deadline)
{
	ck_assert_int_eq(abx_retry_delay_ms(ABX_ERATE, 5000, 1, 4000), -1);
	ck_assert_int_eq(abx_retry_delay_ms(ABX_ERATE, 5000, 1, 6000), 5000);
	ck_assert_int_eq(abx_retry_delay_ms(ABX_ENETWORK, -1, 1, 50), -1);
	ck_assert_int_eq(abx_retry_delay_ms(ABX_ENETWORK, -1, 1, 0), -1);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("retry");
	TCase *tc = tcase_create("delay");

	tcase_add_test(tc, only_what_may_pass);
	tcase_add_test(tc, waits_double_with_jitter);
	tcase_add_test(tc, attempts_are_counted);
	tcase_add_test(tc, the_service_says_when);
	tcase_add_test(tc, nonsense_is_ignored);
	tcase_add_test(tc, a_wait_ends_before_the_deadline);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
