/* SPDX-License-Identifier: MIT */
/* Bringing back from a box that lies: nothing outside, nothing of git's, nothing unasked. */
#include "tests/unit/seed-box.h"

#include <fcntl.h>

#include "core/seed/back-diff.h"
#include "core/seed/back-io.h"
#include "core/seed/back-list.h"
#include "core/seed/manifest.h"

#define ZERO "0000000000000000000000000000000000000000"
#define HELLO "ce013625030ba8dba906f756967f9e9ca394464a" /* "hello\n" */
#define TREE "tree 1111111111111111111111111111111111111111\n"
/* The NULs in between are written out: these are literals with their length. */
#define ADD(path) ":000000 100644 " ZERO " " HELLO " A\0" path "\0"
#define MODIFY(path) ":100644 100644 " ZERO " " HELLO " M\0" path "\0"
#define DELETE(path) ":100644 000000 " HELLO " " ZERO " D\0" path "\0"
#define LINK(path) ":000000 120000 " ZERO " " HELLO " A\0" path "\0"
#define END "end\0"

static struct abx_seed_result got;
static struct abx_changes changes;
static struct abx_back back;
static char *paths[3];
static char *before;

/* All but the box, and what is ours to write. */
#define OURS "-path ./box -prune -o -path ./spool -prune -o -type f ! -name manifest"

static void setup(void)
{
	seed_setup();
	sh("git init -q . && echo alpha >a.txt && mkdir d && echo 1 >d/1 && echo '*.o' "
	   ">.gitignore && git add . && git commit -q -m one && echo secret >secret.o && "
	   "mkdir ../outside && echo out >../outside/out");
	seed_all(&got);
	paths[0] = abx_xstrdup(seed_box_dir());
	paths[1] = abx_xstrdup(unit_path("manifest"));
	paths[2] = abx_xstrdup(unit_path("host"));
	back = (struct abx_back){.dir = paths[0],
				 .seed_tree = got.seed_tree,
				 .manifest = paths[1],
				 .workspace = paths[2]};
	before = tree_of(unit_dir(), OURS, TREE_UNTOUCHED);
}

static void untouched(void)
{
	abx_autofree char *after = tree_of(unit_dir(), OURS, TREE_UNTOUCHED);

	ck_assert_str_eq(before, after);
}

static void teardown(void)
{
	abx_changes_release(&changes);
	abx_seed_result_release(&got);
	free(before);
	for (size_t i = 0; i < ABX_N_ELEMENTS(paths); i++)
		free(paths[i]);
	unit_dir_teardown();
}

static int ask(const void *answer, size_t len)
{
	const struct abx_box_io io = seed_box_io();

	abx_changes_release(&changes);
	seed_faults.answer = answer;
	seed_faults.answer_len = len;
	seed_faults.answer_at = 1;
	return abx_back_changes_io(&io, &back, &changes, &unit_err);
}

/* A string literal with NULs in it, less the last one, which C adds. */
#define ASK(literal) ask(literal, sizeof(literal) - 1)

static int apply(const void *answer, size_t len)
{
	const struct abx_box_io io = seed_box_io();

	seed_faults.answer = answer;
	seed_faults.answer_len = len;
	seed_faults.answer_at = 1;
	return abx_back_apply_io(&io, &back, &changes, NULL, NULL, &unit_err);
}

static const struct nonsense {
	const char *text;
	size_t len;
} nonsense[] = {
#define N(literal)                           \
	{                                    \
		literal, sizeof(literal) - 1 \
	}
	N(""),
	N("end\0"),
	N(TREE),
	N("tree 1\n" END),
	N("tree 111111111111111111111111111111111111111g\n" END),
	N("partial\n"),
	N(TREE "end"),
	N(TREE END "more"),
	N(TREE END END),
	N(TREE ADD("a") "x"),
	N(TREE ADD("a")),
	N(TREE ADD("a") ADD("a") END),
	N(TREE ADD("") END),
	N(TREE ":000000 100644 " ZERO " " HELLO " A\0"),
	N(TREE ":000000 100644 " ZERO " " HELLO " A\0" END),
	N(TREE ":000000 100644 " ZERO " " HELLO " R100\0a\0b\0" END),
	N(TREE ":000000 100644 " ZERO " " HELLO " X\0a\0" END),
	N(TREE ":000000 100644 " ZERO " " HELLO "  \0a\0" END),
	N(TREE ":000000 100666 " ZERO " " HELLO " A\0a\0" END),
	N(TREE ":000000 104755 " ZERO " " HELLO " A\0a\0" END),
	N(TREE ":000000 040000 " ZERO " " HELLO " A\0a\0" END),
	N(TREE ":000000 100648 " ZERO " " HELLO " A\0a\0" END),
	N(TREE ":000000 000000 " ZERO " " HELLO " A\0a\0" END),
	N(TREE ":100644 100644 " ZERO " " HELLO " A\0a\0" END),
	N(TREE ":000000 100644 " ZERO " " HELLO " M\0a\0" END),
	N(TREE ":100644 100644 " ZERO " " HELLO " D\0a\0" END),
	N(TREE ":000000 100644 " ZERO " ../../../../../../../../../../../../../. A\0a\0" END),
	N(TREE ":000000 100644 " ZERO " CE013625030BA8DBA906F756967F9E9CA394464A A\0a\0" END),
	N(TREE ":000000 100644 0000 ce01 A\0a\0" END),
	N(TREE "000000 100644 " ZERO " " HELLO " A\0a\0" END),
};

