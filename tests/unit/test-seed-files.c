/* SPDX-License-Identifier: MIT */
/* Reading git's own files: whatever is in them, never out of bounds, never accepted by half. */
#include "core/seed/index.h"

#include "core/seed/git-config.h"
#include "core/seed/git.h"
#include "core/seed/layout.h"
#include "core/seed/manifest.h"
#include "core/seed/status.h"
#include "core/seed/stream-git.h"
#include "core/seed/stream.h"
#include "tests/unit/seed-box.h"

static void make_index(const char *version)
{
	abx_autofree char *script = abx_xasprintf(
		"git init -q . && for i in 1 2 3; do mkdir -p d$i/e && echo $i >d$i/e/f$i; "
		"echo x >top$i; done && git add . && echo n >later && git add -N later && "
		"git update-index --index-version %s --assume-unchanged top1",
		version);

	sh(script);
}

static void check_entries(const struct abx_index *index)
{
	static const char *const paths[] = {"d1/e/f1", "d2/e/f2", "d3/e/f3", "later",
					    "top1",    "top2",	  "top3"};

	ck_assert_uint_eq(index->len, ABX_N_ELEMENTS(paths));
	for (size_t i = 0; i < index->len; i++) {
		ck_assert_str_eq(index->entries[i].path, paths[i]);
		ck_assert_uint_eq(index->entries[i].mode, ABX_MODE_FILE);
		ck_assert_int_eq(index->entries[i].assume_valid, i == 4);
		ck_assert_int_eq(index->entries[i].intent_to_add, i == 3);
		ck_assert_uint_eq(index->entries[i].stage, 0);
	}
}

START_TEST(good_index)
{
	static const char *const versions[] = {"2", "4"};
	struct abx_index index = {0};

	make_index(versions[_i]);
	unit_ok(abx_index_read(unit_path("host/.git/index"), &index, &unit_err));
	check_entries(&index);
	abx_index_release(&index);
}
END_TEST

/* A copy without anything behind it, so that a reader that goes too far is seen. */
static int parse(const char *data, size_t len)
{
	struct abx_index index = {.bytes = ABX_BUF_INIT(1 << 20)};
	int r;

	index.bytes.data = malloc(len ? len : 1);
	ck_assert_ptr_nonnull(index.bytes.data);
	memcpy(index.bytes.data, data, len);
	index.bytes.len = index.bytes.cap = len;
	r = abx_index_parse(&index, "x", NULL);
	abx_index_release(&index);
	return r;
}

START_TEST(bad_index)
{
	static const char *const versions[] = {"2", "4"};
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);

	make_index(versions[_i]);
	ck_assert_int_eq(abx_fs_read(AT_FDCWD, unit_path("host/.git/index"), &b), 0);
	ck_assert_int_eq(parse(b.data, b.len), 0);
	for (size_t len = 0; len < b.len - 1; len++)
		(void)parse(b.data, len);
	ck_assert_int_eq(parse(b.data, 40), ABX_ECORRUPT);
	for (size_t bit = 0; bit < b.len * 8; bit++) {
		b.data[bit / 8] = (char)(b.data[bit / 8] ^ (1 << bit % 8));
		(void)parse(b.data, b.len);
		b.data[bit / 8] = (char)(b.data[bit / 8] ^ (1 << bit % 8));
	}
	b.data[8] = b.data[9] = (char)0xff; /* four billion entries */
	ck_assert_int_eq(parse(b.data, b.len), ABX_ECORRUPT);
}
END_TEST

/* The tree that git would make of the entries, or NULL where the index does not have it. */
static char *tree_in_index(void)
{
	struct abx_index index = {0};
	char *hex = NULL;

	unit_ok(abx_index_read(unit_path("host/.git/index"), &index, &unit_err));
	if (index.has_tree) {
		hex = abx_xcalloc(2 * ABX_OID_BYTES + 1, 1);
		abx_oid_hex(index.tree, hex);
	}
	abx_index_release(&index);
	return hex;
}

static void check_tree_in_index(void)
{
	abx_autofree char *has = tree_in_index();
	abx_autofree char *is = sh_out("printf %s $(git write-tree)");

	ck_assert_ptr_nonnull(has);
	ck_assert_str_eq(has, is);
}

START_TEST(tree_of_index)
{
	sh(REPO ":");
	check_tree_in_index();
	sh("mkdir -p d/e && echo x >d/e/f && git add d");
	ck_assert_ptr_null(tree_in_index());
	sh("git update-index --index-version 4 && git commit -qm two");
	check_tree_in_index();
	sh("echo n >later && git add -N later");
	ck_assert_ptr_null(tree_in_index());
	sh("git reset -q --hard && git update-index --split-index && echo y >d/e/g && git add d");
	ck_assert_ptr_null(tree_in_index());
}
END_TEST

