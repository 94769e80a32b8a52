/* SPDX-License-Identifier: MIT */
/* Seeding: every state that a repository can be in arrives whole. */
#include "tests/unit/seed-box.h"

#define COMMIT(text) "git add . && git commit -q -m " text " && "
#define OTHER(name)                                                                        \
	"git init -q ../" name " && (cd ../" name " && echo " name " >f && mkdir -p d && " \
	"echo deep >d/f && git add . && git commit -q -m one && echo two >>f && "          \
	"git commit -q -am two) && "

static void seed_unborn(const char *script, const char *branch)
{
	struct abx_seed_result got = {0};
	abx_autofree char *head = NULL, *expected = abx_xasprintf("refs/heads/%s\n", branch);

	sh(script);
	seed_untouched(&got);
	ck_assert_ptr_null(got.base_commit);
	ck_assert_str_eq(got.branch, branch);
	head = in_box_out("git symbolic-ref HEAD");
	ck_assert_str_eq(head, expected);
	same_output("git status --porcelain=v2 -z | tr '\\0' '\\n'; git ls-files -s");
	same_work_tree(NOT_GIT);
	abx_seed_result_release(&got);
	in_box("git add -A && git commit -q --allow-empty -m first && git fsck --strict 2>&1");
}

/* B003 */
START_TEST(unborn)
{
	seed_unborn("git init -q -b trunk . && echo a >a && echo b >b && git add b", "trunk");
}
END_TEST

START_TEST(unborn_and_empty)
{
	seed_unborn("git init -q .", "main");
}
END_TEST

START_TEST(orphan_branch)
{
	seed_unborn(REPO "git checkout -q --orphan new/line && git rm -q --cached b.txt",
		    "new/line");
}
END_TEST

/* B001 */
START_TEST(shallow)
{
	seed_repo(OTHER("o") "git clone -q --depth 1 \"file://$PWD/../o\" . && echo more >>f");
	same_work_tree(NOT_GIT);
	same_output("git rev-parse --is-shallow-repository; git rev-list --count HEAD");
}
END_TEST

START_TEST(shallow_with_more_on_top)
{
	seed_repo(OTHER("o") "git clone -q --depth 1 \"file://$PWD/../o\" . && "
			     "for i in 1 2 3; do echo $i >>f; git commit -q -am $i; done && "
			     "git fetch -q --depth 1 origin main && git gc -q");
	same_output("git rev-parse --is-shallow-repository; git rev-list --count HEAD");
}
END_TEST

/* B004 */
START_TEST(linked_work_tree)
{
	abx_autofree char *list = NULL, *after = NULL;

	list = sh_out(
		"git init -q ../real && cd ../real && echo a >a && git add . && "
		"git commit -q -m one && rmdir ../host && git worktree add -q -b w ../host && "
		"cd ../host && echo b >b && git add b && git worktree list");
	seed_repo("echo dirty >>a");
	same_work_tree("-path ./.git -prune -o -mindepth 1");
	in_box("test -d .git && test \"$(git worktree list | wc -l)\" = 1");
	after = sh_out("git worktree list");
	ck_assert_str_eq(list, after);
}
END_TEST

START_TEST(linked_work_tree_of_a_bare_repository)
{
	seed_repo(
		OTHER("o") "git clone -q --bare ../o ../bare.git && rmdir ../host && "
			   "git -C ../bare.git config extensions.worktreeConfig true && "
			   "git -C ../bare.git config --worktree core.bare true && "
			   "git -C ../bare.git config --unset core.bare && "
			   "git -C ../bare.git worktree add -q -b w ../host main && cd ../host && "
			   "echo x >x && git config --worktree x.y z");
	same_work_tree(NOT_GIT);
}
END_TEST

START_TEST(git_is_a_link)
{
	seed_repo(REPO "mv .git ../moved && ln -s ../moved .git && echo x >>a.txt");
	in_box("test -d .git && ! test -L .git");
}
END_TEST

