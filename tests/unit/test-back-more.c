/* SPDX-License-Identifier: MIT */
/* Bringing back: repositories in the box, what cannot come, what is asked for, and the diff. */
#include "tests/unit/back-box.h"

#include "core/seed/back-diff.h"
#include "core/seed/back-io.h"

/* ---- repositories ---- */

#define COMMIT "git -c user.name=x -c user.email=x commit -qm 1"

/* Their files come, .git does not; with and without a commit, in one another. */
START_TEST(made_in_the_box)
{
	begin(ONE);
	in_box("git init -q one && (cd one && echo 1 >1 && echo '*.x' >.gitignore && echo x >a.x "
	       "&& git add . && " COMMIT " && echo new >2) && git init -q two && echo 2 >two/2 && "
	       "git init -q empty && git init -q one/in && git init -q one/in/deep && "
	       "echo d >one/in/deep/d && git clone -q one 'cl o\"ne\303' && echo x >x");
	apply();
	is_listed("A cl o\"ne\303/.gitignore\nA cl o\"ne\303/1\nA one/.gitignore\nA one/1\n"
		  "A one/2\nA one/in/deep/d\nA two/2\nA x\n");
	sh("test -z \"$(find . -mindepth 2 -name .git)\" && test ! -e empty && "
	   "rm -rf one two cl*");
	in_box("rm -rf one two cl*");
	apply();
	is_listed("");
}
END_TEST

START_TEST(again_from_a_repository_of_the_box)
{
	begin(ONE);
	in_box("git init -q one && echo 1 >one/1 && echo 2 >one/2");
	apply();
	is_listed("A one/1\nA one/2\n");
	ask();
	is_listed("");
	in_box("rm one/1 && echo 3 >one/2 && cd one && git add . && " COMMIT);
	apply();
	is_listed("D one/1\nM one/2\n");
	sh("test ! -e one/1 && test \"$(cat one/2)\" = 3 && rm -r one");
	in_box("rm -rf one && echo file >one");
	apply();
	is_listed("A one\n");
}
END_TEST

#define WITH_SUB                                                                          \
	"git init -q ../sub && (cd ../sub && echo s >s && mkdir d && echo t >d/t && "     \
	"git add . && git commit -qm sub) && git init -q . && echo a >a && git add . && " \
	"git commit -qm one && git submodule --quiet add \"$(cd ../sub && pwd)\" m/sub "  \
	"&& git commit -qm two && git init -q nest && echo n >nest/n && (cd nest && "     \
	"git add . && git commit -qm n)"

START_TEST(submodules_and_nested)
{
	begin(WITH_SUB);
	ask();
	is_listed("");
	in_box("cd m/sub && echo more >>s && echo u >u && git add . && " COMMIT
	       " && echo v >d/v && "
	       "cd ../../nest && echo n2 >>n && git init -q new && echo x >new/x && "
	       "rm -rf .git");
	apply();
	is_listed("A m/sub/d/v\nM m/sub/s\nA m/sub/u\nM nest/n\nA nest/new/x\n");
	ask();
	is_listed("");
}
END_TEST

START_TEST(submodule_absorbed_or_gone)
{
	begin(WITH_SUB);
	in_box("git submodule absorbgitdirs; echo y >m/sub/y; rm -rf nest; echo file >nest");
	sh("rm -rf nest/.git");
	apply();
	is_listed("A m/sub/y\nA nest\nD nest/n\n");
	in_box("git submodule --quiet deinit -f m/sub");
	apply();
	is_listed("D m/sub/d/t\nD m/sub/s\nD m/sub/y\n");
	in_box("rm -rf m");
	ask();
	is_listed("");
}
END_TEST

/* A link where a repository was is a link, not what it leads to. */
START_TEST(nested_becomes_a_link)
{
	begin(WITH_SUB);
	in_box("rm -rf nest m && mkdir ../elsewhere ../elsewhere/sub && echo x >../elsewhere/x && "
	       "ln -s ../elsewhere nest && ln -s ../elsewhere m");
	apply();
	is_listed("A m: a symbolic link that leaves the workspace\nD m/sub/d/t\nD m/sub/s\n"
		  "A nest: a symbolic link that leaves the workspace\nD nest/n\n");
}
END_TEST

/* ---- what cannot come ---- */