START_TEST(status_output)
{
	static const char good[] = "# branch.oid abc\0# branch.head main\0"
				   "1 .M N... 100644 100644 100644 a b z y\0"
				   "1 M. N... 100644 100644 100644 a b s\0? un\ntracked\0";
	static const struct {
		const char *text;
		size_t len;
	} bad[] = {{"1 .M", 5},
		   {"2 R. x", 7},
		   {"?", 2},
		   {"? ", 3},
		   {"? a", 3},
		   {"x", 2},
		   {"1 .M N... 1 1 1 a b ", 21},
		   {"", 1}};
	struct abx_buf b = {(char *)(uintptr_t)good, sizeof(good) - 1, sizeof(good), sizeof(good),
			    false};
	struct abx_status s = {0};

	unit_ok(abx_status_parse(&b, &s, &unit_err));
	ck_assert_str_eq(s.head, "abc");
	ck_assert_uint_eq(s.dirty.len, 1);
	ck_assert(abx_status_is_dirty(&s, "z y"));
	ck_assert(!abx_status_is_dirty(&s, "s"));
	ck_assert_str_eq(s.untracked.items[0], "un\ntracked");
	ck_assert_uint_eq(s.changes.len, sizeof(good) - 1 - 17 - 19);
	abx_status_release(&s);
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		b.data = (char *)(uintptr_t)bad[i].text;
		b.len = bad[i].len;
		ck_assert_int_eq(abx_status_parse(&b, &s, NULL), ABX_EIO);
	}
}
END_TEST

START_TEST(settings)
{
	static const char list[] =
		"user.name\nGlobal\0user.name\nLocal \"x\\\0user.email\na@b\0core.filemode\nno\0"
		"core.ignorecase\0core.bare\nfalse\0core.symlinks\n0\0core.autocrlf\nInput\0"
		"core.excludesfile\n~/ig\0core.attributesfile\nrel\0remote.a.b.promisor\nyes\0";
	struct abx_buf b = {(char *)(uintptr_t)list, sizeof(list) - 1, sizeof(list), sizeof(list),
			    false};
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(65536);
	struct abx_git_config c;

	(void)setenv("HOME", "/nobody", 1);
	unit_ok(abx_git_config_parse(&b, "/w", &c, &unit_err));
	ck_assert(!c.filemode && c.ignorecase && !c.bare && c.no_symlinks && !c.sparse);
	ck_assert(abx_git_config_converts(&c));
	ck_assert_str_eq(c.excludes_file, "/nobody/ig");
	ck_assert_str_eq(c.attributes_file, "/w/rel");
	ck_assert_str_eq(c.promisor, "a.b");
	abx_git_config_write(&c, ABX_GIT_CONFIG_NO_CACHES, &text);
	ck_assert_str_eq(text.data,
			 "[core]\n\trepositoryformatversion = 1\n\tfilemode = false\n"
			 "\tbare = false\n\tlogallrefupdates = true\n\tignorecase = true\n"
			 "\tuntrackedCache = false\n\tfsmonitor = false\n\tautocrlf = \"Input\"\n"
			 "[user]\n\tname = \"Local \\\"x\\\\\"\n\temail = \"a@b\"\n"
			 "[extensions]\n\tpartialClone = \"a.b\"\n"
			 "[remote \"a.b\"]\n\tpromisor = true\n");
	abx_git_config_release(&c);
	b.len--;
	ck_assert_int_eq(abx_git_config_parse(&b, "/w", &c, NULL), ABX_EIO);
}
END_TEST

START_TEST(branch_names)
{
	static const char *const good[] = {"a", "agentbox/one", "a.b", "a-b", "\xc3\xbc", "a@b"};
	static const char *const bad[] = {"",	"/a",	"a/",  "a//b", ".a",	 "a/.b",
					  "a.", "a..b", "a b", "a~",   "a^",	 "a:b",
					  "a?", "a*",	"a[",  "a\\b", "a.lock", "a.lock/b",
					  "@",	"a@{b", "-a",  "a\n",  "a\x7f"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(good); i++)
		ck_assert_msg(abx_is_branch_name(good[i]), "%s", good[i]);
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++)
		ck_assert_msg(!abx_is_branch_name(bad[i]), "%s", bad[i]);
	ck_assert(!abx_is_branch_name(NULL));
}
END_TEST

static const char oid[] = "ce013625030ba8dba906f756967f9e9ca394464a";