/* One that leads to where it is set is no other. */
START_TEST(core_worktree)
{
	seed_repo(REPO "git config core.worktree .. && echo x >>a.txt");
	in_box("test -z \"$(git config core.worktree)\"");
}
END_TEST

START_TEST(core_worktree_absolute)
{
	seed_repo(REPO "git config core.worktree \"$PWD\" && echo x >>a.txt");
}
END_TEST

/* B007 */
START_TEST(submodules)
{
	seed_repo(OTHER("inner") OTHER(
		"sub") "(cd ../sub && git submodule --quiet add "
		       "../inner deep/inner && git commit -q -m inner) && " REPO
		       "git submodule --quiet add ../sub 'mod s' && "
		       "git submodule --quiet update --init --recursive && git commit -q -m sub && "
		       "(cd 'mod s' && echo local >local && git add . && git commit -q -m unpushed "
		       "&& "
		       "echo dirty >>f && echo u >untracked && cd deep/inner && echo dirty >>f)");
	same_work_tree("-name .git -prune -o ! -type d");
	same_output("git submodule status --recursive | sed 's/ (.*//'");
	same_output("cd 'mod s' && git log --format=%H && git status --porcelain=v2 && "
		    "cd deep/inner && git status --porcelain=v2");
	in_box("git -C 'mod s' fsck --strict 2>&1 && git -C 'mod s/deep/inner' fsck 2>&1 && "
	       "git -C 'mod s' commit -q -am more");
}
END_TEST

/* B008 */
START_TEST(submodules_that_are_not_there)
{
	struct abx_seed *seed = NULL;

	seed_repo(OTHER("sub") REPO
		  "git submodule --quiet add ../sub one && git submodule --quiet add ../sub two && "
		  "git config -f .gitmodules submodule.one.url git@127.0.0.1:none.git && "
		  "git add . && git commit -q -m subs && git submodule --quiet deinit --all -f && "
		  "rm -rf .git/modules ../sub");
	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), NULL, &seed, &unit_err));
	ck_assert_uint_eq(abx_seed_info(seed)->notes->len, 2);
	unit_has(abx_seed_info(seed)->notes->items[0], "submodule 'one' is not checked out");
	abx_seed_free(seed);
	in_box("test -d one && test -d two && test -z \"$(ls one two | grep f)\"");
}
END_TEST

START_TEST(nested_repositories)
{
	seed_repo(REPO "git init -q nested && (cd nested && echo n >n && git add . && "
		       "git commit -q -m n && echo dirty >>n && git init -q -b x unborn && "
		       "echo u >unborn/u) && "
		       "mkdir -p deep/er && git clone -q nested deep/er/clone");
	same_work_tree("-name .git -prune -o ! -type d");
	same_output("cd nested && git rev-parse HEAD && git status --porcelain=v2");
	same_output("cd nested/unborn && git symbolic-ref HEAD && git status --porcelain=v2");
	same_output("cd deep/er/clone && git rev-parse HEAD && git status --porcelain=v2");
}
END_TEST

START_TEST(folder_of_repositories)
{
	struct abx_seed_result got = {0};

	sh(OTHER("o") "git clone -q ../o one && git clone -q ../o two && echo x >>two/f && "
		      "echo readme >README && mkdir -p empty/dir");
	seed_untouched(&got);
	ck_assert_ptr_null(got.branch);
	ck_assert_uint_eq(strlen(got.seed_tree), 40);
	abx_seed_result_release(&got);
	same_work_tree("-name .git -prune -o ! -type d");
	same_output("for r in one two; do git -C $r status --porcelain=v2 --branch | "
		    "grep -v upstream | grep -v '[.]ab'; done");
}
END_TEST

