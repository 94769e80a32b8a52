/* SPDX-License-Identifier: MIT */
/* Bringing back: what the box changed lands, and nothing else does. */
#include "tests/unit/back-box.h"

#include "core/seed/back-diff.h"
#include "core/seed/back-io.h"
#include "core/seed/back-path.h"

START_TEST(nothing_changed)
{
	begin(ONE);
	ask();
	is_listed("");
}
END_TEST

START_TEST(modes_that_git_does_not_look_at)
{
	begin(ONE " && git config core.filemode false && chmod 755 a.txt && chmod 644 src/run");
	ask();
	is_listed("");
	in_box("chmod 644 a.txt");
	apply();
	is_listed("M a.txt\n");
	sh("test ! -x a.txt");
}
END_TEST

START_TEST(every_kind)
{
	begin(ONE);
	in_box("printf 'more\\n' >>a.txt; printf 'x\\0y\\377' >new.bin; chmod 644 src/run; "
	       "rm link; ln -s a.txt link2; mkdir -p deep/er; echo 1 >deep/er/f; "
	       "printf z >ignored.o; git mv a.txt b.txt; git commit -qam work");
	apply();
	is_listed("D a.txt\nA b.txt\nA deep/er/f\nD link\nA link2\nA new.bin\nM src/run\n");
	sh("rm -f ignored.o");
	in_box("rm -f ignored.o");
	same_trees();
}
END_TEST

/* A second time brings nothing, and the box goes on from there. */
START_TEST(again_and_again)
{
	begin(ONE);
	in_box("echo 1 >new && echo 1 >>a.txt");
	apply();
	is_listed("M a.txt\nA new\n");
	ask();
	is_listed("");
	in_box("echo 2 >new && rm a.txt");
	apply();
	is_listed("D a.txt\nM new\n");
	same_trees();
	in_box("rm new && git checkout -q a.txt");
	apply();
	is_listed("A a.txt\nD new\n");
	same_trees();
}
END_TEST

/* What came is what this machine has: edits here after it are in nobody's way. */
START_TEST(brought_and_then)
{
	begin(ONE " && echo 1 >kept && echo 1 >undone && git add . && git commit -q -m two");
	in_box("mkdir -p n/d && echo 1 >n/d/new && echo 1 >new && echo 1 >both && "
	       "echo 2 >undone && rm kept");
	apply();
	is_listed("A both\nD kept\nA n/d/new\nA new\nM undone\n");
	/* Only here. */
	sh("echo here >>new");
	ask();
	is_listed("");
	/* Only there: gone, as it was, there again. */
	in_box("rm -r n && git checkout -q undone kept");
	/* On both sides. */
	in_box("rm both && echo there >>new");
	sh("echo here >>both");
	apply();
	is_listed("D both: changed on this machine since it was sent\nA kept\nD n/d/new\n"
		  "M new: changed on this machine since it was sent\nM undone\n");
	sh("test ! -e n && test \"$(cat undone kept)\" = '1\n1'");
}
END_TEST

/* A file becomes a directory, a directory a file, and back. */
START_TEST(brought_of_another_kind)
{
	begin(ONE);
	in_box("echo f >x && mkdir y && echo f >y/f");
	apply();
	is_listed("A x\nA y/f\n");
	in_box("rm -r x y && mkdir x && echo f >x/f && echo f >y");
	apply();
	is_listed("D x\nA x/f\nA y\nD y/f\n");
	same_trees();
	in_box("rm -r x y && ln -s src x && echo f >y");
	apply();
	is_listed("A x\nD x/f\n");
	same_trees();
}
END_TEST

START_TEST(odd_names)
{
	begin(ONE);
	in_box("printf '%s\\0' -rf '--help' 'sp ace' '\"q\"' 'bad\xff' 'caf\xc3\xa9' '...' | "
	       "xargs -0 -n 1 sh -c 'echo \"$1\" >\"./$1\"' sh && printf x >\"$(printf 'n\\nl')\" "
	       "&& mkdir \"$(printf 'd\\001\\377')\" && echo y >\"$(printf 'd\\001\\377')/$(printf "
	       "'%0255d' 1)\"");
	apply();
	ck_assert_uint_eq(changes.len, 9);
	same_trees();
}
END_TEST

