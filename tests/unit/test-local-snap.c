/* SPDX-License-Identifier: MIT */
/* Provider local: snapshots share layers that nobody can write to any more. */
#include "agentbox/cloud_backend.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/local-host.h"

static int32_t snapshot_delete(const char *ref)
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
static void leave_running(const char *id, const char *script)
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

START_TEST(what_was_deleted_stays_deleted)
{
	char one[64], two[64];

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL, "mkdir d e k; echo 1 >d/old; echo 2 >e/in; echo 3 >x; echo 4 >k/l",
		  "");
	take("a1", 0, one);
	fork_box("b1", one);
	lh_expect("b1", NULL, "rm -r d; mkdir d; echo n >d/new; mv e f; rm x; rm -r k; echo k >k",
		  "");
	take("b1", 0, two);
	fork_box("c1", two);
	lh_expect("c1", NULL, "ls d f; ls; cat k; ls /etc/hostname",
		  "d:\nnew\n\nf:\nin\nd\nf\nk\nk\n/etc/hostname\n");
	fork_box("d1", one);
	lh_expect("d1", NULL, "cat d/old e/in x k/l; ls", "1\n2\n3\n4\nd\ne\nk\nx\n");
}
END_TEST

/* Two files that are written in turn differ by one at most. */
START_TEST(what_runs_is_held_while_it_is_copied)
{
	char ref[64];

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL,
		  "ln -s no l; echo h >h1; ln h1 h2; mkfifo p; truncate -s 8M s; echo end >>s;"
		  "touch -d @1234.5 t; mkdir -m 1700 D",
		  "");
	lh_expect("a1", "root", "chown 7:8 /workspace/t; chmod 2751 /workspace/t; rm /etc/hostname",
		  "");
	leave_running("a1", "i=0; while :; do i=$((i+1)); echo $i >x; echo $i >y; done");
	take("a1", 0, ref);
	fork_box("b1", ref);
	lh_expect(
		"b1", NULL,
		"x=$(cat x) y=$(cat y); test $((x - ${y:-$((x - 1))})) -le 1 && echo ok;"
		"stat -c '%F %h %a' l h1 h2 p t D; stat -c %Y t; tail -c 4 s; stat -c '%s' s;"
		"test $(stat -c %b s) -lt 100 && echo sparse; test h1 -ef h2 && echo same;"
		"",
		"ok\nsymbolic link 1 777\nregular file 2 644\nregular file 2 644\nfifo 1 644\n"
		"regular empty file 1 2751\ndirectory 2 1700\n1234\nend\n8388612\nsparse\nsame\n");
	/* And goes on. */
	lh_expect("a1", NULL, "a=$(cat x); while test \"$(cat x)\" = \"$a\"; do :; done; echo on",
		  "on\n");
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
	ck_assert_uint_eq(count("tmp"), 0);
}
END_TEST

START_TEST(what_runs_may_be_ended_instead)
{
	char ref[64];

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	leave_running("a1", "trap '' TERM; trap 'echo bye >bye; exit' TERM; echo >up; while :; do "
			    "sleep 0.01; done");
	lh_expect("a1", NULL, "until test -e up; do :; done", "");
	take("a1", ABX_SNAPREQ_STOP, ref);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
	fork_box("b1", ref);
	lh_expect("b1", NULL, "cat bye", "bye\n");
	lh_expect("a1", NULL, "cat bye; echo >more", "bye\n");
	lh_expect("b1", NULL, "ls", "bye\nup\n");
}
END_TEST

/* Somebody outside of the box has a file of it open, and writes. */
START_TEST(what_can_be_written_to_is_not_shared)
{
	char ref[64], path[128], *run, *pid;
	int fd;

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL, "umask 0; echo before >f", "");
	run = unit_read("store/boxes/a1/run.json");
	pid = strpbrk(run, "0123456789");
	ck_assert_ptr_nonnull(pid);
	(void)snprintf(path, sizeof(path), "/proc/%.*s/root/workspace/f",
		       (int)strspn(pid, "0123456789"), pid);
	free(run);
	fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	take("a1", 0, ref);
	ck_assert_int_eq(write(fd, "after\n", 6), 6);
	fork_box("b1", ref);
	lh_expect("b1", NULL, "cat f", "before\n");
	(void)close(fd);
}
END_TEST

