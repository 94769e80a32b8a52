/* SPDX-License-Identifier: MIT */
/* Seeding: what cannot be carried faithfully is refused by name, and nothing is touched. */
#include "tests/unit/seed-box.h"

#include <sys/prctl.h>

#define COMMIT "echo a >a.txt && git add . && git commit -q -m one"
#define ONE "git init -q . && " COMMIT " && "

static const struct refused {
	const char *script;
	int code;
	const char *text; /* part of the message */
} refused[] = {
	{"git init -q --bare .", ABX_ENOTSUP, "bare"},
	{ONE "git config core.bare true", ABX_ENOTSUP, "bare"},
	{ONE "mkdir ../other && mv .git ../moved && "
	     "git config -f ../moved/config core.worktree ../../other && mv ../moved .git",
	 ABX_ENOTSUP, "core.worktree"},
	{"mkdir .git && echo x >x", ABX_ENOTSUP, "not a git repository"},
	{"git init -q --object-format=sha256 . && " COMMIT, ABX_ENOTSUP, "sha256"},
	{ONE "mkdir .git/reftable", ABX_ENOTSUP, "reftable"},
	{ONE "git rev-parse HEAD >.git/info/grafts", ABX_ENOTSUP, "grafted"},
	{ONE "git config core.symlinks false", ABX_ENOTSUP, "core.symlinks"},
	{ONE "mkdir d && echo d >d/d && git add . && git commit -q -m d && git init -q d",
	 ABX_ENOTSUP, "'d' is a repository of its own"},
	{"mkdir -p a/b && echo 'gitdir: /nowhere' >a/b/.git", ABX_ENOTSUP,
	 "a/b': its .git is not a git repository"},
	{ONE "rm a.txt && mkfifo a.txt", ABX_ENOTSUP, "'a.txt' is a socket, FIFO"},
	{ONE "echo ref: refs/elsewhere/x >.git/HEAD && git update-ref HEAD $(git rev-parse main)",
	 ABX_ENOTSUP, "HEAD"},
	{ONE "printf garbage >.git/index", ABX_EIO, "git status"},
	{ONE "head -c 100 .git/index >x && mv x .git/index", ABX_ECORRUPT, "index"},
	{ONE "printf '[core' >>.git/config", ABX_EIO, "bad config"},
};

START_TEST(state)
{
	const struct refused *c = &refused[_i];
	abx_autofree char *before = NULL, *after = NULL;
	int r;

	sh(c->script);
	before = tree_of(unit_path("host"), "", TREE_UNTOUCHED);
	r = seed_refused();
	ck_assert_msg(r == c->code, "%s\nwas not refused so: %d %s", c->script, r, unit_err.text);
	unit_has(unit_err.text, c->text);
	ck_assert_ptr_null(strchr(unit_err.text, '\n'));
	if (r == ABX_ENOTSUP)
		ck_assert_uint_gt(strlen(unit_err.remedy), 0);
	after = tree_of(unit_path("host"), "", TREE_UNTOUCHED);
	ck_assert_str_eq(before, after);
}
END_TEST

static int inspect_at(const char *workspace)
{
	abx_autofree char *spool = abx_xstrdup(unit_path("spool"));
	struct abx_seed *seed = NULL;
	const int r = abx_seed_inspect(workspace, spool, NULL, &seed, &unit_err);

	abx_seed_free(seed);
	return r;
}

START_TEST(part_of_a_repository)
{
	sh(ONE "mkdir -p d/e && echo x >d/e/x && git add d && git init -q --bare ../bare.git");
	ck_assert_int_eq(inspect_at(unit_path("host/d")), ABX_ENOTSUP);
	unit_has(unit_err.text, "is a part of the repository");
	unit_has(unit_err.remedy, unit_path("host"));
	ck_assert_int_eq(inspect_at(unit_path("host/d/e")), ABX_ENOTSUP);
	ck_assert_int_eq(inspect_at(unit_path("host/.git/refs")), ABX_ENOTSUP);
	unit_has(unit_err.text, "inside of a git directory");
	ck_assert_int_eq(inspect_at(unit_path("bare.git/refs")), ABX_ENOTSUP);
}
END_TEST

START_TEST(missing)
{
	ck_assert_int_eq(inspect_at(unit_path("nowhere")), ABX_ENOTFOUND);
	sh("echo x >file");
	ck_assert_int_lt(inspect_at(unit_path("host/file")), 0);
}
END_TEST

