/* SPDX-License-Identifier: MIT */
/* The host's newer commits and edits come into a box, where the box's own work wins. */
#include "core/seed/back-io.h"
#include "core/seed/sync-io.h"
#include "tests/unit/seed-box.h"

static struct abx_seed_result seeded;
static struct abx_synced got;
static bool record_fails;

static int record(void *ctx, const struct abx_synced *s, struct abx_err *err)
{
	(void)ctx;
	if (record_fails)
		return abx_err_set(err, ABX_EIO, "no room");
	abx_xreplace(&seeded.seed_tree, s->seed_tree);
	if (s->base_moved)
		abx_xreplace(&seeded.base_commit, s->head);
	return 0;
}

static int sync_now(bool dry)
{
	const struct abx_box_io io = seed_box_io();
	abx_autofree char *dir = abx_xstrdup(seed_box_dir());
	abx_autofree char *host = abx_xstrdup(unit_path("host"));
	abx_autofree char *spool = abx_xstrdup(unit_path("sync"));
	abx_autofree char *manifest = abx_xstrdup(unit_path("manifest"));
	abx_autofree char *seed_tree = abx_xstrdup(seeded.seed_tree);
	abx_autofree char *base = abx_xstrdup_null(seeded.base_commit);
	const struct abx_sync_ask ask = {.dir = dir,
					 .workspace = host,
					 .base_commit = base,
					 .seed_tree = seed_tree,
					 .manifest = manifest,
					 .spool = spool,
					 .dry_run = dry,
					 .record = record};

	abx_synced_release(&got);
	ck_assert_int_eq(abx_fs_remove_tree(AT_FDCWD, spool), 0);
	ck_assert_int_eq(abx_fs_mkdir_p(AT_FDCWD, spool, 0700), 0);
	return abx_sync_io(&io, &ask, &got, &unit_err);
}

static char *joined(const struct abx_strv *v)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 16);

	for (size_t i = 0; i < v->len; i++)
		abx_buf_addf(&b, "%s%s", i ? " " : "", v->items[i]);
	return abx_xstrdup(abx_buf_str(&b));
}

/* Sync, and what became of the files and the branch; the host stays as it is. */
static void sync_gives(const char *taken, const char *conflicts, const char *branch)
{
	abx_autofree char *before = tree_of(unit_path("host"), "", TREE_UNTOUCHED);
	abx_autofree char *t = NULL, *c = NULL, *after = NULL;

	unit_ok(sync_now(false));
	t = joined(&got.taken);
	c = joined(&got.conflicts);
	ck_assert_str_eq(t, taken);
	ck_assert_str_eq(c, conflicts);
	ck_assert_str_eq(got.branch, branch);
	after = tree_of(unit_path("host"), "", TREE_UNTOUCHED);
	ck_assert_str_eq(before, after);
}

/* What download would bring. */
static void differs(const char *paths)
{
	const struct abx_box_io io = seed_box_io();
	abx_autofree char *dir = abx_xstrdup(seed_box_dir());
	abx_autofree char *host = abx_xstrdup(unit_path("host"));
	abx_autofree char *manifest = abx_xstrdup(unit_path("manifest"));
	const struct abx_back back = {
		.dir = dir, .seed_tree = seeded.seed_tree, .manifest = manifest, .workspace = host};
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 16);
	struct abx_changes changes = {0};

	unit_ok(abx_back_changes_io(&io, &back, &changes, &unit_err));
	for (size_t i = 0; i < changes.len; i++)
		abx_buf_addf(&b, "%s%s%s", i ? " " : "", changes.items[i].path,
			     changes.items[i].problem ? "!" : "");
	ck_assert_str_eq(abx_buf_str(&b), paths);
	abx_changes_release(&changes);
}

static void teardown(void)
{
	abx_synced_release(&got);
	abx_seed_result_release(&seeded);
	unit_dir_teardown();
}

static void begin(const char *script)
{
	record_fails = false;
	sh(script);
	seed_all(&seeded);
}

static void box_says(const char *script, const char *text)
{
	abx_autofree char *out = in_box_out(script);

	ck_assert_str_eq(out, text);
}

