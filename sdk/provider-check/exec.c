/* SPDX-License-Identifier: MIT */
/* Commands: bytes, ends, and being given up on. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "abxsdk/fs.h"
#include "core/util/clock.h"
#include "sdk/provider-check/check.h"

#define GIVING_UP_MS 1000

void ran_release(struct ran *ran)
{
	abx_buf_release(&ran->out);
	abx_buf_release(&ran->err);
}

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct ran *ran = io;
	const uint64_t one = 1;

	abx_buf_add(stream == ABX_STREAM_STDOUT ? &ran->out : &ran->err, data, len);
	if (ran->cancel_fd >= 0 && !ran->cancelled_ms) {
		ran->cancelled_ms = abx_now_ms();
		(void)!write(ran->cancel_fd, &one, sizeof(one));
	}
	return ABX_OK;
}

static int run_with(struct check *c, const struct abx_call_opts *o, const struct abx_exec *req,
		    const char *const *argv, struct ran *ran)
{
	struct abx_exec own = {ABX_INIT(struct abx_exec), .stdin_fd = -1, .control_fd = -1};

	if (req)
		own = *req;
	own.argv = argv;
	own.io = ran;
	own.output = on_output;
	abx_buf_reset(&ran->out);
	abx_buf_reset(&ran->err);
	memset(&ran->exit, 0, sizeof(ran->exit));
	return abx_cloud_exec(c->cloud, o, &c->box.s, &own, &ran->exit, &c->err);
}

int run_argv(struct check *c, const struct abx_exec *req, const char *const *argv, struct ran *ran)
{
	const struct abx_call_opts o = check_opts(c);

	return run_with(c, &o, req, argv, ran);
}

int run_script(struct check *c, const char *script, struct ran *ran)
{
	const char *const argv[] = {"sh", "-c", script, NULL};

	return run_argv(c, NULL, argv, ran);
}

static bool can(struct check *c, uint64_t cap, const char *what)
{
	if (abx_cloud_caps(c->cloud) & cap)
		return true;
	tap_note(c, "not claimed: %s", what);
	return false;
}

static void check_codes(struct check *c)
{
	static const struct {
		const char *script;
		int code;
	} cases[] = {{"true", 0}, {"exit 7", 7}, {"exit 255", 255}};
	const char *const nothing[] = {"/nonexistent/program", NULL};
	struct ran ran = RAN_INIT;

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		int r = run_script(c, cases[i].script, &ran);

		(void)tap_ok(c, r == 0 && ran.exit.code == cases[i].code && !ran.exit.signo,
			     "exit code %d comes back", cases[i].code);
	}
	if (tap_r(c, run_argv(c, NULL, nothing, &ran), "a missing program is no error of exec"))
		(void)tap_ok(c, ran.exit.code == 127, "but exit code 127 (%d)", ran.exit.code);
	if (can(c, ABX_CAP_EXEC_SIGNAL, "death by a signal is told"))
		(void)tap_ok(c, run_script(c, "kill -9 $$", &ran) == 0 && ran.exit.signo == 9,
			     "death by a signal is told");
	ran_release(&ran);
}

static void check_home(struct check *c)
{
	struct ran ran = RAN_INIT;

	(void)tap_ok(c,
		     run_script(c, "test -d \"$HOME\" && test -w \"$HOME\"", &ran) == 0 &&
			     ran.exit.code == 0,
		     "HOME is a directory of the user");
	ran_release(&ran);
}

static void check_argv(struct check *c)
{
	static const char wanted[] = "\0a b\0$HOME\0*\0'\"\\`\0two\nlines\0-n\0\xc3\xa9\xff\0";
	const char *const argv[] = {"sh",	  "-c", "for a; do printf '%s\\000' \"$a\"; done",
				    "sh",	  "",	"a b",
				    "$HOME",	  "*",	"'\"\\`",
				    "two\nlines", "-n", "\xc3\xa9\xff",
				    NULL};
	struct ran ran = RAN_INIT;

	if (can(c, ABX_CAP_EXEC_BINARY, "arguments arrive as they are") &&
	    tap_r(c, run_argv(c, NULL, argv, &ran), "a command with odd arguments"))
		(void)tap_ok(c,
			     ran.out.len == sizeof(wanted) - 1 &&
				     memcmp(ran.out.data, wanted, ran.out.len) == 0,
			     "arguments arrive as they are");
	ran_release(&ran);
}

static void check_env(struct check *c)
{
	static const struct abx_kv env[] = {{"CHECK_ONE", "a b'c\"$d"}, {"CHECK_TWO", ""}};
	const struct abx_exec req = {ABX_INIT(struct abx_exec),
				     .stdin_fd = -1,
				     .control_fd = -1,
				     .env = env,
				     .n_env = 2,
				     .cwd = "/tmp"};
	const char *const argv[] = {"sh", "-c",
				    "printf '%s.%s.%s' \"$CHECK_ONE\" \"${CHECK_TWO-unset}\" "
				    "\"$(cd . && pwd -P)\"",
				    NULL};
	struct ran ran = RAN_INIT;
	const char *out;

	(void)tap_r(c, run_argv(c, &req, argv, &ran), "a command with environment and directory");
	out = abx_buf_str(&ran.out);
	(void)tap_ok(c, strncmp(out, "a b'c\"$d..", 10) == 0, "the environment arrives");
	(void)tap_ok(c, strlen(out) >= 4 && strcmp(out + strlen(out) - 4, "/tmp") == 0,
		     "the directory is the one asked for");
	ran_release(&ran);
}

static void check_streams(struct check *c)
{
	struct ran ran = RAN_INIT;
	bool all = true;

	if (can(c, ABX_CAP_EXEC_SPLIT, "stdout and stderr are apart")) {
		(void)tap_r(c, run_script(c, "echo out; echo err >&2", &ran), "two streams");
		(void)tap_ok(c,
			     strcmp(abx_buf_str(&ran.out), "out\n") == 0 &&
				     strcmp(abx_buf_str(&ran.err), "err\n") == 0,
			     "stdout and stderr are apart");
	}
	if (can(c, ABX_CAP_EXEC_BINARY, "every byte comes back")) {
		(void)tap_r(c,
			    run_script(c,
				       "i=0; while [ $i -lt 256 ]; do printf "
				       "\"\\\\$(printf %03o $i)\"; i=$((i+1)); done",
				       &ran),
			    "all bytes");
		for (size_t i = 0; i < 256; i++)
			all = all && ran.out.len == 256 && (unsigned char)ran.out.data[i] == i;
		(void)tap_ok(c, all, "every byte comes back (%zu)", ran.out.len);
	}
	(void)tap_r(c, run_script(c, "head -c 3000000 /dev/zero", &ran), "three megabytes");
	(void)tap_ok(c, ran.out.len == 3000000, "all of a long output comes (%zu)", ran.out.len);
	ran_release(&ran);
}

struct feeder {
	int fd;
	size_t len;
};

static void *feed(void *arg)
{
	const struct feeder *f = arg;
	char chunk[4096];

	memset(chunk, 'x', sizeof(chunk));
	for (size_t left = f->len; left;) {
		size_t n = left < sizeof(chunk) ? left : sizeof(chunk);

		if (abx_fs_write_all(f->fd, chunk, n) < 0)
			break;
		left -= n;
	}
	(void)close(f->fd);
	return NULL;
}

static void check_stdin(struct check *c)
{
	const char *const argv[] = {"sh", "-c", "wc -c", NULL};
	struct abx_exec req = {ABX_INIT(struct abx_exec), .control_fd = -1};
	struct ran ran = RAN_INIT;
	struct feeder f = {.len = 1000003};
	pthread_t thread;
	int pair[2], r;

	(void)tap_r(c, run_script(c, "cat", &ran), "without stdin a command reads nothing");
	if (!can(c, ABX_CAP_EXEC_STDIN, "stdin arrives to its end") || pipe2(pair, O_CLOEXEC) < 0) {
		ran_release(&ran);
		return;
	}
	f.fd = pair[1];
	req.stdin_fd = pair[0];
	if (pthread_create(&thread, NULL, feed, &f) == 0) {
		r = run_argv(c, &req, argv, &ran);
		(void)close(pair[0]);
		(void)pthread_join(thread, NULL);
		(void)tap_r(c, r, "a megabyte through a pipe");
		(void)tap_ok(c, strtoull(abx_buf_str(&ran.out), NULL, 10) == f.len,
			     "stdin arrives to its end (%s)", abx_buf_str(&ran.out));
	}
	ran_release(&ran);
}

/* Its own timeout: the command's, not the operation's. */
static void check_timeout(struct check *c)
{
	const struct abx_exec req = {ABX_INIT(struct abx_exec), .stdin_fd = -1, .control_fd = -1,
				     .timeout_ms = 500};
	const char *const argv[] = {"sh", "-c", "sleep 1000", NULL};
	struct ran ran = RAN_INIT;
	int64_t begun = abx_now_ms();

	if (can(c, ABX_CAP_EXEC_TREE_KILL, "a command that takes too long is ended") &&
	    tap_r(c, run_argv(c, &req, argv, &ran), "a command with a timeout"))
		(void)tap_ok(c, ran.exit.timed_out && abx_now_ms() - begun < 5000,
			     "a command that takes too long is ended");
	ran_release(&ran);
}

