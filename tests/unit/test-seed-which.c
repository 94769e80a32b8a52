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

/* ---- committed states ---- */

/* What `git checkout` of `commit` makes, in ../want. */
static void want_clone(const char *commit)
{
	abx_autofree char *script = abx_xasprintf(
		"rm -rf ../want && git clone -q --no-checkout . ../want && cd ../want && "
		"git checkout -q \"$(git -C ../host rev-parse '%s^{commit}')\"",
		commit);

	sh(script);
}

/* Seed a committed state of what a script makes; the box has what a checkout would have. */
static void seed_clean(const char *script, const char *commit, const char *on)
{
	struct abx_seed_result got = {0};
	abx_autofree char *want = NULL, *box = NULL, *head = NULL, *id = NULL, *rev = NULL;

	if (script)
		sh(script);
	seed_untouched(&got);
	want_clone(commit);
	want = tree_of(unit_path("want"), NOT_GIT, "");
	box = tree_of(seed_box_dir(), NOT_GIT, "");
	ck_assert_str_eq(want, box);
	rev = abx_xasprintf("printf %%s \"$(git rev-parse '%s^{commit}')\"", commit);
	id = sh_out(rev);
	ck_assert_str_eq(got.base_commit, id);
	ck_assert_str_eq(got.branch, on);
	head = in_box_out("printf %s \"$(git rev-parse HEAD)\"");
	ck_assert_str_eq(head, id);
	box_says("git status --porcelain", "");
	in_box("git fsck --full --strict 2>&1 && git commit -q --allow-empty -m more && "
	       "git reset -q --soft HEAD~1");
	abx_seed_result_release(&got);
}

#define DIRTY                                                                                     \
	"echo staged >>a.txt && git add a.txt && echo changed >>b.txt && echo new >untracked && " \
	"rm link && echo secret >s && git add s"

START_TEST(no_dirty)
{
	sh(REPO DIRTY);
	seed_how.no_dirty = true;
	seed_clean(NULL, "HEAD", "agentbox/one");
	box_says("git cat-file -e $(echo secret | git hash-object --stdin) 2>/dev/null || "
		 "echo nothing staged; git branch --format='%(refname:short)'",
		 "nothing staged\nagentbox/one\nmain\n");
}
END_TEST

START_TEST(no_dirty_while_merging)
{
	seed_how.no_dirty = true;
	seed_clean(REPO "git checkout -q -b x HEAD~1 && echo x >a.txt && git commit -q -a -m x && "
			"git checkout -q main && echo y >a.txt && git commit -q -a -m y && "
			"! git merge -q x",
		   "HEAD", "agentbox/one");
	box_says("ls .git/MERGE_HEAD 2>/dev/null || echo none", "none\n");
}
END_TEST

START_TEST(no_dirty_detached)
{
	seed_how.no_dirty = true;
	seed_clean(REPO "git checkout -q --detach HEAD~1 && echo x >x", "HEAD", "agentbox/one");
}
END_TEST

START_TEST(no_dirty_before_the_first_commit)
{
	struct abx_seed_result got = {0};

	sh("git init -q . && echo a >a && git add a && echo b >b");
	seed_how.no_dirty = true;
	seed_untouched(&got);
	abx_seed_result_release(&got);
	box_says("git status --porcelain; git symbolic-ref HEAD; ls", "refs/heads/main\n");
}
END_TEST

/* B014 */
START_TEST(from_a_branch)
{
	seed_how.from_branch = "feat";
	seed_clean(REPO "git checkout -q -b feat && echo f >f && git rm -q a.txt && git add f && "
			"git commit -q -m feat && git checkout -q main && " DIRTY,
		   "feat", "agentbox/one");
	box_says("git branch --format='%(refname:short)'", "agentbox/one\nfeat\n");
}
END_TEST

START_TEST(from_a_tag)
{
	seed_how.from_branch = "v1";
	seed_clean(REPO "git tag -m one v1 HEAD~1 && " DIRTY, "v1", "agentbox/one");
}
END_TEST