START_TEST(test_edits)
{
	begin(REPO "echo u >u && echo ignored >.gitignore && git add .gitignore");
	sync_gives("", "", "same");
	sh("echo more >>a.txt && rm b.txt && chmod 644 src/run && ln -sfn /other dangling && "
	   "mkdir -p new/deep && echo n >'new/deep/sp ace\nline' && rm u && mkdir u && echo f >u/f "
	   "&& "
	   "touch -d '2001-01-01' link && echo x >ignored");
	unit_ok(sync_now(true));
	box_says("cat a.txt", "alpha\n");
	sync_gives("a.txt b.txt dangling new/deep/sp ace\nline src/run u u/f", "", "same");
	same_output(
		"cat a.txt 'new/deep/sp ace\nline' u/f && test ! -e b.txt && readlink dangling && "
		"stat -c %a src/run a.txt && git status --porcelain -z | tr '\\0' '\\n'");
	differs("");
	sync_gives("", "", "same");
}
END_TEST

START_TEST(test_conflicts)
{
	begin(REPO "echo 1 >both && echo 1 >same && echo 1 >gone && echo 1 >kept");
	in_box("echo box >both && echo 2 >same && echo box >gone && rm kept && echo box >made && "
	       "mkdir d && echo d >d/x && echo own >own");
	sh("echo host >both && echo 2 >same && rm gone && echo host >kept && echo host >made && "
	   "echo file >d && echo fine >fine");
	unit_ok(sync_now(false));
	for (size_t i = 0; i < got.taken.len; i++)
		ck_assert_str_eq(got.taken.items[i], "fine");
	ck_assert_uint_eq(got.taken.len, 1);
	ck_assert_uint_ge(got.conflicts.len, 5);
	box_says("cat both same gone made d/x own fine && test ! -e kept",
		 "box\n2\nbox\nbox\nd\nown\nfine\n");
	box_says("git ls-files -u", "");
	/* The same again: named again, and nothing else. */
	unit_ok(sync_now(false));
	ck_assert_uint_eq(got.taken.len, 0);
	ck_assert_uint_ge(got.conflicts.len, 5);
	differs("both! d/x! gone! kept! made! own");
}
END_TEST

START_TEST(test_forward)
{
	begin(REPO "echo dirty >>a.txt && echo staged >s && git add s");
	in_box("echo mine >mine && git add mine && echo b >>b.txt");
	sh("git commit -qam 'dirty work' && echo c >c && git add c && git commit -qm c && echo d "
	   ">d");
	sync_gives("c d", "", "forward");
	ck_assert_str_eq(got.host_ref, "host/main");
	same_output("git rev-parse HEAD");
	box_says("git status --porcelain && git rev-parse --abbrev-ref HEAD && "
		 "git rev-parse -q --verify refs/remotes/host/main >/dev/null",
		 " M b.txt\nA  mine\n?? d\nagentbox/one\n");
	in_box("git fsck --full --strict 2>&1");
	differs("b.txt mine");
	sync_gives("", "", "same");
	ck_assert_uint_eq(seed_tars, 1);
}
END_TEST

START_TEST(test_merge)
{
	begin("git init -q . && seq 20 >f && echo a >a && git add . && git commit -qm one");
	in_box("sed -i 's/^2$/box/' f && git commit -qam box && echo e >>a");
	sh("sed -i 's/^19$/host/' f && echo n >n && git add n && git commit -qam host");
	sync_gives("", "", "merged");
	box_says("sed -n -e 2p -e 19p f && cat n && git status --porcelain && "
		 "git log -1 --format='%an %p' | wc -w && git ls-files -u",
		 "box\nhost\nn\n M a\n5\n");
	differs("a f");
	sync_gives("", "", "same");
	/* Again, from both sides. */
	in_box("git commit -qam a && echo b2 >b2 && git add b2 && git commit -qm b2");
	sh("echo h2 >h2 && git add h2 && git commit -qm h2");
	sync_gives("", "", "merged");
	in_box("git fsck --full --strict 2>&1");
}
END_TEST

START_TEST(test_no_merge)
{
	begin("git init -q . && echo 1 >f && echo 1 >g && git add . && git commit -qm one");
	in_box("echo box >f && git commit -qam box");
	sh("echo host >f && echo host >g && git commit -qam host");
	sync_gives("g", "f", "left");
	ck_assert_uint_eq(got.unmerged.len, 1);
	ck_assert_str_eq(got.unmerged.items[0], "f");
	box_says("cat f g && git log --format=%s -1 && git log --format=%s -1 host/main && "
		 "git ls-files -u && test ! -e .git/MERGE_HEAD",
		 "box\nhost\nbox\nhost\n");
	/* Resolved in the box. */
	in_box("git commit -qam g && ! git merge -q host/main >/dev/null 2>&1 && echo box >f && "
	       "git commit -qam merged");
	sync_gives("", "f", "same");
}
END_TEST

