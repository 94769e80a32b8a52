/* SPDX-License-Identifier: MIT */
/* Seeding a workspace in which somebody works: one state of it arrives, or the last one. */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/unit/seed-box.h"

/* What happens in host/ each time before it is read, and when the first bytes were written. */
static const char *before_reading, *while_reading, *after_reading;
static struct abx_box_io real;
static bool done;
static bool lent; /* another box has looked */

static int put_stream(void *ctx, const char *path, abx_stream_fn produce, void *produce_ctx,
		      struct abx_err *err)
{
	int r;

	if (before_reading)
		sh(before_reading);
	done = false;
	r = real.put_stream(ctx, path, produce, produce_ctx, err);
	if (after_reading && r < 0)
		sh(after_reading);
	return r;
}

/* On the thread that reads: only system calls that cannot fail the test from there. */
static int on_progress(void *ctx ABX_UNUSED, uint64_t written ABX_UNUSED, uint64_t total ABX_UNUSED,
		       const char *what ABX_UNUSED)
{
	struct stat st;

	if (while_reading && !done && stat(while_reading, &st) == 0 && st.st_size > 1000000)
		(void)!truncate(while_reading, 100000);
	done = true;
	return 0;
}

/* Inspect, let `then` happen, and seed; how many streams it took. */
static unsigned int seed_while(const char *then, struct abx_seed_result *ret)
{
	abx_autofree char *dir = abx_xstrdup(seed_box_dir());
	abx_autofree char *manifest = abx_xstrdup(unit_path("manifest"));
	const struct abx_seed_target target = {.dir = dir,
					       .branch = "agentbox/one",
					       .manifest = manifest,
					       .progress = on_progress};
	struct abx_seed *seed = NULL, *other = NULL;
	struct abx_box_io io;

	real = io = seed_box_io();
	io.put_stream = put_stream;
	seed_tars = 0;
	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), NULL, &seed, &unit_err));
	if (lent) {
		unit_ok(abx_seed_weigh(seed, -1, &unit_err));
		ck_assert(abx_seed_may_lend(seed));
		sh("mkdir ../spool-2");
		other = seed;
		seed = abx_seed_borrow(other, unit_path("spool-2"));
	}
	if (then)
		sh(then);
	unit_ok(abx_seed_into_io(seed, &io, &target, ret, &unit_err));
	abx_seed_free(seed);
	abx_seed_free(other);
	return seed_tars;
}

static void check(const char *then, unsigned int rounds)
{
	struct abx_seed_result got = {0};

	ck_assert_uint_eq(seed_while(then, &got), rounds);
	same_repository();
	same_work_tree(NOT_GIT);
	ck_assert_uint_eq(strlen(got.seed_tree), 40);
	abx_seed_result_release(&got);
	in_box("test ! -e .git/agentbox && git --git-dir=\"$HOME/.agentbox/seed.git\" fsck 2>&1");
}

static void setup(void)
{
	before_reading = while_reading = after_reading = NULL;
	lent = false;
	seed_setup();
}

START_TEST(tracked_file_changes)
{
	sh(REPO "echo x >c && git add c && git commit -q -m three");
	check("echo more >>a.txt && rm c", 2);
}
END_TEST

/* Neither size nor second tell. */
START_TEST(tracked_file_changes_within_its_second)
{
	sh(REPO ":");
	check("printf 'ALPHA\\n' >a.txt && touch -d \"$(date -r a.txt +@%s).5\" a.txt", 2);
}
END_TEST

START_TEST(untracked_files_change)
{
	sh(REPO "echo x >small && truncate -s 1000000 big");
	check("echo more >>small && echo more >>big", 1);
}
END_TEST

START_TEST(files_go_away)
{
	sh(REPO "echo x >small && mkdir d && echo y >d/y");
	check("rm -r small d", 2);
}
END_TEST

