/* SPDX-License-Identifier: MIT */
/* Seeding: what the host has is what the box has, and the host is not touched. */
#include "tests/unit/seed-box.h"

#include "core/seed/manifest.h"

START_TEST(clean_repository)
{
	abx_autofree char *branch = NULL, *name = NULL;

	seed_repo(REPO "true");
	same_work_tree(NOT_GIT);
	branch = in_box_out("git symbolic-ref HEAD; git rev-parse main");
	unit_has(branch, "refs/heads/agentbox/one\n");
	name = in_box_out("git config user.name; git config user.email");
	ck_assert_str_eq(name, "Ada \"the\" Example\nada@example.org\n");
}
END_TEST

/* Staged, unstaged, both; deleted either way; added, renamed; modes; untracked and ignored. */
START_TEST(dirty_repository)
{
	seed_repo(REPO
		  "printf '*.o\\n' >.gitignore && for f in c d e f g h i; do echo $f >$f; done && "
		  "git add . && git commit -q -m three && "
		  "echo staged >c && git add c && echo unstaged >d && "
		  "echo staged >e && git add e && echo both >>e && rm f && git rm -q g && "
		  "git mv h renamed && chmod 755 i && mkdir new && echo n >new/n && echo o >x.o && "
		  "echo new >added && git add added && rm src/run && mkdir src/run && "
		  "echo inner >src/run/inner && rm link && echo file >link");
	same_work_tree("-path ./.git -prune -o -name '*.o' -o ! -type d");
	in_box("test ! -e x.o && test -f src/run/inner");
}
END_TEST

/* A staged state that no commit has, with an entry that is only intended to be added, and one
 * that git is told not to look at. */
START_TEST(index_flags)
{
	seed_repo(REPO "echo later >later && git add -N later && git update-index "
		       "--assume-unchanged b.txt && echo unseen >>b.txt");
	same_work_tree(NOT_GIT);
	in_box("git ls-files -v b.txt | grep -q ^h");
}
END_TEST

/* What git does not see must be seen by diff and download. */
START_TEST(assumed_file_is_in_the_seed)
{
	struct abx_seed_result got = {0};
	abx_autofree char *script = NULL, *text = NULL;

	sh(REPO "git update-index --assume-unchanged b.txt && echo unseen >>b.txt");
	seed_all(&got);
	script = abx_xasprintf("git --git-dir=$HOME/.agentbox/seed.git cat-file -p %s:b.txt",
			       got.seed_tree);
	text = in_box_out(script);
	ck_assert_str_eq(text, "beta\nunseen\n");
	abx_seed_result_release(&got);
}
END_TEST

START_TEST(index_version_4)
{
	seed_repo(REPO "git update-index --index-version 4 && echo x >>a.txt && "
		       "mkdir -p src/very/deep && echo y >src/very/deep/file && git add .");
	same_work_tree(NOT_GIT);
}
END_TEST

START_TEST(index_extensions)
{
	abx_autofree char *said = NULL;

	seed_repo(REPO "git config core.untrackedCache true && git status >/dev/null && "
		       "echo u >untracked && git status >/dev/null");
	said = in_box_out("git status 2>&1");
	ck_assert_ptr_null(strstr(said, "warning"));
}
END_TEST

START_TEST(no_index)
{
	seed_repo(REPO "rm .git/index");
	same_work_tree(NOT_GIT);
}
END_TEST

/* B013 */
START_TEST(detached_head)
{
	seed_repo(REPO "git checkout -q --detach HEAD~1");
	same_work_tree(NOT_GIT);
}
END_TEST

START_TEST(detached_on_a_commit_that_nothing_names)
{
	seed_repo(REPO "git checkout -q --detach && echo lost >lost && git add lost && "
		       "git commit -q -m lost && git reflog expire --expire=all --all");
	in_box("test -f lost");
}
END_TEST

/* B014: the base is HEAD, whatever remotes say. */
START_TEST(ahead_of_its_remote)
{
	seed_repo("git init -q --bare ../origin.git && git clone -q ../origin.git . && " REPO
		  "git push -q origin main && git checkout -q -b feat && "
		  "for i in 1 2 3; do echo $i >n$i; git add .; git commit -q -m n$i; done && "
		  "echo dirty >>n1");
	in_box("test \"$(git rev-parse refs/heads/feat)\" = \"$(git rev-parse HEAD)\" && "
	       "test \"$(git rev-list --count feat)\" = 5");
}
END_TEST

