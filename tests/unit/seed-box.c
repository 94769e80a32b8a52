/* SPDX-License-Identifier: MIT */
/* Boxes that are directories of this machine. */
#include "tests/unit/seed-box.h"

#include <pthread.h>

#include "abxsdk/spawn.h"

struct seed_faults seed_faults;
unsigned int seed_tars, seed_execs;
const char *seed_box_home;
struct abx_seed_options seed_how;
const char *seed_branch;

void seed_add_tests(Suite *s, const char *name, const TTest *const *tests, size_t n,
		    void (*teardown)(void))
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, seed_setup, teardown);
	/* Each runs dozens of programs; the machine may be busy. */
	tcase_set_timeout(tc, 120);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
}

static void make_dir(const char *name)
{
	ck_assert_int_eq(abx_fs_mkdir_p(AT_FDCWD, unit_path(name), 0755), 0);
}

void seed_setup(void)
{
	unit_dir_setup();
	memset(&seed_faults, 0, sizeof(seed_faults));
	seed_tars = seed_execs = 0;
	memset(&seed_how, 0, sizeof(seed_how));
	seed_branch = "agentbox/one";
	make_dir("host");
	make_dir("spool");
	make_dir("user");
	make_dir("box/workspace");
	make_dir("box/home");
	(void)setenv("HOME", unit_path("user"), 1);
	(void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	(void)unsetenv("XDG_CONFIG_HOME");
	(void)unsetenv("GIT_CONFIG_GLOBAL");
	unit_write_text("user/.gitconfig",
			"[user]\n\tname = Ada \\\"the\\\" Example\n\temail = ada@example.org\n"
			"[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n"
			"[advice]\n\tdetachedHead = false\n"
			"[protocol \"file\"]\n\tallow = always\n");
}

static char *run_in(const char *dir, const char *home, const char *script)
{
	const char *const argv[] = {"/bin/sh", "-euc", script, NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT((size_t)64 << 20);
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT((size_t)1 << 20);
	struct abx_spawn s = {.argv = argv, .cwd = dir, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	int status = 0;

	(void)setenv("HOME", home, 1);
	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, &said, &status), 0);
	(void)setenv("HOME", unit_path("user"), 1);
	ck_assert_msg(status == 0, "%s\n%s", script, abx_buf_str(&said));
	return abx_xstrdup(abx_buf_str(&out));
}

char *sh_out(const char *script)
{
	return run_in(unit_path("host"), unit_path("user"), script);
}

char *in_box_out(const char *script)
{
	return run_in(unit_path("box/workspace"), unit_path("box/home"), script);
}

void sh(const char *script)
{
	free(sh_out(script));
}

void in_box(const char *script)
{
	free(in_box_out(script));
}

const char *seed_box_dir(void)
{
	return unit_path("box/workspace");
}

/* Read a little, then go away: a provider that dies. */
static int cut(int fd, struct abx_err *err)
{
	char chunk[512];
	size_t left = seed_faults.cut_after;

	while (left) {
		const ssize_t n = read(fd, chunk, left < sizeof(chunk) ? left : sizeof(chunk));

		if (n <= 0)
			break;
		left -= (size_t)n;
	}
	return seed_faults.tar_fails ? abx_err_set(err, ABX_EREMOTE, "the box went away") : 0;
}

static int unpack(const char *path, int fd, struct abx_err *err)
{
	const char *const argv[] = {"tar", "-x", "-p", "-f", "-", "-C", path, NULL};
	const struct abx_spawn s = {.argv = argv, .fd_in = fd, .fd_out = -1, .fd_err = -1};
	int status = 0;
	pid_t pid;

	if (seed_faults.cut_after)
		return cut(fd, err);
	ck_assert_int_eq(abx_spawn_start(&s, &pid), 0);
	ck_assert_int_eq(abx_spawn_wait(pid, &status), 0);
	return status ? abx_err_set(err, ABX_EREMOTE, "tar failed") : 0;
}

struct producer {
	abx_stream_fn produce;
	void *ctx;
	int fd, stop_fd, result;
	struct abx_err err;
};

static void *run_producer(void *arg)
{
	struct producer *p = arg;

	p->result = p->produce(p->ctx, p->fd, p->stop_fd, &p->err);
	(void)close(p->fd);
	return NULL;
}

static int put_stream(void *ctx, const char *path, abx_stream_fn produce, void *produce_ctx,
		      struct abx_err *err)
{
	struct producer p = {produce, produce_ctx, -1, -1, 0, ABX_ERR_INIT};
	int data[2], stop[2], r;
	pthread_t thread;

	(void)ctx;
	seed_tars++;
	ck_assert_int_eq(pipe2(data, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(stop, O_CLOEXEC), 0);
	p.fd = data[1];
	p.stop_fd = stop[0];
	ck_assert_int_eq(pthread_create(&thread, NULL, run_producer, &p), 0);
	r = unpack(path, data[0], err);
	/* A side that still reads: only stop_fd says that nobody is interested any more. */
	(void)close(stop[1]);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	(void)close(data[0]);
	(void)close(stop[0]);
	if (p.result < 0 && (r == 0 || p.result != ABX_ECANCELED)) {
		*err = p.err;
		return p.result;
	}
	return r;
}

static int deliver(const struct abx_exec *req, const struct abx_buf *out,
		   const struct abx_buf *said)
{
	int r = 0;

	/* In odd pieces: nothing may depend on how output is cut. */
	for (size_t at = 0; at < out->len && r == 0;) {
		const size_t n = out->len - at < 7001 ? out->len - at : 7001;

		r = req->output(req->io, ABX_STREAM_STDOUT, out->data + at, n);
		at += n;
	}
	if (said->len && r == 0)
		r = req->output(req->io, ABX_STREAM_STDERR, said->data, said->len);
	return r;
}

static int exec_script(void *ctx, const struct abx_exec *req, struct abx_exit *ret,
		       struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT((size_t)1 << 30);
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT((size_t)1 << 20);
	abx_autofree char *path = abx_xstrdup(getenv("PATH"));
	struct abx_spawn s = {.argv = req->argv,
			      .cwd = seed_box_dir(),
			      .fd_in = req->stdin_fd,
			      .fd_out = -1,
			      .fd_err = -1};
	int status = 0;

	(void)ctx;
	seed_execs++;
	if (seed_faults.exec_fails)
		return abx_err_set(err, ABX_EREMOTE, "exec failed");
	if (seed_faults.answer_at)
		seed_faults.answer_at--;
	if (seed_faults.answer && !seed_faults.answer_at) {
		abx_buf_add(&out, seed_faults.answer, seed_faults.answer_len);
		ret->code = seed_faults.answer_code;
		return deliver(req, &out, &said) ? abx_err_set(err, ABX_ECANCELED, "stopped") : 0;
	}
	(void)setenv("HOME", seed_box_home ? seed_box_home : unit_path("box/home"), 1);
	if (seed_faults.path)
		(void)setenv("PATH", seed_faults.path, 1);
	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, &said, &status), 0);
	(void)setenv("PATH", path, 1);
	(void)setenv("HOME", unit_path("user"), 1);
	ret->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	ret->signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return deliver(req, &out, &said) ? abx_err_set(err, ABX_ECANCELED, "stopped") : 0;
}