START_TEST(a_stopped_box_stays_stopped)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = "a1"};
	char ref[64];

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL, "echo kept >f", "");
	ck_assert_int_eq(lh_backend->stop(lh_session, lh_call, &sb, NULL), ABX_OK);
	take("a1", 0, ref);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_STOPPED);
	fork_box("b1", ref);
	lh_expect("b1", NULL, "cat f", "kept\n");
	ck_assert_int_eq(lh_backend->start(lh_session, lh_call, &sb, NULL), ABX_OK);
	lh_expect("a1", NULL, "cat f", "kept\n");
}
END_TEST

/* Generations write, delete and go; deep chains become one layer. */
START_TEST(forty_generations)
{
	char ref[64], old[64] = "", id[16], script[128];

	ck_assert_int_eq(lh_provision("g0"), ABX_OK);
	for (int i = 1; i <= 40; i++) {
		(void)snprintf(id, sizeof(id), "g%d", i - 1);
		(void)snprintf(script, sizeof(script),
			       "echo %d >f%d; mkdir -p d; echo >d/%d; rm -f f%d d/%d", i, i, i,
			       i - 2, i - 3);
		lh_expect(id, NULL, script, "");
		take(id, 0, ref);
		ck_assert_int_eq(lh_destroy(id), ABX_OK);
		if (*old)
			ck_assert_int_eq(snapshot_delete(old), ABX_OK);
		(void)snprintf(old, sizeof(old), "%s", ref);
		(void)snprintf(id, sizeof(id), "g%d", i);
		fork_box(id, ref);
	}
	lh_expect("g40", NULL, "cat f39 f40; ls; ls d", "39\n40\nd\nf39\nf40\n38\n39\n40\n");
	ck_assert_uint_le(count("layers"), 33);
	ck_assert_int_eq(snapshot_delete(ref), ABX_OK);
	ck_assert_int_eq(snapshot_delete(ref), ABX_OK);
	ck_assert_int_eq(lh_backend->snapshot_exists(lh_session, lh_call, ref), ABX_ENOTFOUND);
	/* A box outlives what it was made from. */
	lh_expect("g40", NULL, "cat f40", "40\n");
	ck_assert_int_eq(lh_destroy("g40"), ABX_OK);
	ck_assert_uint_eq(count("layers"), 0);
	ck_assert_uint_eq(count("snapshots"), 0);
	ck_assert_uint_eq(count("tmp"), 0);
}
END_TEST

START_TEST(commands_wait_for_a_snapshot)
{
	char ref[64];
	int status;
	pid_t pid;

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 100; i++)
			lh_expect("a1", NULL, "echo hello", "hello\n");
		_exit(0);
	}
	do
		take("a1", 0, ref);
	while (waitpid(pid, &status, WNOHANG) == 0);
	ck_assert_int_eq(status, 0);
}
END_TEST

static int snapshot_together(unsigned int i)
{
	char ref[64];

	(void)i;
	return lh_snapshot("a1", 0, ref) == ABX_OK ? 0 : 1;
}

START_TEST(two_at_once)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL, "echo kept >f", "");
	ck_assert_uint_eq(unit_together(4, snapshot_together), 4);
	ck_assert_int_eq(lh_count_snapshots(NULL), 4);
	ck_assert_uint_eq(count("layers"), 4);
	lh_expect("a1", NULL, "cat f", "kept\n");
}
END_TEST

/* A first process that was told to end just before its client died may still be there: then
 * it ends while it is used. */
static void start_and_look(const char *id)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	struct lh_result res = LH_RESULT_INIT;

	for (int i = 0; i < 50; i++) {
		ck_assert_msg(lh_backend->start(lh_session, lh_call, &sb, NULL) == ABX_OK, "%s",
			      lh_fail_text());
		lh_sh(id, NULL, "cat f", &res);
		if (res.r == ABX_OK && !res.exit.signo)
			break;
	}
	ck_assert_msg(strcmp(abx_buf_str(&res.out), "kept\n") == 0, "%d %d '%s'", res.r,
		      res.exit.code, abx_buf_str(&res.err));
	lh_result_release(&res);
}

