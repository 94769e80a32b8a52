/* SPDX-License-Identifier: MIT */
/* Provider local: commands as good as over ssh, files both ways, and no way out. */
#include "agentbox/cloud_backend.h"

#include <poll.h>
#include <stdlib.h>

#include "abxsdk/clock.h"
#include "tests/unit/local-host.h"

static const struct abx_sandbox box = {ABX_INIT(struct abx_sandbox), .id = "a1"};

static void setup(void)
{
	lh_setup();
	ck_assert_msg(lh_provision("a1") == ABX_OK, "%s", lh_fail_text());
}

/* No process of that name is left in the box, within a second. */
static void await_none(const char *pattern)
{
	struct lh_result res = LH_RESULT_INIT;
	char script[256];
	int i;

	(void)snprintf(script, sizeof(script),
		       "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '%s'", pattern);
	for (i = 0; i < 200; i++) {
		lh_sh("a1", NULL, script, &res);
		if (strcmp(abx_buf_str(&res.out), "0\n") == 0)
			break;
		(void)poll(NULL, 0, 5);
	}
	ck_assert_msg(i < 200, "%s is left: %s", pattern, abx_buf_str(&res.out));
	lh_result_release(&res);
}

START_TEST(arguments_are_bytes)
{
	const char *const argv[] = {"printf", "%s|", "",   "a b",  "$HOME",
				    "'\"\\",  "*",   "\n", "\xff", NULL};
	struct abx_exec x = {.argv = argv, .stdin_fd = -1, .control_fd = -1};
	struct lh_result res = LH_RESULT_INIT;

	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.r, ABX_OK);
	ck_assert_str_eq(abx_buf_str(&res.out), "|a b|$HOME|'\"\\|*|\n|\xff|");
	lh_result_release(&res);
}
END_TEST

START_TEST(long_arguments)
{
	static char big[131072], bigger[131073 + 1];
	const char *argv[] = {"sh", "-c", "echo ${#1}", "sh", big, NULL};
	struct abx_exec x = {.argv = argv, .stdin_fd = -1, .control_fd = -1};
	struct lh_result res = LH_RESULT_INIT;

	memset(big, 'x', sizeof(big) - 1);
	memset(bigger, 'x', sizeof(bigger) - 1);
	lh_exec("a1", &x, &res);
	ck_assert_str_eq(abx_buf_str(&res.out), "131071\n");
	argv[4] = bigger;
	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.r, ABX_OK);
	ck_assert_uint_eq(res.exit.flags, ABX_EXIT_NOT_STARTED);
	ck_assert_int_eq(res.exit.code, 126);
	unit_has(lh_fail_text(), "Argument list too long");
	lh_result_release(&res);
}
END_TEST

START_TEST(exit_codes_as_a_shell_gives)
{
	struct lh_result res = LH_RESULT_INIT;
	const char *argv[] = {"no-such-program", NULL};
	struct abx_exec x = {.argv = argv, .stdin_fd = -1, .control_fd = -1};

	lh_sh("a1", NULL, "echo out; echo err >&2; exit 77", &res);
	ck_assert_int_eq(res.exit.code, 77);
	ck_assert_str_eq(abx_buf_str(&res.out), "out\n");
	ck_assert_str_eq(abx_buf_str(&res.err), "err\n");
	lh_sh("a1", NULL, "kill -SEGV $$", &res);
	ck_assert_int_eq(res.exit.signo, SIGSEGV);
	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.exit.code, 127);
	ck_assert_uint_eq(res.exit.flags, ABX_EXIT_NOT_STARTED);
	unit_has(lh_fail_text(), "no-such-program");
	argv[0] = "/etc/passwd";
	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.exit.code, 126);
	argv[0] = "true";
	x.cwd = "/none/such";
	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.r, ABX_EINVAL);
	unit_has(lh_fail_text(), "/none/such");
	x.cwd = NULL;
	x.user = "nobody-here";
	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.r, ABX_EINVAL);
	unit_has(lh_fail_text(), "nobody-here");
	lh_result_release(&res);
}
END_TEST

START_TEST(the_environment_is_exact)
{
	const struct abx_kv env[] = {{"FROM_EXEC", "exec value"}, {"LANG", "C"}};
	const char *const argv[] = {"env", NULL};
	struct abx_exec x = {
		.argv = argv, .stdin_fd = -1, .control_fd = -1, .env = env, .n_env = 2};
	struct lh_result res = LH_RESULT_INIT;

	ck_assert_int_eq(setenv("SECRET_OF_THE_HOST", "1", 1), 0);
	lh_exec("a1", &x, &res);
	ck_assert_str_eq(abx_buf_str(&res.out),
			 "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
			 "HOME=/home/vscode\nUSER=vscode\nLOGNAME=vscode\nSHELL=/bin/bash\nLANG=C\n"
			 "TERM=dumb\nFROM_BOX=box value\nFROM_EXEC=exec value\n");
	lh_expect("a1", "root", "cd; pwd; id -u; cat /proc/1/environ 2>/dev/null | wc -c",
		  "/root\n0\n0\n");
	lh_result_release(&res);
}
END_TEST