START_TEST(test_branch_stays)
{
	begin("git init -q . && echo 1 >f && echo 1 >g && git add . && git commit -qm one");
	in_box("echo staged >f && git add f");
	sh("echo host >f && git commit -qam host");
	sync_gives("", "f", "left");
	ck_assert_ptr_nonnull(strstr(got.why, "staged"));
	box_says("git diff --cached --name-only && cat f", "f\nstaged\n");
	in_box("git reset -q --hard && git checkout -q --detach");
	sync_gives("f", "", "left");
	ck_assert_ptr_nonnull(strstr(got.why, "detached"));
	in_box("git checkout -q -f agentbox/one");
	sync_gives("", "", "forward");
	box_says("cat f && git status --porcelain", "host\n");
}
END_TEST

START_TEST(test_states)
{
	begin("git init -q . && echo a >a");
	sh("git add a && git commit -qm first && echo b >b");
	sync_gives("b", "", "forward");
	same_output("git log --format=%s && git status --porcelain");
	/* The host's history was rewritten: no ancestor any more. */
	sh("git commit -q --amend -m again && git checkout -q -b x/y && git commit -q "
	   "--allow-empty -m "
	   "more");
	unit_ok(sync_now(false));
	ck_assert_str_eq(got.branch, "left");
	box_says("git log --format=%s -1 host/x/y", "more\n");
}
END_TEST

START_TEST(test_plain)
{
	begin("echo a >a && mkdir d && echo b >d/b");
	sh("echo A >a && rm -r d && echo c >c");
	sync_gives("a c d/b", "", "none");
	box_says("cat a c && test ! -e d", "A\nc\n");
	differs("");
}
END_TEST

START_TEST(test_nested)
{
	begin("mkdir ../sub && (cd ../sub && " REPO ":) && " REPO
	      "git submodule --quiet add ../sub s && git commit -qm sub && mkdir plain && "
	      "(cd plain && git init -q . && echo p >p && git add p && git commit -qm p)");
	in_box("echo own >>s/b.txt");
	sh("echo h >>s/a.txt && echo h >>s/b.txt && echo q >plain/q && echo r >>a.txt");
	sync_gives("a.txt plain/q s/a.txt", "s/b.txt", "same");
	box_says("git -C s status --porcelain && git -C plain status --porcelain",
		 " M a.txt\n M b.txt\n?? q\n");
	differs("s/b.txt!");
}
END_TEST

/* Died between the box and the record here: the next one finds its work done. */
START_TEST(test_died)
{
	begin(REPO ":");
	sh("echo more >>a.txt && echo n >n && git add n && git commit -qam more");
	record_fails = true;
	ck_assert_int_eq(sync_now(false), ABX_EIO);
	record_fails = false;
	box_says("cat n", "n\n");
	/* Nobody here has what is edited there now. */
	in_box("echo edit >>n");
	sync_gives("", "", "same");
	differs("n");
	in_box("git checkout -q n");
	differs("");
	same_repository();
	/* Nothing of it lies about. */
	in_box("test -z \"$(ls -d ../home/.agentbox/sync.* 2>/dev/null)\"");
}
END_TEST

/* ---- the box's side dies at each of its git commands ---- */

/* git, but for the one whose turn it is: with it, or, where no file may grow any more, after it,
 * all of the script dies.  Counted are those that write files or refs, or all. */
static const char shim[] =
	"#!/bin/sh\n"
	"dir=${0%/*}\n"
	"read -r real <\"$dir/real\" && read -r at how which <\"$dir/turn\" || exit 1\n"
	"case $which$* in\n"
	"all* | *update-ref* | *read-tree*' -u '*) ;;\n"
	"*) exec \"$real\" \"$@\" ;;\n"
	"esac\n"
	"n=1\n"
	"while ! mkdir \"$dir/$n\" 2>/dev/null; do n=$((n + 1)); done\n"
	"[ $n = \"$at\" ] || exec \"$real\" \"$@\"\n"
	"[ \"$how\" != full ] || (ulimit -c 0; ulimit -f 40; \"$real\" \"$@\")\n"
	"set -- $PPID\n"
	"while up=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$1/status) && "
	"[ \"$up\" != \"$SYNC_TEST_PID\" ] && [ \"$up\" -gt 1 ]; do set -- $up \"$@\"; done\n"
	"kill -KILL \"$@\" $$\n";