START_TEST(modes_here_stay)
{
	abx_autofree char *modes = NULL;

	begin("git init -q . && for f in a b c d e; do echo $f >$f; done && chmod 600 a b && "
	      "chmod 640 c && chmod 700 d && git add . && git commit -q -m one");
	in_box("echo x >>a; chmod 755 b; chmod 755 c; chmod 644 d; rm e; echo n >n; "
	       "echo p >p; chmod 755 p");
	apply();
	modes = sh_out("stat -c '%a %n' *");
	ck_assert_str_eq(modes, "600 a\n700 b\n750 c\n600 d\n644 n\n755 p\n");
}
END_TEST

START_TEST(no_setuid_comes_back)
{
	abx_autofree char *mode = NULL;

	begin(ONE);
	in_box("echo x >s && chmod 6755 s && echo y >>src/run && chmod 6755 src/run");
	apply();
	mode = sh_out("stat -c %a s src/run");
	ck_assert_str_eq(mode, "755\n755\n");
}
END_TEST

/* File to directory, directory to file, file to link, link to file. */
START_TEST(kinds_change)
{
	begin("git init -q . && echo a >a && mkdir d && echo 1 >d/1 && echo 2 >d/2 && echo f >f && "
	      "ln -s f l && ln -s f m && git add . && git commit -q -m one");
	in_box("rm a && mkdir a && echo in >a/in && rm -r d && echo d >d && rm f && ln -s d f && "
	       "rm l && echo l >l && rm m && mkdir m && echo m >m/m");
	apply();
	is_listed("D a\nA a/in\nA d\nD d/1\nD d/2\nM f\nM l\nD m\nA m/m\n");
	same_trees();
	ask();
	is_listed("");
}
END_TEST

START_TEST(empty_directories_go)
{
	begin("git init -q . && mkdir -p a/b/c keep && echo 1 >a/b/c/1 && echo 2 >keep/2 && "
	      "echo 3 >keep/ignored.o && echo '*.o' >.gitignore && git add . && "
	      "git commit -q -m one");
	in_box("rm -r a keep");
	apply();
	is_listed("D a/b/c/1\nD keep/2\n");
	sh("test ! -e a && test -e keep/ignored.o");
}
END_TEST

START_TEST(dirty_state_is_the_base)
{
	begin(ONE " && echo dirty >>a.txt && echo staged >s && git add s && echo u >u");
	ask();
	is_listed("");
	in_box("git commit -qam x && git checkout -q HEAD~1 -- . && git reset -q --hard HEAD~1");
	ask();
	/* The box went back to the commit: that is a change of what was sent. */
	is_listed("M a.txt\nD s\n");
}
END_TEST

START_TEST(tracked_though_ignored)
{
	begin("git init -q . && echo '*.o' >.gitignore && echo 1 >x.o && git add -f . && "
	      "git commit -q -m one");
	in_box("echo 2 >x.o; echo 3 >y.o");
	apply();
	is_listed("M x.o\n");
}
END_TEST

START_TEST(plain_directory)
{
	begin("mkdir -p a/b && echo 1 >a/b/f && echo '*' >.gitignore");
	ask();
	is_listed("");
	in_box("echo 2 >a/b/f && echo 3 >ignored && rm .gitignore && git init -q . && "
	       "mkdir x && echo '*' >x/.gitignore && echo 4 >x/y");
	apply();
	is_listed("D .gitignore\nM a/b/f\nA ignored\nA x/.gitignore\nA x/y\n");
	sh("test ! -e .git && test \"$(cat a/b/f)\" = 2");
}
END_TEST

/* Whatever becomes of the repository in the box. */
START_TEST(git_is_gone_from_the_box)
{
	begin(ONE);
	in_box("git reflog expire --expire=now --all && git gc -q --prune=now && echo x >>a.txt");
	ask();
	is_listed("M a.txt\n");
	in_box("rm -rf .git && git config --global core.excludesFile /dev/null && "
	       "git config --global core.autocrlf true && printf 'a\\r\\n' >crlf");
	apply();
	is_listed("M a.txt\nA crlf\n");
	same_trees();
}
END_TEST

START_TEST(attributes_of_the_box_do_not_convert)
{
	begin(ONE);
	in_box("git config --global filter.x.clean 'echo filtered' && "
	       "echo '* filter=x text eol=crlf ident' >.gitattributes && "
	       "printf 'a\\r\\n$Id$\\n' >f");
	apply();
	is_listed("A .gitattributes\nA f\n");
	same_trees();
}
END_TEST

