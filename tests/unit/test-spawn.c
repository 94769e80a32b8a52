/* SPDX-License-Identifier: MIT */
/* Programs by argv: their descriptors, signals, input and output. */
#include "abxsdk/spawn.h"

#include "tests/unit/unit.h"

static int run_sh(const char *script, const struct abx_buf *in, struct abx_buf *out,
		  struct abx_buf *err, int *status)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};

	return abx_spawn_collect(&s, in, out, err, status);
}

START_TEST(exact_arguments)
{
	const char *const argv[] = {"printf", "%s|", "",     "a b",  "$HOME",
				    "'\"\\",  "*",   "a\nb", "\xff", NULL};
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(1000);
	int status = -1;

	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, NULL, &status), 0);
	ck_assert_int_eq(status, 0);
	ck_assert_str_eq(abx_buf_str(&out), "|a b|$HOME|'\"\\|*|a\nb|\xff|");
}
END_TEST

START_TEST(no_such_program)
{
	const char *const argv[] = {"/none/such", NULL}, *const lost[] = {"no-such-program", NULL};
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	pid_t pid = 4711;

	ck_assert_int_eq(abx_spawn_start(&s, &pid), -ENOENT);
	s.argv = lost;
	ck_assert_int_eq(abx_spawn_start(&s, &pid), -ENOENT);
	ck_assert_int_eq(pid, 4711);
	s.n_extra = ABX_SPAWN_MAX_FDS + 1;
	ck_assert_int_eq(abx_spawn_start(&s, &pid), -EINVAL);
}
END_TEST

START_TEST(exit_and_signal)
{
	int status = -1;

	ck_assert_int_eq(run_sh("exit 7", NULL, NULL, NULL, &status), 0);
	ck_assert_int_eq(WEXITSTATUS(status), 7);
	ck_assert_int_eq(run_sh("kill -9 $$", NULL, NULL, NULL, &status), 0);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
}
END_TEST

/* More than any pipe holds, both ways at once, byte for byte. */
START_TEST(large_input_and_output)
{
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(4 << 20);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(4 << 20), err = ABX_BUF_INIT(4 << 20);
	int status = -1;

	for (unsigned int i = 0; i < 1 << 20; i++)
		abx_buf_addc(&in, (char)(i * 7 >> 3));
	ck_assert_int_eq(run_sh("tee /dev/stderr", &in, &out, &err, &status), 0);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(out.len, in.len);
	ck_assert_mem_eq(out.data, in.data, in.len);
	ck_assert_uint_eq(err.len, in.len);
	ck_assert_mem_eq(err.data, in.data, in.len);
}
END_TEST

/* A program that stops reading is not our end, and leaves no SIGPIPE behind. */
START_TEST(input_that_nobody_reads)
{
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(4 << 20), out = ABX_BUF_INIT(100);
	sigset_t pending, mask;
	int status = -1;

	for (int i = 0; i < 1 << 20; i++)
		abx_buf_addc(&in, 'x');
	unit_signal(SIGPIPE, SIG_DFL);
	ck_assert_int_eq(run_sh("exec <&-; echo done", &in, &out, NULL, &status), 0);
	ck_assert_str_eq(abx_buf_str(&out), "done\n");
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(sigpending(&pending), 0);
	ck_assert_int_eq(sigismember(&pending, SIGPIPE), 0);
	ck_assert_int_eq(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
	ck_assert_int_eq(sigismember(&mask, SIGPIPE), 0);
}
END_TEST

START_TEST(output_beyond_the_bound_ends_it)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(1000);
	int status = -1;

	ck_assert_int_eq(
		run_sh("while :; do echo xxxxxxxxxxxxxxxx; done", NULL, &out, NULL, &status),
		-EFBIG);
	ck_assert_int_eq(status, -1);
	ck_assert_int_eq(waitpid(-1, &status, WNOHANG), -1);
}
END_TEST

/* Whatever is open here stays here; the three standard ones are always there. */
START_TEST(only_named_descriptors)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(1000);
	int leak = open("/dev/null", O_RDONLY), status = -1;
	const char *const argv[] = {"ls", "/proc/self/fd", NULL};
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};

	ck_assert_int_ge(leak, 0);
	ck_assert_int_eq(dup2(leak, 40), 40);
	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, NULL, &status), 0);
	/* 3 is ls reading the directory. */
	ck_assert_str_eq(abx_buf_str(&out), "0\n1\n2\n3\n");
	(void)close(leak);
}
END_TEST

/* Started with 0, 1 and 2 closed, so that every pipe of ours lands on one of them. */
static int collect_without_standard(unsigned int i)
{
	struct abx_buf in = ABX_BUF_INIT(100), out = ABX_BUF_INIT(100), err = ABX_BUF_INIT(100);
	int status = -1, r;

	for (int fd = 0; fd < 3; fd++)
		if (i & 1u << fd)
			(void)close(fd);
	abx_buf_adds(&in, "input");
	r = run_sh("cat; echo problem >&2", &in, &out, &err, &status);
	return r == 0 && status == 0 && strcmp(abx_buf_str(&out), "input") == 0 &&
			       strcmp(abx_buf_str(&err), "problem\n") == 0
		       ? 0
		       : 1;
}

START_TEST(closed_standard_descriptors)
{
	ck_assert_uint_eq(unit_together(8, collect_without_standard), 8);
}
END_TEST

