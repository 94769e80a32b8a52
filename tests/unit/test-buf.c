/* SPDX-License-Identifier: MIT */
/* The bounded buffer. */
#include "tests/unit/unit.h"

START_TEST(grows_and_ends_in_nul)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);

	ck_assert_str_eq(abx_buf_str(&b), "");
	for (int i = 0; i < 10000; i++) {
		abx_buf_addc(&b, 'x');
		ck_assert_int_eq(b.data[b.len], '\0');
	}
	abx_buf_addf(&b, "%s-%d", "y", 7);
	ck_assert_uint_eq(b.len, 10003);
	ck_assert_str_eq(b.data + 10000, "y-7");
	abx_buf_add(&b, "a\0b", 3);
	ck_assert_uint_eq(b.len, 10006);
	abx_buf_add(&b, NULL, 0);
	ck_assert_uint_eq(b.len, 10006);
	ck_assert(!b.failed);
}
END_TEST

START_TEST(bound_is_exact_and_sticky)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(4);

	abx_buf_adds(&b, "abcd");
	ck_assert(!b.failed);
	abx_buf_adds(&b, "");
	ck_assert(!b.failed);
	abx_buf_addc(&b, 'e');
	ck_assert(b.failed);
	ck_assert_uint_eq(b.len, 0);
	ck_assert_str_eq(abx_buf_str(&b), "");
	abx_buf_addc(&b, 'e');
	ck_assert_uint_eq(b.len, 0);
	ck_assert_ptr_null(abx_buf_steal(&b));
	abx_buf_reset(&b);
	abx_buf_addf(&b, "%d", 12345);
	ck_assert(b.failed);
	abx_buf_reset(&b);
	abx_buf_addf(&b, "%d", 1234);
	ck_assert_str_eq(abx_buf_str(&b), "1234");
}
END_TEST

START_TEST(huge_sizes_do_not_wrap)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(SIZE_MAX);

	abx_buf_addc(&b, 'x');
	ck_assert_ptr_null(abx_buf_reserve(&b, SIZE_MAX - 1));
	ck_assert(b.failed);
}
END_TEST

START_TEST(steal_hands_over)
{
	struct abx_buf b = ABX_BUF_INIT(16);
	abx_autofree char *empty = abx_buf_steal(&b), *text = NULL;

	ck_assert_str_eq(empty, "");
	abx_buf_adds(&b, "abc");
	text = abx_buf_steal(&b);
	ck_assert_str_eq(text, "abc");
	ck_assert_uint_eq(b.len, 0);
	ck_assert_ptr_null(b.data);
	abx_buf_release(&b);
}
END_TEST

START_TEST(reserve_and_commit)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(16);
	char *at = abx_buf_reserve(&b, 16);

	ck_assert_ptr_nonnull(at);
	memcpy(at, "abc", 3);
	abx_buf_commit(&b, 3);
	ck_assert_str_eq(abx_buf_str(&b), "abc");
	ck_assert_ptr_null(abx_buf_reserve(&b, 14));
}
END_TEST

START_TEST(reads_a_descriptor)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(100000), small = ABX_BUF_INIT(10);
	abx_autofree char *text = abx_xcalloc(1, 60000);
	abx_autoclose int fd = -1;

	memset(text, 'z', 59999);
	unit_write_text("f", text);
	fd = open(unit_path("f"), O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(abx_buf_read_fd(&b, fd), 0);
	ck_assert_uint_eq(b.len, 59999);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(abx_buf_read_fd(&small, fd), -EFBIG);
	ck_assert_int_eq(abx_buf_read_fd(&b, -1), -EBADF);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("buf");
	TCase *tc = tcase_create("buf");

	tcase_add_checked_fixture(tc, unit_dir_setup, unit_dir_teardown);
	tcase_add_test(tc, grows_and_ends_in_nul);
	tcase_add_test(tc, bound_is_exact_and_sticky);
	tcase_add_test(tc, huge_sizes_do_not_wrap);
	tcase_add_test(tc, steal_hands_over);
	tcase_add_test(tc, reserve_and_commit);
	tcase_add_test(tc, reads_a_descriptor);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