START_TEST(same_size_and_time)
{
	begin(ONE);
	in_box("printf 'ALPHA\\n' >x && touch -r a.txt x && cat x >a.txt && touch -r x a.txt && "
	       "rm x");
	apply();
	is_listed("M a.txt\n");
}
END_TEST

/* ---- conflicts ---- */

#define SENT "changed on this machine since it was sent"

START_TEST(changed_on_both_sides)
{
	begin(ONE " && echo b >b && echo c >c && echo d >d && echo e >e && git add . && "
		  "git commit -q -m two && echo u >u");
	in_box("for f in a.txt b c u; do echo box >>$f; done; rm d; rm e; echo box >new; "
	       "echo box >same; ln -s a.txt l2");
	sh("echo host >>a.txt; rm b; chmod 755 c; echo host >>d; echo host >>u; echo host >new; "
	   "echo box >same; rm e; ln -s src/run l2");
	apply();
	is_listed("M a.txt: " SENT "\nM b: deleted on this machine since it was sent\nM c: " SENT
		  "\nD d: " SENT "\nA l2: exists on this machine, and was not sent\n"
		  "A new: exists on this machine, and was not sent\nM u: " SENT "\n");
	sh("test \"$(tail -n 1 a.txt)\" = host && test ! -e b && test -e d && "
	   "test \"$(cat new)\" = host && test \"$(readlink l2)\" = src/run");
}
END_TEST

/* Touched is not changed, also for what git does not know. */
START_TEST(touched_is_no_conflict)
{
	begin(ONE " && echo u >u");
	in_box("echo box >>a.txt; echo box >>u");
	sh("touch -d 2020-01-01 a.txt u && cp a.txt x && mv x a.txt");
	apply();
	is_listed("M a.txt\nM u\n");
	same_trees();
}
END_TEST

START_TEST(links_and_files_in_the_way)
{
	begin(ONE " && mkdir d && echo 1 >d/1 && git add . && git commit -q -m two");
	in_box("echo 2 >d/2; echo 2 >>d/1; mkdir n; echo 1 >n/1; mkdir m; echo 1 >m/1; echo p >p");
	sh("mkdir ../outside && mv d/1 ../outside/ && rmdir d && ln -s ../outside d && "
	   "echo n >n && ln -s /nowhere m && mkdir p");
	apply();
	is_listed("M d/1: a symbolic link is on the way on this machine\n"
		  "A d/2: a symbolic link is on the way on this machine\n"
		  "A m/1: a symbolic link is on the way on this machine\n"
		  "A n/1: a file is in the way on this machine\n"
		  "A p: a directory is in the way on this machine\n");
	sh("test \"$(cat ../outside/1)\" = 1 && test ! -e ../outside/2");
}
END_TEST

START_TEST(links_that_leave)
{
	begin(ONE);
	in_box("ln -s /etc/passwd abs; ln -s ../../x up; mkdir d; ln -s ../a.txt d/ok; "
	       "ln -s ../../a.txt d/up; ln -s d/../../x mixed; ln -s nowhere dangling");
	apply();
	is_listed("A abs: a symbolic link that leaves the workspace\nA d/ok\n"
		  "A d/up: a symbolic link that leaves the workspace\nA dangling\n"
		  "A mixed: a symbolic link that leaves the workspace\n"
		  "A up: a symbolic link that leaves the workspace\n");
	sh("test ! -L abs && test ! -L up && test -L d/ok && test ! -L d/up && test ! -L mixed");
}
END_TEST

START_TEST(no_record_in_the_box)
{
	const struct abx_box_io io = seed_box_io();

	begin(ONE);
	in_box("rm -rf ~/.agentbox");
	ck_assert_int_eq(abx_back_changes_io(&io, &back, &changes, &unit_err), ABX_ENOTFOUND);
	unit_has(unit_err.text, "record of what was put into it is not there");
}
END_TEST

START_TEST(damaged_manifest)
{
	const struct abx_box_io io = seed_box_io();
	abx_autofree char *text = NULL;

	begin(ONE);
	unit_write_text("manifest", "agentbox-manifest 1");
	ck_assert_int_eq(abx_back_changes_io(&io, &back, &changes, &unit_err), ABX_ECORRUPT);
	text = unit_read("manifest");
	ck_assert_str_eq(text, "agentbox-manifest 1");
}
END_TEST

