/* SPDX-License-Identifier: MIT */
/* Provider local: a paused box stands still, keeps what is in memory, and can always be ended. */
#include "agentbox/cloud_backend.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/local-host.h"

static const struct abx_sandbox box = {ABX_INIT(struct abx_sandbox), .id = "a1"};

static int32_t pause_box(void)
{
	return lh_backend->pause(lh_session, lh_call, &box, NULL);
}

static int32_t resume_box(void)
{
	return lh_backend->resume(lh_session, lh_call, &box, NULL);
}

static int32_t start_box(int64_t timeout_ms)
{
	const struct abx_start_req req = {ABX_INIT(struct abx_start_req), .timeout_ms = timeout_ms};

	return lh_backend->start(lh_session, lh_call, &box, &req);
}

static int32_t stop_box(int64_t grace_ms)
{
	const struct abx_stop_req req = {ABX_INIT(struct abx_stop_req), .grace_ms = grace_ms};

	return lh_backend->stop(lh_session, lh_call, &box, &req);
}

static void is_absent(const char *name)
{
	ck_assert_msg(access(unit_path(name), F_OK) < 0, "%s is there", name);
}

/* Writes what the machine's clock says, every few milliseconds, and remembers how often.  False:
 * the box ended meanwhile. */
static bool ticks(void)
{
	struct lh_result res = LH_RESULT_INIT;
	bool did;

	lh_sh("a1", NULL,
	      "(n=0; while :; do n=$((n + 1)); cut -d' ' -f1 /proc/uptime >>ticks; echo $n >n; "
	      "sleep 0.01; done) >/dev/null 2>&1 </dev/null & echo $! >pid; "
	      "until [ -s ticks ]; do sleep 0.01; done",
	      &res);
	did = res.r == ABX_OK && !res.exit.signo && res.exit.code == 0;
	lh_result_release(&res);
	return did;
}

static void start_ticking(void)
{
	ck_assert_msg(ticks(), "%s", lh_fail_text());
}

static void uptime(char text[64])
{
	FILE *f = fopen("/proc/uptime", "r");

	ck_assert_ptr_ne(f, NULL);
	ck_assert_ptr_ne(fgets(text, 64, f), NULL);
	(void)fclose(f);
	text[strcspn(text, " ")] = '\0';
}

/* Nothing was written from just after the pause until just before the end of it, and the same
 * process goes on afterwards, with its memory. */
static void stands_still_and_goes_on(void)
{
	char from[64], to[64], script[1024];

	start_ticking();
	ck_assert_int_eq(pause_box(), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_PAUSED);
	uptime(from);
	(void)poll(NULL, 0, 200);
	uptime(to);
	ck_assert_int_eq(resume_box(), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
	(void)snprintf(
		script, sizeof(script),
		"awk '$1 > %s && $1 < %s { print }' ticks; kill -0 $(cat pid) && "
		"n=$(cat n) && [ $n -ge 1 ] && until [ $(cat n) -gt $n ]; do :; done; echo on",
		from, to);
	lh_expect("a1", NULL, script, "on\n");
}

START_TEST(a_paused_box_stands_still)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	stands_still_and_goes_on();
}
END_TEST

/* Where no control group can be had. */
START_TEST(signals_do_where_cgroups_are_out_of_reach)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	if (geteuid() == 0) {
		ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
		ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
		ck_assert_int_eq(mount("tmpfs", "/sys/fs/cgroup", "tmpfs", MS_RDONLY, NULL), 0);
	}
	stands_still_and_goes_on();
	is_absent("store/boxes/a1/cgroups");
	ck_assert_int_eq(pause_box(), ABX_OK);
	ck_assert_int_eq(stop_box(2000), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_STOPPED);
}
END_TEST

START_TEST(nobody_enters_a_paused_box)
{
	struct lh_result res = LH_RESULT_INIT;

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	ck_assert_int_eq(pause_box(), ABX_OK);
	ck_assert_int_eq(pause_box(), ABX_OK);
	lh_sh("a1", NULL, "true", &res);
	ck_assert_int_eq(res.r, ABX_ESTATE);
	lh_result_release(&res);
	unit_has(lh_fail_text(), "paused");
	ck_assert_int_eq(start_box(0), ABX_ESTATE);
	ck_assert_int_eq(resume_box(), ABX_OK);
	ck_assert_int_eq(resume_box(), ABX_OK);
	lh_expect("a1", NULL, "echo in", "in\n");
}
END_TEST