/* B010, B011 */
START_TEST(git_lfs)
{
	struct abx_seed_result got = {0};
	abx_autofree char *path = abx_xstrdup(getenv("PATH"));

	sh(REPO
	   "git lfs install --local >/dev/null && git lfs track '*.bin' >/dev/null && "
	   "head -c 300000 /dev/urandom >one.bin && echo small >two.bin && : >empty.bin && "
	   "head -c 3000 /dev/urandom >three.bin && " COMMIT(
		   "lfs") "test -d .git/lfs/objects && head -c 5000 /dev/urandom >three.bin && "
			  "touch -d 2020-01-01 one.bin");
	/* Neither the box nor its git has ever heard of Git LFS. */
	sh("mkdir ../bin && for p in /bin/* /usr/bin/*; do case $p in */git-lfs) ;; "
	   "*) ln -sf $p ../bin/ ;; esac; done");
	seed_faults.path = abx_xstrdup(unit_path("bin"));
	seed_untouched(&got);
	abx_seed_result_release(&got);
	(void)setenv("PATH", seed_faults.path, 1);
	same_work_tree(NOT_GIT);
	in_box("test \"$(git status --porcelain)\" = ' M three.bin' && "
	       "git add -A && git commit -q -m more && git cat-file -p HEAD:three.bin | "
	       "grep -q ^oid && test -z \"$(git status --porcelain)\" && cp three.bin ../was && "
	       "echo scratch >three.bin && git checkout -q -- three.bin && cmp three.bin ../was");
	(void)setenv("PATH", path, 1);
}
END_TEST

/* B012 */
START_TEST(git_lfs_skipped)
{
	struct abx_seed_result got = {0};
	struct abx_seed *seed = NULL;

	seed_how.skip_lfs = true;
	sh(REPO "git lfs install --local >/dev/null && git lfs track '*.bin' >/dev/null && "
		"mkdir sub && head -c 3000000 /dev/urandom >sub/big.bin && "
		"head -c 3000 /dev/urandom >mine.bin && " COMMIT(
			"lfs") "head -c 5000 /dev/urandom >mine.bin");
	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), &seed_how, &seed,
				 &unit_err));
	ck_assert_uint_lt(abx_seed_info(seed)->bytes, 100000);
	abx_seed_free(seed);
	seed_all(&got);
	abx_seed_result_release(&got);
	same_output("git status --porcelain=v2; sha256sum mine.bin");
	in_box("head -n 1 sub/big.bin | grep -q '^version https://git-lfs'");
}
END_TEST

/* B011 */
START_TEST(filters_that_the_box_has_not)
{
	struct abx_seed_result got = {0};

	sh(REPO "git config filter.up.clean 'tr a-z A-Z' && "
		"git config filter.up.smudge 'tr A-Z a-z' && "
		"git config filter.up.required true && "
		"echo '*.up filter=up' >.gitattributes && echo some words >b.up && "
		"echo more words >c.up && " COMMIT("up") "echo dirty words >c.up");
	seed_untouched(&got);
	abx_seed_result_release(&got);
	same_work_tree(NOT_GIT);
	same_output("git status --porcelain; git rev-parse HEAD");
	in_box("echo x >>b.up && test \"$(git status --porcelain b.up)\" = ' M b.up'");
}
END_TEST

START_TEST(line_ends_and_encodings)
{
	seed_repo(REPO
		  "git config core.autocrlf true && printf 'a\\r\\nb\\r\\n' >crlf && "
		  "echo '*.u working-tree-encoding=UTF-16LE' >.gitattributes && "
		  "echo '*.id ident' >>.gitattributes && echo '$Id$' >v.id && "
		  "printf 'a\\0\\n\\0' >x.u && git add . 2>/dev/null && git commit -q -m crlf && "
		  "rm v.id && git checkout v.id 2>/dev/null && printf 'c\\r\\n' >>crlf");
	same_work_tree(NOT_GIT);
}
END_TEST

START_TEST(attributes_of_the_user)
{
	seed_repo(REPO "mkdir -p ~/.config/git && echo '*.txt text eol=crlf' "
		       ">~/.config/git/attributes && rm a.txt && git checkout a.txt 2>/dev/null && "
		       "git status >/dev/null");
	same_work_tree(NOT_GIT);
}
END_TEST

