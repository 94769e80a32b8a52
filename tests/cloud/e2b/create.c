/* SPDX-License-Identifier: MIT */
/* The emulated E2B: making a sandbox. */
#include <inttypes.h>
#include <string.h>

#include "abxsdk/json.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/e2b.h"

#define DEFAULT_S_V1 15
#define DEFAULT_S_V2 300
#define CLIENT_ID "6532622b"

cJSON *e2b_sandbox_json(const struct e2b_box *b)
{
	cJSON *doc = cJSON_CreateObject();

	(void)abx_json_add_str(doc, "templateID", b->template_id);
	(void)abx_json_add_str(doc, "sandboxID", b->id);
	(void)abx_json_add_str(doc, "clientID", CLIENT_ID);
	(void)abx_json_add_str(doc, "envdVersion", E2B_ENVD_VERSION);
	if (*b->alias)
		(void)abx_json_add_str(doc, "alias", b->alias);
	if (*b->token)
		(void)abx_json_add_str(doc, "envdAccessToken", b->token);
	if (*b->traffic_token)
		(void)abx_json_add_str(doc, "trafficAccessToken", b->traffic_token);
	else
		(void)cJSON_AddNullToObject(doc, "trafficAccessToken");
	(void)cJSON_AddNullToObject(doc, "domain");
	return doc;
}

static int check_str(void *ctx, const char *key, const char *value)
{
	(void)ctx;
	(void)key;
	(void)value;
	return 0;
}

/* A map of text to text, copied; false: it is something else. */
static bool take_map(const cJSON *doc, const char *key, cJSON **ret)
{
	const cJSON *o = NULL;

	if (abx_json_obj(doc, key, &o) < 0 || abx_json_each_str(o, check_str, NULL) < 0)
		return false;
	*ret = o ? cJSON_Duplicate(o, true) : cJSON_CreateObject();
	return true;
}

static const char *take_lifecycle(const cJSON *doc, struct e2b_box *b)
{
	const cJSON *resume = NULL;
	bool pause = false;

	if (abx_json_bool(doc, "autoPause", false, &pause) < 0 ||
	    abx_json_bool(doc, "autoPauseMemory", true, &b->pause_memory) < 0 ||
	    abx_json_obj(doc, "autoResume", &resume) < 0 ||
	    abx_json_bool(resume, "enabled", false, &b->auto_resume) < 0)
		return "validation error: a member has the wrong type";
	b->auto_pause = pause;
	if (!b->pause_memory && !b->auto_pause)
		return "autoPauseMemory requires autoPause";
	if (!b->pause_memory && b->auto_resume)
		return "autoPauseMemory: false cannot be used with autoResume";
	return NULL;
}

static const char *take_timeout(const cJSON *doc, int64_t dflt, struct e2b_box *b)
{
	int r = abx_json_i64(doc, "timeout", &b->timeout_s);

	if (r == -ENOENT)
		b->timeout_s = dflt;
	else if (r < 0)
		return "validation error: timeout is not an integer";
	if (b->timeout_s <= 0)
		return "Timeout must be greater than 0";
	if (b->timeout_s > E2B_LIFE_MAX_S)
		return "Timeout cannot be greater than 24 hours";
	return NULL;
}

/* NULL, or what is wrong with the request. */
static const char *take_request(const cJSON *doc, bool v2, struct e2b_box *b,
				const char **ret_template)
{
	const cJSON *network = NULL;
	bool secure = v2, public = true;
	const char *wrong;

	if (abx_json_str(doc, "templateID", 256, ret_template) < 0 || !*ret_template)
		return "validation error: templateID is missing";
	wrong = take_timeout(doc, v2 ? DEFAULT_S_V2 : DEFAULT_S_V1, b);
	if (!wrong)
		wrong = take_lifecycle(doc, b);
	if (wrong)
		return wrong;
	if (!take_map(doc, "metadata", &b->metadata) || !take_map(doc, "envVars", &b->envs))
		return "validation error: metadata and envVars are maps of strings";
	if (abx_json_bool(doc, "allow_internet_access", true, &b->internet) < 0 ||
	    (!v2 && abx_json_bool(doc, "secure", false, &secure) < 0) ||
	    abx_json_obj(doc, "network", &network) < 0 ||
	    abx_json_bool(network, "allowPublicTraffic", true, &public) < 0)
		return "validation error: a member has the wrong type";
	if (network) {
		wrong = e2b_check_network(network);
		b->network = cJSON_Duplicate(network, true);
	}
	if (!wrong && !public && !secure)
		wrong = "You cannot create a sandbox without public access unless you enable "
			"secure envd access via 'secure' flag.";
	if (secure)
		e2b_token(b->e, b->id, b->token);
	if (!public) {
		char text[64];

		(void)snprintf(text, sizeof(text), "sandbox-traffic-%s", b->id);
		e2b_token(b->e, text, b->traffic_token);
	}
	return wrong;
}

static int boot_from(struct e2b_box *b, const struct e2b_boot *boot, struct abx_err *err)
{
	struct emu_box_options o = {.snapshot = *boot->ref ? boot->ref : NULL};
	struct e2b_egress egress;
	int r;

	(void)snprintf(b->user, sizeof(b->user), "%s", boot->user);
	b->cwd = abx_xstrdup_null(boot->cwd);
	b->cpus = boot->cpus;
	b->memory_mb = boot->memory_mb;
	e2b_egress_of(b, &egress, &o);
	r = emu_box_make(b->e->engine, b->id, &o, err);
	e2b_egress_release(&egress);
	return r;
}

static void make(struct emu_request *req, const cJSON *doc, bool v2)
{
	struct e2b_box *b = e2b_box_new(req->service);
	struct abx_err err = ABX_ERR_INIT;
	const char *template = NULL, *wrong = take_request(doc, v2, b, &template);
	struct e2b_boot boot = {.cwd = NULL};

	if (wrong) {
		e2b_error(req, 400, "%s", wrong);
	} else if (!e2b_box_reserve(b)) {
		e2b_error(req, 429,
			  "you have reached the maximum number of concurrent E2B sandboxes "
			  "(%" PRId64 "). If you need more, please contact us",
			  emu_server_limits(req->server).sandboxes);
	} else if (!e2b_boot_find(b->e, template, &boot, b->template_id, b->alias)) {
		e2b_error(req, 404, "template '%.128s' not found", template);
	} else if (boot_from(b, &boot, &err) < 0) {
		e2b_error_coded(req, 500, "sandbox_create_failed", "Failed to create sandbox: %s",
				err.text);
	} else {
		b->started_ms = abx_wall_ms();
		b->run_ms = b->started_ms;
		b->end_ms = b->started_ms + b->timeout_s * 1000;
		b->state = E2B_RUNNING;
		e2b_box_list_in(b);
		e2b_procs_boot(b, boot.procs);
		emu_reply_json(req, 201, e2b_sandbox_json(b), NULL);
	}
	e2b_boot_release(&boot);
	e2b_box_put(b);
}

static void create(struct emu_request *req, bool v2)
{
	cJSON *doc = emu_body_json(req);

	if (doc)
		make(req, doc, v2);
	else
		e2b_error(req, 400, "validation error: the body is no JSON object");
	cJSON_Delete(doc);
}

void e2b_create(struct emu_request *req)
{
	create(req, false);
}

void e2b_create_v2(struct emu_request *req)
{
	create(req, true);
}
