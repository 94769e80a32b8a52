/* SPDX-License-Identifier: MIT */
/* Provider local: limits are kept by the kernel, or refused; what a box takes can be seen. */
#include "agentbox/cloud_backend.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "core/util/parse.h"
#include "tests/unit/local-host.h"

#define MIB (UINT64_C(1) << 20)

static const struct abx_sandbox box = {ABX_INIT(struct abx_sandbox), .id = "a1"};

static int64_t number(const char *text)
{
	uint64_t n = 0;

	ck_assert_msg(text && abx_parse_u64(text, INT64_MAX, &n), "not a number: %s", text);
	return (int64_t)n;
}

static int32_t provision(const struct abx_provision *want)
{
	struct abx_provision p = *want;

	p.struct_size = (uint32_t)sizeof(p);
	p.name = "limited";
	p.idempotency_key = "a1";
	p.timeout_ms = 300000;
	return lh_backend->provision(lh_session, lh_call, &p);
}

static int32_t stop_box(void)
{
	const struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};

	return lh_backend->stop(lh_session, lh_call, &box, &req);
}

static int32_t start_box(void)
{
	const struct abx_start_req req = {ABX_INIT(struct abx_start_req)};

	return lh_backend->start(lh_session, lh_call, &box, &req);
}

/* Can this caller make control groups?  Ask for the one that is everywhere. */
static bool can_limit(void)
{
	const struct abx_provision p = {.max_pids = 100};
	int32_t r = provision(&p);

	if (r == ABX_OK) {
		ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
		return true;
	}
	ck_assert_int_eq(r, ABX_ENOTSUP);
	unit_has(lh_fail_text(), "process limit: ");
	ck_assert_int_eq(lh_count(NULL), 0);
	return false;
}

static void none_are_left(void)
{
	static const char *const places[] = {"/sys/fs/cgroup",	       "/sys/fs/cgroup/memory",
					     "/sys/fs/cgroup/pids",    "/sys/fs/cgroup/cpu",
					     "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"};
	struct stat st;
	char mine[64];

	ck_assert_int_eq(stat(unit_path("store"), &st), 0);
	(void)snprintf(mine, sizeof(mine), "agentbox-%llx-%llx-", (unsigned long long)st.st_dev,
		       (unsigned long long)st.st_ino);
	for (size_t i = 0; i < ABX_N_ELEMENTS(places); i++) {
		DIR *d = opendir(places[i]);
		struct dirent *e;

		while (d && (e = readdir(d)))
			ck_assert_msg(strncmp(e->d_name, mine, strlen(mine)) != 0, "%s/%s",
				      places[i], e->d_name);
		if (d)
			(void)closedir(d);
	}
}

START_TEST(what_cannot_be_kept_is_refused_before_anything_is_made)
{
	struct sysinfo si;
	const struct {
		struct abx_provision p;
		const char *word;
	} cases[] = {
		{{.cpu_milli = 1000u * 100000}, "processors"},
		{{.cpu_milli = 1}, "the least"},
		{{.mem_bytes = UINT64_C(1) << 60}, "this machine has"},
		{{.mem_bytes = 1}, "the least"},
		{{.max_pids = 1}, "the least"},
		{{.disk_bytes = 1}, "the least"},
	};

	ck_assert_int_eq(sysinfo(&si), 0);
	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		ck_assert_int_eq(provision(&cases[i].p), ABX_EINVAL);
		unit_has(lh_fail_text(), cases[i].word);
	}
	ck_assert_int_eq(lh_count(NULL), 0);
	none_are_left();
}
END_TEST

START_TEST(the_number_of_processes_is_limited)
{
	const struct abx_provision p = {.max_pids = 24};

	if (!can_limit())
		return;
	ck_assert_int_eq(provision(&p), ABX_OK);
	for (int i = 0; i < 2; i++) {
		lh_expect("a1", NULL,
			  "(i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i + 1)); done) "
			  ">/dev/null 2>&1; set -- /proc/[0-9]*; "
			  "[ $# -ge 12 ] && [ $# -le 24 ] && echo few",
			  "few\n");
		ck_assert_int_eq(stop_box(), ABX_OK);
		none_are_left();
		ck_assert_int_eq(start_box(), ABX_OK);
	}
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	none_are_left();
}
END_TEST

START_TEST(who_takes_too_much_memory_dies_and_nobody_else)
{
	const struct abx_provision p = {.mem_bytes = 64 * MIB};

	if (!can_limit())
		return;
	ck_assert_int_eq(provision(&p), ABX_OK);
	lh_expect("a1", NULL, "sleep 100 >/dev/null 2>&1 </dev/null & echo $! >pid", "");
	/* dd takes a buffer of that size and fills it. */
	lh_expect("a1", NULL,
		  "(exec dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null); echo $?",
		  "137\n");
	unit_has(lh_log_text(), "the memory limit of 64M ended a process");
	lh_expect("a1", NULL, "kill -0 $(cat pid) && echo alive", "alive\n");
	lh_expect("a1", NULL, "dd if=/dev/zero of=/dev/null bs=16M count=1 2>/dev/null; echo $?",
		  "0\n");
}
END_TEST