void check_exec(struct check *c)
{
	check_codes(c);
	check_home(c);
	check_argv(c);
	check_env(c);
	check_streams(c);
	check_stdin(c);
	check_timeout(c);
}

/* A marked process that must be gone afterwards. */
static bool is_alive(struct check *c, const char *mark)
{
	struct ran ran = RAN_INIT;
	char script[256];
	bool alive = true;

	(void)snprintf(script, sizeof(script),
		       "for p in /proc/[0-9]*; do tr '\\000' ' ' <$p/cmdline 2>/dev/null | "
		       "grep -q '^sleep %s' && echo alive; done; true",
		       mark);
	for (int i = 0; i < 20 && alive; i++)
		alive = run_script(c, script, &ran) == 0 && ran.out.len > 0;
	ran_release(&ran);
	return alive;
}

static void check_cancel(struct check *c)
{
	const char *const argv[] = {"sh", "-c", "echo go; sleep 98761 & sleep 98762", NULL};
	struct abx_call_opts o = check_opts(c);
	struct ran ran = RAN_INIT;
	const int old = c->ctx.cancel_fd;
	int64_t took;
	int r;

	c->ctx.cancel_fd = eventfd(0, EFD_CLOEXEC);
	ran.cancel_fd = c->ctx.cancel_fd;
	r = run_with(c, &o, NULL, argv, &ran);
	took = abx_now_ms() - ran.cancelled_ms;
	(void)close(c->ctx.cancel_fd);
	c->ctx.cancel_fd = old;
	ran.cancel_fd = -1;
	(void)tap_code(c, r, ABX_ECANCELED, "a command that the user gives up is cancelled");
	(void)tap_ok(c, ran.cancelled_ms && took <= GIVING_UP_MS, "within a second (%lld ms)",
		     (long long)took);
	ran_release(&ran);
	if (can(c, ABX_CAP_EXEC_TREE_KILL, "its whole tree is ended"))
		(void)tap_ok(c, !is_alive(c, "9876[12]"), "its whole tree is ended");
}

