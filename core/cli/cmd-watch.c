/* SPDX-License-Identifier: MIT */
/* agentbox watch */
#include "core/box/select.h"
#include "core/box/watch.h"
#include "core/cli/cmd.h"
#include "core/util/clock.h"

#define READER_LEFT 1

struct output {
	struct abx_cli *cli;
	struct abx_err *err;
};

/* One line a document, so that a reader need not wait for the end. */
static int print_json(const struct abx_box_event *e)
{
	cJSON *o = cJSON_CreateObject();
	char *text;

	abx_json_time(o, "at", abx_wall_ms());
	abx_json_text(o, "id", e->box->id);
	abx_json_text(o, "name", e->box->name);
	abx_json_text(o, "provider", e->box->provider);
	abx_json_text(o, "state", e->state);
	abx_json_text(o, "was", e->was);
	text = cJSON_PrintUnformatted(o);
	cJSON_Delete(o);
	if (text)
		(void)puts(text);
	free(text);
	return text ? 0 : ABX_ENOMEM;
}

static int tell(void *ctx, const struct abx_box_event *e)
{
	struct output *out = ctx;
	char now[ABX_TIME_TEXT_BYTES];

	abx_time_text(abx_wall_ms(), now);
	if (out->cli->json) {
		if (print_json(e) < 0)
			return abx_err_set(out->err, ABX_ENOMEM, "out of memory");
	} else if (e->was) {
		(void)printf("%s %s %s (was %s)\n", now, e->box->name, e->state, e->was);
	} else {
		(void)printf("%s %s %s\n", now, e->box->name, e->state);
	}
	if (fflush(stdout) == 0)
		return 0;
	return errno == EPIPE ? READER_LEFT : abx_err_errno(out->err, errno, "write to stdout");
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	abx_autofree char *path = NULL, *key = NULL;
	struct output out = {cli, err};
	bool global = false;
	const struct abx_opt opts[] = {
		{'g', "global", ABX_OPT_KIND_FLAG, &global, NULL, "boxes of all projects"}, {0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "watch takes no argument");
	r = global ? 0 : abx_select_project(&cli->app, &path, &key, err);
	if (r == 0)
		r = abx_box_watch(&cli->app, key, tell, &out, err);
	return r == READER_LEFT ? 0 : r;
}

const struct abx_cmd abx_cmd_watch = {
	.name = "watch",
	.usage = "[-g] [--json]",
	.summary = "Say what becomes of boxes, as it happens.",
	.help = "First each box as it is, then a line for each change, until Ctrl-C.  With --json\n"
		"each line is a document.\n",
	.run = run,
};