START_TEST(each_by_its_kind)
{
	begin(ONE);
	back.max_file = 1000;
	in_box("truncate -s 1T big; truncate -s 2T 'b\nig'; truncate -s 1T big.o; mkfifo fifo; "
	       "mkfifo f.o; mkdir .GIT; echo x >.GIT/config; echo y >\".GIT/n\nl\"; "
	       "rm link; mkfifo link; echo more >>a.txt; mkdir d; truncate -s 1T d/big");
	apply();
	is_listed("A .GIT/config: it is git's own\nA .GIT/n\nl: it is git's own\nM a.txt\n"
		  "A b\nig: larger than what may come back (--max-file)\n"
		  "A big: larger than what may come back (--max-file)\n"
		  "A d/big: larger than what may come back (--max-file)\n"
		  "A fifo: neither a file nor a directory nor a symbolic link\n"
		  "A link: neither a file nor a directory nor a symbolic link\n");
	sh("tail -n 1 a.txt | grep -q more && test -L link");
	in_box("rm -rf big* b?ig fifo .GIT d link && ln -s src/run link");
	ask();
	is_listed("");
}
END_TEST

/* A directory with millions of files stays, by one line, and all else comes. */
START_TEST(too_many_in_a_directory)
{
	begin(ONE " && mkdir big && echo 1 >big/sent && git add . && git commit -q -m two");
	back.max_new = 100;
	in_box("mkdir -p deep/er/'fl[o]od' && cd deep/er/fl?o?od && for i in $(seq 300); do "
	       "echo $i >$i; done; cd ../../.. && echo 2 >big/sent && for i in $(seq 200); do "
	       "echo $i >big/$i; done; echo n >new && echo m >>a.txt && mkdir o && "
	       "for i in $(seq 300); do echo $i >o/$i.o; done; rm link");
	apply();
	is_listed("M a.txt\nA big: too many new files in it, which stay in the box\n"
		  "M big/sent\n"
		  "A deep/er/fl[o]od: too many new files in it, which stay in the box\n"
		  "D link\nA new\n");
	in_box("rm -r big deep o");
	apply();
	is_listed("D big/sent\n");
}
END_TEST

/* All over the place: what was sent is looked at, and nothing else. */
START_TEST(too_many_everywhere)
{
	begin(ONE);
	back.max_new = 100;
	in_box("for i in $(seq 60); do mkdir d$i && echo 1 >d$i/1 && echo 2 >d$i/2 || exit 1; "
	       "done; echo m >>a.txt && rm link");
	apply();
	is_listed("A .: too many new files in it, which stay in the box\nM a.txt\nD link\n");
}
END_TEST

START_TEST(too_many_in_a_plain_directory)
{
	begin("mkdir a && echo 1 >a/f");
	back.max_new = 100;
	in_box("mkdir b && for i in $(seq 200); do echo $i >b/$i; done; echo 2 >a/f && echo n >n");
	apply();
	is_listed("M a/f\nA b: too many new files in it, which stay in the box\nA n\n");
}
END_TEST

/* A large file that was sent is no news. */
START_TEST(large_but_sent)
{
	begin("git init -q . && head -c 5000 /dev/zero >big && git add . && git commit -q -m one");
	back.max_file = 1000;
	ask();
	is_listed("");
	in_box("echo x >>big");
	ask();
	is_listed("A big: larger than what may come back (--max-file)\n");
	in_box("rm big");
	apply();
	is_listed("D big\n");
}
END_TEST

/* The box said that they were small. */
START_TEST(larger_than_said)
{
	const struct abx_box_io io = seed_box_io();

	begin(ONE);
	in_box("head -c 2000 /dev/zero >b1; echo ok >b2; head -c 3000 /dev/zero >b3; echo ok >b4");
	ask();
	back.max_file = 1000;
	unit_ok(abx_back_apply_io(&io, &back, &changes, NULL, NULL, &unit_err));
	is_listed("A b1: larger than what may come back (--max-file)\nA b2\n"
		  "A b3: larger than what may come back (--max-file)\nA b4\n");
	sh("test ! -e b1 && test ! -e b3 && test \"$(cat b2 b4)\" = \"$(printf 'ok\\nok')\"");
	back.max_file = 0;
	back.max_total = 2500;
	apply();
	is_listed("A b1\nA b3: too much for one download (--max-total)\n");
}
END_TEST

/* ---- ignored files ---- */

START_TEST(ignored_when_asked)
{
	static const char *const patterns[] = {"*.o", "/dist", NULL};
	static const char *const none[] = {NULL};

	begin(ONE " && echo dist >>.gitignore && echo '*.log' >>.gitignore && git add . && "
		  "git commit -qm two && git init -q nest && cd nest && echo n >n && "
		  "echo '*.o' >.gitignore && git add . && git commit -qm n");
	in_box("echo 1 >x.o; echo 1 >y.log; mkdir -p dist/d src/dist; echo 2 >dist/d/f; "
	       "echo 3 >src/dist/f; echo 4 >nest/z.o");
	back.ignored = none;
	ask();
	is_listed("");
	back.ignored = patterns;
	apply();
	is_listed("A dist/d/f\nA nest/z.o\nA x.o\n");
	sh("test -e dist/d/f && test -e nest/z.o && test ! -e y.log && test ! -e src/dist");
	/* Only then, and nothing is deleted for it. */
	back.ignored = NULL;
	in_box("echo 2 >x.o && rm -rf dist");
	ask();
	is_listed("");
	back.ignored = patterns;
	apply();
	is_listed("M x.o\n");
	sh("test \"$(cat x.o)\" = 2");
}
END_TEST