START_TEST(from_a_commit)
{
	seed_how.from_branch = "HEAD~1";
	seed_clean(REPO DIRTY, "HEAD~1", "agentbox/one");
}
END_TEST

START_TEST(from_a_branch_cut)
{
	seed_how.from_branch = "feat";
	seed_how.depth = 2;
	seed_clean("git init -q . && " LINE(6) "git checkout -q -b feat HEAD~1 && "
					       "git checkout -q main",
		   "feat", "agentbox/one");
	box_says(COUNT, "2\ntrue\n");
}
END_TEST

START_TEST(from_nothing)
{
	sh(REPO "true");
	seed_how.from_branch = "--all";
	ck_assert_int_eq(seed_refused(), ABX_EINVAL);
	seed_how.from_branch = "nope";
	ck_assert_int_eq(seed_refused(), ABX_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_err.text, "'nope': there is none"));
	seed_how.from_branch = NULL;
	seed_how.use_branch = "nope";
	ck_assert_int_eq(seed_refused(), ABX_EINVAL);
	/* A commit is no branch to go on with. */
	seed_how.use_branch = "HEAD";
	ck_assert_int_eq(seed_refused(), ABX_EINVAL);
	sh("rm -rf .git");
	ck_assert_int_eq(seed_refused(), ABX_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_err.text, "not a repository"));
}
END_TEST

START_TEST(use_another_branch)
{
	seed_how.use_branch = seed_branch = "feat";
	seed_clean(REPO "git checkout -q -b feat && echo f >f && git add f && "
			"git commit -q -m feat && git checkout -q main && " DIRTY,
		   "feat", "feat");
	box_says("git branch --format='%(refname:short)'", "feat\n");
}
END_TEST

START_TEST(use_the_branch_here)
{
	struct abx_seed_result got = {0};

	sh(REPO DIRTY);
	seed_how.use_branch = seed_branch = "main";
	seed_untouched(&got);
	ck_assert_str_eq(got.branch, "main");
	abx_seed_result_release(&got);
	same_repository();
	same_work_tree(NOT_GIT);
	same_output("git symbolic-ref HEAD");
}
END_TEST

START_TEST(names_that_are_in_each_other)
{
	struct abx_seed_result got = {0};

	/* B019 */
	sh(REPO "git branch -m agentbox");
	seed_how.no_dirty = true;
	seed_untouched(&got);
	ck_assert_str_eq(got.branch, "agentbox/one");
	abx_seed_result_release(&got);
	box_says("git branch --format='%(refname:short)'", "agentbox/one\n");
}
END_TEST

START_TEST(modes_links_and_line_ends)
{
	seed_how.no_dirty = true;
	seed_clean(
		"git init -q . && git config core.autocrlf false && "
		"printf '*.crlf text eol=crlf\n*.id ident\n*.u working-tree-encoding=UTF-16\n' "
		">.gitattributes && printf 'a\\r\\nb\\r\\n' >x.crlf && echo '$Id$' >x.id && "
		"printf 'a\\n' | iconv -f UTF-8 -t UTF-16 >x.u && mkdir 'd e' && "
		"echo x >'d e/new\nline' && printf x >\"$(printf 'bad\\377')\" && ln -s 'd e' l && "
		"git add . && git commit -q -m one && echo x >>x.crlf",
		"HEAD", "agentbox/one");
}
END_TEST

/* B011: no git-lfs; B010: contents where this machine has them. */
START_TEST(lfs_of_a_commit)
{
	struct abx_seed_result got = {0};

	sh("git init -q . && echo '*.bin filter=lfs -text' >.gitattributes && "
	   "for f in here gone; do printf '%s content' $f >c; o=$(sha256sum <c | cut -c1-64); "
	   "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' "
	   "$o $(wc -c <c) >$f.bin; if [ $f = here ]; then d=.git/lfs/objects/$(echo $o | "
	   "cut -c1-2)/$(echo $o | cut -c3-4); mkdir -p $d; mv c $d/$o; else rm c; fi; done; "
	   "git add . && git commit -q -m lfs");
	seed_how.no_dirty = true;
	seed_untouched(&got);
	abx_seed_result_release(&got);
	box_says("cat here.bin; echo; head -n 1 gone.bin; git status --porcelain",
		 "here content\nversion https://git-lfs.github.com/spec/v1\n");
}
END_TEST

