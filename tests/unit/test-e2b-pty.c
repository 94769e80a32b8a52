/* SPDX-License-Identifier: MIT */
/* Terminals of the provider `e2b` itself, on an emulated service: the host's own way is another. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "abxsdk/spawn.h"
#include "tests/unit/clouds.h"

static struct {
	pid_t emulator;
	char url[80];
	struct abx_sandbox_copy box;
	struct abx_buf out;
	unsigned int gaps;
	int control[2], input[2];
	uint16_t record[4]; /* sent once READY was said */
} t;

static const char *built(const char *file)
{
	static char path[1024];
	const char *build = secure_getenv("AGENTBOX_TEST_BUILDDIR");

	(void)snprintf(path, sizeof(path), "%s/%s", build ? build : ".", file);
	return path;
}

static void start_emulator(void)
{
	char wrapper[1024], home[600];
	const char *const argv[] = {"env",
				    "-u",
				    "AGENTBOX_PROVIDER_PATH",
				    wrapper,
				    "agentbox-cloud-emulator",
				    "e2b",
				    "--no-network",
				    "--home",
				    home,
				    NULL};
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_err = STDERR_FILENO};
	int p[2];
	ssize_t n;

	(void)snprintf(wrapper, sizeof(wrapper), "%s", built("tests/wrapper"));
	(void)snprintf(home, sizeof(home), "%s", unit_path("emulated"));
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	s.fd_out = p[1];
	ck_assert_int_eq(abx_spawn_start(&s, &t.emulator), 0);
	(void)close(p[1]);
	n = read(p[0], t.url, sizeof(t.url) - 1);
	ck_assert_int_gt(n, 8);
	(void)close(p[0]);
	t.url[strcspn(t.url, "\n")] = '\0';
}

static void setup(void)
{
	static const struct abx_kv labels[] = {{"agentbox", "true"}, {"agentbox.attempt", "a1"}};
	const struct abx_provision req = {ABX_INIT(struct abx_provision), .name = "one",
					  .idempotency_key = "0123456789abcdef", .labels = labels,
					  .n_labels = 2};

	memset(&t, 0, sizeof(t));
	t.out.max = 1 << 20;
	clouds_setup();
	start_emulator();
	ck_assert_int_eq(setenv("E2B_API_URL", t.url, 1), 0);
	ck_assert_int_eq(setenv("E2B_SANDBOX_URL", t.url, 1), 0);
	ck_assert_int_eq(setenv("E2B_API_KEY", "e2b_0000000000000000000000000000000000000007", 1),
			 0);
	ck_assert_int_eq(setenv("E2B_TEMPLATE", "base", 1), 0);
	open_cloud(built("providers/e2b/.libs/agentbox-e2b.so"), "");
	unit_ok(abx_cloud_provision(cloud, &no_opts, &req, &t.box, &unit_err));
	ck_assert_int_eq(pipe2(t.control, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(t.input, O_CLOEXEC), 0);
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++) {
		(void)close(t.control[i]);
		(void)close(t.input[i]);
	}
	(void)abx_cloud_destroy(cloud, &no_opts, &t.box.s, &stop_req, NULL);
	abx_sandbox_copy_release(&t.box);
	abx_buf_release(&t.out);
	clouds_teardown();
	(void)kill(t.emulator, SIGTERM);
	(void)waitpid(t.emulator, NULL, 0);
}

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	(void)io;
	ck_assert_int_eq(stream, ABX_STREAM_STDOUT);
	abx_buf_add(&t.out, data, len);
	if (t.record[0] && strstr(abx_buf_str(&t.out), "READY")) {
		ck_assert_int_eq(write(t.control[1], t.record, sizeof(t.record)),
				 (ssize_t)sizeof(t.record));
		t.record[0] = 0;
	}
	return 0;
}

