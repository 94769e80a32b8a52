/* SPDX-License-Identifier: MIT */
/* agentbox url */
#include "core/box/lifecycle.h"
#include "core/box/running.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/parse.h"

#define URL_TIMEOUT_MS 60000

struct question {
	struct abx_cli *cli;
	uint32_t port;
	int64_t ttl_ms;
	struct abx_url_copy *ret;
};

/* An address that does not depend on the box running is said without starting it: only the provider
 * knows, and says that the box does not run where that matters. */
static int ask(void *ctx, struct abx_box *box, struct abx_err *err)
{
	const struct question *q = ctx;
	const struct abx_call_opts o = {.timeout_ms = URL_TIMEOUT_MS, .box_id = box->id};
	struct abx_url_req req = {ABX_INIT(struct abx_url_req)};
	struct abx_sandbox s;
	struct abx_cloud *cloud;
	int r = abx_lifecycle_check_whole(box, err);

	if (r == 0)
		r = abx_app_cloud_of(&q->cli->app, box, &cloud, err);
	if (r < 0)
		return r;
	s = abx_cloud_sandbox(box);
	req.port = q->port;
	req.ttl_ms = q->ttl_ms;
	req.flags = q->ttl_ms ? ABX_URLREQ_SIGNED : 0;
	return abx_cloud_url(cloud, &o, &s, &req, q->ret, err);
}

static int find(struct abx_cli *cli, const char *what, struct question *q, struct abx_err *err)
{
	struct abx_box box = {0};
	int r = abx_select_box(&cli->app, what, &box, err);

	if (r == 0)
		r = abx_box_work(&cli->app, &box, ask, q, err);
	abx_box_release(&box);
	return r;
}

static int report(struct abx_cli *cli, const struct abx_url *u, uint32_t port, struct abx_err *err)
{
	cJSON *o;

	if (!cli->json)
		return abx_out_line(err, "%s", u->url);
	o = cJSON_CreateObject();
	abx_json_text(o, "url", u->url);
	(void)cJSON_AddNumberToObject(o, "port", port);
	abx_json_text(o, "header", u->header);
	abx_json_text(o, "token", u->token);
	(void)cJSON_AddBoolToObject(o, "public", u->flags & ABX_URL_PUBLIC);
	(void)cJSON_AddBoolToObject(o, "loopback", u->flags & ABX_URL_LOOPBACK);
	abx_json_time(o, "expires_at", u->expires_at_ms);
	return abx_out_json(o, err);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_url_copy url = {.memory = NULL};
	int64_t ttl_ms = 0;
	const struct abx_opt opts[] = {{0, "ttl", ABX_OPT_KIND_DURATION, &ttl_ms, "T",
					"a signed one that is good for so long"},
				       {0}};
	struct question q = {.cli = cli, .ret = &url};
	struct abx_args args;
	uint64_t port = 0;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos < 1 || args.n_pos > 2 || args.n_rest)
		return abx_usage(cli, err, "url takes a box and a port");
	if (!abx_parse_u64(args.pos[args.n_pos - 1], 65535, &port) || !port)
		return abx_usage(cli, err, "a port is a number from 1 to 65535");
	q.port = (uint32_t)port;
	q.ttl_ms = ttl_ms;
	r = find(cli, args.n_pos > 1 ? args.pos[0] : NULL, &q, err);
	if (r == 0)
		r = report(cli, &url.u, (uint32_t)port, err);
	abx_url_copy_release(&url);
	return r;
}

const struct abx_cmd abx_cmd_url = {
	.name = "url",
	.usage = "[BOX] PORT [--ttl T] [--json]",
	.summary = "Where a port of a box can be reached.",
	.run = run,
};