/* Sources that are each other's targets. */
START_TEST(crossed_descriptors)
{
	const char *const argv[] = {"sh", "-c", "cat <&3; cat <&4", NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(100);
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1, .n_extra = 2};
	int a, b, status = -1;

	unit_write_text("a", "is a;");
	unit_write_text("b", "is b;");
	a = open(unit_path("a"), O_RDONLY | O_CLOEXEC);
	b = open(unit_path("b"), O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(dup3(a, 14, O_CLOEXEC), 14);
	ck_assert_int_eq(dup3(b, 13, O_CLOEXEC), 13);
	ck_assert_int_eq(dup3(14, 4, O_CLOEXEC), 4);
	ck_assert_int_eq(dup3(13, 3, O_CLOEXEC), 3);
	s.extra[0].from = 4;
	s.extra[0].to = 3;
	s.extra[1].from = 3;
	s.extra[1].to = 4;
	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, NULL, &status), 0);
	ck_assert_str_eq(abx_buf_str(&out), "is a;is b;");
}
END_TEST

START_TEST(high_targets)
{
	const char *const argv[] = {"sh", "-c", "cat <&9", NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(100);
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1, .n_extra = 1};
	int status = -1;

	unit_write_text("a", "text");
	s.extra[0].from = open(unit_path("a"), O_RDONLY | O_CLOEXEC);
	s.extra[0].to = 9;
	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, NULL, &status), 0);
	ck_assert_str_eq(abx_buf_str(&out), "text");
	(void)close(s.extra[0].from);
}
END_TEST

/* Ignored and blocked signals are this program's affair. */
START_TEST(signals_are_fresh)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(4000);
	sigset_t all;
	int status = -1;

	unit_signal(SIGPIPE, SIG_IGN);
	unit_signal(SIGINT, SIG_IGN);
	(void)sigfillset(&all);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, &all, NULL), 0);
	ck_assert_int_eq(
		run_sh("grep -E '^Sig(Blk|Ign)' /proc/self/status", NULL, &out, NULL, &status), 0);
	/* 32 and 33 are the C library's own: without the top digits of the second number. */
	unit_has(abx_buf_str(&out), "SigBlk:\t0000000000000000\n");
	ck_assert_str_eq(abx_buf_str(&out) + out.len - 8, "0000000\n");
}
END_TEST

START_TEST(environment_and_directory)
{
	const char *const argv[] = {"/bin/sh", "-c", "pwd; env | grep ^UNIT", NULL};
	const char *const envp[] = {"UNIT_A=1", "PATH=/usr/bin:/bin", NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(1000);
	struct abx_spawn s = {.argv = argv,
			      .envp = envp,
			      .cwd = unit_dir(),
			      .fd_in = -1,
			      .fd_out = -1,
			      .fd_err = -1};
	abx_autofree char *expect = abx_xasprintf("%s\nUNIT_A=1\n", unit_dir());
	int status = -1;

	ck_assert_int_eq(setenv("UNIT_B", "2", 1), 0);
	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, NULL, &status), 0);
	ck_assert_str_eq(abx_buf_str(&out), expect);
	s.cwd = "/none/such";
	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, NULL, &status), -ENOENT);
}
END_TEST

START_TEST(new_session)
{
	const char *const argv[] = {"sh", "-c", "read x", NULL};
	struct abx_spawn s = {.argv = argv, .fd_out = -1, .fd_err = -1, .new_session = 1};
	int pair[2], status = -1;
	pid_t pid = -1;

	ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
	s.fd_in = pair[0];
	ck_assert_int_eq(abx_spawn_start(&s, &pid), 0);
	ck_assert_int_eq(getsid(pid), pid);
	(void)close(pair[0]);
	(void)close(pair[1]);
	ck_assert_int_eq(abx_spawn_wait(pid, &status), 0);
	ck_assert_int_eq(abx_spawn_wait(pid, &status), -ECHILD);
}
END_TEST

START_TEST(nothing_is_left_open)
{
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(10), out = ABX_BUF_INIT(10);
	const char *const argv[] = {"/none/such", NULL};
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	int before = dup(0), after, status = -1;

	(void)close(before);
	abx_buf_adds(&in, "x");
	ck_assert_int_eq(run_sh("cat", &in, &out, NULL, &status), 0);
	ck_assert_int_eq(abx_spawn_collect(&s, &in, &out, &out, &status), -ENOENT);
	after = dup(0);
	(void)close(after);
	ck_assert_int_eq(before, after);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("spawn");
	TCase *tc = tcase_create("spawn");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, unit_dir_setup, unit_dir_teardown);
	tcase_add_test(tc, exact_arguments);
	tcase_add_test(tc, no_such_program);
	tcase_add_test(tc, exit_and_signal);
	tcase_add_test(tc, large_input_and_output);
	tcase_add_test(tc, input_that_nobody_reads);
	tcase_add_test(tc, output_beyond_the_bound_ends_it);
	tcase_add_test(tc, only_named_descriptors);
	tcase_add_test(tc, closed_standard_descriptors);
	tcase_add_test(tc, crossed_descriptors);
	tcase_add_test(tc, high_targets);
	tcase_add_test(tc, signals_are_fresh);
	tcase_add_test(tc, environment_and_directory);
	tcase_add_test(tc, new_session);
	tcase_add_test(tc, nothing_is_left_open);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
