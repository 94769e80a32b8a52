/* SPDX-License-Identifier: MIT */
/* Bringing back: what the box changed lands, and nothing else does. */
#include "tests/unit/seed-box.h"

#include "core/seed/back-io.h"
#include "core/seed/back-path.h"

static struct abx_seed_result got;
static struct abx_changes changes;
static struct abx_back back;
static char *paths[3];

static void begin(const char *script)
{
	sh(script);
	seed_all(&got);
	paths[0] = abx_xstrdup(seed_box_dir());
	paths[1] = abx_xstrdup(unit_path("manifest"));
	paths[2] = abx_xstrdup(unit_path("host"));
	back = (struct abx_back){.dir = paths[0],
				 .seed_tree = got.seed_tree,
				 .manifest = paths[1],
				 .workspace = paths[2]};
}

#define REPO                                                                                  \
	"git init -q . && printf 'alpha\\n' >a.txt && mkdir src && printf '#!/bin/sh\\n' "     \
	">src/run && chmod 755 src/run && ln -s src/run link && printf '*.o\\n' >.gitignore " \
	"&& git add . && git commit -q -m one"

static void finish(void)
{
	abx_changes_release(&changes);
	abx_seed_result_release(&got);
	for (size_t i = 0; i < ABX_N_ELEMENTS(paths); i++) {
		free(paths[i]);
		paths[i] = NULL;
	}
	unit_dir_teardown();
}

static void ask(void)
{
	const struct abx_box_io io = seed_box_io();

	abx_changes_release(&changes);
	unit_ok(abx_back_changes_io(&io, &back, &changes, &unit_err));
}

static void apply(void)
{
	const struct abx_box_io io = seed_box_io();

	ask();
	unit_ok(abx_back_apply_io(&io, &back, &changes, NULL, NULL, &unit_err));
}

/* Every change as "K path", or "K path: problem", one a line. */
static char *listed(void)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);

	for (size_t i = 0; i < changes.len; i++)
		abx_buf_addf(&b, "%c %s%s%s\n", changes.items[i].kind, changes.items[i].path,
			     changes.items[i].problem ? ": " : "",
			     changes.items[i].problem ? changes.items[i].problem : "");
	return abx_xstrdup(abx_buf_str(&b));
}

static void is_listed(const char *want)
{
	abx_autofree char *have = listed();

	ck_assert_str_eq(have, want);
}

static void same_trees(void)
{
	static const char find_args[] = "-path ./.git -prune -o ! -type d";
	abx_autofree char *host = tree_of(unit_path("host"), find_args, "");
	abx_autofree char *box = tree_of(seed_box_dir(), find_args, "");

	ck_assert_str_eq(host, box);
}

START_TEST(nothing_changed)
{
	begin(REPO);
	ask();
	is_listed("");
}
END_TEST

START_TEST(every_kind)
{
	begin(REPO);
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

static Suite *suite(void)
{
	Suite *s = suite_create("back");
	TCase *tc = tcase_create("changes");

	tcase_add_checked_fixture(tc, seed_setup, finish);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, nothing_changed);
	tcase_add_test(tc, every_kind);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
