/* SPDX-License-Identifier: MIT */
/* A seeded box whose work is brought back. */
#include "tests/unit/back-box.h"

#include "core/seed/back-io.h"

static struct abx_seed_result got;
struct abx_changes changes;
struct abx_back back;
static char *paths[3];

void begin(const char *script)
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

void finish(void)
{
	abx_changes_release(&changes);
	abx_seed_result_release(&got);
	for (size_t i = 0; i < ABX_N_ELEMENTS(paths); i++) {
		free(paths[i]);
		paths[i] = NULL;
	}
	unit_dir_teardown();
}

void ask(void)
{
	const struct abx_box_io io = seed_box_io();

	abx_changes_release(&changes);
	unit_ok(abx_back_changes_io(&io, &back, &changes, &unit_err));
}

void apply(void)
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

void is_listed(const char *want)
{
	abx_autofree char *have = listed();

	ck_assert_str_eq(have, want);
}

void same_trees(void)
{
	static const char find_args[] = "-path ./.git -prune -o ! -type d";
	abx_autofree char *host = tree_of(unit_path("host"), find_args, "");
	abx_autofree char *box = tree_of(seed_box_dir(), find_args, "");

	ck_assert_str_eq(host, box);
}