static void check_deadline(struct check *c)
{
	const struct abx_call_opts o = {.timeout_ms = 1000};
	const char *const argv[] = {"sh", "-c", "sleep 98763", NULL};
	struct ran ran = RAN_INIT;
	int64_t begun = abx_now_ms(), took;
	int r = run_with(c, &o, NULL, argv, &ran);

	took = abx_now_ms() - begun;
	(void)tap_code(c, r, ABX_ETIMEDOUT, "a deadline ends an operation");
	(void)tap_ok(c, took >= 900 && took < 1000 + GIVING_UP_MS, "in time (%lld ms)",
		     (long long)took);
	ran_release(&ran);
}

void check_giving_up(struct check *c)
{
	check_cancel(c);
	check_deadline(c);
	(void)tap_ok(c, !atomic_load(&c->cloud->lost), "it came back from each operation");
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		(void)closedir(dir);
	return n;
}

void check_descriptors(struct check *c)
{
	const struct abx_call_opts o = check_opts(c);
	struct ran ran = RAN_INIT;
	int before = 0;

	for (int i = 0; i < 12; i++) {
		struct abx_sandbox_copy got;

		/* The first rounds may fill pools. */
		if (i == 4)
			before = count_descriptors();
		(void)run_script(c, "echo x; exit 3", &ran);
		if (abx_cloud_get(c->cloud, &o, &c->box.s, &got, NULL) == 0)
			abx_sandbox_copy_release(&got);
	}
	(void)tap_ok(c, count_descriptors() == before, "no descriptor is left open");
	ran_release(&ran);
}
