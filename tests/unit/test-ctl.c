/* SPDX-License-Identifier: MIT */
/* agentbox-ctl by itself: what ends a tree, and what does not. */
#include <poll.h>

#include "abxsdk/spawn.h"
#include "core/ctl/wire.h"
#include "tests/unit/unit.h"

/* One that ran alone for so long is lost. */
#define LIMIT_MS 20000

static struct {
	pid_t pid;
	int to, from;
	struct abx_wire_out out;
	struct abx_wire_in in;
	struct abx_buf said; /* stdout of the command */
	char end[700];	     /* "exit CODE SIGNAL FLAGS TEXT" or "fail CODE TEXT" */
} ctl;

static int on_frame(void *ctx, enum abx_wire_kind kind, const unsigned char *data, size_t len)
{
	(void)ctx;
	if (kind == ABX_WIRE_STDOUT)
		abx_buf_add(&ctl.said, data, len);
	if (kind == ABX_WIRE_EXIT)
		(void)snprintf(ctl.end, sizeof(ctl.end), "exit %u %u %u %.*s", abx_wire_u32(data),
			       abx_wire_u32(data + 4), abx_wire_u32(data + 8), (int)len - 12,
			       data + 12);
	if (kind == ABX_WIRE_FAIL)
		(void)snprintf(ctl.end, sizeof(ctl.end), "fail %d %.*s",
			       (int32_t)abx_wire_u32(data), (int)len - 4, data + 4);
	return 0;
}

static void send_all(const struct abx_buf *b)
{
	ck_assert_int_eq(abx_fs_write_all(ctl.to, b->data, b->len), 0);
}

static void send_frame(enum abx_wire_kind kind, const void *data, size_t len)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);

	abx_wire_put(&ctl.out, &b, kind, data, len);
	send_all(&b);
}

static void send_request(const struct abx_wire_request *r)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);

	ck_assert_int_eq(abx_wire_encode_request(r, &b), 0);
	send_frame(ABX_WIRE_REQUEST, b.data, b.len);
	send_frame(ABX_WIRE_GO, NULL, 0);
}

static void start(const char *script, uint32_t silence_ms, uint32_t timeout_ms)
{
	const char *build = secure_getenv("AGENTBOX_TEST_BUILDDIR");
	const struct abx_buf empty = ABX_BUF_INIT(1 << 20);
	const struct abx_wire_in in = {.frame = on_frame};
	const struct abx_wire_out out = {0};
	char program[1024];
	const char *argv[] = {"sh", "-c", script, "sh", unit_dir(), NULL};
	const struct abx_wire_request r = {.id = "id",
					   .cwd = "/",
					   .argv = (char **)(uintptr_t)argv,
					   .n_argv = 5,
					   .grace_ms = 100,
					   .beat_ms = 50,
					   .silence_ms = silence_ms,
					   .timeout_ms = timeout_ms};
	const char *const spawn_argv[] = {program, "exec", NULL};
	struct abx_spawn s = {.argv = spawn_argv, .fd_err = STDERR_FILENO};
	int in_pipe[2], out_pipe[2];

	(void)snprintf(program, sizeof(program), "%s/core/ctl/agentbox-ctl", build ? build : ".");
	ck_assert_int_eq(pipe2(in_pipe, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out_pipe, O_CLOEXEC), 0);
	s.fd_in = in_pipe[0];
	s.fd_out = out_pipe[1];
	ck_assert_int_eq(abx_spawn_start(&s, &ctl.pid), 0);
	(void)close(in_pipe[0]);
	(void)close(out_pipe[1]);
	ctl.to = in_pipe[1];
	ctl.from = out_pipe[0];
	ctl.out = out;
	ctl.in = in;
	ctl.said = empty;
	ctl.end[0] = '\0';
	if (!secure_getenv(ABX_WIRE_GIVEN))
		send_request(&r);
}

/* Read until `what` was said (NULL: until the end). */
static void read_until(const char *what)
{
	char data[4096];

	while (!what || !strstr(abx_buf_str(&ctl.said), what)) {
		struct pollfd p = {ctl.from, POLLIN, 0};
		ssize_t n;

		ck_assert_msg(poll(&p, 1, LIMIT_MS) == 1, "nothing came");
		n = read(ctl.from, data, sizeof(data));
		if (n <= 0)
			break;
		ck_assert_int_eq(abx_wire_feed(&ctl.in, data, (size_t)n), 0);
	}
}

