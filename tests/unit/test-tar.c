/* SPDX-License-Identifier: MIT */
/* Headers of tar streams, there and back. */
#include <string.h>

#include "abxsdk/tar.h"
#include "tests/unit/unit.h"

static void same_head(const struct abx_tar_head *a, const struct abx_tar_head *b)
{
	ck_assert_int_eq(a->type, b->type);
	ck_assert_uint_eq(a->mode, b->mode);
	ck_assert_uint_eq(a->size, b->size);
	ck_assert_int_eq(a->mtime_s, b->mtime_s);
}

START_TEST(numbers)
{
	static const int64_t times[] = {0,    1,	   1700000000,		INT64_C(8589934591),
					-1,   -1000000000, INT64_C(8589934592), INT64_MIN,
					4095, INT64_MAX};
	static const uint64_t sizes[] = {0, 511, 512, UINT64_C(8589934592), INT64_MAX};

	for (size_t i = 0; i < ABX_N_ELEMENTS(times); i++)
		for (size_t k = 0; k < ABX_N_ELEMENTS(sizes); k++) {
			abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(4096);
			const struct abx_tar_head head = {.type = ABX_TAR_FILE,
							  .name = "f",
							  .mode = 0640,
							  .size = sizes[k],
							  .mtime_s = times[i]};
			struct abx_tar_head got;
			struct abx_tar_room room;

			abx_tar_head_add(&b, &head);
			ck_assert_uint_eq(b.len, ABX_TAR_BLOCK);
			ck_assert_int_eq(abx_tar_head_parse(b.data, &room, &got), 0);
			same_head(&head, &got);
			ck_assert_str_eq(got.name, "f");
			ck_assert_str_eq(got.target, "");
		}
}
END_TEST

static void check_name(size_t len, size_t blocks)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);
	char name[2048];
	struct abx_tar_head head = {.type = ABX_TAR_DIR, .name = name, .mode = 0755}, got;
	struct abx_tar_room room;

	memset(name, 'n', len);
	name[len] = '\0';
	abx_tar_head_add(&b, &head);
	ck_assert_uint_eq(b.len, blocks * ABX_TAR_BLOCK);
	ck_assert_int_eq(abx_tar_head_parse(b.data, &room, &got), 0);
	if (blocks > 1) {
		ck_assert_int_eq(got.type, ABX_TAR_LONG_NAME);
		ck_assert_uint_eq(got.size, len + 2);
		ck_assert_int_eq(memcmp(b.data + ABX_TAR_BLOCK, name, len), 0);
		ck_assert_str_eq(b.data + ABX_TAR_BLOCK + len, "/");
		ck_assert_int_eq(
			abx_tar_head_parse(b.data + (blocks - 1) * ABX_TAR_BLOCK, &room, &got), 0);
	} else {
		ck_assert_uint_eq(strlen(got.name), len + 1);
		ck_assert_int_eq(got.name[len], '/');
	}
	same_head(&head, &got);
}

START_TEST(names)
{
	check_name(1, 1);
	check_name(99, 1);
	check_name(100, 3);
	check_name(510, 3);
	check_name(511, 4);
	check_name(2046, 6);
}
END_TEST

START_TEST(not_headers)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(4096);
	const struct abx_tar_head head = {
		.type = ABX_TAR_SYMLINK, .name = "l", .target = "t", .mode = 0777};
	char block[ABX_TAR_BLOCK] = "";
	struct abx_tar_head got;
	struct abx_tar_room room;

	ck_assert_int_eq(abx_tar_head_parse(block, &room, &got), 0);
	ck_assert_int_eq(got.type, ABX_TAR_END);
	abx_tar_head_add(&b, &head);
	for (size_t i = 0; i < ABX_TAR_BLOCK; i++) {
		memcpy(block, b.data, sizeof(block));
		block[i] = (char)(block[i] ^ 1);
		ck_assert_int_eq(abx_tar_head_parse(block, &room, &got), -EBADMSG);
	}
	/* The same sum, another format: POSIX. */
	memcpy(block, b.data, sizeof(block));
	block[257 + 5] = '\0', block[257 + 6] = ' ' + ' ';
	ck_assert_int_eq(abx_tar_head_parse(block, &room, &got), -ENOTSUP);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("tar");
	TCase *tc = tcase_create("tar");

	tcase_add_test(tc, numbers);
	tcase_add_test(tc, names);
	tcase_add_test(tc, not_headers);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
