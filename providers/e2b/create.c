/* SPDX-License-Identifier: MIT */
/*
 * Making a box: a sandbox that has the attempt's label from its first moment.
 *
 * A request whose answer is lost, or that failed in a way that leaves it open, is followed by a
 * search for that label.  It is made again only where the service itself says that it failed and
 * there is none.
 */
#include <string.h>

#include "abxsdk/clock.h"
#include "providers/e2b/e2b.h"

#define LABEL_ATTEMPT "agentbox.attempt"
#define LOOKS 5
#define LOOK_MS 200
#define BUSY_MS 1000
#define TRIES 3

struct making {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_provision *p;
	const char *template_name;
	int64_t timeout_s;
	bool kill_on_timeout, auto_resume, private_urls;
};

/* NULL: it was not set for this box, nor for all. */
static const char *option(const struct abx_provision *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_options; i++)
		if (strcmp(p->options[i].key, name) == 0)
			return *p->options[i].value ? p->options[i].value : NULL;
	return NULL;
}

static bool flag(const struct abx_provision *p, const char *name, bool dflt)
{
	const char *value = option(p, name);

	return value ? strcmp(value, "true") == 0 : dflt;
}

/* What cannot be done is refused by name, never ignored. */
static int32_t refuse(struct abx_call *call, const struct abx_provision *p)
{
	static const char baked[] =
		"a template decides it: agentbox prepare --provider e2b with e2b.size, or "
		"create --image with a template that has what you need";

	if ((p->size && *p->size) || p->cpu_milli || p->mem_bytes || p->disk_bytes)
		return abx_fail(call, ABX_ENOTSUP, baked,
				"a sandbox cannot be given more or less than its template has");
	if (p->max_pids)
		return abx_fail(call, ABX_ENOTSUP, "leave it out",
				"--pids: processes of a sandbox are not limited");
	if (p->location && *p->location)
		return abx_fail(call, ABX_ENOTSUP, "leave it out; E2B_DOMAIN says where",
				"--location: E2B has no regions to choose from");
	if (p->inbound && *p->inbound)
		return abx_fail(call, ABX_ENOTSUP, "--private-urls",
				"who may connect to a box cannot be restricted to addresses");
	if (p->n_mounts)
		return abx_fail(call, ABX_ENOTSUP, "copy it (agentbox cp)",
				"--mount: a sandbox has no directories of this machine");
	if (p->n_volumes)
		return abx_fail(call, ABX_ENOTSUP, "leave it out", "--volume: not supported");
	return ABX_OK;
}

static int32_t settle(struct making *m)
{
	const struct abx_session *s = m->s;
	const struct abx_provision *p = m->p;
	const char *on_timeout = option(p, "on_timeout");
	const char *named = p->snapshot && *p->snapshot ? p->snapshot : p->image;

	m->template_name = named && *named ? named : option(p, "template");
	if (!m->template_name)
		m->template_name = s->template_name;
	if (!m->template_name)
		return abx_fail(m->call, ABX_EINVAL,
				"agentbox prepare --provider e2b builds one; or name one: create "
				"--image TEMPLATE, e2b.template, E2B_TEMPLATE ('base' is E2B's)",
				"no template is named, and none is prepared");
	if (strlen(m->template_name) >= E2B_NAME_BYTES)
		return abx_fail(m->call, ABX_EINVAL, NULL, "template: its name is too long");
	m->timeout_s = ((p->timeout_ms > 0 ? p->timeout_ms : s->timeout_ms) + 999) / 1000;
	if (m->timeout_s <= 0)
		return abx_fail(m->call, ABX_EINVAL, "e2b.timeout 45m",
				"e2b.timeout: a sandbox cannot live for ever, nor not at all");
	m->kill_on_timeout = on_timeout ? strcmp(on_timeout, "kill") == 0 : s->kill_on_timeout;
	if (p->flags & ABX_PROV_PAUSE_ON_TIMEOUT)
		m->kill_on_timeout = false;
	m->auto_resume = flag(p, "auto_resume", s->auto_resume) || p->flags & ABX_PROV_AUTO_RESUME;
	m->private_urls =
		flag(p, "private_urls", s->private_urls) || p->flags & ABX_PROV_PRIVATE_URLS;
	if (m->auto_resume && m->kill_on_timeout)
		return abx_fail(m->call, ABX_EINVAL,
				"e2b.on_timeout pause, or leave out e2b.auto_resume",
				"e2b.auto_resume: what was killed is not resumed");
	return ABX_OK;
}

static void add_network(const struct making *m, cJSON *body)
{
	cJSON *network = cJSON_CreateObject();

	e2b_egress_add(network, body, m->p->egress_allow, m->p->egress_deny);
	if (m->private_urls)
		(void)abx_json_add_bool(network, "allowPublicTraffic", false);
	if (network && network->child)
		(void)cJSON_AddItemToObject(body, "network", network);
	else
		cJSON_Delete(network);
}

static void add_pairs(cJSON *body, const char *key, const struct abx_kv *kv, uint32_t n)
{
	cJSON *obj = n ? cJSON_AddObjectToObject(body, key) : NULL;

	for (uint32_t i = 0; i < n; i++)
		(void)abx_json_add_str(obj, kv[i].key, kv[i].value);
}