START_TEST(sparse_checkout)
{
	seed_repo(REPO "mkdir -p d/e f && echo d >d/e/f && echo f >f/f && " COMMIT(
		"dirs") "git sparse-checkout set f && echo x >>f/f");
	same_work_tree(NOT_GIT);
	in_box("test ! -e d && git sparse-checkout add d && test -f d/e/f");
}
END_TEST

/* Git gives the trees of the directories that are not there a new time when it is asked for
 * the status; nothing else changes. */
START_TEST(sparse_index)
{
	struct abx_seed_result got = {0};
	abx_autofree char *before = NULL, *after = NULL;

	sh(REPO "mkdir -p d/e f && echo d >d/e/f && echo f >f/f && " COMMIT(
		"dirs") "git sparse-checkout set --cone --sparse-index f && echo x >>f/f");
	before = tree_of(unit_path("host"), "", "%i");
	seed_all(&got);
	after = tree_of(unit_path("host"), "", "%i");
	ck_assert_str_eq(before, after);
	abx_seed_result_release(&got);
	same_repository();
	same_work_tree(NOT_GIT);
}
END_TEST

START_TEST(sparse_checkout_by_patterns)
{
	seed_repo(REPO "mkdir d && echo d >d/d && " COMMIT(
		"d") "git sparse-checkout set --no-cone '/*' '!d' 2>/dev/null");
	in_box("test ! -e d");
}
END_TEST

START_TEST(skip_worktree)
{
	seed_repo(REPO "git update-index --skip-worktree a.txt && echo mine >a.txt");
	same_work_tree(NOT_GIT);
}
END_TEST

/* Git gives the shared half a new time whenever it reads it. */
START_TEST(split_index)
{
	struct abx_seed_result got = {0};
	abx_autofree char *before = NULL, *after = NULL;

	sh(REPO "git update-index --split-index && echo x >x && git add x && echo y >>a.txt");
	before = tree_of(unit_path("host"), "", "%i");
	seed_all(&got);
	after = tree_of(unit_path("host"), "", "%i");
	ck_assert_str_eq(before, after);
	abx_seed_result_release(&got);
	same_repository();
	same_work_tree(NOT_GIT);
	in_box("test -z \"$(ls .git | grep sharedindex)\"");
}
END_TEST

START_TEST(partial_clone)
{
	struct abx_seed_result got = {0};

	sh(OTHER("o") "(cd ../o && git config uploadpack.allowFilter true) && "
		      "git clone -q --filter=blob:none \"file://$PWD/../o\" . && rm -rf ../o && "
		      "echo x >>f && echo y >new && git add new");
	seed_untouched(&got);
	abx_seed_result_release(&got);
	same_work_tree(NOT_GIT);
	same_output("git rev-parse HEAD && git status --porcelain=v2 && git log --format=%H");
	in_box("git fsck 2>&1 && git commit -q -am more");
}
END_TEST

#define TWO_SIDES                                                                   \
	REPO "git checkout -q -b other && echo b >a.txt && git commit -q -am b && " \
	     "git checkout -q main && echo c >a.txt && git commit -q -am c && "

