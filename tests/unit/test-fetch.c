/* SPDX-License-Identifier: MIT */
/* A box's commits become a ref of the host, and nothing else of it changes. */
#include "core/seed/fetch-io.h"
#include "core/seed/seed-script.h"
#include "tests/unit/seed-box.h"

static struct abx_seed_result seeded;
static struct abx_fetched got;

static int fetch_as(const char *ref)
{
	const struct abx_box_io io = seed_box_io();
	abx_autofree char *dir = abx_xstrdup(seed_box_dir());
	abx_autofree char *host = abx_xstrdup(unit_path("host"));
	abx_autofree char *spool = abx_xstrdup(unit_path("fetch"));
	abx_autofree char *memory = abx_xstrdup(unit_path("fetched"));
	const struct abx_fetch_ask ask = {.dir = dir,
					  .workspace = host,
					  .base_commit = seeded.base_commit,
					  .ref = ref,
					  .spool = spool,
					  .memory = memory};

	abx_fetched_release(&got);
	ck_assert_int_eq(abx_fs_remove_tree(AT_FDCWD, spool), 0);
	ck_assert_int_eq(abx_fs_mkdir_p(AT_FDCWD, spool, 0700), 0);
	return abx_fetch_io(&io, &ask, &got, &unit_err);
}

#define REF "refs/heads/agentbox/one"

static const struct abx_fetched_repo *fetch(void)
{
	unit_ok(fetch_as(REF));
	ck_assert_uint_ge(got.len, 1);
	return &got.items[0];
}

static void teardown(void)
{
	abx_fetched_release(&got);
	abx_seed_result_release(&seeded);
	unit_dir_teardown();
}

static void begin(const char *script)
{
	sh(script);
	seed_all(&seeded);
}

static void same(const char *host, const char *box)
{
	abx_autofree char *a = sh_out(host), *b = in_box_out(box);

	ck_assert_str_eq(a, b);
}

/* Everything of the host but objects and the ref. */
#define NOT_FETCHED \
	"-path ./.git/objects -prune -o -path ./.git/refs -prune -o -path ./.git -o -path . -o"

START_TEST(test_new)
{
	abx_autofree char *before = NULL, *after = NULL;
	const struct abx_fetched_repo *r;

	begin(REPO "echo dirty >>a.txt");
	r = fetch();
	ck_assert_int_eq(r->result, ABX_FETCH_NOTHING);
	in_box("echo new >new && git add new && git commit -qm three && printf 'x\\n' >>new && "
	       "git commit -qam 'fo\tur'");
	before = tree_of(unit_path("host"), NOT_FETCHED, TREE_UNTOUCHED);
	r = fetch();
	ck_assert_int_eq(r->result, ABX_FETCH_NEW);
	ck_assert_uint_eq(r->commits, 2);
	ck_assert_uint_eq(r->n_subjects, 2);
	ck_assert_ptr_nonnull(strstr(r->subjects[0], "fo"));
	ck_assert_str_eq(r->branch, "agentbox/one");
	ck_assert_uint_eq(r->uncommitted, 0);
	after = tree_of(unit_path("host"), NOT_FETCHED, TREE_UNTOUCHED);
	ck_assert_str_eq(before, after);
	same("git rev-parse agentbox/one; git log --format=%H%n%s agentbox/one",
	     "git rev-parse HEAD; git log --format=%H%n%s");
	sh("git fsck --full --strict && test ! -e .git/logs/refs/heads/agentbox && "
	   "test ! -e .git/FETCH_HEAD && test ! -e .git/shallow && test \"$(ls .git/objects/pack | "
	   "wc -l)\" = 2");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_SAME);
}
END_TEST

START_TEST(test_moves)
{
	begin(REPO ":");
	in_box("git commit -qm three --allow-empty");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_NEW);
	in_box("git commit -qm four --allow-empty");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_FORWARD);
	ck_assert_uint_eq(got.items[0].commits, 1);
	in_box("git reset -q --hard HEAD~2 && git commit -qm other --allow-empty && echo u >u");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_MOVED);
	ck_assert_uint_eq(got.items[0].uncommitted, 1);
	same("git rev-parse agentbox/one", "git rev-parse HEAD");
	/* Back to where it began. */
	in_box("git reset -q --hard HEAD~1");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_MOVED);
	same("git rev-parse agentbox/one", "git rev-parse HEAD");
}
END_TEST

