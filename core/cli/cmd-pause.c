/* SPDX-License-Identifier: MIT */
/* agentbox pause, agentbox resume */
#include <string.h>

#include "core/box/lifecycle.h"
#include "core/box/running.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"

struct verb {
	const char *name;
	bool (*concerns)(const struct abx_box *box); /* with --all */
	int (*apply)(struct abx_app *app, struct abx_box *box, struct abx_err *err);
};

static bool is_running(const struct abx_box *box)
{
	return !box->pending && box->state == ABX_BOX_RUNNING;
}

static bool is_paused(const struct abx_box *box)
{
	return !box->pending && (box->state == ABX_BOX_PAUSED || box->state == ABX_BOX_PAUSING);
}

static int report(const struct verb *verb, const struct abx_box *box, struct abx_err *err)
{
	const char *state = abx_box_state_name(box->state);

	if (strcmp(verb->name, "pause") == 0 && box->state == ABX_BOX_STOPPED)
		return abx_out_line(err, "box '%s' is stopped: provider '%s' cannot pause",
				    box->name, box->provider);
	return abx_out_line(err, "box '%s' is %s", box->name, state);
}

static int apply_one(struct abx_cli *cli, const struct verb *verb, const char *what,
		     struct abx_err *err)
{
	struct abx_box box = {0};
	int r = abx_select_box(&cli->app, what, &box, err);

	if (r == 0)
		r = verb->apply(&cli->app, &box, err);
	if (r == 0)
		r = cli->json ? abx_out_json(abx_json_box(&box), err) : report(verb, &box, err);
	abx_box_release(&box);
	return r;
}

/* What fails is said, and the others go on; the first failure is the result. */
static int apply_each(struct abx_cli *cli, const struct verb *verb, struct abx_box_list *boxes,
		      cJSON *doc, struct abx_err *err)
{
	int result = 0;

	for (size_t i = 0; i < boxes->len; i++) {
		struct abx_box *box = &boxes->items[i];
		struct abx_err why = ABX_ERR_INIT;
		int r;

		if (!verb->concerns(box))
			continue;
		r = verb->apply(&cli->app, box, &why);
		if (r < 0 && result < 0)
			(void)fprintf(stderr, "agentbox: %s\n", why.text);
		if (r < 0 && result == 0) {
			result = r;
			*err = why;
		}
		if (r == 0 && doc)
			(void)cJSON_AddItemToArray(doc, abx_json_box(box));
		else if (r == 0)
			(void)report(verb, box, NULL);
	}
	return result;
}

static int apply_all(struct abx_cli *cli, const struct verb *verb, struct abx_err *err)
{
	struct abx_box_list boxes = {0};
	cJSON *doc;
	int r = abx_app_open(&cli->app, err);

	if (r == 0)
		r = abx_boxes_list(cli->app.db, NULL, &boxes, err);
	if (r == 0)
		r = abx_lifecycle_refresh(&cli->app, &boxes, err);
	if (r < 0) {
		abx_box_list_release(&boxes);
		return r;
	}
	doc = cli->json ? cJSON_CreateArray() : NULL;
	r = apply_each(cli, verb, &boxes, doc, err);
	if (doc && r == 0)
		r = abx_out_json(doc, err);
	else
		cJSON_Delete(doc);
	abx_box_list_release(&boxes);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, const struct verb *verb,
	       struct abx_err *err)
{
	bool all = false;
	const struct abx_opt opts[] = {
		{0, "all", ABX_OPT_KIND_FLAG, &all, NULL, "every box of this install"}, {0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos > 1 || args.n_rest || (all && args.n_pos))
		return abx_usage(cli, err, "%s takes one box, or --all", verb->name);
	return all ? apply_all(cli, verb, err)
		   : apply_one(cli, verb, args.n_pos ? args.pos[0] : NULL, err);
}

static int pause_box(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	return abx_box_blame(app, box, abx_lifecycle_pause(app, box, err), err);
}

static int run_pause(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	static const struct verb verb = {"pause", is_running, pause_box};

	return run(cli, argc, argv, &verb, err);
}

static int run_resume(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	static const struct verb verb = {"resume", is_paused, abx_lifecycle_start};

	return run(cli, argc, argv, &verb, err);
}

extern const struct abx_cmd abx_cmd_pause, abx_cmd_resume;

const struct abx_cmd abx_cmd_pause = {
	.name = "pause",
	.usage = "[BOX] [--all]",
	.summary = "Freeze a box; its processes go on when it is resumed.",
	.help = "Where the provider cannot pause, the box is stopped, and that is said.\n",
	.run = run_pause,
};

const struct abx_cmd abx_cmd_resume = {
	.name = "resume",
	.alias = "unpause",
	.usage = "[BOX] [--all]",
	.summary = "Let a paused box go on; a stopped one is started.",
	.run = run_resume,
};