static const struct under_way {
	const char *begin, *finish;
} under_way[] = {
	{TWO_SIDES "! git merge -q other >/dev/null",
	 "echo m >a.txt && git add a.txt && git commit -q --no-edit && "
	 "test $(git log -1 --format=%P | wc -w) = 2"},
	{REPO "git checkout -q -b other && echo b >b && git add b && git commit -q -m b && "
	      "git checkout -q main && git merge -q --no-ff --no-commit other >/dev/null",
	 "git commit -q --no-edit && test $(git log -1 --format=%P | wc -w) = 2"},
	{TWO_SIDES "git checkout -q -b topic && echo t >t && git add t && git commit -q -m t && "
		   "! git rebase -q other >/dev/null 2>&1",
	 "echo m >a.txt && git add a.txt && GIT_EDITOR=true git rebase --continue >/dev/null && "
	 "test $(git symbolic-ref HEAD) = refs/heads/topic && test -f t"},
	{TWO_SIDES "! git cherry-pick other >/dev/null 2>&1",
	 "echo m >a.txt && git add a.txt && GIT_EDITOR=true git cherry-pick --continue >/dev/null"},
	{REPO "echo b >a.txt && git commit -q -am b && git revert -n HEAD",
	 "git commit -q --no-edit"},
	{REPO "echo b >a.txt && git stash -q && echo c >a.txt && git commit -q -am c && "
	      "! git stash pop >/dev/null 2>&1",
	 "echo m >a.txt && git add a.txt && git commit -q -m m"},
	{REPO "for i in 1 2 3 4 5; do echo $i >n; git add n; git commit -q -m $i; done && "
	      "git bisect start -q HEAD HEAD~4 >/dev/null",
	 "git bisect good >/dev/null && git bisect reset 2>/dev/null || true"},
};

START_TEST(operation_under_way)
{
	abx_autofree char *script = abx_xasprintf("cd . && %s", under_way[_i].begin);
	struct abx_seed_result got = {0};

	sh(script);
	seed_untouched(&got);
	abx_seed_result_release(&got);
	same_output("git status --porcelain=v2 -z | tr '\\0' '\\n'; git ls-files -s; "
		    "git rev-parse HEAD");
	same_output("LC_ALL=C git status | grep -v -e '^On branch' -e agentbox/one -e "
		    "'^You are currently bisecting'");
	same_work_tree(NOT_GIT);
	in_box("git fsck --full --strict 2>&1");
	in_box(under_way[_i].finish);
}
END_TEST

START_TEST(replaced_objects)
{
	seed_repo(REPO "git commit -q --allow-empty -m b && git replace HEAD HEAD~1 && "
		       "git pack-refs --all --prune");
	same_output("git replace -l; git cat-file -p HEAD; "
		    "GIT_NO_REPLACE_OBJECTS=1 git cat-file -p HEAD");
}
END_TEST

/* What comes back is the files of all of them. */
START_TEST(changes_in_nested_repositories)
{
	struct abx_seed_result got = {0};
	abx_autofree char *script = NULL, *text = NULL;

	sh(OTHER("sub") REPO "git submodule --quiet add ../sub sub && git commit -q -m sub && "
			     "git init -q nested && echo n >nested/n");
	seed_untouched(&got);
	script = abx_xasprintf("git --git-dir=$HOME/.agentbox/seed.git ls-tree -r --name-only %s",
			       got.seed_tree);
	text = in_box_out(script);
	ck_assert_str_eq(text, ".gitmodules\na.txt\nb.txt\ndangling\nlink\nnested/n\nsrc/run\n"
			       "sub/d/f\nsub/f\n");
	abx_seed_result_release(&got);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const states[] = {unborn,
				       unborn_and_empty,
				       orphan_branch,
				       shallow,
				       shallow_with_more_on_top,
				       linked_work_tree,
				       linked_work_tree_of_a_bare_repository,
				       git_is_a_link,
				       core_worktree,
				       core_worktree_absolute,
				       submodules,
				       submodules_that_are_not_there,
				       nested_repositories,
				       folder_of_repositories,
				       git_lfs,
				       git_lfs_skipped,
				       filters_that_the_box_has_not,
				       line_ends_and_encodings,
				       attributes_of_the_user,
				       sparse_checkout,
				       sparse_index,
				       sparse_checkout_by_patterns,
				       skip_worktree,
				       partial_clone,
				       split_index,
				       replaced_objects,
				       changes_in_nested_repositories};
	Suite *s = suite_create("seed-states");
	TCase *tc = tcase_create("under-way");

	seed_add_tests(s, "states", states, ABX_N_ELEMENTS(states), unit_dir_teardown);
	tcase_add_checked_fixture(tc, seed_setup, unit_dir_teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, operation_under_way, 0, (int)ABX_N_ELEMENTS(under_way));
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