static void refused(const char *ref, const char *why)
{
	unit_ok(fetch_as(ref));
	ck_assert_int_eq(got.items[0].result, ABX_FETCH_FAILED);
	ck_assert_msg(strstr(got.items[0].problem, why), "%s", got.items[0].problem);
}

static char *refs_and_objects(void)
{
	return sh_out("git for-each-ref; find .git/objects -type f | LC_ALL=C sort; "
		      "cat .git/HEAD; git count-objects -v");
}

START_TEST(test_refused)
{
	abx_autofree char *before = NULL, *after = NULL, *ref = NULL;

	begin(REPO "git branch agentbox && git branch -f mine && git worktree add -q ../linked -b "
		   "elsewhere && git checkout -q --orphan unborn && git reset -q && "
		   "git symbolic-ref refs/heads/sym refs/heads/mine");
	in_box("git commit -qm three --allow-empty");
	sh("git commit-tree -m stray HEAD^{tree} 2>/dev/null || "
	   "git update-ref refs/heads/mine $(git commit-tree -m stray main^{tree})");
	before = refs_and_objects();
	refused(REF, "there is 'refs/heads/agentbox'");
	refused("refs/heads/mine", "not the box's history");
	refused("refs/heads/elsewhere", "is checked out in '");
	refused("refs/heads/unborn", "is checked out in '");
	refused("refs/heads/sym", "is a symbolic ref");
	ck_assert_int_eq(abx_fetch_ref("a..b", &ref, &unit_err), ABX_EUSAGE);
	ck_assert_int_eq(abx_fetch_ref("--x", &ref, &unit_err), ABX_EUSAGE);
	ck_assert_int_eq(abx_fetch_ref("refs/x", &ref, &unit_err), ABX_EUSAGE);
	ck_assert_int_eq(abx_fetch_ref("HEAD", &ref, &unit_err), ABX_EUSAGE);
	after = refs_and_objects();
	ck_assert_str_eq(before, after);
	unit_ok(abx_fetch_ref("other", &ref, &unit_err));
	unit_ok(fetch_as(ref));
	ck_assert_int_eq(got.items[0].result, ABX_FETCH_NEW);
}
END_TEST

/* A tree that git itself would not make. */
#define BAD_TREE(entry)                                      \
	"b=$(echo x | git hash-object -w --stdin) && "       \
	"t=$(printf '" entry "\\n' \"$b\" | git mktree) && " \
	"git update-ref HEAD $(git commit-tree -m bad -p HEAD $t)"

START_TEST(test_hostile_objects)
{
	static const char *const scripts[] = {
		BAD_TREE("100644 blob %s\\t.git"),
		BAD_TREE("100644 blob %s\\t.GIT"),
		BAD_TREE("100644 blob %s\\tgit~1"),
		BAD_TREE("100644 blob %s\\t.."),
		BAD_TREE("120000 blob %s\\t.gitmodules"),
		"printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = --upload-pack=touch\\n' >m && "
		"b=$(git hash-object -w m) && "
		"t=$(printf '100644 blob %s\\t.gitmodules\\n' $b | git mktree) && "
		"git update-ref HEAD $(git commit-tree -m bad -p HEAD $t)"};
	abx_autofree char *before = NULL;

	begin(REPO ":");
	before = refs_and_objects();
	for (size_t i = 0; i < ABX_N_ELEMENTS(scripts); i++) {
		abx_autofree char *after = NULL;

		in_box(scripts[i]);
		refused(REF, "its commits are refused");
		after = refs_and_objects();
		ck_assert_str_eq(before, after);
		in_box("git update-ref HEAD HEAD~1");
	}
}
END_TEST

static void answer(const void *data, size_t len, int code, const char *why)
{
	seed_faults.answer = data;
	seed_faults.answer_len = len;
	ck_assert_int_eq(fetch_as(REF), code);
	ck_assert_msg(strstr(unit_err.text, why), "%s", unit_err.text);
}
#define ANSWER(text, code, why) answer(text, sizeof(text) - 1, code, why)
#define ID "b9a8a081c6adcb82610e4cdff29f41de9eedad04"

