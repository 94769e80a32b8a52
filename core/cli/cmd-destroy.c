/* SPDX-License-Identifier: MIT */
/* agentbox destroy */
#include <string.h>

#include "core/box/lifecycle.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/mem.h"

static int choose_all(struct abx_cli *cli, struct abx_box_list *ret, struct abx_err *err)
{
	int r = abx_app_open(&cli->app, err);

	return r < 0 ? r : abx_boxes_list(cli->app.db, NULL, ret, err);
}

static bool chosen(const struct abx_box_list *list, const struct abx_box *box)
{
	for (size_t i = 0; i < list->len; i++)
		if (strcmp(list->items[i].id, box->id) == 0)
			return true;
	return false;
}

/* All of them are found before the first is destroyed: a typing error costs nothing. */
static int choose_named(struct abx_cli *cli, const struct abx_args *args, bool force,
			struct abx_box_list *ret, struct abx_err *err)
{
	int n = args->n_pos ? args->n_pos : 1;

	for (int i = 0; i < n; i++) {
		struct abx_box box = {0};
		int r = abx_select_box(&cli->app, args->n_pos ? args->pos[i] : NULL, &box, err);

		/* rm --force of what is not there is done already. */
		if (r == ABX_ENOBOX && force && args->n_pos)
			continue;
		if (r < 0)
			return r;
		if (chosen(ret, &box)) {
			abx_box_release(&box);
			continue;
		}
		ret->items = abx_xreallocarray(ret->items, ret->len + 1, sizeof(*ret->items));
		ret->items[ret->len++] = box;
	}
	return 0;
}

static int confirm(struct abx_cli *cli, const struct abx_box_list *boxes, struct abx_err *err)
{
	if (boxes->len == 1)
		return abx_ask(cli, err, "destroy box '%s' and all that is in it",
			       boxes->items[0].name);
	return abx_ask(cli, err, "destroy %zu boxes and all that is in them", boxes->len);
}

static int destroy_each(struct abx_cli *cli, struct abx_box_list *boxes, bool force, cJSON *doc,
			struct abx_err *err)
{
	int result = 0;

	for (size_t i = 0; i < boxes->len; i++) {
		struct abx_err why = ABX_ERR_INIT;
		abx_autofree char *name = abx_xstrdup(boxes->items[i].name);
		abx_autofree char *id = abx_xstrdup(boxes->items[i].id);
		int r = abx_lifecycle_destroy(&cli->app, &boxes->items[i], force, &why);

		if (r < 0 && result < 0)
			(void)fprintf(stderr, "agentbox: %s\n", why.text);
		if (r < 0 && result == 0) {
			result = r;
			if (!why.remedy[0])
				(void)abx_err_remedy(&why, "--force drops the record all the same");
			*err = why;
		}
		if (r == 0 && doc) {
			cJSON *one = cJSON_CreateObject();

			abx_json_text(one, "id", id);
			abx_json_text(one, "name", name);
			(void)cJSON_AddItemToArray(doc, one);
		} else if (r == 0) {
			(void)abx_out_line(NULL, "box '%s' is destroyed", name);
		}
	}
	return result;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_box_list boxes = {0};
	bool all = false, force = false;
	const struct abx_opt opts[] = {
		{0, "all", ABX_OPT_KIND_FLAG, &all, NULL, "every box of this install"},
		{'f', "force", ABX_OPT_KIND_FLAG, &force, NULL,
		 "drop the record even where the provider cannot be asked"},
		{0}};
	struct abx_args args;
	cJSON *doc;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_rest || (all && args.n_pos))
		return abx_usage(cli, err, "name boxes, or say --all");
	r = all ? choose_all(cli, &boxes, err) : choose_named(cli, &args, force, &boxes, err);
	if (r == 0 && boxes.len)
		r = confirm(cli, &boxes, err);
	if (r == 0) {
		doc = cli->json ? cJSON_CreateArray() : NULL;
		r = destroy_each(cli, &boxes, force, doc, err);
		if (doc && r == 0)
			r = abx_out_json(doc, err);
		else
			cJSON_Delete(doc);
	}
	abx_box_list_release(&boxes);
	return r;
}

const struct abx_cmd abx_cmd_destroy = {
	.name = "destroy",
	.alias = "rm",
	.usage = "[BOX...] [--all] [--force] [-y]",
	.summary = "Remove boxes for good, with everything that is in them.",
	.run = run,
};
