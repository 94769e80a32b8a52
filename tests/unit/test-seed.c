/* SPDX-License-Identifier: MIT */
/* Seeding: what the host has is what the box has, and the host is not touched. */
#include "tests/unit/seed-box.h"

#include "core/seed/manifest.h"

#define REPO                                                                                  \
	"git init -q . && printf 'alpha\\n' >a.txt && mkdir src && printf '#!/bin/sh\\n' "     \
	">src/run && chmod 755 src/run && ln -s src/run link && ln -s /nowhere dangling && "  \
	"git add . && git commit -q -m one && printf 'beta\\n' >b.txt && git add . && "       \
	"git commit -q -m two && "
#define WORK_TREE "-mindepth 1 -path ./.git -prune -o -mindepth 1"

static void same_work_tree(const char *find_args)
{
	abx_autofree char *host = tree_of(unit_path("host"), find_args, TREE_SECONDS);
	abx_autofree char *box = tree_of(seed_box_dir(), find_args, TREE_SECONDS);

	ck_assert_str_eq(host, box);
}

static void same_output(const char *script)
{
	abx_autofree char *host = sh_out(script), *box = in_box_out(script);

	ck_assert_msg(strcmp(host, box) == 0, "%s\nhost: %s\nbox: %s", script, host, box);
}

static void same_repository(void)
{
	same_output("git rev-parse HEAD 'HEAD^{tree}'");
	same_output("git log --format='%H %an %ae %s'");
	same_output("git status --porcelain=v2 -z | tr '\\0' '\\n'");
	same_output("git ls-files -s -v -t -z | tr '\\0' '\\n'");
	same_output("git diff --cached --binary; git diff --binary");
	in_box("git fsck --full --strict 2>&1 && git commit -q --allow-empty -m more");
}

/* Seed, while the host stays as it is to the last byte, time and inode. */
static void seed_untouched(struct abx_seed_result *got)
{
	abx_autofree char *before = tree_of(unit_path("host"), "", TREE_UNTOUCHED), *after = NULL;
	abx_autofree char *config = unit_read("user/.gitconfig"), *config_after = NULL;

	seed_all(got);
	after = tree_of(unit_path("host"), "", TREE_UNTOUCHED);
	ck_assert_str_eq(before, after);
	config_after = unit_read("user/.gitconfig");
	ck_assert_str_eq(config, config_after);
	ck_assert_uint_eq(seed_tars, 1);
	ck_assert_uint_eq(seed_execs, 1);
}

static void seed_repo(const char *script)
{
	struct abx_seed_result got = {0};
	abx_autofree char *head = NULL;

	sh(script);
	seed_untouched(&got);
	head = sh_out("printf %s \"$(git rev-parse HEAD)\"");
	ck_assert_str_eq(got.base_commit, head);
	ck_assert_str_eq(got.branch, "agentbox/one");
	ck_assert_uint_eq(strlen(got.seed_tree), 40);
	abx_seed_result_release(&got);
	same_repository();
}

START_TEST(clean_repository)
{
	abx_autofree char *branch = NULL, *name = NULL;

	seed_repo(REPO "true");
	same_work_tree("-path ./.git -prune -o -mindepth 1");
	branch = in_box_out("git symbolic-ref HEAD; git rev-parse main");
	unit_has(branch, "refs/heads/agentbox/one\n");
	name = in_box_out("git config user.name; git config user.email");
	ck_assert_str_eq(name, "Ada \"the\" Example\nada@example.org\n");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("seed");
	TCase *tc = tcase_create("carried");

	tcase_add_checked_fixture(tc, seed_setup, unit_dir_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, clean_repository);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