START_TEST(malformed_list)
{
	const int r = ask(nonsense[_i].text, nonsense[_i].len);

	ck_assert_int_eq(r, ABX_EPROTO);
	ck_assert_uint_eq(changes.len, 0);
	untouched();
}
END_TEST

/* Every beginning of a good list is a bad list. */
START_TEST(truncated_list)
{
	static const char good[] = TREE ADD("a") DELETE("d/1") LINK("l") END;

	for (size_t len = 0; len < sizeof(good) - 1; len++) {
		abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(4096);

		abx_buf_add(&text, good, len);
		ck_assert_int_eq(abx_changes_parse(&text, &changes, &unit_err), ABX_EPROTO);
	}
}
END_TEST

START_TEST(too_many_changes)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT((size_t)512 << 20);

	abx_buf_adds(&text, TREE);
	for (int i = 0; i <= ABX_CHANGES_MAX; i++) {
		abx_buf_add(&text, ":000000 100644 " ZERO " " HELLO " A", 99);
		abx_buf_addf(&text, "%d", i);
		abx_buf_addc(&text, '\0');
	}
	abx_buf_add(&text, END, 4);
	ck_assert(!text.failed);
	ck_assert_int_eq(abx_changes_parse(&text, &changes, &unit_err), ABX_EPROTO);
}
END_TEST

START_TEST(endless_list)
{
	const size_t len = ABX_CHANGES_BYTES_MAX + 1;
	abx_autofree char *text = malloc(len);

	ck_assert_ptr_nonnull(text);
	memset(text, 'x', len);
	ck_assert_int_eq(ask(text, len), ABX_EPROTO);
	unit_has(unit_err.text, "too long");
}
END_TEST

static const struct {
	const char *text;
	size_t len;
} escapes[] = {
	N(TREE ADD("../outside/x") END),
	N(TREE ADD("/tmp/abx-pwned") END),
	N(TREE ADD(".git/hooks/post-checkout") END),
	N(TREE ADD(".GIT/hooks/x") END),
	N(TREE ADD("d/.git/config") END),
	N(TREE ADD(".git\xe2\x80\x8c/config") END),
	N(TREE ADD("git~1/config") END),
	N(TREE ADD("d/../../outside/out") END),
	N(TREE MODIFY(".git/config") END),
	N(TREE DELETE(".git/config") END),
	N(TREE DELETE("../outside/out") END),
	N(TREE DELETE("secret.o") END),
	N(TREE MODIFY("secret.o") END),
	N(TREE ADD("secret.o") END),
	N(TREE LINK(".git") END),
	N(TREE MODIFY("d") END),
};

START_TEST(escape)
{
	static const char content[] = HELLO " blob 6\nhello\n\n";

	ck_assert_int_eq(ask(escapes[_i].text, escapes[_i].len), 0);
	ck_assert_uint_eq(changes.len, 1);
	ck_assert_ptr_nonnull(changes.items[0].problem);
	untouched();
	/* Not even when somebody asks for it all the same. */
	free(changes.items[0].problem);
	changes.items[0].problem = NULL;
	ck_assert_int_eq(apply(content, sizeof(content) - 1), 0);
	ck_assert_ptr_nonnull(changes.items[0].problem);
	ck_assert_int_ne(access("/tmp/abx-pwned", F_OK), 0);
	untouched();
}
END_TEST