START_TEST(processor_time_is_limited)
{
	const struct abx_provision p = {.cpu_milli = 100};
	struct lh_result res = LH_RESULT_INIT;

	if (!can_limit())
		return;
	ck_assert_int_eq(provision(&p), ABX_OK);
	/* In two seconds of the clock, a fifth of a second of work, and some slack.  Fields 14 and
	 * 15 of stat: what it took to start does not count. */
	lh_sh("a1", NULL,
	      "now() { read -r t rest </proc/uptime; t=${t%.*}${t#*.}; }; "
	      "used() { read -r a b c d e f g h i j k l m n o p </proc/self/stat; "
	      "w=$((n + o)); }; "
	      "now; used; t0=$t w0=$w; "
	      "while [ $((t - t0)) -lt 200 ]; do now; done; "
	      "used; echo $(((w - w0) * 100 / (t - t0)))",
	      &res);
	ck_assert_int_eq(res.r, ABX_OK);
	res.out.data[strcspn(res.out.data, "\n")] = '\0';
	ck_assert_int_lt(number(res.out.data), 40);
	lh_result_release(&res);
}
END_TEST

static struct abx_provision all_limits = {.mem_bytes = 128 * MIB, .max_pids = 50};

START_TEST(a_limited_box_can_be_paused)
{
	if (!can_limit())
		return;
	ck_assert_int_eq(provision(&all_limits), ABX_OK);
	ck_assert_int_eq(lh_backend->pause(lh_session, lh_call, &box, NULL), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_PAUSED);
	ck_assert_int_eq(lh_backend->resume(lh_session, lh_call, &box, NULL), ABX_OK);
	lh_expect("a1", NULL, "echo on", "on\n");
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	none_are_left();
}
END_TEST

START_TEST(cgroups_of_a_killed_client_go_with_the_box)
{
	pid_t pid;
	int status;

	if (!can_limit())
		return;
	for (unsigned int ms = 0; ms < 40; ms += 4) {
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			(void)provision(&all_limits);
			_exit(0);
		}
		(void)poll(NULL, 0, (int)ms);
		(void)kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
		none_are_left();
	}
}
END_TEST

START_TEST(without_cgroups_a_limit_is_refused_with_a_remedy)
{
	const struct abx_provision p = {.max_pids = 100};

	if (geteuid() != 0)
		return;
	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	ck_assert_int_eq(mount("tmpfs", "/sys/fs/cgroup", "tmpfs", MS_RDONLY, NULL), 0);
	ck_assert_int_eq(provision(&p), ABX_ENOTSUP);
	unit_has(lh_fail_text(), "process limit: the cgroup controller 'pids' is read-only here");
	ck_assert_int_eq(lh_count(NULL), 0);
}
END_TEST

START_TEST(a_box_says_what_it_takes)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL,
		  "dd if=/dev/zero of=big bs=1M count=8 2>/dev/null; "
		  "sleep 1000 >/dev/null 2>&1 </dev/null & "
		  /* Until then it is a shell. */
		  "until read -r c </proc/$!/comm && [ \"$c\" = sleep ]; do :; done",
		  "");
	lh_rows_clear();
	ck_assert_int_eq(lh_backend->stats(lh_session, lh_call, &box), ABX_OK);
	ck_assert_ptr_ne(lh_row("process", "command", "sleep 1000"), NULL);
	ck_assert_ptr_ne(lh_row("process", "pid", "1"), NULL);
	ck_assert_int_ge(number(lh_row("box", "disk_bytes", NULL)), 8 << 20);
	ck_assert_int_lt(number(lh_row("box", "disk_bytes", NULL)), 9 << 20);
	ck_assert_int_ge(number(lh_row("box", "pids", NULL)), 2);
	ck_assert_str_eq(lh_row("box", "mem_limit_bytes", NULL), "0");
	ck_assert_int_eq(lh_backend->pause(lh_session, lh_call, &box, NULL), ABX_OK);
	lh_rows_clear();
	ck_assert_int_eq(lh_backend->stats(lh_session, lh_call, &box), ABX_OK);
	ck_assert_ptr_ne(lh_row("process", "command", "sleep 1000"), NULL);
	ck_assert_int_eq(stop_box(), ABX_OK);
	lh_rows_clear();
	ck_assert_int_eq(lh_backend->stats(lh_session, lh_call, &box), ABX_OK);
	ck_assert_str_eq(lh_row("box", "pids", NULL), "0");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local limits");
	TCase *tc = tcase_create("limits");

	tcase_set_timeout(tc, 240);
	tcase_add_checked_fixture(tc, lh_setup, lh_teardown);
	tcase_add_test(tc, what_cannot_be_kept_is_refused_before_anything_is_made);
	tcase_add_test(tc, the_number_of_processes_is_limited);
	tcase_add_test(tc, who_takes_too_much_memory_dies_and_nobody_else);
	tcase_add_test(tc, processor_time_is_limited);
	tcase_add_test(tc, a_limited_box_can_be_paused);
	tcase_add_test(tc, cgroups_of_a_killed_client_go_with_the_box);
	tcase_add_test(tc, without_cgroups_a_limit_is_refused_with_a_remedy);
	tcase_add_test(tc, a_box_says_what_it_takes);
	suite_add_tcase(s, tc);
	return s;
}

LH_MAIN(suite)
