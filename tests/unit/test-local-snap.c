/* SPDX-License-Identifier: MIT */
/* Provider local: snapshots share layers that nobody can write to any more. */
#include "agentbox/cloud_backend.h"

#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/local-host.h"

__attribute__((unused)) static int32_t snapshot_delete(const char *ref)
{
	return lh_backend->snapshot_delete(lh_session, lh_call, ref);
}

static size_t count(const char *dir)
{
	char path[4096];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s/store/%s", unit_dir(), dir);
	d = opendir(path);
	ck_assert_ptr_ne(d, NULL);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

static void take(const char *id, uint32_t flags, char ref[64])
{
	ck_assert_msg(lh_snapshot(id, flags, ref) == ABX_OK, "%s", lh_fail_text());
	ck_assert_str_ne(ref, "");
}

static void fork_box(const char *id, const char *ref)
{
	ck_assert_msg(lh_provision_from(id, ref) == ABX_OK, "%s", lh_fail_text());
}

/* A command that stays, and whose box must go on with it. */
__attribute__((unused)) static void leave_running(const char *id, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct abx_exec x = {
		.argv = argv,
		.flags = ABX_EXEC_DETACHED,
		.stdin_fd = -1,
		.control_fd = -1,
	};
	struct lh_result res = LH_RESULT_INIT;

	lh_exec(id, &x, &res);
	ck_assert_msg(res.r == ABX_OK, "%s", lh_fail_text());
	lh_result_release(&res);
}

START_TEST(what_was_before_is_in_the_fork_and_nothing_after)
{
	char ref[64];

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL, "echo before >f; mkdir -p d/e; echo x >d/e/x; ln -s f l", "");
	lh_expect("a1", "root", "echo o >/opt/o; mkdir -p /usr/local/lib/q; chmod 751 /opt", "");
	take("a1", 0, ref);
	lh_expect("a1", NULL, "cat f; echo after >f; echo new >g; rm -r d", "before\n");
	fork_box("b1", ref);
	lh_expect("b1", NULL, "cat f l d/e/x /opt/o; ls; stat -c %a /opt; ls -d /usr/local/lib/q",
		  "before\nbefore\nx\no\nd\nf\nl\n751\n/usr/local/lib/q\n");
	lh_expect("b1", NULL, "echo fork >f; hostname", "testbox\n");
	lh_expect("a1", NULL, "cat f; ls", "after\nf\ng\nl\n");
	fork_box("c1", ref);
	lh_expect("c1", NULL, "cat f", "before\n");
	ck_assert_uint_eq(count("layers"), 1);
	ck_assert_int_eq(lh_count_snapshots("a1"), 1);
	ck_assert_int_eq(lh_count_snapshots("zz"), 0);
	ck_assert_uint_eq(count("tmp"), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local-snap");
	TCase *tc = tcase_create("snap");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, lh_setup, lh_teardown);
	tcase_add_test(tc, what_was_before_is_in_the_fork_and_nothing_after);
	suite_add_tcase(s, tc);
	return s;
}

LH_MAIN(suite)