/* What the service takes for granted changes: all of it is said. */
static cJSON *describe(const struct making *m)
{
	const struct abx_provision *p = m->p;
	cJSON *body = cJSON_CreateObject();

	(void)abx_json_add_str(body, "templateID", m->template_name);
	(void)abx_json_add_i64(body, "timeout", m->timeout_s);
	(void)abx_json_add_bool(body, "autoPause", !m->kill_on_timeout);
	(void)abx_json_add_bool(cJSON_AddObjectToObject(body, "autoResume"), "enabled",
				m->auto_resume);
	add_pairs(body, "metadata", p->labels, p->n_labels);
	add_pairs(body, "envVars", p->env, p->n_env);
	add_network(m, body);
	return body;
}

struct search {
	const char *attempt;
	char id[E2B_ID_BYTES];
};

static int32_t search_page(void *ctx, const cJSON *list)
{
	struct search *f = ctx;
	const cJSON *item;

	cJSON_ArrayForEach(item, list) {
		const cJSON *metadata = abx_json_get_part(item, "metadata");
		const char *id = abx_json_get_text(item, "sandboxID");

		if (strcmp(abx_json_get_text(metadata, LABEL_ATTEMPT), f->attempt) == 0 &&
		    e2b_is_id(id))
			(void)snprintf(f->id, sizeof(f->id), "%s", id);
	}
	return ABX_OK;
}

/* The sandbox of this attempt as described; *ret NULL: there is none. */
static int32_t find_made(const struct making *m, cJSON **ret)
{
	struct search f = {.attempt = m->p->idempotency_key};
	char path[300];
	int32_t r;

	*ret = NULL;
	(void)snprintf(path, sizeof(path),
		       "/v2/sandboxes?limit=100&state=running,paused&metadata=" LABEL_ATTEMPT
		       "%%3D%s",
		       f.attempt);
	r = e2b_pages(m->s, m->call, path, "search for the box of a lost answer", search_page, &f);
	return r == ABX_OK && *f.id ? e2b_inspect(m->s, m->call, f.id, ret) : r;
}

/* It may take a moment until what was made is listed. */
static int32_t await_made(const struct making *m, int looks, cJSON **ret)
{
	int64_t pause_ms = LOOK_MS;
	int32_t r = find_made(m, ret);

	for (int i = 1; i < looks && r == ABX_OK && !*ret; i++, pause_ms *= 2) {
		r = abx_plugin_host->wait_ms(m->call, pause_ms);
		if (r == ABX_OK)
			r = find_made(m, ret);
	}
	return r;
}

/* An older server has only the first version of it, where envd is open unless one says. */
static int32_t post(const struct making *m, cJSON *body, struct e2b_answer *a)
{
	const struct e2b_request q = {.method = "POST", .body = body, .outcome_matters = true};
	int32_t r;

	e2b_answer_release(a);
	r = e2b_ask(m->s, m->call, &q, a, "/v2/sandboxes");
	if (r != ABX_OK || !e2b_no_route(a))
		return r;
	e2b_answer_release(a);
	if (!cJSON_HasObjectItem(body, "secure"))
		(void)abx_json_add_bool(body, "secure", true);
	return e2b_ask(m->s, m->call, &q, a, "/sandboxes");
}

/* The count of a team's sandboxes lags behind those that ended, and a node may fail alone. */
static bool may_be_tried_again(const struct e2b_answer *a)
{
	return (a->status == 429 && a->retry_after_ms < 0) ||
	       ((a->status == 500 || a->status == 503) && *a->error_code);
}

static int32_t refused(const struct making *m, const struct e2b_answer *a)
{
	if (a->status == 404 || (a->status == 400 && strstr(a->message, "emplate")))
		return abx_fail(m->call, ABX_EINVAL,
				"agentbox image ls --provider e2b; agentbox prepare --provider e2b",
				"template %.200s: %.300s", m->template_name,
				*a->message ? a->message : "there is none");
	if (a->status == 502 || a->status == 504)
		return abx_fail_unknown(m->call, ABX_EREMOTE, E2B_REMEDY_LATER,
					"make a sandbox: HTTP %d: %.300s", a->status, a->message);
	return e2b_expect(m->call, a, "make a sandbox of template %.200s", m->template_name);
}