START_TEST(branch_names_that_collide)
{
	abx_autofree char *refs = NULL;

	seed_repo(REPO "git branch -m agentbox");
	refs = in_box_out("git for-each-ref --format='%(refname)'");
	ck_assert_str_eq(refs, "refs/heads/agentbox/one\n");
}
END_TEST

START_TEST(branch_of_the_same_name)
{
	seed_repo(REPO "git checkout -q -b agentbox/one");
}
END_TEST

START_TEST(deep_branch_name)
{
	seed_repo(REPO "git checkout -q -b user/topic/x");
	in_box("git rev-parse -q --verify refs/heads/user/topic/x");
}
END_TEST

/* B024 */
START_TEST(odd_names)
{
	static const char make[] =
		"names() { printf '%s\\0' -rf --help 'sp ace' '*' '\"q\"' \"it's\" '$(id)' '`id`' "
		"'back\\slash' '~' 'caf\xc3\xa9' 'cafe\xcc\x81' 'bad\xff' '..a' '...' "
		"'a:b' '#x' '%20'; printf 'new\\nline\\0tab\\tx\\0cr\\r\\0'; "
		"printf '%0255d\\0' 7; }; "
		"names | xargs -0 -n 1 sh -c 'printf %s \"$1\" >\"./$1\"' sh; ";
	abx_autofree char *script = abx_xasprintf(
		"%s%s git add . && git commit -q -m odd && mkdir -p 'di r/\xfe' && cd 'di r/\xfe' "
		"&& %s true",
		REPO "true; ", make, make);

	seed_repo(script);
	same_work_tree(NOT_GIT);
	in_box("test \"$(git ls-files -z | tr -d -c '\\0' | wc -c)\" = 27 && "
	       "test \"$(git ls-files -o -z | tr -d -c '\\0' | wc -c)\" = 22");
}
END_TEST

START_TEST(longest_path)
{
	/* Below 4096 bytes in all, with the directory that the test runs in. */
	seed_repo(REPO "d=$(printf '%0200d' 0); for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17;"
		       "do mkdir $d && cd $d || exit 1; done && echo x >end && git add end && "
		       "echo y >other");
	same_work_tree("-path ./.git -prune -o -name end -o -name other");
}
END_TEST

/* B030 */
START_TEST(modes)
{
	mode_t old = umask(077);

	seed_repo(REPO "echo s >secret && chmod 600 secret && echo r >ro && chmod 444 ro && "
		       "echo x >exe && chmod 711 exe && mkdir priv && chmod 700 priv && "
		       "echo p >priv/p && chmod 4755 exe && git add . && git commit -q -m m && "
		       "chmod 755 exe && chmod 600 a.txt && mkdir u && echo u >u/u");
	(void)umask(old);
	same_work_tree(NOT_GIT);
}
END_TEST

START_TEST(setuid_does_not_travel)
{
	struct abx_seed_result got = {0};
	abx_autofree char *mode = NULL;

	sh("echo x >exe && chmod 6755 exe && mkdir -m 2755 d");
	seed_all(&got);
	abx_seed_result_release(&got);
	mode = in_box_out("stat -c %a exe");
	ck_assert_str_eq(mode, "755\n");
}
END_TEST

/* Objects that are loose, packed, in a borrowed store, or reachable from the index only. */
START_TEST(borrowed_objects)
{
	seed_repo("mkdir ../origin && (cd ../origin && " REPO "git gc -q) && "
		  "git clone -q --shared ../origin . && echo loose >loose && git add loose && "
		  "git commit -q -m loose && echo staged >staged && git add staged");
	in_box("test ! -e .git/objects/info/alternates");
}
END_TEST

START_TEST(relative_alternates)
{
	seed_repo("mkdir ../origin && (cd ../origin && " REPO "true) && git init -q . && "
		  "echo ../../../origin/.git/objects >.git/objects/info/alternates && "
		  "git update-ref HEAD $(git -C ../origin rev-parse HEAD) && git reset -q --hard");
}
END_TEST

START_TEST(ignore_rules_of_the_user)
{
	seed_repo(REPO "mkdir -p $HOME/.config/git && echo '*.mine' >$HOME/.config/git/ignore && "
		       "printf '*.local' >>.git/info/exclude && echo '!keep.mine' >>.gitignore && "
		       "touch a.mine keep.mine b.local c.other && mkdir -p sub && "
		       "echo nested >sub/.gitignore && touch sub/nested sub/seen");
	in_box("test ! -e a.mine && test ! -e b.local && test ! -e sub/nested && "
	       "test -e keep.mine && test -e c.other && test -e sub/seen && touch x.mine && "
	       "test -z \"$(git status --porcelain x.mine)\"");
}
END_TEST