/* Once more from the start, but dead at the n-th command; was there one? */
static bool dies(unsigned int n, const char *how, const char *tree, const char *base)
{
	abx_autofree char *script = abx_xasprintf(
		"cd .. && rm -rf box manifest shim/[0-9]* && cp -a saved/box saved/manifest . && "
		"echo %u %s %s >shim/turn",
		n, how, getenv("AGENTBOX_TEST_FULL") ? "all" : "writing");
	char *path = abx_xasprintf("%s:%s", unit_path("shim"), getenv("PATH"));
	int r;

	sh(script);
	abx_xreplace(&seeded.seed_tree, tree);
	abx_xreplace(&seeded.base_commit, base);
	seed_faults.path = path;
	r = sync_now(false);
	seed_faults.path = NULL;
	free(path);
	if (r < 0)
		ck_assert_int_eq(r, ABX_EREMOTE);
	return r < 0;
}

/* The next one does all of it, and nothing of the dead one lies about. */
static void then_all_is_done(const char *differing, const char *status)
{
	unit_ok(sync_now(false));
	ck_assert_uint_eq(got.conflicts.len, 0);
	ck_assert_str_ne(got.branch, "left");
	in_box("for f in big grown new a.txt deep/x; do cmp $f ../../host/$f || exit 1; done && "
	       "test ! -e gone");
	box_says("git status --porcelain", status);
	differs(differing);
	in_box("git fsck --full 2>&1 && git merge-base --is-ancestor host/main HEAD && "
	       "test -z \"$(find .git ../home/.agentbox -name '*.lock' -o -name 'sync.*' -o "
	       "-name 'agentbox*' ! -path '*/refs/*' ! -path '*/logs/*')\"");
}

static void cut_short(const char *in_the_box, const char *differing, const char *status)
{
	abx_autofree char *pid = abx_xasprintf("%d", (int)getpid());
	abx_autofree char *tree = NULL, *base = NULL;
	unsigned int deaths = 0;

	begin(REPO "mkdir deep && seq 20000 >big && seq 9 >gone && seq 9 >deep/x && git add . && "
		   "git commit -qm three");
	in_box(in_the_box);
	sh("seq 40000 >big && git rm -q gone && echo y >>deep/x && seq 30000 >grown && "
	   "git add . && git commit -qm four && echo e >>a.txt && seq 30000 >new");
	sh("mkdir ../shim ../saved && cp -a ../box ../manifest ../saved && "
	   "command -v git >../shim/real");
	unit_write_text("shim/git", shim);
	ck_assert_int_eq(chmod(unit_path("shim/git"), 0755), 0);
	tree = abx_xstrdup(seeded.seed_tree);
	base = abx_xstrdup_null(seeded.base_commit);
	ck_assert_int_eq(setenv("SYNC_TEST_PID", pid, 1), 0);
	for (unsigned int n = 1; dies(n, "kill", tree, base); n++) {
		then_all_is_done(differing, status);
		if (dies(n, "full", tree, base))
			then_all_is_done(differing, status);
		deaths++;
	}
	ck_assert_uint_gt(deaths, 2);
}

START_TEST(test_cut_short)
{
	cut_short("echo b >>b.txt", "b.txt", " M a.txt\n M b.txt\n?? new\n");
}
END_TEST

START_TEST(test_cut_short_merging)
{
	cut_short("echo b >>b.txt && git commit -qam b && echo own >own", "b.txt own",
		  " M a.txt\n?? new\n?? own\n");
}
END_TEST

static void answer(const char *data, size_t len, int code)
{
	seed_faults.answer = data;
	seed_faults.answer_len = len;
	ck_assert_int_eq(sync_now(false), code);
}

START_TEST(test_hostile_answers)
{
	begin(REPO ":");
	answer("", 0, ABX_EPROTO);
	answer("junk", 4, ABX_EPROTO);
	answer("junk=\0end=", 11, ABX_EPROTO);
	answer("branch=odd\0end=", 16, ABX_EPROTO);
	answer("branch=same\0tree=12\0end=", 25, ABX_EPROTO);
	answer("branch=same\0end=", 17, ABX_EPROTO);
	answer("taken=", 6, ABX_EPROTO);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {test_edits,
				      test_conflicts,
				      test_forward,
				      test_merge,
				      test_no_merge,
				      test_branch_stays,
				      test_states,
				      test_plain,
				      test_nested,
				      test_died,
				      test_hostile_answers,
				      test_cut_short,
				      test_cut_short_merging};
	Suite *s = suite_create("sync");

	seed_add_tests(s, "sync", tests, ABX_N_ELEMENTS(tests), teardown);
	return s;
}

UNIT_MAIN(suite)