/* The list names one content, the box gives another; or none; or no end of it. */
static const struct nonsense contents[] = {
	N(""),
	N(HELLO " blob 6\nHELLO\n\n"),
	N(HELLO " blob 6\nhell"),
	N(HELLO " blob 6\nhello\n"),
	N(HELLO " blob 6\nhello\nx"),
	N(HELLO " blob 5\nhello\n"),
	N(HELLO " blob 6\nhello\n\nmore"),
	N(HELLO " blob 6\nhello\n\n" HELLO " blob 6\nhello\n\n"),
	N(HELLO " missing\n"),
	N(HELLO " tree 6\nhello\n\n"),
	N(HELLO " blob -6\nhello\n\n"),
	N(HELLO " blob 99999999999999999999\nhello\n\n"),
	N(HELLO " blob 9223372036854775808\nhello\n\n"),
	N(HELLO " blob \n\n"),
	N(ZERO " blob 6\nhello\n\n"),
	N("\n\n\n"),
	N(HELLO HELLO HELLO " blob 6\nhello\n\n"),
	N("\0\0\0\0"),
};

START_TEST(wrong_content)
{
	ck_assert_int_eq(ASK(TREE ADD("new/file") END), 0);
	ck_assert_ptr_null(changes.items[0].problem);
	ck_assert_int_eq(apply(contents[_i].text, contents[_i].len), ABX_EPROTO);
	/* Surplus comes after a whole file, which is right. */
	sh("{ test ! -e new/file || test \"$(cat new/file)\" = hello; } && "
	   "test -z \"$(find . -name '.agentbox-*')\"");
}
END_TEST

START_TEST(right_content)
{
	static const char content[] = HELLO " blob 6\nhello\n\n";

	ck_assert_int_eq(ASK(TREE ADD("new/file") END), 0);
	ck_assert_int_eq(apply(content, sizeof(content) - 1), 0);
	sh("test \"$(cat new/file)\" = hello");
}
END_TEST

/* A box that claims that its start was what the user has now. */
START_TEST(conflicts_are_not_for_the_box_to_judge)
{
	static const char lie[] = TREE ":100644 100644 " HELLO " " HELLO " M\0a.txt\0" END;

	sh("echo hello >a.txt");
	/* The user's own content is what the box says it has: nothing to do. */
	ck_assert_int_eq(ask(lie, sizeof(lie) - 1), 0);
	ck_assert_uint_eq(changes.len, 0);
	sh("echo mine >a.txt");
	ck_assert_int_eq(ask(lie, sizeof(lie) - 1), 0);
	ck_assert_uint_eq(changes.len, 1);
	ck_assert_ptr_nonnull(changes.items[0].problem);
}
END_TEST

/* The user saves a file between the question and the answer. */
START_TEST(changed_while_asked)
{
	static const char content[] = HELLO " blob 6\nhello\n\n";

	ck_assert_int_eq(ASK(TREE MODIFY("a.txt") DELETE("d/1") END), 0);
	ck_assert_ptr_null(changes.items[0].problem);
	sh("echo mine >a.txt; echo mine >d/1");
	ck_assert_int_eq(apply(content, sizeof(content) - 1), 0);
	ck_assert_ptr_nonnull(changes.items[0].problem);
	ck_assert_ptr_nonnull(changes.items[1].problem);
	sh("test \"$(cat a.txt)\" = mine && test \"$(cat d/1)\" = mine");
}
END_TEST

START_TEST(directory_becomes_a_link_while_asked)
{
	static const char content[] = HELLO " blob 6\nhello\n\n";

	ck_assert_int_eq(ASK(TREE ADD("d/new") END), 0);
	sh("mv d ../d && ln -s ../outside d");
	ck_assert_int_eq(apply(content, sizeof(content) - 1), 0);
	ck_assert_ptr_nonnull(changes.items[0].problem);
	ck_assert_int_ne(access(unit_path("outside/new"), F_OK), 0);
}
END_TEST

START_TEST(disk_full)
{
	abx_auto(abx_buf) struct abx_buf content = ABX_BUF_INIT(1 << 22);
	abx_autofree char *text = abx_xcalloc(1, 1 << 20), *id = NULL;
	abx_auto(abx_buf) struct abx_buf list = ABX_BUF_INIT(4096);
	int r;

	id = sh_out("head -c 1048576 /dev/zero | git hash-object --stdin | tr -d '\\n'");
	abx_buf_adds(&list, TREE);
	abx_buf_addf(&list, ":000000 100644 " ZERO " %s A", id);
	abx_buf_add(&list, "\0big\0end\0", 9);
	abx_buf_addf(&content, "%s blob 1048576\n", id);
	abx_buf_add(&content, text, 1 << 20);
	abx_buf_addc(&content, '\n');
	ck_assert_int_eq(ask(list.data, list.len), 0);
	unit_disk_full_at(65536);
	r = apply(content.data, content.len);
	unit_disk_free();
	ck_assert_int_eq(r, 0);
	unit_has(changes.items[0].problem, "cannot be written");
	sh("test ! -e big && test -z \"$(find . -name '.agentbox-*')\"");
}
END_TEST

