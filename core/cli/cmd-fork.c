/* SPDX-License-Identifier: MIT */
/* agentbox fork */
#include "core/box/checkpoint.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/parse.h"

#define COUNT_MAX 100

static int report(struct abx_cli *cli, const struct abx_box *source,
		  const struct abx_box_list *boxes, struct abx_err *err)
{
	if (cli->json) {
		cJSON *doc = cJSON_CreateArray();

		for (size_t i = 0; i < boxes->len; i++)
			(void)cJSON_AddItemToArray(doc, abx_json_box(&boxes->items[i]));
		return abx_out_json(doc, err);
	}
	for (size_t i = 0; i < boxes->len; i++)
		(void)printf("box %u '%s' is running (%s, a fork of '%s')\n", boxes->items[i].index,
			     boxes->items[i].name, boxes->items[i].provider, source->name);
	if (source->state != ABX_BOX_RUNNING)
		(void)printf("box '%s' is %s\n", source->name, abx_box_state_name(source->state));
	return abx_out_line(err, "next: agentbox exec %s -- COMMAND; agentbox diff %s",
			    boxes->items[0].name, boxes->items[0].name);
}

static int fork_box(struct abx_cli *cli, const char *what, const struct abx_fork *how,
		    struct abx_err *err)
{
	struct abx_box_list boxes = {0};
	struct abx_box box = {0};
	int r = abx_select_box(&cli->app, what, &box, err);

	if (r == 0)
		r = abx_box_fork(&cli->app, &box, how, &boxes, err);
	abx_progress_end(cli);
	if (r == 0)
		r = report(cli, &box, &boxes, err);
	abx_box_list_release(&boxes);
	abx_box_release(&box);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_fork how = {.count = 1};
	const char *count = NULL;
	const struct abx_opt opts[] = {
		{'n', "name", ABX_OPT_KIND_TEXT, &how.name, "NAME",
		 "name of the new box; of several, NAME-1, NAME-2, ..."},
		{0, "count", ABX_OPT_KIND_TEXT, &count, "N", "so many new boxes"},
		{0, "stop", ABX_OPT_KIND_FLAG, &how.stop, NULL,
		 "processes of the box may end, where that saves a copy"},
		{0}};
	const char *what;
	uint64_t n = 1;
	int r = abx_opts_one_box(cli, opts, argc, argv, &what, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (count && (!abx_parse_u64(count, COUNT_MAX, &n) || !n))
		return abx_usage(cli, err, "--count is a number from 1 to %d", COUNT_MAX);
	how.count = (uint32_t)n;
	return fork_box(cli, what, &how, err);
}

const struct abx_cmd abx_cmd_fork = {
	.name = "fork",
	.usage = "[BOX] [-n NAME] [--count N] [--stop]",
	.summary = "Make new boxes that go on from where a box is.",
	.help = "Each has all that is in the box, under a name of its own, and goes its own way\n"
		"from there.  Running processes are copied only where the provider keeps memory.\n",
	.run = run,
};