/* *ret: the answer that made it, or its description. */
static int32_t create(const struct making *m, cJSON **ret)
{
	cJSON *body = describe(m);
	struct e2b_answer a = {.status = 0};
	int32_t r = ABX_OK, looked = ABX_OK;

	for (int i = 0; i < TRIES; i++) {
		r = post(m, body, &a);
		if (r == ABX_OK && a.status < 300)
			*ret = abx_steal_ptr(&a.doc);
		else if (e2b_may_have_happened(r, &a))
			looked = await_made(m, r == ABX_OK && *a.error_code ? 1 : LOOKS, ret);
		if (*ret)
			r = ABX_OK;
		if (*ret || r != ABX_OK || looked != ABX_OK || !may_be_tried_again(&a) ||
		    i + 1 == TRIES || (a.status != 429 && i > 0))
			break;
		if (abx_plugin_host->wait_ms(m->call, BUSY_MS * (i + 1)) != ABX_OK)
			break;
	}
	if (!*ret && looked != ABX_OK)
		r = abx_fail_unknown(m->call, looked, E2B_REMEDY_LATER, "make a sandbox: %s",
				     a.message);
	else if (!*ret && r == ABX_OK)
		r = refused(m, &a);
	else if (!*ret && r != ABX_OK && e2b_may_have_happened(r, &a))
		(void)abx_fail_unknown(m->call, r, E2B_REMEDY_LATER, "make a sandbox: %s",
				       a.message);
	e2b_answer_release(&a);
	cJSON_Delete(body);
	return r;
}

static int32_t emit_made(const struct making *m, const char *id, const struct e2b_data *data,
			 int64_t expires_at_ms)
{
	char *text = e2b_data_print(data);
	const struct abx_sandbox sb = {
		ABX_INIT(struct abx_sandbox), .id = id,
		.name = m->p->name,	      .provider_data = text,
		.state = ABX_STATE_RUNNING,   .labels = m->p->labels,
		.n_labels = m->p->n_labels,   .expires_at_ms = expires_at_ms,
	};
	int32_t r =
		text ? abx_plugin_host->emit_sandbox(m->call, &sb) : abx_fail_no_memory(m->call);

	e2b_kept_until(m->s, id, expires_at_ms);
	cJSON_free(text);
	return r;
}

static int32_t make(const struct making *m)
{
	const int64_t until_ms = abx_realtime_ms() + m->timeout_s * 1000;
	struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .name = m->p->name,
				 .expires_at_ms = until_ms};
	struct e2b_data data = {.timeout_s = m->timeout_s};
	cJSON *made = NULL;
	char *text = NULL;
	int32_t r = create(m, &made);

	if (r != ABX_OK)
		return r;
	sb.id = abx_json_get_text(made, "sandboxID");
	if (!e2b_is_id(sb.id)) {
		cJSON_Delete(made);
		return abx_fail_unknown(m->call, ABX_EPROTO, NULL,
					"make a sandbox: E2B answers without its id");
	}
	e2b_data_take(m->call, made, &data);
	r = emit_made(m, sb.id, &data, until_ms);
	if (r == ABX_OK && (!*data.version || strncmp(data.version, "0.0.", 4) == 0))
		r = abx_fail(m->call, ABX_EBROKEN, "build the template anew",
			     "template %.200s: its envd %s is too old", m->template_name,
			     *data.version ? data.version : "(of no version)");
	text = r == ABX_OK ? e2b_data_print(&data) : NULL;
	sb.provider_data = text;
	if (r == ABX_OK)
		r = e2b_ready(m->s, m->call, &sb);
	explicit_bzero(&data, sizeof(data));
	cJSON_free(text);
	cJSON_Delete(made);
	return r;
}

/* One that somebody else made: it is used, and stays what it is. */
static int32_t take_over(const struct making *m, const char *id)
{
	const struct abx_provision *p = m->p;
	struct e2b_data data = {.foreign = true};
	struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id, .name = m->p->name};
	char *text = NULL;
	int32_t r;

	if (p->egress_allow || (p->egress_deny && *p->egress_deny) ||
	    p->flags & ABX_PROV_PRIVATE_URLS)
		return abx_fail(
			m->call, ABX_ENOTSUP, "leave them out",
			"--sandbox-id: --egress and --private-urls: a sandbox that is there "
			"keeps the network that it has");
	r = e2b_connect(m->s, m->call, &sb, &data, m->timeout_s);
	if (r == ABX_OK) {
		text = e2b_data_print(&data);
		sb.provider_data = text;
		r = e2b_ready(m->s, m->call, &sb);
	}
	explicit_bzero(&data, sizeof(data));
	cJSON_free(text);
	return r;
}

static bool is_attempt(const char *key)
{
	return key && *key && strlen(key) <= 100 &&
	       key[strspn(key, "0123456789abcdefghijklmnopqrstuvwxyz-")] == '\0';
}

int32_t e2b_provision(struct abx_session *s, struct abx_call *call, const struct abx_provision *p)
{
	struct making m = {.s = s, .call = call, .p = p};
	const char *there = option(p, "sandbox_id");
	int32_t r = refuse(call, p);

	if (r == ABX_OK && !is_attempt(p->idempotency_key))
		r = abx_fail(call, ABX_EINVAL, NULL, "idempotency key: not of [0-9a-z-]");
	if (r == ABX_OK)
		r = e2b_egress_check(call, p->egress_allow, p->egress_deny);
	if (!there)
		there = s->sandbox_id;
	if (r == ABX_OK && there && !(p->snapshot && *p->snapshot)) {
		m.template_name = "";
		m.timeout_s = ((p->timeout_ms > 0 ? p->timeout_ms : s->timeout_ms) + 999) / 1000;
		return take_over(&m, there);
	}
	if (r == ABX_OK)
		r = settle(&m);
	return r == ABX_OK ? make(&m) : r;
}