START_TEST(excludes_file_setting)
{
	seed_repo(REPO "git config --global core.excludesFile '~/my ignore' && "
		       "echo '*.mine' >\"$HOME/my ignore\" && touch a.mine");
	in_box("test ! -e a.mine");
}
END_TEST

/* Same size, same second as the index: only the content tells. */
START_TEST(racy_change)
{
	struct abx_seed_result got = {0};
	abx_autofree char *script = NULL, *text = NULL;

	sh(REPO "printf 'alphA\\n' >a.txt; touch -r .git/index a.txt");
	seed_all(&got);
	script = abx_xasprintf("git --git-dir=$HOME/.agentbox/seed.git cat-file -p %s:a.txt; "
			       "git status --porcelain",
			       got.seed_tree);
	text = in_box_out(script);
	ck_assert_str_eq(text, "alphA\n M a.txt\n");
	abx_seed_result_release(&got);
}
END_TEST

/* Attributes without effect do not matter. */
START_TEST(harmless_attributes)
{
	seed_repo(REPO "printf '* text=auto\\n*.sh eol=lf\\n*.bin -text\\n*.x diff=cpp\\n' "
		       ">.gitattributes && printf 'a\\r\\nb\\r\\n' >crlf.bin && echo x >x.sh && "
		       "git add . && git commit -q -m attributes && echo more >>x.sh");
	same_work_tree(NOT_GIT);
}
END_TEST

START_TEST(autocrlf_without_effect)
{
	abx_autofree char *value = NULL;

	seed_repo(REPO "git config core.autocrlf input && printf 'a\\r\\n' >untracked");
	same_work_tree(NOT_GIT);
	value = in_box_out("git config core.autocrlf");
	ck_assert_str_eq(value, "input\n");
}
END_TEST

START_TEST(file_mode_off)
{
	seed_repo(REPO "git config core.filemode false && chmod 755 a.txt");
	same_work_tree(NOT_GIT);
}
END_TEST

START_TEST(hooks_and_settings_stay_here)
{
	seed_repo(REPO "printf '#!/bin/sh\\nexit 1\\n' >.git/hooks/pre-commit && "
		       "chmod 755 .git/hooks/pre-commit && git config alias.x '!touch /tmp/x' && "
		       "git config credential.helper store && "
		       "git remote add origin https://user:secret@example.org/x.git");
	in_box("test -z \"$(ls .git/hooks)\" && ! grep -q -e secret -e alias -e credential "
	       "-r .git/config && test -z \"$(git remote)\"");
}
END_TEST

START_TEST(only_what_head_needs_travels)
{
	seed_repo(REPO "git checkout -q --orphan other && echo private >p && git add . && "
		       "git commit -q -m private && git checkout -q main && git stash list && "
		       "echo stashed >a.txt && git stash -q");
	in_box("! git rev-list --all --objects | grep -q ' p$' && "
	       "test \"$(git rev-list --count --all)\" = 2");
}
END_TEST

START_TEST(environment_does_not_mislead)
{
	struct abx_seed *seed = NULL;
	int r;

	sh(REPO "true");
	(void)setenv("GIT_DIR", "/nowhere", 1);
	(void)setenv("GIT_INDEX_FILE", "/nowhere/index", 1);
	(void)setenv("GIT_WORK_TREE", "/", 1);
	r = abx_seed_inspect(unit_path("host"), unit_path("spool"), NULL, &seed, &unit_err);
	(void)unsetenv("GIT_DIR");
	(void)unsetenv("GIT_INDEX_FILE");
	(void)unsetenv("GIT_WORK_TREE");
	unit_ok(r);
	ck_assert_uint_eq(abx_seed_info(seed)->files, 5);
	abx_seed_free(seed);
}
END_TEST

/* ---- plain directories ---- */

static void seed_plain(const char *script, bool has_git)
{
	struct abx_seed_result got = {0};

	sh(script);
	seed_untouched(&got);
	ck_assert_ptr_null(got.base_commit);
	ck_assert_ptr_null(got.branch);
	ck_assert_int_eq(got.seed_tree != NULL, has_git);
	abx_seed_result_release(&got);
}

START_TEST(plain_directory)
{
	seed_plain("mkdir -p a/b empty 'sp ace' && echo 1 >a/b/f && ln -s /etc/passwd abs && "
		   "printf '\\377' >\"$(printf 'bad\\377')\" && echo '*' >.gitignore && "
		   "touch -d '2001-02-03 04:05:06' a/b/f a/b && mkfifo fifo",
		   true);
	same_work_tree("-mindepth 1 ! -type p");
	in_box("test ! -e fifo");
}
END_TEST