START_TEST(test_hostile_answers)
{
	begin(REPO ":");
	ANSWER("", ABX_EPROTO, "breaks off");
	ANSWER("repo\0", ABX_EPROTO, "breaks off");
	ANSWER("junk\0", ABX_EPROTO, "not understood");
	ANSWER("end\0more", ABX_EPROTO, "not understood");
	ANSWER("end\0", ABX_ESTATE, "no git repository in the box");
	ANSWER("repo\0sub\0" ID "\0\0\0000\0000\0000\0end\0", ABX_EPROTO, "not understood");
	ANSWER("repo\0\0" ID "\0\0\0000\0000\0-1\0end\0", ABX_EPROTO, "not understood");
	ANSWER("repo\0\0main\0\0\0000\0000\0000\0end\0", ABX_EPROTO, "not understood");
	ANSWER("repo\0\0" ID "\0\0\0000\0000\00099\0short", ABX_EPROTO, "breaks off");
	ANSWER("repo\0\0" ID "\0\0\0000\0000\0009000000000000\0", ABX_EPROTO, "more than 8192 MiB");
	ANSWER("repo\0\0" ID "\0\0\0000\0000\0000\0repo\0../x\0" ID "\0\0\0000\0000\0000\0end\0",
	       ABX_EPROTO, "not understood");
	ANSWER("repo\0\0" ID "\0\0\0000\0000\0000\0repo\0.git\0" ID "\0\0\0000\0000\0000\0end\0",
	       ABX_EPROTO, "not understood");
	/* A commit that is not there, and a pack that is none. */
	seed_faults.answer = "repo\0\0" ID "\0\0\0000\0000\0000\0end\0";
	seed_faults.answer_len = 5 + 1 + 41 + 1 + 1 + 2 + 2 + 2 + 4;
	refused(REF, "its commits are refused");
	seed_faults.answer = "repo\0\0" ID "\0\0\0000\0000\0004\0junkend\0";
	seed_faults.answer_len = 5 + 1 + 41 + 1 + 1 + 2 + 2 + 2 + 4 + 4;
	refused(REF, "its commits are refused");
	sh("git fsck --strict && ! git rev-parse -q --verify agentbox/one");
}
END_TEST

START_TEST(test_states)
{
	begin("git init -q . && echo a >a");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_NOTHING);
	ck_assert_ptr_null(got.items[0].new_id);
	in_box("git add a && git commit -qm first && git checkout -q --detach");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_NEW);
	ck_assert_ptr_null(got.items[0].branch);
	same("git rev-parse agentbox/one", "git rev-parse HEAD");
	in_box("git checkout -q -b side && echo 1 >a && git commit -qam 1 && git checkout -q main "
	       "&& "
	       "echo 2 >a && git commit -qam 2 && ! git rebase -q side >/dev/null 2>&1");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_FORWARD);
	ck_assert_str_eq(got.items[0].under_way, "a rebase");
}
END_TEST

START_TEST(test_shallow)
{
	begin("mkdir ../full && (cd ../full && git init -q . && for i in 1 2 3 4 5; do echo $i >f "
	      "&& "
	      "git add f && git commit -qm $i; done) && git clone -q --depth 2 "
	      "\"file://$(cd ../full && pwd)\" .");
	in_box("test -f .git/shallow && echo more >f && git commit -qam more");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_NEW);
	ck_assert_uint_eq(got.items[0].commits, 1);
	sh("git fsck --full && test \"$(wc -l <.git/shallow)\" = 1");
}
END_TEST

/* The box knows less of the history than the host. */
START_TEST(test_shallow_box)
{
	begin(REPO ":");
	in_box("git rev-parse HEAD >.git/shallow && echo more >f && git add f && git commit -qm "
	       "more");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_NEW);
	sh("git fsck --full && test ! -e .git/shallow && "
	   "test \"$(git rev-list --count agentbox/one)\" = 3");
	/* History without a beginning is not taken. */
	in_box("git checkout -q --orphan o && git commit -qm o && p=$(git rev-parse HEAD) && "
	       "git commit -q --allow-empty -m p && git rev-parse HEAD >>.git/shallow && "
	       "rm -f \".git/objects/$(printf %.2s $p)/${p#??}\"");
	refused("refs/heads/two", "its commits are refused");
	sh("test ! -e .git/shallow && git fsck --full");
}
END_TEST