static void finish(void)
{
	(void)waitpid(ctl.pid, NULL, 0);
	(void)close(ctl.to);
	(void)close(ctl.from);
	abx_buf_release(&ctl.said);
}

/* A grandchild in a session of its own that ignores TERM, and holds unit_dir()/alive open for
 * as long as it lives: its write end of a FIFO. */
static const char tree[] =
	"mkfifo \"$1/alive\"; setsid sh -c 'trap \"\" TERM; exec 9>\"$1/alive\"; "
	"echo up; while :; do sleep 0.1; done' sh \"$1\" & "
	"exec 8<\"$1/alive\"; echo leader; wait";

static void start_tree(uint32_t silence_ms, uint32_t timeout_ms)
{
	start(tree, silence_ms, timeout_ms);
	read_until("up");
}

static void assert_tree_ends(void)
{
	int fd = open(unit_path("alive"), O_RDONLY | O_CLOEXEC);
	struct pollfd p = {fd, POLLIN, 0};
	char c;

	ck_assert_int_ge(fd, 0);
	ck_assert_msg(poll(&p, 1, LIMIT_MS) == 1, "the tree lives on");
	ck_assert_int_eq(read(fd, &c, 1), 0);
	(void)close(fd);
}

START_TEST(a_command_with_input)
{
	start("cat; exit 3", 0, 0);
	send_frame(ABX_WIRE_DATA, "hello", 5);
	send_frame(ABX_WIRE_END, NULL, 0);
	read_until(NULL);
	ck_assert_str_eq(ctl.said.data, "hello");
	ck_assert_str_eq(ctl.end, "exit 3 0 0 ");
	finish();
}
END_TEST

/* The frames that are sent go on where those of the environment ended, which nobody sees. */
START_TEST(a_command_that_is_given)
{
	const char *const argv[] = {"sh", "-c", "echo \"$" ABX_WIRE_GIVEN "$X\"; cat; exit 4",
				    NULL};
	const char *const env[] = {"X=x", NULL};
	const struct abx_wire_request r = {.id = "id",
					   .cwd = "/",
					   .argv = (char **)(uintptr_t)argv,
					   .n_argv = 3,
					   .env = (char **)(uintptr_t)env,
					   .n_env = 1};
	struct abx_wire_out out = {.text = true, .short_lines = true};
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);
	abx_auto(abx_buf) struct abx_buf given = ABX_BUF_INIT(ABX_WIRE_GIVEN_MAX);

	ck_assert_int_eq(abx_wire_encode_request(&r, &b), 0);
	abx_wire_put(&out, &given, ABX_WIRE_REQUEST, b.data, b.len);
	abx_wire_put(&out, &given, ABX_WIRE_GO, NULL, 0);
	abx_wire_put(&out, &given, ABX_WIRE_DATA, "early ", 6);
	ck_assert_int_eq(setenv(ABX_WIRE_GIVEN, given.data, 1), 0);
	start("", 0, 0);
	ctl.out.number = out.number;
	send_frame(ABX_WIRE_DATA, "late", 4);
	send_frame(ABX_WIRE_END, NULL, 0);
	read_until(NULL);
	ck_assert_str_eq(ctl.said.data, "x\nearly late");
	ck_assert_str_eq(ctl.end, "exit 4 0 0 ");
	finish();
}
END_TEST

START_TEST(the_end_of_the_connection_ends_the_tree)
{
	start_tree(0, 0);
	(void)close(abx_steal_fd(&ctl.to));
	assert_tree_ends();
	finish();
}
END_TEST

START_TEST(silence_ends_the_tree)
{
	start_tree(300, 0);
	assert_tree_ends();
	finish();
}
END_TEST

START_TEST(beats_keep_it)
{
	start("i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i + 1)); done; exit 4", 400, 0);
	for (int i = 0; i < 40 && !ctl.end[0]; i++) {
		struct pollfd p = {ctl.from, POLLIN, 0};
		char data[4096];
		ssize_t n;

		send_frame(ABX_WIRE_BEAT, NULL, 0);
		ck_assert_int_eq(poll(&p, 1, LIMIT_MS), 1);
		n = read(ctl.from, data, sizeof(data));
		if (n <= 0)
			break;
		ck_assert_int_eq(abx_wire_feed(&ctl.in, data, (size_t)n), 0);
	}
	ck_assert_str_eq(ctl.end, "exit 4 0 0 ");
	finish();
}
END_TEST

