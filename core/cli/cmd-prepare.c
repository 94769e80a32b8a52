/* SPDX-License-Identifier: MIT */
/* agentbox prepare */
#include <string.h>

#include "core/base/prepare.h"
#include "core/box/recover.h"
#include "core/cli/cmd.h"
#include "core/cli/provider-of.h"
#include "core/util/mem.h"
#include "core/util/redact.h"

/* What of a build is shown when it failed. */
#define TAIL_LINES 30
#define LINE_MAX_BYTES 1000

/* The log of a build: shown as it comes, or kept. */
struct build_log {
	bool show;
	char lines[TAIL_LINES][LINE_MAX_BYTES + 1];
	size_t n_lines; /* complete ones, all in all */
	size_t len;	/* of the one that grows */
};

static char *growing(struct build_log *log)
{
	return log->lines[log->n_lines % TAIL_LINES];
}

/* It comes from a build, so it may hold anything. */
static void print_line(char *line)
{
	for (char *at = line; *at; at++)
		if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f)
			*at = '?';
	abx_redact(line);
	(void)fprintf(stderr, "%s\n", line);
}

static void end_line(struct build_log *log)
{
	growing(log)[log->len] = '\0';
	if (log->show)
		print_line(growing(log));
	log->n_lines++;
	log->len = 0;
}

static int on_output(void *ctx, int stream ABX_UNUSED, const void *data, size_t len)
{
	struct build_log *log = ctx;
	const char *bytes = data;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\n')
			end_line(log);
		else if (log->len < LINE_MAX_BYTES && bytes[i] != '\r' && bytes[i])
			growing(log)[log->len++] = bytes[i];
	}
	return 0;
}

static void show_tail(struct build_log *log)
{
	size_t first;

	if (log->len)
		end_line(log);
	first = log->n_lines > TAIL_LINES ? log->n_lines - TAIL_LINES : 0;
	for (size_t i = first; !log->show && i < log->n_lines; i++)
		print_line(log->lines[i % TAIL_LINES]);
}

static cJSON *image_json(const struct abx_prepared *p, const char *provider)
{
	cJSON *o = cJSON_CreateObject();

	abx_json_text(o, "provider", provider);
	abx_json_text(o, "name", p->name);
	abx_json_text(o, "ref", p->ref);
	abx_json_text(o, "from", p->from);
	abx_json_text(o, "fingerprint", p->fingerprint);
	abx_json_text(o, "created_at", p->created_at);
	return o;
}

static int show_status(struct abx_cli *cli, const struct abx_preparer *p, struct abx_err *err)
{
	const char *provider = abx_cloud_name(p->cloud);
	struct abx_prepared_list list = {NULL, 0};
	cJSON *doc = NULL;
	int r = abx_prepared_load(p->home, provider, &list, err);

	if (r < 0)
		return r;
	if (cli->json)
		doc = cJSON_CreateArray();
	for (size_t i = 0; i < list.len && r == 0; i++) {
		const struct abx_prepared *one = &list.items[i];

		if (doc)
			(void)cJSON_AddItemToArray(doc, image_json(one, provider));
		else
			r = abx_out_line(err, "%s: %s, from %s, %s", one->name, one->ref,
					 one->from ? one->from : "?",
					 one->created_at ? one->created_at : "?");
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
	struct build_log *log = abx_xcalloc(1, sizeof(*log));
	const struct abx_log_sink sink = {on_output, log};
	struct abx_prepared made = {.name = NULL};
	bool is_new = false;
	int r;

	log->show = cli->verbose;
	req->log = &sink;
	abx_recover_abandoned(&cli->app, abx_cloud_name(p->cloud));
	r = abx_prepare_image(p, req, &made, &is_new, err);
	req->log = NULL;
	abx_progress_end(cli);
	if (r < 0)
		show_tail(log);
	free(log);
	if (r < 0)
		return r;
	if (cli->json)
		r = abx_out_json(image_json(&made, abx_cloud_name(p->cloud)), err);
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
	struct abx_preparer p;
	bool status = false;
	const struct abx_opt opts[] = {
		{0, "from", ABX_OPT_KIND_TEXT, &req.from, "X",
		 "debian:bookworm, or ./FILE: a tar file with a root file system"},
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
	if (!status && !req.from)
		return abx_usage(cli, err, "say --from what");
	r = abx_cli_cloud(cli, &p.cloud, err);
	if (r < 0)
		return r;
	p.home = &cli->app.home;
	p.db = cli->app.db;
	return status ? show_status(cli, &p, err) : prepare(cli, &p, &req, err);
}

const struct abx_cmd abx_cmd_prepare = {
	.name = "prepare",
	.usage = "--from X [-n NAME] [--force] | --status [--provider P]",
	.summary = "Make an image for boxes to boot from.",
	.help = "With -v the build is shown as it goes; when it fails, its last lines are.\n"
		"--status exits 0, whatever is there.\n",
	.run = run,
};
