/* SPDX-License-Identifier: MIT */
/* agentbox status */
#include "core/box/lifecycle.h"
#include "core/box/select.h"
#include "core/box/spec.h"
#include "core/cli/cmd.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

static void print_field(const char *name, const char *value)
{
	if (value && *value)
		(void)printf("%-12s%s\n", name, value);
}

static void print_limit(const char *name, uint64_t n, uint64_t unit, const char *suffix)
{
	if (n)
		(void)printf("%-12s%g%s\n", name, (double)n / (double)unit, suffix);
}

static void print_mounts(const char *name, const struct abx_spec_mounts *m, bool with_mode)
{
	char source[256], target[256];

	for (size_t i = 0; i < m->len; i++) {
		abx_show_text(m->items[i].source, source, sizeof(source));
		abx_show_text(m->items[i].target, target, sizeof(target));
		(void)printf("%-12s%s at %s%s\n", name, source, target,
			     with_mode && m->items[i].read_only ? " (read-only)" : "");
	}
}

/* What it was given beside the project. */
static void print_spec(const struct abx_box *b)
{
	struct abx_box_spec s = {0};
	abx_autofree char *egress = NULL;

	if (abx_box_spec_parse(b->spec, &s, NULL) < 0)
		return;
	if (s.has_egress)
		egress = abx_egress_text(&s.egress);
	print_field("egress", egress);
	print_limit("cpu", s.cpu_milli, 1000, "");
	print_limit("memory", s.mem_bytes, 1 << 20, " MiB");
	print_limit("disk", s.disk_bytes, 1 << 20, " MiB");
	print_limit("pids", s.max_pids, 1, "");
	print_mounts("mount", &s.mounts, true);
	print_mounts("volume", &s.volumes, false);
	for (uint32_t i = 0; i < s.n_ports; i++)
		(void)printf("%-12s%u\n", "port", s.ports[i]);
	print_field("read-only", s.read_only ? "the workspace" : NULL);
	abx_box_spec_release(&s);
}

static int print_text(const struct abx_box *b, const cJSON *urls, struct abx_err *err)
{
	const cJSON *url;
	char created[ABX_TIME_TEXT_BYTES], expires[ABX_TIME_TEXT_BYTES];

	abx_time_text(b->created_at_ms, created);
	abx_time_text(b->expires_at_ms, expires);
	print_field("name", b->name);
	print_field("id", b->id);
	print_field("state", abx_box_state_name(b->state));
	print_field("unfinished", b->pending);
	print_field("error", b->error);
	print_field("provider", b->provider);
	print_field("sandbox", b->sandbox_id);
	print_field("account", b->account);
	print_field("workspace", b->workspace);
	print_field("branch", b->branch);
	print_field("base", b->base_commit);
	print_spec(b);
	cJSON_ArrayForEach(url, urls)
		print_field("url",
			    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(url, "url")));
	print_field("created", created);
	print_field("expires", expires);
	return abx_out_line(err, "%-12s%u", "index", b->index);
}

#define URL_TIMEOUT_MS 15000

static void add_url(struct abx_cloud *cloud, const struct abx_box *box, uint16_t port, cJSON *urls)
{
	const struct abx_call_opts o = {.timeout_ms = URL_TIMEOUT_MS};
	const struct abx_url_req req = {ABX_INIT(struct abx_url_req), .port = port};
	struct abx_sandbox s = abx_cloud_sandbox(box);
	struct abx_err why = ABX_ERR_INIT;
	struct abx_url_copy got;
	cJSON *one;

	if (abx_cloud_url(cloud, &o, &s, &req, &got, &why) < 0) {
		abx_warn("port %u: %s", port, why.text);
		return;
	}
	one = cJSON_CreateObject();
	(void)cJSON_AddNumberToObject(one, "port", port);
	abx_json_text(one, "url", got.u.url);
	(void)cJSON_AddItemToArray(urls, one);
	abx_url_copy_release(&got);
}

/* Where its published ports are to be found, while it runs. */
static cJSON *find_urls(struct abx_cli *cli, const struct abx_box *box)
{
	cJSON *urls = cJSON_CreateArray();
	struct abx_box_spec spec = {0};
	struct abx_cloud *cloud;

	if (box->state == ABX_BOX_RUNNING && abx_box_spec_parse(box->spec, &spec, NULL) == 0 &&
	    spec.n_ports && abx_app_cloud_of(&cli->app, box, &cloud, NULL) == 0)
		for (uint32_t i = 0; i < spec.n_ports; i++)
			add_url(cloud, box, spec.ports[i], urls);
	abx_box_spec_release(&spec);
	return urls;
}

static int show(struct abx_cli *cli, const struct abx_box *box, struct abx_err *err)
{
	cJSON *urls = find_urls(cli, box), *doc;
	int r;

	if (!cli->json) {
		r = print_text(box, urls, err);
		cJSON_Delete(urls);
		return r;
	}
	doc = abx_json_box(box);
	(void)cJSON_ReplaceItemInObjectCaseSensitive(doc, "urls", urls);
	return abx_out_json(doc, err);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_box box = {0};
	struct abx_box_list one = {&box, 1};
	const char *what;
	int r = abx_opts_one_box(cli, NULL, argc, argv, &what, err);

	if (r != ABX_OPTS_GO)
		return r;
	r = abx_select_box(&cli->app, what, &box, err);
	if (r == 0)
		r = abx_lifecycle_refresh(&cli->app, &one, err);
	if (r == 0)
		r = show(cli, &box, err);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_status = {
	.name = "status",
	.usage = "[BOX] [--json]",
	.summary = "Show one box.",
	.run = run,
};