START_TEST(two_at_once)
{
	begin(ONE);
	in_box("for i in 1 2 3 4 5 6 7 8 9; do echo $i >n$i; done");
	in_box("true");
	{
		struct abx_changes first = {0};
		const struct abx_box_io io = seed_box_io();

		unit_ok(abx_back_changes_io(&io, &back, &first, &unit_err));
		unit_ok(abx_back_changes_io(&io, &back, &changes, &unit_err));
		ck_assert_uint_eq(first.len, 9);
		ck_assert_uint_eq(changes.len, 9);
		abx_changes_release(&first);
	}
}
END_TEST

/* ---- diff ---- */

static char *diffed(const struct abx_diff_how *how)
{
	const struct abx_box_io io = seed_box_io();
	const int fd = open(unit_path("diff"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	unit_ok(abx_back_diff_io(&io, &back, how, fd, NULL, &unit_err));
	(void)close(fd);
	return unit_read("diff");
}

START_TEST(diff_text)
{
	abx_autofree char *plain = NULL, *stat = NULL, *color = NULL;

	begin(ONE);
	in_box("echo more >>a.txt; printf 'x\\0' >bin; git add .; git commit -qm x; echo u >u; "
	       "git config --global diff.noprefix true; git config --global color.ui never");
	plain = diffed(&(struct abx_diff_how){0});
	unit_has(plain, "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n alpha\n+more\n");
	unit_has(plain, "Binary files /dev/null and b/bin differ");
	unit_has(plain, "+++ b/u\n");
	ck_assert_ptr_null(strchr(plain, '\033'));
	stat = diffed(&(struct abx_diff_how){.form = ABX_DIFF_STAT});
	unit_has(stat, "3 files changed, 2 insertions(+)");
	color = diffed(&(struct abx_diff_how){.color = true});
	unit_has(color, "\033[");
}
END_TEST

/* B040, B042 */
START_TEST(paths_that_a_box_may_say)
{
	static const char *const refused[] = {"",
					      "/etc/passwd",
					      "..",
					      "../x",
					      "a/../../x",
					      "a/..",
					      ".",
					      "a/./b",
					      "a//b",
					      "a/",
					      ".git",
					      ".git/config",
					      ".GIT/hooks/x",
					      "a/.git/x",
					      ".gIt",
					      ".git.",
					      ".git ",
					      ".git. . ",
					      "git~1",
					      "GIT~1/x",
					      ".git:x",
					      ".git::$INDEX_ALLOCATION/config",
					      "x/.git\xe2\x80\x8c/y",
					      "\xef\xbb\xbf.git",
					      ".g\xe2\x80\x8dit",
					      ".git\xe2\x81\xaf",
					      ".git\\config",
					      "a\\.git\\hooks",
					      "a\\..\\x",
					      "..\\x"};
	static const char *const fine[] = {
		".gitignore", ".github/x", "a/.gitattributes", "git",	"a.git", "..a",
		"...",	      "-rf",	   "git~10",	       ".gitx", "a\\b",	 "x.git/y",
		"\xff",	      "a\nb",	   ".git\xe2\x80\x90"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(refused); i++)
		ck_assert_msg(abx_back_path_problem(refused[i]) != NULL, "%s", refused[i]);
	for (size_t i = 0; i < ABX_N_ELEMENTS(fine); i++)
		ck_assert_msg(abx_back_path_problem(fine[i]) == NULL, "%s", fine[i]);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {nothing_changed,
				      modes_that_git_does_not_look_at,
				      every_kind,
				      again_and_again,
				      brought_and_then,
				      brought_of_another_kind,
				      odd_names,
				      modes_here_stay,
				      no_setuid_comes_back,
				      kinds_change,
				      empty_directories_go,
				      dirty_state_is_the_base,
				      tracked_though_ignored,
				      plain_directory,
				      git_is_gone_from_the_box,
				      attributes_of_the_box_do_not_convert,
				      same_size_and_time,
				      changed_on_both_sides,
				      touched_is_no_conflict,
				      links_and_files_in_the_way,
				      links_that_leave,
				      no_record_in_the_box,
				      damaged_manifest,
				      two_at_once,
				      diff_text,
				      paths_that_a_box_may_say};
	Suite *s = suite_create("back");

	seed_add_tests(s, "changes", tests, ABX_N_ELEMENTS(tests), finish);
	return s;
}

UNIT_MAIN(suite)