static void delete_all(void)
{
	char path[4096];
	struct dirent *e;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s/store/snapshots", unit_dir());
	d = opendir(path);
	while ((e = readdir(d)))
		if (strlen(e->d_name) == 21) {
			e->d_name[16] = '\0';
			fork_box("f1", e->d_name);
			lh_expect("f1", NULL, "cat f", "kept\n");
			ck_assert_int_eq(lh_destroy("f1"), ABX_OK);
			ck_assert_int_eq(snapshot_delete(e->d_name), ABX_OK);
		}
	(void)closedir(d);
}

/* The client dies at all moments; nothing is lost, and what remains is whole. */
static void clients_die(bool busy)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL, "echo kept >f", "");
	for (unsigned int us = 200; us < 24000; us += 800) {
		const struct timespec pause = {.tv_nsec = (long)us * 1000};
		char ref[64];
		pid_t pid;

		if (busy) {
			lh_expect("a1", NULL, "rm -f /tmp/pid", "");
			leave_running("a1", "echo $$ >/tmp/pid; exec sleep 1000");
			lh_expect("a1", NULL, "until test -s /tmp/pid; do :; done", "");
		}
		pid = fork();
		if (pid == 0) {
			(void)lh_snapshot("a1", 0, ref);
			_exit(0);
		}
		(void)ppoll(NULL, 0, &pause, NULL);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		start_and_look("a1");
		if (busy)
			lh_expect("a1", NULL, "kill $(cat /tmp/pid)", "");
	}
	/* Helpers of the dead end by themselves. */
	for (int i = 0; i < 2000 && count("tmp"); i++) {
		(void)lh_count_snapshots(NULL);
		(void)poll(NULL, 0, 1);
	}
	delete_all();
	ck_assert_uint_eq(count("tmp"), 0);
	lh_expect("a1", NULL, "cat f", "kept\n");
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	ck_assert_uint_eq(count("layers"), 0);
	ck_assert_uint_eq(count("tmp"), 0);
}

START_TEST(clients_die_while_they_seal)
{
	clients_die(false);
}
END_TEST

START_TEST(clients_die_while_they_copy)
{
	clients_die(true);
}
END_TEST

START_TEST(a_damaged_record_is_found_and_keeps_layers)
{
	char ref[64], path[128];

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	take("a1", 0, ref);
	unit_write_text("store/snapshots/0.json.tmp-1", "{");
	(void)snprintf(path, sizeof(path), "store/snapshots/%s.json", ref);
	unit_write_text(path, "{\"ref\": 1}");
	ck_assert_int_eq(lh_count_snapshots(NULL), 1);
	ck_assert_int_eq(lh_provision_from("b1", ref), ABX_EPROTO);
	ck_assert_int_eq(lh_provision_from("b1", "none"), ABX_EINVAL);
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	ck_assert_uint_eq(count("layers"), 1);
	ck_assert_int_eq(snapshot_delete(ref), ABX_OK);
	ck_assert_uint_eq(count("layers"), 0);
	ck_assert_uint_eq(count("snapshots"), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local-snap");
	TCase *tc = tcase_create("snap");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, lh_setup, lh_teardown);
	tcase_add_test(tc, what_was_before_is_in_the_fork_and_nothing_after);
	tcase_add_test(tc, what_was_deleted_stays_deleted);
	tcase_add_test(tc, what_runs_is_held_while_it_is_copied);
	tcase_add_test(tc, what_runs_may_be_ended_instead);
	tcase_add_test(tc, what_can_be_written_to_is_not_shared);
	tcase_add_test(tc, a_stopped_box_stays_stopped);
	tcase_add_test(tc, forty_generations);
	tcase_add_test(tc, commands_wait_for_a_snapshot);
	tcase_add_test(tc, two_at_once);
	tcase_add_test(tc, clients_die_while_they_seal);
	tcase_add_test(tc, clients_die_while_they_copy);
	tcase_add_test(tc, a_damaged_record_is_found_and_keeps_layers);
	suite_add_tcase(s, tc);
	return s;
}

LH_MAIN(suite)