START_TEST(input_and_output_of_size)
{
	enum { SIZE = 8 << 20 };
	const char *const argv[] = {"cat", NULL};
	struct abx_exec x = {.argv = argv, .control_fd = -1};
	struct lh_result res = {.out = ABX_BUF_INIT(2 * SIZE), .err = ABX_BUF_INIT(2 * SIZE)};
	char *data = malloc(SIZE);

	for (size_t i = 0; i < SIZE; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	unit_write("in", data, SIZE);
	x.stdin_fd = open(unit_path("in"), O_RDONLY | O_CLOEXEC);
	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.r, ABX_OK);
	ck_assert_uint_eq(res.out.len, SIZE);
	ck_assert_int_eq(memcmp(res.out.data, data, SIZE), 0);
	(void)close(x.stdin_fd);
	free(data);
	lh_result_release(&res);
}
END_TEST

/* A directory as standard input would be a way out by openat() and "..". */
START_TEST(no_directory_comes_in)
{
	const char *const argv[] = {"true", NULL};
	struct abx_exec x = {.argv = argv, .control_fd = -1};
	struct lh_result res = LH_RESULT_INIT;

	x.stdin_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.r, ABX_EINVAL);
	(void)close(x.stdin_fd);
	x.stdin_fd = open("/etc/passwd", O_PATH | O_CLOEXEC);
	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.r, ABX_EINVAL);
	(void)close(x.stdin_fd);
	lh_expect("a1", NULL, "ls /proc/self/fd | sort -n | tr '\\n' ' '", "0 1 2 3 ");
	lh_result_release(&res);
}
END_TEST

static const char stubborn[] = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 4711 & "
			       "setsid sleep 4711' & sleep 4711 & wait; sleep 4711";

START_TEST(a_timeout_ends_the_whole_tree)
{
	const char *const argv[] = {"sh", "-c", stubborn, NULL};
	struct abx_exec x = {
		.argv = argv, .stdin_fd = -1, .control_fd = -1, .timeout_ms = 100, .grace_ms = 50};
	struct lh_result res = LH_RESULT_INIT;

	lh_exec("a1", &x, &res);
	ck_assert_int_eq(res.r, ABX_OK);
	ck_assert_int_eq(res.exit.timed_out, 1);
	await_none("[s]leep 4711");
	lh_result_release(&res);
}
END_TEST

START_TEST(a_cancel_ends_the_whole_tree)
{
	struct lh_result res = LH_RESULT_INIT;
	int64_t begin = abx_monotonic_ms();

	lh_cancel_in(100);
	lh_sh("a1", NULL, stubborn, &res);
	ck_assert_int_eq(res.r, ABX_ECANCELED);
	ck_assert_int_lt(abx_monotonic_ms() - begin, 1100);
	lh_cancel_clear();
	await_none("[s]leep 4711");
	lh_result_release(&res);
}
END_TEST

START_TEST(a_deadline_ends_the_whole_tree)
{
	struct lh_result res = LH_RESULT_INIT;

	lh_deadline_in(100);
	lh_sh("a1", NULL, stubborn, &res);
	ck_assert_int_eq(res.r, ABX_ETIMEDOUT);
	lh_deadline_in(INT64_MAX);
	await_none("[s]leep 4711");
	lh_result_release(&res);
}
END_TEST

START_TEST(a_killed_client_takes_the_tree_along)
{
	struct lh_result res = LH_RESULT_INIT;
	pid_t pid = fork();
	int i;

	if (pid == 0) {
		lh_sh("a1", NULL, "echo >/tmp/up; setsid sleep 4711 & sleep 4711", &res);
		_exit(0);
	}
	for (i = 0; i < 1000; i++) {
		lh_sh("a1", NULL, "test -e /tmp/up", &res);
		if (res.exit.code == 0)
			break;
		(void)poll(NULL, 0, 2);
	}
	ck_assert_int_lt(i, 1000);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	await_none("[s]leep 4711");
	lh_result_release(&res);
}
END_TEST