#define SUBS                                                                                   \
	"git init -q ../in && (cd ../in && echo i >i && git add . && git commit -q -m i) && "  \
	"git init -q ../sub && (cd ../sub && echo 1 >f && git add . && git commit -q -m 1 && " \
	"git submodule --quiet add ../in deep && git commit -q -m in) && " REPO                \
	"git submodule --quiet add ../sub 'm s' && "                                           \
	"git submodule --quiet update --init --recursive && git commit -q -m sub && "

static void same_submodules(void)
{
	same_output("git rev-parse HEAD 'HEAD:m s'");
	box_says("cat 'm s/f' 'm s/deep/i'; git status --porcelain --ignored; "
		 "git submodule status --recursive | cut -c1; "
		 "git -C 'm s' fsck --strict 2>&1; git -C 'm s/deep' fsck --strict 2>&1",
		 "1\ni\n \n \n");
}

/* Not as they are, but as the commit has them. */
START_TEST(submodules_of_a_commit)
{
	struct abx_seed_result got = {0};

	sh(SUBS
	   "cd 'm s' && echo dirty >>f && echo u >u && git commit -q -a -m later && cd deep && "
	   "echo dirty >>i");
	seed_how.no_dirty = true;
	seed_untouched(&got);
	abx_seed_result_release(&got);
	same_submodules();
}
END_TEST

START_TEST(submodules_that_are_not_checked_out)
{
	struct abx_seed_result got = {0};

	sh(SUBS "git submodule --quiet deinit -f --all");
	seed_how.no_dirty = true;
	seed_untouched(&got);
	abx_seed_result_release(&got);
	same_output("git rev-parse 'HEAD:m s'");
	box_says("cat 'm s/f'; git status --porcelain", "1\n");
}
END_TEST

START_TEST(submodules_that_are_nowhere)
{
	struct abx_seed_result got = {0};
	struct abx_seed *seed = NULL;

	sh(SUBS "git submodule --quiet deinit -f --all && rm -rf .git/modules");
	seed_how.no_dirty = true;
	seed_untouched(&got);
	abx_seed_result_release(&got);
	box_says("ls -A 'm s'; git status --porcelain", "");
	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), &seed_how, &seed,
				 &unit_err));
	ck_assert_uint_eq(abx_seed_info(seed)->notes->len, 1);
	ck_assert_ptr_nonnull(strstr(abx_seed_info(seed)->notes->items[0], "'m s'"));
	abx_seed_free(seed);
}
END_TEST

START_TEST(sparse_commit)
{
	struct abx_seed_result got = {0};

	sh("git init -q . && mkdir in out && echo i >in/i && echo o >out/o && echo t >t && "
	   "git add . && git commit -q -m one && git sparse-checkout set in && echo x >>in/i");
	seed_how.no_dirty = true;
	seed_untouched(&got);
	abx_seed_result_release(&got);
	box_says("ls; cat in/i; git status --porcelain", "in\nt\ni\n");
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
	const TTest *const clean[] = {no_dirty,
				      no_dirty_while_merging,
				      no_dirty_detached,
				      no_dirty_before_the_first_commit,
				      from_a_branch,
				      from_a_tag,
				      from_a_commit,
				      from_a_branch_cut,
				      from_nothing,
				      use_another_branch,
				      use_the_branch_here,
				      names_that_are_in_each_other,
				      modes_links_and_line_ends,
				      lfs_of_a_commit,
				      submodules_of_a_commit,
				      submodules_that_are_not_checked_out,
				      submodules_that_are_nowhere,
				      sparse_commit};
	Suite *s = suite_create("seed-which");

	seed_add_tests(s, "clean", clean, ABX_N_ELEMENTS(clean), unit_dir_teardown);
	seed_add_tests(s, "depth", depth, ABX_N_ELEMENTS(depth), unit_dir_teardown);
	return s;
}

UNIT_MAIN(suite)