START_TEST(every_round_keeps_what_was_written)
{
	char script[128];

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	for (int i = 0; i < 5; i++) {
		(void)snprintf(script, sizeof(script), "echo %d >m%d", i, i);
		lh_expect("a1", NULL, script, "");
		ck_assert_int_eq(pause_box(), ABX_OK);
		ck_assert_int_eq(resume_box(), ABX_OK);
	}
	lh_expect("a1", NULL, "cat m0 m1 m2 m3 m4", "0\n1\n2\n3\n4\n");
}
END_TEST

START_TEST(a_paused_box_can_be_ended)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	start_ticking();
	ck_assert_int_eq(pause_box(), ABX_OK);
	ck_assert_int_eq(stop_box(0), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_STOPPED);
	is_absent("store/boxes/a1/paused");
	is_absent("store/boxes/a1/cgroups");
	ck_assert_int_eq(pause_box(), ABX_ESTATE);
	ck_assert_int_eq(resume_box(), ABX_ESTATE);
	ck_assert_int_eq(start_box(0), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
	/* With a grace, its processes hear of it. */
	lh_expect("a1", NULL,
		  "(trap 'echo heard >heard; exit' TERM; echo >set; while :; do sleep 0.01; done) "
		  ">/dev/null 2>&1 </dev/null & until [ -e set ]; do sleep 0.01; done",
		  "");
	ck_assert_int_eq(pause_box(), ABX_OK);
	ck_assert_int_eq(stop_box(5000), ABX_OK);
	ck_assert_int_eq(start_box(0), ABX_OK);
	lh_expect("a1", NULL, "cat heard", "heard\n");
	ck_assert_int_eq(pause_box(), ABX_OK);
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_ENOTFOUND);
}
END_TEST

START_TEST(the_end_comes_while_paused_too)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	/* So late that it is paused before. */
	for (int64_t ms = 700;; ms *= 2) {
		ck_assert_int_lt(ms, 60000);
		ck_assert_int_eq(stop_box(0), ABX_OK);
		ck_assert_int_eq(start_box(ms), ABX_OK);
		if (ticks() && pause_box() == ABX_OK)
			break;
	}
	for (int i = 0; i < 5000 && lh_state("a1") != ABX_STATE_STOPPED; i++)
		(void)poll(NULL, 0, 2);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_STOPPED);
	ck_assert_int_eq(start_box(0), ABX_OK);
	lh_expect("a1", NULL, "echo again", "again\n");
}
END_TEST

/* Whoever pauses is killed at any moment: what is left is a running or a paused box. */
START_TEST(a_pause_may_die_at_any_moment)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	start_ticking();
	for (unsigned int us = 0; us < 8000; us += 500) {
		const struct timespec wait = {.tv_nsec = us * 1000L};
		pid_t pid = fork();
		int32_t state;
		int status;

		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			(void)pause_box();
			_exit(0);
		}
		(void)ppoll(NULL, 0, &wait, NULL);
		(void)kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		state = lh_state("a1");
		ck_assert(state == ABX_STATE_RUNNING || state == ABX_STATE_PAUSED);
		if (us % 1000 == 0)
			ck_assert_int_eq(pause_box(), ABX_OK);
		if (us % 1000 == 0 || state == ABX_STATE_PAUSED)
			ck_assert_int_eq(resume_box(), ABX_OK);
		lh_expect("a1", NULL,
			  "n=$(cat n); until [ \"$(cat n)\" != \"$n\" ]; do sleep 0.01; done", "");
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local pause");
	TCase *tc = tcase_create("pause");

	tcase_set_timeout(tc, 240);
	tcase_add_checked_fixture(tc, lh_setup, lh_teardown);
	tcase_add_test(tc, a_paused_box_stands_still);
	tcase_add_test(tc, signals_do_where_cgroups_are_out_of_reach);
	tcase_add_test(tc, nobody_enters_a_paused_box);
	tcase_add_test(tc, every_round_keeps_what_was_written);
	tcase_add_test(tc, a_paused_box_can_be_ended);
	tcase_add_test(tc, the_end_comes_while_paused_too);
	tcase_add_test(tc, a_pause_may_die_at_any_moment);
	suite_add_tcase(s, tc);
	return s;
}

LH_MAIN(suite)