/* Whatever becomes of the record: an answer or one clear line, and nothing here is touched. */
static const char *const tampered[] = {
	"rm -rf *",
	"rm -rf objects",
	"rm HEAD",
	"head -c 300 /dev/urandom >index",
	": >index",
	"echo garbage >config",
	"rm -rf index && mkdir index",
	"printf '[core]\\nfsmonitor = touch %s/../pwned\\n' \"$PWD\" >>config",
	"printf '[alias]\\nadd = !touch /tmp/abx-pwned\\n' >>config",
	"printf '[filter \"x\"]\\nclean = false\\n' >>config && echo '* filter=x' "
	">info/attributes",
	"echo /nowhere/objects >>objects/info/alternates",
	"mkdir -p hooks && printf '#!/bin/sh\\nexit 1\\n' >hooks/post-index-change && "
	"chmod 755 hooks/post-index-change && git config -f config core.hooksPath hooks",
	"mkdir -p nested/1 && cp -r HEAD config objects refs info nested/1 && "
	"printf ../../outside >nested/1/path",
	"mkdir -p nested/1 && cp -r HEAD config objects refs info nested/1 && "
	"printf /etc >nested/1/path",
	"mkdir -p nested/1 && cp -r HEAD config objects refs info nested/1 && rm -f nested/1/path",
	"mkdir -p nested/1 && cp -r HEAD config objects refs info nested/1 && "
	"printf link >nested/1/path && ln -s ../../outside ~/../workspace/link",
	"find . -name nested -prune -o -type f -exec sh -c 'echo x >\"$1\"' sh {} ';'",
};

START_TEST(tampered_record)
{
	static const char *const bases[] = {"--output=/tmp/abx-pwned", "$(touch /tmp/abx-pwned)",
					    "../../x"};
	const struct abx_box_io io = seed_box_io();
	const struct abx_diff_how how = {0};
	abx_autofree char *script = abx_xasprintf("cd ~/.agentbox/seed.git && %s", tampered[_i]);
	abx_autofree char *base = abx_xasprintf("echo '%s' >~/.agentbox/seed.git/base || :",
						bases[_i % (int)ABX_N_ELEMENTS(bases)]);
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC), r;

	in_box(script);
	r = abx_back_changes_io(&io, &back, &changes, &unit_err);
	if (r < 0) {
		ck_assert_ptr_null(strchr(unit_err.text, '\n'));
		ck_assert_int_ne(unit_err.text[0], '\0');
	}
	for (size_t i = 0; i < changes.len; i++)
		ck_assert_msg(!strstr(changes.items[i].path, "out") &&
				      !strstr(changes.items[i].path, "passwd"),
			      "%s", changes.items[i].path);
	in_box(base);
	ck_assert_int_lt(abx_back_diff_io(&io, &back, &how, fd, NULL, &unit_err), 0);
	ck_assert_int_ne(access("/tmp/abx-pwned", F_OK), 0);
	untouched();
	(void)close(fd);
}
END_TEST

/* What failed in the box is said, on one line, without its control characters. */
START_TEST(failing_script)
{
	const struct abx_box_io io = seed_box_io();

	seed_faults.answer = "";
	seed_faults.answer_code = 90;
	ck_assert_int_eq(abx_back_changes_io(&io, &back, &changes, &unit_err), ABX_EREMOTE);
	seed_faults.answer_code = 91;
	ck_assert_int_eq(abx_back_changes_io(&io, &back, &changes, &unit_err), ABX_ENOTSUP);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {truncated_list,
				      too_many_changes,
				      endless_list,
				      right_content,
				      conflicts_are_not_for_the_box_to_judge,
				      changed_while_asked,
				      directory_becomes_a_link_while_asked,
				      disk_full,
				      failing_script};
	Suite *s = suite_create("back-hostile");
	TCase *tc = tcase_create("box");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, malformed_list, 0, (int)ABX_N_ELEMENTS(nonsense));
	tcase_add_loop_test(tc, escape, 0, (int)ABX_N_ELEMENTS(escapes));
	tcase_add_loop_test(tc, tampered_record, 0, (int)ABX_N_ELEMENTS(tampered));
	tcase_add_loop_test(tc, wrong_content, 0, (int)ABX_N_ELEMENTS(contents));
	for (size_t i = 0; i < ABX_N_ELEMENTS(tests); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