START_TEST(test_linked)
{
	sh("mkdir ../main && cd ../main && " REPO
	   "rmdir ../host && git worktree add -q ../host -b wt");
	seed_all(&seeded);
	in_box("echo n >n && git add n && git commit -qm n");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_NEW);
	same("git -C ../main rev-parse agentbox/one", "git rev-parse HEAD");
	refused("refs/heads/main", "is checked out in '");
}
END_TEST

START_TEST(test_alternates)
{
	begin("mkdir ../lender && (cd ../lender && " REPO
	      ":) && git clone -q -s ../lender . && git checkout -q -b x");
	in_box("echo n >n && git add n && git commit -qm n");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_NEW);
	sh("git fsck --full && git -C ../lender fsck --full");
}
END_TEST

START_TEST(test_nested)
{
	begin("mkdir ../sub && (cd ../sub && " REPO ":) && " REPO
	      "git submodule --quiet add ../sub s && git commit -qm sub && mkdir plain && "
	      "(cd plain && git init -q . && echo p >p && git add p && git commit -qm p)");
	in_box("cd s && echo s >s && git add s && git commit -qm s && cd ../plain && echo q >q && "
	       "git add q && git commit -qm q && cd .. && git commit -qam moved");
	fetch();
	ck_assert_uint_eq(got.len, 3);
	for (size_t i = 0; i < got.len; i++) {
		ck_assert_msg(!got.items[i].problem, "%s", got.items[i].problem);
		ck_assert_int_eq(got.items[i].result, ABX_FETCH_NEW);
		ck_assert_uint_eq(got.items[i].uncommitted, 0);
	}
	same("git rev-parse agentbox/one:s; git -C s rev-parse agentbox/one; "
	     "git -C plain rev-parse agentbox/one",
	     "git rev-parse HEAD:s; git -C s rev-parse HEAD; git -C plain rev-parse HEAD");
	sh("test -z \"$(git status --porcelain s)\"");
	/* Not there any more: the others are brought. */
	sh("rm -rf plain && ln -s ../sub plain");
	in_box("git commit -qm more --allow-empty");
	fetch();
	ck_assert_int_eq(got.items[0].result, ABX_FETCH_FORWARD);
	for (size_t i = 1; i < got.len; i++)
		ck_assert_int_eq(got.items[i].result, strcmp(got.items[i].path, "plain") == 0
							      ? ABX_FETCH_FAILED
							      : ABX_FETCH_SAME);
}
END_TEST

START_TEST(test_plain)
{
	begin("echo a >a");
	ck_assert_int_eq(fetch_as(REF), ABX_ENOTSUP);
	ck_assert_ptr_nonnull(strstr(unit_err.text, "is not a git repository"));
}
END_TEST

/* What was fetched last may move, also when the process died before it could say so. */
START_TEST(test_died)
{
	abx_autofree char *memory = NULL;

	begin(REPO ":");
	in_box("git commit -qm three --allow-empty");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_NEW);
	memory = unit_read("fetched");
	in_box("git commit -q --amend -m four --allow-empty");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_MOVED);
	/* Somebody else moved it. */
	sh("git branch -f agentbox/one \"$(git commit-tree -m own HEAD^{tree})\"");
	refused(REF, "not the box's history");
	sh("git branch -D -q agentbox/one");
	ck_assert_int_eq(fetch()->result, ABX_FETCH_NEW);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {test_new,
				      test_moves,
				      test_refused,
				      test_hostile_objects,
				      test_hostile_answers,
				      test_states,
				      test_shallow,
				      test_shallow_box,
				      test_linked,
				      test_plain,
				      test_alternates,
				      test_nested,
				      test_died};
	Suite *s = suite_create("fetch");

	seed_add_tests(s, "fetch", tests, ABX_N_ELEMENTS(tests), teardown);
	return s;
}

UNIT_MAIN(suite)
