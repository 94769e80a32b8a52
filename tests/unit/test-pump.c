/* SPDX-License-Identifier: MIT */
/* Streams on their way: as they are, compressed, given up, broken off. */
#include "core/util/pump.h"

#include <archive.h>
#include <archive_entry.h>

#include "tests/unit/unit.h"

#define LARGE ((size_t)3 << 20)

static int open_at(const char *name, int flags)
{
	const int fd = open(unit_path(name), flags | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static struct abx_pump_count pump(const char *from, const char *to, bool zstd)
{
	abx_autoclose int in = open_at(from, O_RDONLY);
	abx_autoclose int out = open_at(to, O_WRONLY | O_CREAT | O_TRUNC);
	const struct abx_pump p = {in, out, -1, zstd};
	struct abx_pump_count n = {0};
	struct stat a, b;

	unit_ok(abx_pump_run(&p, &n, &unit_err));
	ck_assert_int_eq(fstat(in, &a), 0);
	ck_assert_int_eq(fstat(out, &b), 0);
	ck_assert_uint_eq(n.in, (uint64_t)a.st_size);
	ck_assert_uint_eq(n.out, (uint64_t)b.st_size);
	return n;
}

/* What libarchive makes of it again, with `size` bytes at most. */
static size_t expand(const char *name, unsigned char *data, size_t size)
{
	abx_autoclose int fd = open_at(name, O_RDONLY);
	struct archive *a = archive_read_new();
	struct archive_entry *e;
	size_t len = 0;
	la_ssize_t n;

	ck_assert_int_eq(archive_read_support_filter_zstd(a), ARCHIVE_OK);
	ck_assert_int_eq(archive_read_support_format_raw(a), ARCHIVE_OK);
	ck_assert_int_eq(archive_read_open_fd(a, fd, 65536), ARCHIVE_OK);
	ck_assert_int_eq(archive_read_next_header(a, &e), ARCHIVE_OK);
	ck_assert_int_eq(archive_filter_code(a, 0), ARCHIVE_FILTER_ZSTD);
	while ((n = archive_read_data(a, data + len, size - len)) > 0)
		len += (size_t)n;
	ck_assert_int_eq((int)n, 0);
	ck_assert_int_eq(archive_read_free(a), ARCHIVE_OK);
	return len;
}

/* Half of it shrinks. */
static unsigned char *make_data(void)
{
	unsigned char *data = abx_xcalloc(1, LARGE);
	uint64_t x = 88172645463325252U;

	for (size_t i = 0; i < LARGE / 2; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		data[i] = (unsigned char)x;
	}
	return data;
}

START_TEST(as_it_is)
{
	abx_autofree unsigned char *data = make_data();
	abx_autofree char *got = NULL;

	unit_write("in", data, LARGE);
	ck_assert_uint_eq(pump("in", "out", false).out, LARGE);
	got = unit_read("out");
	ck_assert_int_eq(memcmp(got, data, LARGE), 0);
	unit_write("in", "", 0);
	ck_assert_uint_eq(pump("in", "out", false).out, 0);
}
END_TEST

START_TEST(compressed)
{
	abx_autofree unsigned char *data = make_data(), *got = abx_xcalloc(1, LARGE + 1);
	struct abx_pump_count n;

	ck_assert(abx_pump_can_zstd());
	unit_write("in", data, LARGE);
	n = pump("in", "out", true);
	/* What does not shrink hardly grows. */
	ck_assert_uint_lt(n.out, LARGE / 2 + LARGE / 50);
	ck_assert_uint_eq(expand("out", got, LARGE + 1), LARGE);
	ck_assert_int_eq(memcmp(got, data, LARGE), 0);
	unit_write("in", "abc", 3);
	(void)pump("in", "out", true);
	ck_assert_uint_eq(expand("out", got, 10), 3);
	ck_assert_int_eq(memcmp(got, "abc", 3), 0);
}
END_TEST

START_TEST(compressed_once)
{
	abx_autofree unsigned char *data = make_data();
	abx_autofree char *once = NULL, *twice = NULL;
	struct abx_pump_count n;

	unit_write("in", data, LARGE);
	(void)pump("in", "once", true);
	n = pump("once", "twice", true);
	ck_assert_uint_eq(n.out, n.in);
	once = unit_read("once");
	twice = unit_read("twice");
	ck_assert_int_eq(memcmp(once, twice, n.in), 0);
}
END_TEST

/* Nobody writes, or nobody reads: whoever says stop is heard. */
START_TEST(given_up)
{
	abx_autofree unsigned char *data = make_data();
	struct abx_pump p;
	int in[2], out[2], stop[2];

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0);
	ck_assert_int_eq(pipe(stop), 0);
	ck_assert_int_eq(write(stop[1], "", 1), 1);
	p = (struct abx_pump){in[0], out[1], stop[0], _i};
	ck_assert_int_eq(abx_pump_run(&p, NULL, &unit_err), ABX_ECANCELED);
	(void)close(in[0]);
	unit_write("in", data, LARGE);
	p.from = open_at("in", O_RDONLY);
	ck_assert_int_eq(abx_pump_run(&p, NULL, &unit_err), ABX_ECANCELED);
	(void)close(p.from);
}
END_TEST

START_TEST(nobody_reads)
{
	abx_autofree unsigned char *data = make_data();
	abx_autoclose int in = -1;
	int out[2];

	unit_signal(SIGPIPE, SIG_IGN);
	unit_write("in", data, LARGE);
	in = open_at("in", O_RDONLY);
	ck_assert_int_eq(pipe(out), 0);
	(void)close(out[0]);
	{
		const struct abx_pump p = {in, out[1], -1, _i};

		ck_assert_int_eq(abx_pump_run(&p, NULL, &unit_err), ABX_EIO);
	}
	ck_assert_ptr_nonnull(strstr(unit_err.text, "Broken pipe"));
	(void)close(out[1]);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("pump");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, unit_dir_setup, unit_dir_teardown);
	tcase_add_test(tc, as_it_is);
	tcase_add_test(tc, compressed);
	tcase_add_test(tc, compressed_once);
	tcase_add_loop_test(tc, given_up, 0, 2);
	tcase_add_loop_test(tc, nobody_reads, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
UNIT_MAIN(suite)