/* ... and what it left is neither waited for nor ended. */
START_TEST(a_command_may_leave_processes_behind)
{
	struct lh_result res = LH_RESULT_INIT;
	int64_t begin = abx_monotonic_ms();

	lh_sh("a1", NULL, "sleep 4711 & echo said", &res);
	ck_assert_str_eq(abx_buf_str(&res.out), "said\n");
	ck_assert_int_lt(abx_monotonic_ms() - begin, 4000);
	lh_expect("a1", NULL, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 4711'",
		  "1\n");
	lh_sh("a1", NULL, "yes & echo $!", &res);
	ck_assert_int_eq(res.exit.code, 0);
	lh_result_release(&res);
}
END_TEST

START_TEST(a_terminal)
{
	const char *const argv[] = {"sh", "-c", "stty size; tty; test -t 2 && echo $TERM", NULL};
	struct abx_exec x = {.argv = argv,
			     .stdin_fd = -1,
			     .control_fd = -1,
			     .flags = ABX_EXEC_PTY,
			     .rows = 33,
			     .cols = 99};
	struct lh_result res = LH_RESULT_INIT;

	lh_exec("a1", &x, &res);
	ck_assert_str_eq(abx_buf_str(&res.out), "33 99\r\n/dev/pts/0\r\nxterm-256color\r\n");
	lh_result_release(&res);
}
END_TEST

static int64_t transfer(int32_t (*op)(struct abx_session *, struct abx_call *,
				      const struct abx_sandbox *, const struct abx_transfer *),
			const char *file, int flags, const char *path, const char *owner)
{
	struct abx_transfer t = {
		ABX_INIT(struct abx_transfer),
		.flags = ABX_XFER_CREATE_PARENTS,
		.fd = open(unit_path(file), flags | O_CLOEXEC, 0600),
		.size_bytes = -1,
		.path = path,
		.owner = owner,
	};
	int32_t r = op(lh_session, lh_call, &box, &t);

	(void)close(t.fd);
	return r;
}

START_TEST(files_both_ways)
{
	char *back;

	unit_write("in", "a\0b\xff", 4);
	ck_assert_int_eq(transfer(lh_backend->upload, "in", O_RDONLY, "/tmp/n/f", NULL), ABX_OK);
	lh_expect("a1", NULL, "stat -c '%U %a %s' /tmp/n/f; ls -A /tmp/n", "vscode 644 4\nf\n");
	ck_assert_int_eq(transfer(lh_backend->upload, "in", O_RDONLY, "/etc/new", "root"), ABX_OK);
	ck_assert_int_eq(transfer(lh_backend->upload, "in", O_RDONLY, "/etc/new2", NULL),
			 ABX_EPERM);
	ck_assert_int_eq(
		transfer(lh_backend->download, "out", O_WRONLY | O_CREAT, "/tmp/n/f", NULL),
		ABX_OK);
	back = unit_read("out");
	ck_assert_int_eq(memcmp(back, "a\0b\xff", 4), 0);
	free(back);
	lh_sh("a1", NULL, "mkfifo /tmp/fifo", &(struct lh_result)LH_RESULT_INIT);
	ck_assert_int_eq(transfer(lh_backend->download, "out", O_WRONLY, "/tmp/fifo", NULL),
			 ABX_EINVAL);
	ck_assert_int_eq(transfer(lh_backend->download, "out", O_WRONLY, "/none", NULL),
			 ABX_ENOTFOUND);
}
END_TEST

START_TEST(trees_both_ways)
{
	static const char make[] =
		"mkdir -p ~/t/d && cd ~/t && echo x >f && ln f d/hard && ln -s ../f d/sym && "
		"printf u >\"$(printf 'b\\377')\" && printf v >'\xc3\xbc' && chmod 4750 f && "
		"truncate -s 9M hole && touch -d '2001-02-03 04:05:06.123456789' f && chmod 500 d";
	static const char look[] = "cd ~/t && find . -printf '%P %m %s %T@ %n %l\\n' | "
				   "grep -v '^ ' | LC_ALL=C sort";
	struct lh_result before = LH_RESULT_INIT, after = LH_RESULT_INIT;

	lh_expect("a1", NULL, make, "");
	lh_sh("a1", NULL, look, &before);
	ck_assert_int_eq(
		transfer(lh_backend->get_tar, "tar", O_WRONLY | O_CREAT, "/home/vscode/t", NULL),
		ABX_OK);
	lh_expect("a1", NULL, "chmod 700 ~/t/d; rm -r ~/t", "");
	ck_assert_int_eq(transfer(lh_backend->put_tar, "tar", O_RDONLY, "/home/vscode/t", NULL),
			 ABX_OK);
	/* All but the setuid bit, which a stream cannot bring in. */
	lh_expect("a1", NULL, "stat -c %a ~/t/f; chmod 4750 ~/t/f", "750\n");
	lh_sh("a1", NULL, look, &after);
	ck_assert_str_eq(abx_buf_str(&after.out), abx_buf_str(&before.out));
	lh_expect("a1", NULL, "test $(du -k ~/t/hole | cut -f1) -lt 1000 && echo sparse",
		  "sparse\n");
	lh_result_release(&before);
	lh_result_release(&after);
}
END_TEST