/* Nothing that a repository may ask git to run, but for filters. */
START_TEST(hooks_do_not_run)
{
	struct abx_seed_result got = {0};

	sh(ONE "git config core.fsmonitor 'touch ../ran; false' && "
	       "git config core.pager 'touch ../ran; cat' && git config diff.external "
	       "'touch ../ran; true' && for h in post-index-change pre-auto-gc; do "
	       "printf '#!/bin/sh\\ntouch ../ran\\n' >.git/hooks/$h && chmod 755 .git/hooks/$h; "
	       "done && echo more >>a.txt && touch -d 2020-01-01 a.txt && rm -f ../ran");
	seed_all(&got);
	abx_seed_result_release(&got);
	ck_assert_int_ne(access(unit_path("ran"), F_OK), 0);
}
END_TEST

START_TEST(git_is_missing)
{
	abx_autofree char *path = abx_xstrdup(getenv("PATH"));
	int r;

	sh(ONE "true");
	(void)setenv("PATH", "/nowhere", 1);
	r = seed_refused();
	(void)setenv("PATH", path, 1);
	ck_assert_int_eq(r, ABX_ENOTFOUND);
	unit_has(unit_err.text, "git: not found");
	unit_has(unit_err.remedy, "install git");
}
END_TEST

/* Root may read everything, so it asks as somebody else. */
#define AS_NOBODY 65534

static int as_nobody(const char *prepare)
{
	int status;
	pid_t pid;

	sh(prepare);
	(void)fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (setgid(AS_NOBODY) < 0 || setuid(AS_NOBODY) < 0)
			_exit(1);
		/* Its descriptors are reached by /proc. */
		(void)prctl(PR_SET_DUMPABLE, 1);
		(void)seed_refused();
		unit_write_text("spool/result", unit_err.text);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* `hidden` in the workspace is not for the user who asks. */
static void is_refused(const char *prepare, const char *hidden, const char *text)
{
	abx_autofree char *result = NULL, *script = NULL;

	if (geteuid() == 0) {
		script = abx_xasprintf("%s && chown -R %d .. && chmod 755 .. && chown 0 %s && "
				       "chmod 700 %s",
				       prepare, AS_NOBODY, hidden, hidden);
		ck_assert_int_eq(as_nobody(script), 0);
		result = unit_read("spool/result");
		unit_has(result, text);
		return;
	}
	script = abx_xasprintf("%s && chmod 000 %s", prepare, hidden);
	sh(script);
	ck_assert_int_lt(seed_refused(), 0);
	unit_has(unit_err.text, text);
	free(script);
	script = abx_xasprintf("chmod 700 %s", hidden);
	sh(script);
}

START_TEST(unreadable_files)
{
	is_refused("echo x >x && mkdir d && echo y >d/secret", "d/secret",
		   "'d/secret' of the workspace: Permission denied");
}
END_TEST

START_TEST(unreadable_directory)
{
	is_refused("mkdir d", "d", "'d': Permission denied");
}
END_TEST

START_TEST(unreadable_directory_in_a_repository)
{
	is_refused(ONE "mkdir d && echo x >d/x", "d", "cannot read directory 'd/'");
}
END_TEST

START_TEST(unreadable_untracked_file)
{
	is_refused(ONE "echo x >x", "x", "'x' of the workspace: Permission denied");
}
END_TEST

/* Only root can make one; others are told the same by git itself. */
START_TEST(repository_of_another_user)
{
	abx_autofree char *result = NULL;

	if (geteuid() != 0)
		return;
	ck_assert_int_eq(as_nobody(ONE "chown -R 65534 .. && chmod 755 .. && chown -R 0 ../host"),
			 0);
	result = unit_read("spool/result");
	unit_has(result, "belongs to another user");
}
END_TEST

static Suite *suite(void)
{
	const TTest *const others[] = {part_of_a_repository,
				       missing,

				       hooks_do_not_run,
				       git_is_missing,
				       unreadable_files,
				       unreadable_directory,
				       unreadable_directory_in_a_repository,
				       unreadable_untracked_file,
				       repository_of_another_user};
	Suite *s = suite_create("seed-refused");
	TCase *tc = tcase_create("states");

	tcase_add_checked_fixture(tc, seed_setup, unit_dir_teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, state, 0, (int)ABX_N_ELEMENTS(refused));
	suite_add_tcase(s, tc);
	seed_add_tests(s, "others", others, ABX_N_ELEMENTS(others), unit_dir_teardown);
	return s;
}

UNIT_MAIN(suite)
