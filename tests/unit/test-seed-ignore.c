/* SPDX-License-Identifier: MIT */
/* Which files go into a box: what git ignores, what is included, what is to stay. */
#include "core/seed/ignore.h"
#include "tests/unit/seed-box.h"

/* Seed host/ with these globs; what was said of the ignored ones is in `names`. */
static uint64_t n_ignored, n_skipped;
static char names[512], skipped[256];

static void seed_with(const char *const *globs)
{
	const struct abx_box_io io = seed_box_io();
	abx_autofree char *dir = abx_xstrdup(seed_box_dir());
	abx_autofree char *manifest = abx_xstrdup(unit_path("manifest"));
	const struct abx_seed_target target = {
		.dir = dir, .branch = "agentbox/one", .manifest = manifest};
	struct abx_strv list = {NULL, 0, 0};
	const struct abx_seed_options o = {.include_ignored = &list};
	struct abx_seed_result got = {0};
	struct abx_seed *seed = NULL;
	const struct abx_seed_info *info;

	for (; globs && *globs; globs++)
		abx_strv_add(&list, *globs);
	unit_ok(abx_seed_inspect(unit_path("host"), unit_path("spool"), &o, &seed, &unit_err));
	unit_ok(abx_seed_into_io(seed, &io, &target, &got, &unit_err));
	info = abx_seed_info(seed);
	n_ignored = info->n_ignored;
	n_skipped = info->skipped;
	(void)snprintf(names, sizeof(names), "%s", info->ignored_names ? info->ignored_names : "");
	(void)snprintf(skipped, sizeof(skipped), "%s",
		       info->skipped_first ? info->skipped_first : "");
	abx_seed_free(seed);
	abx_seed_result_release(&got);
	abx_strv_release(&list);
}

static void box_has(const char *expected)
{
	abx_autofree char *files =
		in_box_out("find . -path '*/.git' -prune -o ! -type d -print | LC_ALL=C sort | "
			   "tr '\\n' ' '");

	ck_assert_str_eq(files, expected);
}

#define TREE                                                                                       \
	"printf 'node_modules/\\n*.o\\n.env\\n/cache\\n' >.gitignore && echo a >a.c && git add . " \
	"&& "                                                                                      \
	"git commit -q -m one && mkdir -p node_modules/m api/src cache/deep && echo 1 >.env && "   \
	"echo 2 >api/.env && echo o >api/src/x.o && echo m >node_modules/m/i.js && "               \
	"echo c >cache/deep/c && echo u >api/u"

/* B028, B029 */
START_TEST(ignored_files_stay)
{
	sh("git init -q . && " TREE);
	seed_with(NULL);
	box_has("./.gitignore ./a.c ./api/u ");
	ck_assert_uint_eq(n_ignored, 5);
	ck_assert_str_eq(names, ".env, api/.env, api/src/x.o, ...");
	same_repository();
}
END_TEST

START_TEST(nothing_ignored_nothing_said)
{
	sh(REPO "true");
	seed_with(NULL);
	ck_assert_uint_eq(n_ignored, 0);
	ck_assert_str_eq(names, "");
}
END_TEST

START_TEST(included_at_any_depth)
{
	static const char *const globs[] = {".env", NULL};

	sh("git init -q . && " TREE);
	seed_with(globs);
	box_has("./.env ./.gitignore ./a.c ./api/.env ./api/u ");
	ck_assert_uint_eq(n_ignored, 3);
	same_repository();
}
END_TEST

START_TEST(included_from_the_root)
{
	static const char *const globs[] = {"/.env", "api/src/*.o", "cache/", NULL};

	sh("git init -q . && " TREE);
	seed_with(globs);
	box_has("./.env ./.gitignore ./a.c ./api/src/x.o ./api/u ./cache/deep/c ");
	same_repository();
}
END_TEST

START_TEST(included_directory)
{
	static const char *const globs[] = {"node_modules", NULL};

	sh("git init -q . && " TREE);
	seed_with(globs);
	box_has("./.gitignore ./a.c ./api/u ./node_modules/m/i.js ");
	same_repository();
}
END_TEST