START_TEST(streams_lead_nowhere_else)
{
	static const char *const bad[] = {
		"tar -cP -f bad.tar --transform 's,^x$,../up,' x",
		"tar -cP -f bad.tar --transform 's,^x$,/tmp/up,' x",
		"ln -s /tmp l; tar -cf bad.tar l; rm l; mkdir l; echo >l/up; tar -rf bad.tar l/up",
	};
	char script[512];
	int64_t r;

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		(void)snprintf(script, sizeof(script),
			       "rm -rf /var/tmp/s; mkdir /var/tmp/s && "
			       "cd /var/tmp/s && echo >x && %s",
			       bad[i]);
		lh_expect("a1", NULL, script, "");
		ck_assert_int_eq(transfer(lh_backend->download, "tar", O_WRONLY | O_CREAT | O_TRUNC,
					  "/var/tmp/s/bad.tar", NULL),
				 ABX_OK);
		/* A link in the way may also be replaced by the directory that comes. */
		r = transfer(lh_backend->put_tar, "tar", O_RDONLY, "/workspace/in", NULL);
		ck_assert(i == 2 || r == ABX_EINVAL);
		lh_expect("a1", NULL, "ls -d /tmp/up /workspace/up 2>/dev/null | wc -l", "0\n");
	}
	unit_write_text("tar", "this is no tar stream");
	ck_assert_int_eq(transfer(lh_backend->put_tar, "tar", O_RDONLY, "/workspace/in", NULL),
			 ABX_EINVAL);
}
END_TEST

/* What root of a box may not do to this machine. */
START_TEST(no_way_out)
{
	static const char *const forbidden[] = {
		"mount -t tmpfs none /mnt",
		"umount /proc/sys",
		"echo 1 >/proc/sys/kernel/printk",
		"mknod /tmp/disk b 8 0",
		"ls /proc/1/root/",
		"ls /proc/1/fd/",
		"cat /proc/1/environ",
		"nsenter -t 1 -m true",
		"unshare -m true",
		"unshare -Urm umount /proc/sys",
		"unshare -Urmpf sh -c 'mount -t proc proc /mnt'",
		"hostname other",
		"dmesg",
		"chroot /proc/1/root true",
		"echo >/usr/bin/env",
		"ip link add type dummy",
	};
	struct lh_result res = LH_RESULT_INIT;

	for (size_t i = 0; i < ABX_N_ELEMENTS(forbidden); i++) {
		lh_sh("a1", "root", forbidden[i], &res);
		ck_assert_int_eq(res.r, ABX_OK);
		ck_assert_msg(res.exit.code != 0, "%s works", forbidden[i]);
	}
	lh_expect("a1", "root",
		  "mkdir -p /usr/local/bin && echo ok >/usr/local/bin/x && cat /usr/local/bin/x",
		  "ok\n");
	ck_assert_int_ne(access("/usr/local/bin/x", F_OK), 0);
	lh_expect("a1", NULL, "grep -c '^NoNewPrivs:.1$' /proc/self/status", "1\n");
	lh_result_release(&res);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local-exec");
	TCase *tc = tcase_create("exec");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, lh_teardown);
	tcase_add_test(tc, arguments_are_bytes);
	tcase_add_test(tc, long_arguments);
	tcase_add_test(tc, exit_codes_as_a_shell_gives);
	tcase_add_test(tc, the_environment_is_exact);
	tcase_add_test(tc, input_and_output_of_size);
	tcase_add_test(tc, no_directory_comes_in);
	tcase_add_test(tc, a_timeout_ends_the_whole_tree);
	tcase_add_test(tc, a_cancel_ends_the_whole_tree);
	tcase_add_test(tc, a_deadline_ends_the_whole_tree);
	tcase_add_test(tc, a_killed_client_takes_the_tree_along);
	tcase_add_test(tc, a_command_may_leave_processes_behind);
	tcase_add_test(tc, a_terminal);
	tcase_add_test(tc, files_both_ways);
	tcase_add_test(tc, trees_both_ways);
	tcase_add_test(tc, streams_lead_nowhere_else);
	tcase_add_test(tc, no_way_out);
	suite_add_tcase(s, tc);
	return s;
}

LH_MAIN(suite)