/* ---- what a checkout makes of a commit ---- */

#define CONVERTED                                                                              \
	"git init -q . && printf '%s\\n' '*.u working-tree-encoding=UTF-16LE' '*.i ident' "    \
	"'*.e eol=crlf' '*.t text' '*.b -text' '*.f filter=none eol=crlf' >.gitattributes && " \
	"git config filter.none.smudge 'echo never' && "                                       \
	"printf 'a\\0\\n\\0' >x.u && echo '$Id$' >x.i && echo e >x.e && echo t >x.t && "       \
	"echo b >x.b && echo f >x.f && git add . && git commit -q -m one && "                  \
	"rm x.? && git -c filter.none.smudge= checkout -q . && "

static void change_all_converted(void)
{
	in_box("for f in x.?; do cat $f $f >y && mv y $f || exit 1; done");
	apply();
	is_listed("M x.b\nM x.e\nM x.f\nM x.i\nM x.t\nM x.u\n");
	same_trees();
}

START_TEST(converted)
{
	seed_how.no_dirty = true;
	begin(CONVERTED "grep -q \"$(printf '\\r')\" x.e && grep -q 'Id: ' x.i");
	change_all_converted();
}
END_TEST

START_TEST(converted_by_settings)
{
	seed_how.no_dirty = true;
	begin(CONVERTED
	      "git config core.autocrlf true && echo p >x.p && git add x.p 2>/dev/null && "
	      "git commit -q -m p && rm .gitattributes x.? && "
	      "git -c filter.none.smudge= checkout -q . && "
	      "grep -q \"$(printf '\\r')\" x.t && grep -q \"$(printf '\\r')\" x.p");
	same_trees();
	in_box("echo more >>x.p");
	apply();
	is_listed("M x.p\n");
	same_trees();
	in_box("rm x.p");
	apply();
	is_listed("D x.p\n");
	change_all_converted();
}
END_TEST

/* Of a submodule as well. */
START_TEST(converted_in_a_submodule)
{
	seed_how.no_dirty = true;
	begin("git init -q ../sub && (cd ../sub && echo '*.e eol=crlf' >.gitattributes && "
	      "echo e >x.e && git add . && git commit -qm sub) && git init -q . && "
	      "git submodule --quiet add \"$(cd ../sub && pwd)\" m && git commit -qm two && "
	      "grep -q \"$(printf '\\r')\" m/x.e");
	in_box("echo more >>m/x.e");
	apply();
	is_listed("M m/x.e\n");
	sh("printf 'e\\r\\nmore\\n' | cmp - m/x.e");
}
END_TEST

/* ---- cut short ---- */

/* Files landed, and who brought them died before it was written down. */
START_TEST(goes_on_after_a_partial_one)
{
	abx_autofree char *manifest = NULL;

	begin(ONE);
	manifest = sh_out("cat ../manifest | base64");
	in_box("echo 1 >new; echo 1 >>a.txt; rm link");
	apply();
	is_listed("M a.txt\nD link\nA new\n");
	sh("cp ../manifest ../whole");
	unit_write_text("b64", manifest);
	sh("base64 -d ../b64 >../manifest");
	apply();
	is_listed("");
	in_box("echo 2 >new; echo 2 >>a.txt; ln -s a.txt link");
	apply();
	is_listed("M a.txt\nA link\nM new\n");
	same_trees();
}
END_TEST

/* ---- diff ---- */

static char *list_of(bool since_create)
{
	const struct abx_box_io io = seed_box_io();
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);
	struct abx_diff_list list = {NULL, 0};

	unit_ok(abx_back_diff_list_io(&io, &back, since_create, &list, &unit_err));
	for (size_t i = 0; i < list.len; i++) {
		const struct abx_diff_entry *e = &list.items[i];

		abx_buf_addf(&b, "%c %s%s%s %o>%o ", e->status, e->old_path ? e->old_path : "",
			     e->old_path ? "->" : "", e->path, e->old_mode, e->mode);
		if (e->binary)
			abx_buf_adds(&b, "binary\n");
		else
			abx_buf_addf(&b, "+%d -%d\n", (int)e->added, (int)e->deleted);
	}
	abx_diff_list_release(&list);
	return abx_xstrdup(abx_buf_str(&b));
}

static void diff_is(bool since_create, const char *want)
{
	abx_autofree char *have = list_of(since_create);

	ck_assert_str_eq(have, want);
}