START_TEST(empty_directory)
{
	seed_plain("true", true);
	same_work_tree("-mindepth 1");
}
END_TEST

/* A directory of programs without git; sh and the rest come by absolute links. */
static void box_without_git(void)
{
	abx_autofree char *script =
		abx_xasprintf("mkdir '%s' && for p in sh rm mkdir cat cp ln mv tar cmp; do "
			      "ln -s \"$(command -v $p)\" '%s'/$p; done",
			      unit_path("bin"), unit_path("bin"));

	sh(script);
	seed_faults.path = abx_xstrdup(unit_path("bin"));
}

START_TEST(plain_directory_without_git_in_the_box)
{
	box_without_git();
	seed_plain("echo 1 >f", false);
	same_work_tree("-mindepth 1");
}
END_TEST

START_TEST(skipped_files_are_counted)
{
	struct abx_seed *seed = NULL;

	sh("mkfifo one two && echo 123 >f");
	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), NULL, &seed, &unit_err));
	ck_assert_uint_eq(abx_seed_info(seed)->skipped, 2);
	ck_assert_uint_eq(abx_seed_info(seed)->files, 1);
	ck_assert_uint_eq(abx_seed_info(seed)->bytes, 4);
	ck_assert(!abx_seed_info(seed)->git);
	abx_seed_free(seed);
}
END_TEST

/* ---- what goes wrong ---- */

static int into(struct abx_seed *seed)
{
	const struct abx_box_io io = seed_box_io();
	abx_autofree char *dir = abx_xstrdup(seed_box_dir());
	abx_autofree char *manifest = abx_xstrdup(unit_path("manifest"));
	const struct abx_seed_target target = {
		.dir = dir, .branch = "agentbox/one", .manifest = manifest};
	struct abx_seed_result got = {0};
	int r = abx_seed_into_io(seed, &io, &target, &got, &unit_err);

	abx_seed_result_release(&got);
	ck_assert_int_eq(access(manifest, F_OK) == 0, r == 0);
	return r;
}

static struct abx_seed *inspected(const char *script)
{
	struct abx_seed *seed = NULL;

	sh(script);
	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), NULL, &seed, &unit_err));
	return seed;
}

static void fails(struct abx_seed *seed, int code, const char *text)
{
	ck_assert_int_eq(into(seed), code);
	unit_has(unit_err.text, text);
	abx_seed_free(seed);
}

START_TEST(no_git_in_the_box)
{
	struct abx_seed *seed = inspected(REPO "true");

	box_without_git();
	fails(seed, ABX_ENOTSUP, "no git in the box");
}
END_TEST

START_TEST(provider_that_breaks_off)
{
	struct abx_seed *seed = inspected(REPO "head -c 30000000 /dev/urandom >big");

	seed_faults.cut_after = 100000;
	seed_faults.tar_fails = true;
	fails(seed, ABX_EREMOTE, "the box went away");
}
END_TEST

START_TEST(provider_that_lies_about_success)
{
	struct abx_seed *seed = inspected(REPO "head -c 30000000 /dev/urandom >big");

	seed_faults.cut_after = 100000;
	ck_assert_int_lt(into(seed), 0);
	abx_seed_free(seed);
}
END_TEST

START_TEST(box_that_differs)
{
	struct abx_seed *seed = inspected(REPO "true");

	in_box("echo stray >stray");
	fails(seed, ABX_ESTATE, "git status");
}
END_TEST

START_TEST(exec_that_fails)
{
	struct abx_seed *seed = inspected(REPO "true");

	seed_faults.exec_fails = true;
	fails(seed, ABX_EREMOTE, "exec failed");
}
END_TEST

START_TEST(answer_that_makes_no_sense)
{
	static const char *const answers[] = {
		"tree \n", "tree 0123456789012345678901234567890123456789",
		"tree 01234567890123456789012345678901234567891\n",
		"tree 012345678901234567890123456789012345678Z\n", "x"};
	struct abx_seed *seed = inspected("echo plain >file");

	for (size_t i = 0; i < ABX_N_ELEMENTS(answers); i++) {
		seed_faults.answer = answers[i];
		seed_faults.answer_len = strlen(answers[i]);
		ck_assert_int_eq(into(seed), ABX_EPROTO);
	}
	abx_seed_free(seed);
	seed = inspected(REPO "true");
	seed_faults.answer = "";
	seed_faults.answer_len = 0;
	ck_assert_int_eq(into(seed), ABX_EPROTO);
	seed_faults.answer = "tree 0123456789012345678901234567890123456789\n";
	seed_faults.answer_len = strlen(seed_faults.answer);
	fails(seed, ABX_ESTATE, "git status");
}
END_TEST