START_TEST(included_in_nested_repositories)
{
	static const char *const globs[] = {"sub/*/.env", "n*_modules", NULL};

	sh(REPO "mkdir sub && cd sub && git init -q . && " TREE);
	seed_with(globs);
	box_has("./a.txt ./b.txt ./dangling ./link ./src/run ./sub/.gitignore ./sub/a.c "
		"./sub/api/.env ./sub/api/u ./sub/node_modules/m/i.js ");
	ck_assert_uint_eq(n_ignored, 3);
}
END_TEST

START_TEST(staying_untracked)
{
	static const char *const globs[] = {".env", NULL};

	sh("git init -q . && " TREE
	   " && mkdir -p data/keep && echo d >data/keep/d && echo l >l.log && "
	   "echo k >k.log && echo d >api/d.log && echo t >t.log && git add -f t.log && "
	   "git commit -q -m log && printf 'data/\\n*.log\\n!/k.log\\napi/.env' >.agentboxignore "
	   "&& "
	   "echo x >:odd.log");
	seed_with(globs);
	box_has("./.agentboxignore ./.env ./.gitignore ./a.c ./api/u ./k.log ./t.log ");
	in_box("test \"$(git status --porcelain -uall | tr '\\n' ' ')\" = "
	       "'?? .agentboxignore ?? api/u ?? k.log '");
}
END_TEST

START_TEST(staying_nested)
{
	sh(REPO "mkdir -p v/one two && (cd v/one && git init -q . && echo 1 >f) && "
		"(cd two && git init -q . && echo 2 >f && echo 3 >g) && "
		"printf 'v/\\ntwo/g\\n' >.agentboxignore");
	seed_with(NULL);
	box_has("./.agentboxignore ./a.txt ./b.txt ./dangling ./link ./src/run ./two/f ");
}
END_TEST

START_TEST(staying_of_a_plain_tree)
{
	sh("mkdir -p data/deep src n/one && echo d >data/deep/d && echo s >src/s && echo o "
	   ">src/s.o && "
	   "(cd n/one && git init -q . && echo 1 >f) && "
	   "printf 'data/\\n*.o\\nn/\\n' >.agentboxignore && echo k >k");
	seed_with(NULL);
	box_has("./.agentboxignore ./k ./src/s ");
	in_box("test ! -e data && test ! -e n");
}
END_TEST

START_TEST(no_git_to_read_it)
{
	abx_autofree char *path = abx_xstrdup(getenv("PATH"));
	int r;

	sh("echo k >k && echo x >.agentboxignore");
	(void)setenv("PATH", "/nowhere", 1);
	r = seed_refused();
	(void)setenv("PATH", path, 1);
	ck_assert_int_eq(r, ABX_ENOTFOUND);
	unit_has(unit_err.text, ".agentboxignore");
}
END_TEST

START_TEST(special_files_are_named)
{
	sh("mkdir d && mkfifo d/fifo z && echo a >a");
	seed_with(NULL);
	box_has("./a ");
	ck_assert_uint_eq(n_skipped, 2);
	ck_assert_str_eq(skipped, "d/fifo");
}
END_TEST

/* B048: only what has the mark of the format. */
START_TEST(apple_double)
{
	sh("echo x >x && printf '\\000\\005\\026\\007\\000\\002' >._x && "
	   "printf '\\000\\005\\026\\007\\000\\002' >._alone && echo y >y && echo text >._y");
	seed_with(NULL);
	box_has("./._alone ./._y ./x ./y ");
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {ignored_files_stay,      nothing_ignored_nothing_said,
				      included_at_any_depth,   included_from_the_root,
				      included_directory,      included_in_nested_repositories,
				      staying_untracked,       staying_nested,
				      staying_of_a_plain_tree, no_git_to_read_it,
				      special_files_are_named, apple_double};
	Suite *s = suite_create("seed-ignore");

	seed_add_tests(s, "ignore", tests, ABX_N_ELEMENTS(tests), unit_dir_teardown);
	return s;
}

UNIT_MAIN(suite)
