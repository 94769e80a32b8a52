/* SPDX-License-Identifier: MIT */
/* Seeding: which state of a repository goes into the box, and how much of its history. */
#include "tests/unit/seed-box.h"

#define LINE(n) \
	"for i in $(seq " #n "); do echo $i >f && git add f && git commit -q -m $i; done && "
#define COUNT "git rev-list --count HEAD; git rev-parse --is-shallow-repository"

/* Seed what a script makes; the box is whole, its state and work tree are the host's. */
static void seed_cut(const char *script, int64_t depth)
{
	struct abx_seed_result got = {0};

	sh(script);
	seed_how.depth = depth;
	seed_untouched(&got);
	abx_seed_result_release(&got);
	same_work_tree("-name .git -prune -o ! -type d");
	same_output("git status --porcelain=v2 -z | tr '\\0' '\\n'");
	same_output("git rev-parse HEAD 'HEAD^{tree}'");
	in_box("git fsck --full --strict 2>&1");
}

static void box_says(const char *script, const char *expected)
{
	abx_autofree char *out = in_box_out(script);

	ck_assert_msg(strcmp(out, expected) == 0, "%s\nin the box: %s\nnot: %s", script, out,
		      expected);
}

START_TEST(depth_of_a_line)
{
	seed_cut("git init -q . && " LINE(9) "echo dirty >>f && echo u >u", 4);
	box_says(COUNT, "4\ntrue\n");
	in_box("git clone -q --no-local . ../again && git -C ../again fsck --strict 2>&1");
}
END_TEST

START_TEST(depth_of_one)
{
	seed_cut("git init -q . && " LINE(3) "true", 1);
	box_says(COUNT, "1\ntrue\n");
}
END_TEST

START_TEST(depth_of_all_there_is)
{
	seed_cut("git init -q . && " LINE(5) "true", 5);
	box_says(COUNT, "5\nfalse\n");
}
END_TEST

START_TEST(depth_beyond_the_history)
{
	seed_cut("git init -q . && " LINE(3) "true", 100);
	box_says(COUNT, "3\nfalse\n");
}
END_TEST

START_TEST(depth_before_the_first_commit)
{
	struct abx_seed_result got = {0};

	sh("git init -q . && echo a >a");
	seed_how.depth = 1;
	seed_untouched(&got);
	abx_seed_result_release(&got);
	box_says("cat a; git status --porcelain", "a\n?? a\n");
}
END_TEST

/* Both sides of each merge are there as far as they go. */
START_TEST(depth_of_merges)
{
	seed_cut("git init -q . && " LINE(
			 5) "git checkout -q -b side HEAD~3 && "
			    "echo s >s && git add s && git commit -q -m side && git checkout -q "
			    "main && "
			    "git merge -q --no-edit side && echo more >f && git commit -q -am more",
		 3);
	box_says("git rev-parse --is-shallow-repository; git log -1 --format=%p HEAD~1 | wc -w; "
		 "git cat-file -e HEAD~1^1 && git cat-file -e HEAD~1^2 && echo both",
		 "true\n2\nboth\n");
}
END_TEST

START_TEST(depth_of_a_merge_alone)
{
	seed_cut("git init -q . && " LINE(2) "git checkout -q -b side HEAD~1 && "
					     "echo s >s && git add s && git commit -q -m side && "
					     "git checkout -q main && "
					     "git merge -q --no-edit side",
		 1);
	box_says(COUNT, "1\ntrue\n");
}
END_TEST

START_TEST(depth_of_a_shallow_repository)
{
	static const char make[] = "git init -q ../o && (cd ../o && " LINE(
		9) "true) && "
		   "git clone -q --depth 5 \"file://$PWD/../o\" .";

	seed_cut(make, 3);
	box_says(COUNT "; wc -l <.git/shallow", "3\ntrue\n1\n");
}
END_TEST

START_TEST(depth_beyond_a_shallow_repository)
{
	seed_cut("git init -q ../o && (cd ../o && " LINE(
			 9) "true) && "
			    "git clone -q --depth 5 \"file://$PWD/../o\" .",
		 6);
	box_says(COUNT, "5\ntrue\n");
}
END_TEST

/* What is to be merged is cut as well. */
START_TEST(depth_while_merging)
{
	seed_cut("git init -q . && " LINE(6) "git checkout -q -b side HEAD~5 && " LINE(
			 11 14) "git checkout -q main && ! git merge -q side",
		 3);
	box_says("git rev-parse --is-shallow-repository; git cat-file -e MERGE_HEAD && "
		 "git add f && git commit -q -m merged && git fsck 2>&1",
		 "true\n");
}
END_TEST

START_TEST(depth_of_submodules)
{
	seed_cut("git init -q ../o && (cd ../o && " LINE(5) "true) && git init -q . && " LINE(
			 5) "git submodule --quiet add ../o sub && git commit -q -m sub",
		 2);
	box_says(COUNT "; cd sub && " COUNT, "2\ntrue\n2\ntrue\n");
}
END_TEST

START_TEST(how_much_is_said)
{
	struct abx_seed *seed = NULL;

	sh("git init -q . && " LINE(5) "true");
	seed_how.depth = 2;
	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), &seed_how, &seed,
				 &unit_err));
	ck_assert_uint_eq(abx_seed_info(seed)->commits, 2);
	abx_seed_free(seed);
	seed_how.depth = -1;
	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), &seed_how, &seed,
				 &unit_err));
	ck_assert_uint_eq(abx_seed_info(seed)->commits, 0);
	abx_seed_free(seed);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const depth[] = {depth_of_a_line,
				      depth_of_one,
				      depth_of_all_there_is,
				      depth_beyond_the_history,
				      depth_before_the_first_commit,
				      depth_of_merges,
				      depth_of_a_merge_alone,
				      depth_of_a_shallow_repository,
				      depth_beyond_a_shallow_repository,
				      depth_while_merging,
				      depth_of_submodules,
				      how_much_is_said};
	Suite *s = suite_create("seed-which");

	seed_add_tests(s, "depth", depth, ABX_N_ELEMENTS(depth), unit_dir_teardown);
	return s;
}

UNIT_MAIN(suite)