static int give_up(void *ctx, uint64_t done, uint64_t total, const char *what)
{
	(void)ctx;
	(void)done;
	(void)total;
	(void)what;
	return 1;
}

START_TEST(given_up_by_progress)
{
	const struct abx_box_io io = seed_box_io();
	abx_autofree char *dir = abx_xstrdup(seed_box_dir());
	const struct abx_seed_target target = {.dir = dir,
					       .branch = "agentbox/one",
					       .manifest = unit_path("manifest"),
					       .progress = give_up};
	struct abx_seed *seed = inspected(REPO "true");
	struct abx_seed_result got = {0};

	ck_assert_int_eq(abx_seed_into_io(seed, &io, &target, &got, &unit_err), ABX_ECANCELED);
	abx_seed_free(seed);
}
END_TEST

/* B017, B018: nothing is shared that could be fought for. */
static int one_of_many(unsigned int i)
{
	const struct abx_box_io io = seed_box_io();
	abx_autofree char *root = abx_xasprintf("%s/many/%u", unit_dir(), i);
	abx_autofree char *dir = abx_xasprintf("%s/workspace", root);
	abx_autofree char *spool = abx_xasprintf("%s/spool", root);
	abx_autofree char *home = abx_xasprintf("%s/home", root);
	abx_autofree char *manifest = abx_xasprintf("%s/manifest", root);
	abx_autofree char *host = abx_xstrdup(unit_path("host"));
	const struct abx_seed_target target = {
		.dir = dir, .branch = "agentbox/one", .manifest = manifest};
	struct abx_seed_result got = {0};
	struct abx_seed *seed = NULL;
	int r;

	if (abx_fs_mkdir_p(AT_FDCWD, dir, 0755) < 0 || abx_fs_mkdir_p(AT_FDCWD, spool, 0755) < 0 ||
	    abx_fs_mkdir_p(AT_FDCWD, home, 0755) < 0)
		return 1;
	seed_box_home = home;
	r = abx_seed_inspect(host, spool, NULL, &seed, &unit_err);
	if (r == 0)
		r = abx_seed_into_io(seed, &io, &target, &got, &unit_err);
	abx_seed_free(seed);
	abx_seed_result_release(&got);
	return r;
}

START_TEST(many_at_once)
{
	abx_autofree char *before = NULL, *after = NULL;

	sh(REPO "echo dirty >>a.txt && echo u >u");
	before = tree_of(unit_path("host"), "", TREE_UNTOUCHED);
	ck_assert_uint_eq(unit_together(8, one_of_many), 8);
	after = tree_of(unit_path("host"), "", TREE_UNTOUCHED);
	ck_assert_str_eq(before, after);
	sh("git fsck --full 2>&1 && test \"$(git for-each-ref | wc -l)\" = 1");
}
END_TEST

static Suite *suite(void)
{
	const TTest *const carried[] = {clean_repository,
					dirty_repository,
					index_flags,
					assumed_file_is_in_the_seed,
					index_version_4,
					index_extensions,
					no_index,
					detached_head,
					detached_on_a_commit_that_nothing_names,
					ahead_of_its_remote,
					branch_names_that_collide,
					branch_of_the_same_name,
					deep_branch_name,
					odd_names,
					longest_path,
					modes,
					setuid_does_not_travel,
					borrowed_objects,
					relative_alternates,
					ignore_rules_of_the_user,
					excludes_file_setting,
					racy_change,
					harmless_attributes,
					autocrlf_without_effect,
					file_mode_off,
					hooks_and_settings_stay_here,
					only_what_head_needs_travels,
					environment_does_not_mislead,
					plain_directory,
					empty_directory,
					plain_directory_without_git_in_the_box,
					skipped_files_are_counted,
					many_at_once};
	const TTest *const failing[] = {
		no_git_in_the_box,   provider_that_breaks_off, provider_that_lies_about_success,
		box_that_differs,    exec_that_fails,	       answer_that_makes_no_sense,
		given_up_by_progress};
	Suite *s = suite_create("seed");

	seed_add_tests(s, "carried", carried, ABX_N_ELEMENTS(carried), unit_dir_teardown);
	seed_add_tests(s, "failing", failing, ABX_N_ELEMENTS(failing), unit_dir_teardown);
	return s;
}

UNIT_MAIN(suite)