START_TEST(files_become_something_else)
{
	sh(REPO "echo x >small && mkdir d && echo y >d/y && ln -s a l");
	check("rm -r small d l && mkdir small && echo z >small/z && echo file >d && echo f >l", 2);
}
END_TEST

START_TEST(commit_meanwhile)
{
	sh(REPO ":");
	check("echo more >>a.txt && git commit -q -a -m meanwhile && git checkout -q -b other", 2);
}
END_TEST

/* What was looked at for another box is as good, and left to that one. */
START_TEST(borrowed)
{
	lent = true;
	sh(REPO "echo u >u && ln -s u v && git add v && echo x >>b.txt");
	check(NULL, 1);
}
END_TEST

START_TEST(borrowed_and_file_changes)
{
	lent = true;
	sh(REPO "echo x >c && git add c && git commit -q -m three");
	check("echo more >>a.txt && rm c", 2);
}
END_TEST

START_TEST(borrowed_and_commit_meanwhile)
{
	lent = true;
	sh(REPO ":");
	check("echo more >>a.txt && git commit -q -a -m meanwhile && git checkout -q -b other", 2);
}
END_TEST

START_TEST(plain_files_change)
{
	struct abx_seed_result got = {0};

	sh("echo x >a && echo y >b && truncate -s 1000000 big");
	ck_assert_uint_eq(seed_while("echo more >>a && rm b && echo more >>big", &got), 2);
	same_work_tree("-mindepth 1");
	abx_seed_result_release(&got);
}
END_TEST

/* What cannot be had in one state is what it was last, and said. */
START_TEST(clean_file_changes_all_the_time)
{
	abx_autofree char *status = NULL, *tree = NULL;
	struct abx_seed_result got = {0};

	sh(REPO "echo u >u && git update-index -q --refresh");
	/* Git finds it clean each time, and then it is another one. */
	after_reading = "git commit -q -a -m again";
	before_reading = "printf 'gamma\\n%s\\n' \"$(date +%s%N)\" >a.txt";
	ck_assert_uint_eq(seed_while(NULL, &got), 3);
	same_output("cat a.txt");
	status = in_box_out("git status --porcelain");
	ck_assert_str_eq(status, " M a.txt\n?? u\n");
	tree = abx_xasprintf("git --git-dir=\"$HOME/.agentbox/seed.git\" show %s:a.txt | "
			     "cmp - a.txt",
			     got.seed_tree);
	in_box(tree);
	abx_seed_result_release(&got);
}
END_TEST

START_TEST(big_file_shrinks)
{
	static char path[4096];

	sh(REPO "head -c 3000000 /dev/zero | tr '\\0' x >big");
	(void)snprintf(path, sizeof(path), "%s", unit_path("host/big"));
	while_reading = path;
	check(NULL, 2);
}
END_TEST

START_TEST(big_file_is_rewritten_all_the_time)
{
	struct abx_seed_result got = {0};
	static char path[4096];

	sh(REPO "echo now >big");
	before_reading = "rm -f big; head -c 3000000 /dev/zero | tr '\\0' x >big";
	(void)snprintf(path, sizeof(path), "%s", unit_path("host/big"));
	while_reading = path;
	ck_assert_uint_eq(seed_while(NULL, &got), 3);
	in_box("test \"$(wc -c <big)\" -ge 100000");
	abx_seed_result_release(&got);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {tracked_file_changes,
				      tracked_file_changes_within_its_second,
				      untracked_files_change,
				      files_go_away,
				      files_become_something_else,
				      commit_meanwhile,
				      borrowed,
				      borrowed_and_file_changes,
				      borrowed_and_commit_meanwhile,
				      plain_files_change,
				      clean_file_changes_all_the_time,
				      big_file_shrinks,
				      big_file_is_rewritten_all_the_time};
	Suite *s = suite_create("seed-moving");
	TCase *tc = tcase_create("moving");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, unit_dir_teardown);
	for (size_t i = 0; i < ABX_N_ELEMENTS(tests); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
