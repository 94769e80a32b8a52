/* SPDX-License-Identifier: MIT */
/* agentbox egress */
#include <string.h>

#include "core/box/network.h"
#include "core/box/select.h"
#include "core/box/spec.h"
#include "core/cli/cmd.h"
#include "core/util/mem.h"

/* A box's name has none of these. */
static bool is_spec(const char *text)
{
	return strpbrk(text, ".:/,*") || strcmp(text, "all") == 0 || strcmp(text, "none") == 0 ||
	       strcmp(text, "host") == 0;
}

static int show(struct abx_cli *cli, const struct abx_box *box, struct abx_err *err)
{
	struct abx_box_spec spec = {0};
	abx_autofree char *text = NULL;
	cJSON *doc;
	int r = abx_box_spec_parse(box->spec, &spec, err);

	if (r < 0)
		return r;
	if (spec.has_egress)
		text = abx_egress_text(&spec.egress);
	abx_box_spec_release(&spec);
	if (!cli->json)
		return abx_out_line(err, "%s", text ? text : "all (nothing was said)");
	doc = cJSON_CreateObject();
	abx_json_text(doc, "id", box->id);
	abx_json_text(doc, "name", box->name);
	abx_json_text(doc, "egress", text);
	return abx_out_json(doc, err);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_egress egress = {0};
	struct abx_box box = {0};
	struct abx_args args;
	const char *what = NULL, *spec = NULL;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos > 2 || args.n_rest)
		return abx_usage(cli, err, "egress takes a box and what it may reach");
	if (args.n_pos == 2 || (args.n_pos == 1 && !is_spec(args.pos[0])))
		what = args.pos[0];
	if (args.n_pos == 2 || (args.n_pos == 1 && !what))
		spec = args.pos[args.n_pos - 1];
	r = spec ? abx_egress_parse(spec, &egress, err) : 0;
	if (r == 0)
		r = abx_select_box(&cli->app, what, &box, err);
	if (r == 0 && spec)
		r = abx_box_set_egress(&cli->app, &box, &egress, err);
	if (r == 0)
		r = show(cli, &box, err);
	abx_egress_release(&egress);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_egress = {
	.name = "egress",
	.usage = "[BOX] [SPEC]",
	.summary = "Show or set where a box may connect to.",
	.help = "SPEC is all, none, host (this machine's own network; local boxes, from their\n"
		"creation), or a list: 10.0.0.0/8,api.example.com,*.debian.org\n",
	.run = run,
};