START_TEST(a_timeout_ends_the_tree)
{
	start_tree(0, 300);
	assert_tree_ends();
	read_until(NULL);
	unit_has(ctl.end, " 1 ");
	finish();
}
END_TEST

START_TEST(whoever_kills_the_first_process_ends_the_tree)
{
	start_tree(0, 0);
	ck_assert_int_eq(kill(ctl.pid, SIGKILL), 0);
	assert_tree_ends();
	finish();
}
END_TEST

START_TEST(a_broken_frame_ends_the_tree)
{
	struct abx_buf junk = ABX_BUF_INIT(64);

	start_tree(0, 0);
	abx_buf_adds(&junk, "this is no frame");
	send_all(&junk);
	abx_buf_release(&junk);
	assert_tree_ends();
	read_until(NULL);
	unit_has(ctl.end, "fail -17 ");
	finish();
}
END_TEST

START_TEST(more_input_than_was_allowed_ends_the_tree)
{
	abx_autofree char *much = abx_xcalloc(1, ABX_WIRE_PAYLOAD_MAX);

	start_tree(0, 0);
	unit_signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ABX_WIRE_WINDOW / ABX_WIRE_PAYLOAD_MAX + 2; i++)
		send_frame(ABX_WIRE_DATA, much, ABX_WIRE_PAYLOAD_MAX);
	assert_tree_ends();
	finish();
}
END_TEST

START_TEST(a_signal_reaches_the_group_and_what_it_left)
{
	start_tree(0, 0);
	send_frame(ABX_WIRE_SIGNAL, "\x02\0", 2);
	assert_tree_ends();
	read_until(NULL);
	ck_assert_str_eq(ctl.end, "exit 0 2 0 ");
	finish();
}
END_TEST

START_TEST(what_a_command_leaves_lives_on)
{
	start("mkfifo \"$1/alive\"; setsid sh -c 'exec 9>\"$1/alive\"; echo up >&9; "
	      "read line <\"$1/alive2\"' sh \"$1\" >/dev/null & exit 0",
	      0, 0);
	ck_assert_int_eq(mkfifo(unit_path("alive2"), 0600), 0);
	read_until(NULL);
	ck_assert_str_eq(ctl.end, "exit 0 0 0 ");
	finish();
	{
		int fd = open(unit_path("alive"), O_RDONLY | O_CLOEXEC);
		struct pollfd p = {fd, POLLIN, 0};
		char text[4] = "";

		/* It is there to say so after its command has ended. */
		ck_assert_int_eq(poll(&p, 1, LIMIT_MS), 1);
		ck_assert_int_eq(read(fd, text, 3), 3);
		ck_assert_str_eq(text, "up\n");
		(void)close(open(unit_path("alive2"), O_WRONLY | O_CLOEXEC));
		(void)close(fd);
	}
}
END_TEST

START_TEST(what_cannot_start_says_why)
{
	start("exit 0", 0, 0);
	read_until(NULL);
	finish();
	start("exec /no/such/program", 0, 0);
	read_until(NULL);
	ck_assert_str_eq(ctl.end, "exit 127 0 0 ");
	finish();
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ctl");
	TCase *tc = tcase_create("ctl");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, unit_dir_setup, unit_dir_teardown);
	tcase_add_test(tc, a_command_with_input);
	tcase_add_test(tc, a_command_that_is_given);
	tcase_add_test(tc, the_end_of_the_connection_ends_the_tree);
	tcase_add_test(tc, silence_ends_the_tree);
	tcase_add_test(tc, beats_keep_it);
	tcase_add_test(tc, a_timeout_ends_the_tree);
	tcase_add_test(tc, whoever_kills_the_first_process_ends_the_tree);
	tcase_add_test(tc, a_broken_frame_ends_the_tree);
	tcase_add_test(tc, more_input_than_was_allowed_ends_the_tree);
	tcase_add_test(tc, a_signal_reaches_the_group_and_what_it_left);
	tcase_add_test(tc, what_a_command_leaves_lives_on);
	tcase_add_test(tc, what_cannot_start_says_why);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