static int32_t on_gap(void *io, int32_t stream, uint64_t lost)
{
	(void)io;
	(void)stream;
	ck_assert_uint_eq(lost, UINT64_MAX);
	t.gaps++;
	ck_assert_int_eq(write(t.input[1], "word\r", 5), 5);
	return 0;
}

static struct abx_exit run(const char *script, int64_t timeout_ms)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	const struct abx_call_opts plain = {.plain_exec = true, .timeout_ms = 60000};
	const struct abx_exec req = {ABX_INIT(struct abx_exec),
				     .flags = ABX_EXEC_PTY,
				     .argv = argv,
				     .cwd = "/",
				     .stdin_fd = t.input[0],
				     .control_fd = t.control[0],
				     .rows = 30,
				     .cols = 100,
				     .timeout_ms = timeout_ms,
				     .grace_ms = 100,
				     .output = on_output,
				     .gap = on_gap};
	struct abx_exit e = {ABX_INIT(struct abx_exit)};

	unit_ok(abx_cloud_exec(cloud, &plain, &t.box.s, &req, &e, &unit_err));
	return e;
}

START_TEST(size)
{
	struct abx_exit e;

	t.record[0] = ABX_CTRL_RESIZE;
	t.record[1] = 40;
	t.record[2] = 120;
	e = run("stty size; trap 'stty size; exit 5' WINCH; echo READY; "
		"while :; do sleep 0.05; done",
		0);
	ck_assert_int_eq(e.code, 5);
	ck_assert_str_eq(t.out.data, "30 100\r\nREADY\r\n40 120\r\n");
}
END_TEST

START_TEST(input)
{
	struct abx_exit e;

	ck_assert_int_eq(write(t.input[1], "some words\r\4", 12), 12);
	e = run("stty -echo; echo READY; cat; exit 3", 0);
	ck_assert_int_eq(e.code, 3);
	ck_assert_ptr_nonnull(strstr(t.out.data, "some words\r\n"));
}
END_TEST

START_TEST(signals)
{
	struct abx_exit e;

	t.record[0] = ABX_CTRL_SIGNAL;
	t.record[1] = SIGUSR1;
	e = run("echo READY; exec sleep 1000", 0);
	ck_assert_int_eq(e.signo, SIGUSR1);
}
END_TEST

START_TEST(detached)
{
	struct abx_exit e;

	t.record[0] = ABX_CTRL_DETACH;
	e = run("echo READY; exec sleep 1000", 0);
	ck_assert_uint_eq(e.flags, ABX_EXIT_DETACHED);
}
END_TEST

/* With what it started, although that hears no TERM. */
START_TEST(timed_out)
{
	struct abx_exit e = run("trap '' TERM HUP; sleep 1000; sleep 1000", 200);

	ck_assert_int_eq(e.timed_out, 1);
}
END_TEST

/* The connection breaks off behind the command's start. */
START_TEST(dropped)
{
	char url[200];
	const char *const argv[] = {
		"curl", "-sf", "--noproxy",
		"*",	"-d",  "{\"path\": \"/process.Process/Start\", \"kind\": \"truncate\"}",
		url,	NULL};
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	struct abx_exit e;
	int status = -1;
	pid_t pid;

	(void)snprintf(url, sizeof(url), "%s/_emulator/faults", t.url);
	ck_assert_int_eq(abx_spawn_start(&s, &pid), 0);
	ck_assert_int_eq(abx_spawn_wait(pid, &status), 0);
	ck_assert_int_eq(status, 0);
	e = run("read a; [ \"$a\" = word ] && exit 6", 0);
	ck_assert_int_eq(e.code, 6);
	ck_assert_uint_eq(t.gaps, 1);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("e2b-pty");
	TCase *tc = tcase_create("pty");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, size);
	tcase_add_test(tc, input);
	tcase_add_test(tc, signals);
	tcase_add_test(tc, detached);
	tcase_add_test(tc, timed_out);
	tcase_add_test(tc, dropped);
	suite_add_tcase(s, tc);
	return s;
}

PLUGINS_MAIN(suite)