START_TEST(diff_from_the_commits)
{
	begin("git init -q . && echo a >a && seq 100 >long && echo c >c && git add . && "
	      "git commit -q -m one && echo dirty >>a && echo u >u && rm c");
	diff_is(true, "");
	diff_is(false, "M a 100644>100644 +1 -0\nD c 100644>0 +0 -1\nA u 0>100644 +1 -0\n");
	in_box("echo more >>a && git add a && " COMMIT " && git mv long 'lo\tng' && "
	       "printf 'x\\0' >bin && chmod 755 u && git init -q own && echo o >own/o");
	diff_is(true, "M a 100644>100644 +1 -0\nA bin 0>100644 binary\n"
		      "R long->lo\tng 100644>100644 +0 -0\nA own/o 0>100644 +1 -0\n"
		      "M u 100644>100755 +0 -0\n");
	diff_is(false, "M a 100644>100644 +2 -0\nA bin 0>100644 binary\nD c 100644>0 +0 -1\n"
		       "R long->lo\tng 100644>100644 +0 -0\nA own/o 0>100644 +1 -0\n"
		       "A u 0>100755 +1 -0\n");
}
END_TEST

START_TEST(diff_of_submodules)
{
	begin(WITH_SUB " && echo dirty >>m/sub/s");
	diff_is(true, "");
	diff_is(false, "M m/sub/s 100644>100644 +1 -0\n");
}
END_TEST

START_TEST(diff_of_a_plain_directory)
{
	begin("echo 1 >f");
	in_box("echo 2 >>f");
	diff_is(false, "M f 100644>100644 +1 -0\n");
	diff_is(true, "M f 100644>100644 +1 -0\n");
}
END_TEST

static const struct {
	const char *text;
	size_t len;
} lies[] = {
#define N(literal)                           \
	{                                    \
		literal, sizeof(literal) - 1 \
	}
#define OID "1111111111111111111111111111111111111111"
#define RAW(status) ":100644 100644 " OID " " OID " " status "\0"
	N(""),
	N("end"),
	N("end\0end\0"),
	N(RAW("M") "a\0end\0"),
	N(RAW("M") "a\0" RAW("M") "a\0"
				  "1\t1\ta\0end\0"),
	N(RAW("M") "a\0"
		   "1\t1\tb\0end\0"),
	N(RAW("M") "a\0"
		   "1\t1\ta\0"
		   "1\t1\ta\0end\0"),
	N(RAW("M") "a\0"
		   "1\t-\ta\0end\0"),
	N(RAW("M") "a\0"
		   "1\t99999999999\ta\0end\0"),
	N(RAW("M") "a\0"
		   "1\t1\0end\0"),
	N(RAW("M") "\0"
		   "1\t1\t\0end\0"),
	N(RAW("M") "a\0"
		   "1\t1\t\0a\0a\0end\0"),
	N(RAW("R100") "a\0b\0"
		      "1\t1\tb\0end\0"),
	N(RAW("R100") "a\0b\0"
		      "1\t1\t\0b\0a\0end\0"),
	N(RAW("R101") "a\0b\0"
		      "1\t1\t\0a\0b\0end\0"),
	N(RAW("Rx") "a\0b\0"
		    "1\t1\t\0a\0b\0end\0"),
	N(RAW("C100") "a\0b\0"
		      "1\t1\t\0a\0b\0end\0"),
	N(RAW("") "a\0"
		  "1\t1\ta\0end\0"),
	N("1\t1\ta\0end\0"),
};

START_TEST(diff_that_is_none)
{
	const struct abx_box_io io = seed_box_io();
	struct abx_diff_list list = {NULL, 0};

	begin(ONE);
	seed_faults.answer = lies[_i].text;
	seed_faults.answer_len = lies[_i].len;
	ck_assert_int_eq(abx_back_diff_list_io(&io, &back, false, &list, &unit_err), ABX_EPROTO);
	ck_assert_ptr_null(list.items);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {made_in_the_box,
				      again_from_a_repository_of_the_box,
				      submodules_and_nested,
				      submodule_absorbed_or_gone,
				      nested_becomes_a_link,
				      each_by_its_kind,
				      large_but_sent,
				      larger_than_said,
				      ignored_when_asked,
				      goes_on_after_a_partial_one,
				      converted,
				      too_many_in_a_directory,
				      too_many_everywhere,
				      too_many_in_a_plain_directory,
				      converted_by_settings,
				      converted_in_a_submodule,
				      diff_from_the_commits,
				      diff_of_submodules,
				      diff_of_a_plain_directory};
	Suite *s = suite_create("back-more");
	TCase *tc = tcase_create("lies");

	seed_add_tests(s, "changes", tests, ABX_N_ELEMENTS(tests), finish);
	tcase_add_checked_fixture(tc, seed_setup, finish);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, diff_that_is_none, 0, (int)ABX_N_ELEMENTS(lies));
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