struct abx_box_io seed_box_io(void)
{
	const struct abx_box_io io = {.put_stream = put_stream, .exec = exec_script};

	return io;
}

void seed_all(struct abx_seed_result *ret)
{
	const struct abx_box_io io = seed_box_io();
	abx_autofree char *dir = abx_xstrdup(seed_box_dir());
	abx_autofree char *manifest = abx_xstrdup(unit_path("manifest"));
	const struct abx_seed_target target = {
		.dir = dir, .branch = seed_branch, .manifest = manifest};
	struct abx_seed *seed = NULL;

	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), &seed_how, &seed,
				 &unit_err));
	unit_ok(abx_seed_into_io(seed, &io, &target, ret, &unit_err));
	abx_seed_free(seed);
}

int seed_refused(void)
{
	struct abx_seed *seed = NULL;
	int r = abx_seed_inspect(unit_path("host"), unit_path("spool"), &seed_how, &seed,
				 &unit_err);

	abx_seed_free(seed);
	return r;
}

char *tree_of(const char *dir, const char *find_args, const char *times)
{
	abx_autofree char *script = abx_xasprintf(
		"cd '%s' && find . %s -printf '%%M %s %%p -> %%l\\0' | LC_ALL=C sort -z | "
		"tr '\\0' '\\n' && find . %s -type f -print0 | LC_ALL=C sort -z | "
		"xargs -0 -r sha1sum --",
		dir, find_args, times, find_args);

	return sh_out(script);
}

void same_work_tree(const char *find_args)
{
	abx_autofree char *host = tree_of(unit_path("host"), find_args, TREE_SECONDS);
	abx_autofree char *box = tree_of(seed_box_dir(), find_args, TREE_SECONDS);

	ck_assert_str_eq(host, box);
}

void same_output(const char *script)
{
	abx_autofree char *host = sh_out(script), *box = in_box_out(script);

	ck_assert_msg(strcmp(host, box) == 0, "%s\nhost: %s\nbox: %s", script, host, box);
}

void same_repository(void)
{
	same_output("git rev-parse HEAD 'HEAD^{tree}'");
	same_output("git log --format='%H %an %ae %s'");
	same_output("git status --porcelain=v2 -z | tr '\\0' '\\n'");
	same_output("git ls-files -s -v -t -z | tr '\\0' '\\n'");
	same_output("git diff --cached --binary; git diff --binary");
	in_box("git fsck --full --strict 2>&1 && git commit -q --allow-empty -m more "
	       "&& git reset -q --soft HEAD~1");
}

/* Seed, while the host stays as it is to the last byte, time and inode. */
void seed_untouched(struct abx_seed_result *got)
{
	abx_autofree char *before = tree_of(unit_path("host"), "", TREE_UNTOUCHED), *after = NULL;
	abx_autofree char *config = unit_read("user/.gitconfig"), *config_after = NULL;

	seed_all(got);
	after = tree_of(unit_path("host"), "", TREE_UNTOUCHED);
	ck_assert_str_eq(before, after);
	config_after = unit_read("user/.gitconfig");
	ck_assert_str_eq(config, config_after);
	ck_assert_uint_eq(seed_tars, 1);
	ck_assert_uint_eq(seed_execs, 1);
}

void seed_repo(const char *script)
{
	struct abx_seed_result got = {0};
	abx_autofree char *head = NULL;

	sh(script);
	seed_untouched(&got);
	head = sh_out("printf %s \"$(git rev-parse HEAD)\"");
	ck_assert_str_eq(got.base_commit, head);
	ck_assert_str_eq(got.branch, "agentbox/one");
	ck_assert_uint_eq(strlen(got.seed_tree), 40);
	abx_seed_result_release(&got);
	same_repository();
}