START_TEST(manifest)
{
	struct stat st = {.st_mode = S_IFREG | 0640,
			  .st_size = 5,
			  .st_ino = 7,
			  .st_mtim = {-5, 999999999},
			  .st_ctim = {1700000000, 1}};
	struct abx_manifest m = {0}, back = {0};
	struct stat file;

	abx_manifest_add(&m, "z", &st, oid);
	abx_manifest_add(&m, "new\nline \xff end", &st, oid);
	abx_manifest_add(&m, "a", &st, oid);
	unit_ok(abx_manifest_save(&m, unit_path("m"), &unit_err));
	ck_assert_int_eq(stat(unit_path("m"), &file), 0);
	ck_assert_uint_eq(file.st_mode & 07777, 0600);
	unit_ok(abx_manifest_load(unit_path("m"), &back, &unit_err));
	ck_assert_uint_eq(back.len, 3);
	ck_assert_ptr_nonnull(abx_manifest_find(&back, "new\nline \xff end"));
	ck_assert_ptr_null(abx_manifest_find(&back, "b"));
	ck_assert(abx_manifest_untouched(abx_manifest_find(&back, "z"), &st));
	st.st_mtim.tv_nsec--;
	ck_assert(!abx_manifest_untouched(abx_manifest_find(&back, "z"), &st));
	abx_manifest_set(&back, "a", NULL, NULL);
	abx_manifest_set(&back, "m", &st, oid);
	abx_manifest_set(&back, "z", &st, oid);
	abx_manifest_bring(&back, "z", 0100755, oid);
	abx_manifest_bring(&back, "gone", 0, NULL);
	abx_manifest_bring(&back, "as it was", 0100644, oid);
	unit_ok(abx_manifest_save(&back, unit_path("m"), &unit_err));
	abx_manifest_bring(&back, "z", 0120000, oid);
	abx_manifest_unbring(&back, "as it was");
	abx_manifest_unbring(&back, "never");
	unit_ok(abx_manifest_save(&back, unit_path("m"), &unit_err));
	abx_manifest_release(&back);
	unit_ok(abx_manifest_load(unit_path("m"), &back, &unit_err));
	ck_assert_uint_eq(back.n_brought, 2);
	ck_assert_str_eq(back.brought[0].path, "gone");
	ck_assert_uint_eq(back.brought[0].mode, 0);
	ck_assert_str_eq(back.brought[1].path, "z");
	ck_assert_uint_eq(back.brought[1].mode, 0120000);
	ck_assert_str_eq(back.brought[1].oid, oid);
	ck_assert_uint_eq(back.len, 3);
	ck_assert_ptr_null(abx_manifest_find(&back, "a"));
	ck_assert_ptr_nonnull(abx_manifest_find(&back, "m"));
	ck_assert(abx_manifest_untouched(abx_manifest_find(&back, "z"), &st));
	abx_manifest_release(&back);
	abx_manifest_release(&m);
}
END_TEST

/* No beginning of one is taken for the whole. */
START_TEST(damaged_manifest)
{
	struct stat st = {.st_mode = S_IFREG | 0640, .st_size = 5};
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);
	struct abx_manifest m = {0};

	abx_manifest_add(&m, "one", &st, oid);
	abx_manifest_add(&m, "two", &st, oid);
	abx_manifest_bring(&m, "two", 0100644, oid);
	unit_ok(abx_manifest_save(&m, unit_path("m"), &unit_err));
	abx_manifest_release(&m);
	ck_assert_int_eq(abx_fs_read(AT_FDCWD, unit_path("m"), &b), 0);
	for (size_t len = 0; len < b.len; len++) {
		unit_write("cut", b.data, len);
		ck_assert_int_eq(abx_manifest_load(unit_path("cut"), &m, NULL), ABX_ECORRUPT);
	}
	ck_assert_int_eq(abx_manifest_load(unit_path("none"), &m, NULL), ABX_ENOTFOUND);
}
END_TEST

START_TEST(last_lines)
{
	static const struct {
		const char *text, *line;
	} cases[] = {{"", "no reason given"},
		     {"\n\n", "no reason given"},
		     {"fatal: x\n", "x"},
		     {"warning: w\nerror: e\n\n", "e"},
		     {"fatal: a\nhint: b", "hint: b"},
		     {"x\x1b[2Jy\r\n", "x\\x1b[2Jy"}};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		char line[64];

		abx_last_line(cases[i].text, line, sizeof(line));
		ck_assert_str_eq(line, cases[i].line);
	}
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {status_output, settings,	       branch_names,
				      manifest,	     damaged_manifest, last_lines};
	Suite *s = suite_create("git-files");
	TCase *tc = tcase_create("index");

	tcase_add_checked_fixture(tc, seed_setup, unit_dir_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, good_index, 0, 2);
	tcase_add_loop_test(tc, bad_index, 0, 2);
	tcase_add_test(tc, tree_of_index);
	suite_add_tcase(s, tc);
	seed_add_tests(s, "others", tests, ABX_N_ELEMENTS(tests), unit_dir_teardown);
	return s;
}

UNIT_MAIN(suite)
