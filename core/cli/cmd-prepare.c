/* SPDX-License-Identifier: MIT */
/* agentbox prepare */
#include <string.h>

#include "core/base/prepare.h"
#include "core/box/recover.h"
#include "core/cli/build-log.h"
#include "core/cli/cmd.h"
#include "core/cli/provider-of.h"
#include "core/util/log.h"
#include "core/util/mem.h"

static cJSON *image_json(const struct abx_prepared *p, const char *provider, bool current)
{
	cJSON *o = cJSON_CreateObject();

	abx_json_text(o, "provider", provider);
	abx_json_text(o, "name", p->name);
	abx_json_text(o, "ref", p->ref);
	abx_json_text(o, "from", p->from);
	abx_json_text(o, "fingerprint", p->fingerprint);
	abx_json_text(o, "created_at", p->created_at);
	(void)cJSON_AddBoolToObject(o, "current", current);
	return o;
}

static int show_status(struct abx_cli *cli, const struct abx_preparer *p, struct abx_err *err)
{
	const char *provider = abx_cloud_name(p->cloud);
	struct abx_prepared_list list = {NULL, 0};
	struct abx_err why = ABX_ERR_INIT;
	cJSON *doc = NULL;
	int r = abx_prepared_load(p->home, provider, &list, err);

	if (r < 0)
		return r;
	if (cli->json)
		doc = cJSON_CreateArray();
	for (size_t i = 0; i < list.len && r == 0; i++) {
		const struct abx_prepared *one = &list.items[i];
		bool current = true;

		/* What cannot be told is no reason to fail. */
		if (abx_prepare_is_current(p, one, &current, &why) < 0)
			abx_warn("%s", why.text);
		if (doc)
			(void)cJSON_AddItemToArray(doc, image_json(one, provider, current));
		else
			r = abx_out_line(err, "%s: %s, from %s, %s%s", one->name, one->ref,
					 one->from ? one->from : "?",
					 one->created_at ? one->created_at : "?",
					 current ? "" : "; no longer current");
	}
	if (doc)
		r = abx_out_json(doc, err);
	else if (r == 0 && !list.len)
		r = abx_out_line(err, "nothing is prepared at %s", provider);
	abx_prepared_list_release(&list);
	return r;
}

static int prepare(struct abx_cli *cli, const struct abx_preparer *p,
		   struct abx_prepare_request *req, struct abx_err *err)
{
	struct abx_build_log *log = abx_xcalloc(1, sizeof(*log));
	const struct abx_log_sink sink = abx_build_log_sink(log, cli->verbose);
	struct abx_prepared made = {.name = NULL};
	bool is_new = false;
	int r;

	req->log = &sink;
	abx_recover_abandoned(&cli->app, abx_cloud_name(p->cloud));
	r = abx_prepare_image(p, req, &made, &is_new, err);
	req->log = NULL;
	abx_progress_end(cli);
	if (r < 0)
		abx_build_log_tail(log);
	free(log);
	if (r < 0)
		return r;
	if (cli->json)
		r = abx_out_json(image_json(&made, abx_cloud_name(p->cloud), true), err);
	else if (is_new && strcmp(made.name, ABX_PREPARED_DEFAULT) == 0)
		r = abx_out_line(err, "image '%s' is prepared at %s: agentbox create --provider %s",
				 made.name, abx_cloud_name(p->cloud), abx_cloud_name(p->cloud));
	else if (is_new)
		r = abx_out_line(err, "image '%s' is prepared at %s: agentbox create --image %s",
				 made.name, abx_cloud_name(p->cloud), made.name);
	else
		r = abx_out_line(err, "image '%s' is there already (--force makes it anew)",
				 made.name);
	abx_prepared_release(&made);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_prepare_request req = {.name = NULL};
	struct abx_config *config = NULL;
	struct abx_preparer p = {.cancel_fd = cli->app.host.cancel_fd};
	bool status = false;
	const struct abx_opt opts[] = {
		{0, "from", ABX_OPT_KIND_TEXT, &req.from, "X",
		 "debian:bookworm, an image, or ./FILE: a tar file with a root file system"},
		{'n', "name", ABX_OPT_KIND_TEXT, &req.name, "NAME",
		 "what create --image knows it by (default: X)"},
		{'f', "force", ABX_OPT_KIND_FLAG, &req.force, NULL, "make it anew"},
		{0, "status", ABX_OPT_KIND_FLAG, &status, NULL, "only say what is prepared"},
		{0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "prepare takes no argument");
	r = abx_cli_cloud_config(cli, &p.cloud, &config, err);
	if (r < 0)
		return r;
	p.home = &cli->app.home;
	p.db = cli->app.db;
	p.config = config;
	r = status ? show_status(cli, &p, err) : prepare(cli, &p, &req, err);
	abx_config_close(config);
	return r;
}

const struct abx_cmd abx_cmd_prepare = {
	.name = "prepare",
	.usage = "[--from X] [-n NAME] [--force] | --status [--provider P]",
	.summary = "Make an image for boxes to boot from.",
	.help = "Without --from the image of boxes that ask for none, where a provider needs one.\n"
		"With -v the build is shown as it goes; when it fails, its last lines are.\n"
		"--status exits 0, whatever is there.\n",
	.run = run,
};
