/* SPDX-License-Identifier: MIT */
/* Boxes as the engine shows them. */
#include <string.h>

#include "abxsdk/number.h"
#include "providers/docker/docker.h"

#define LABELS_MAX 256

static uint32_t state_of(const char *status)
{
	static const struct {
		const char *status;
		uint32_t state;
	} states[] = {
		{"running", ABX_STATE_RUNNING},	  {"paused", ABX_STATE_PAUSED},
		{"exited", ABX_STATE_STOPPED},	  {"created", ABX_STATE_STOPPED},
		{"dead", ABX_STATE_FAILED},	  {"restarting", ABX_STATE_STARTING},
		{"removing", ABX_STATE_STOPPING},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(states); i++)
		if (strcmp(status, states[i].status) == 0)
			return states[i].state;
	return ABX_STATE_UNKNOWN;
}

uint32_t docker_state(const cJSON *inspected)
{
	const cJSON *state = abx_json_get_part(inspected, "State");

	return state ? state_of(abx_json_get_text(state, "Status")) : ABX_STATE_UNKNOWN;
}

struct labels {
	struct abx_kv kv[LABELS_MAX];
	uint32_t n;
	const char *own_name;
	uint64_t timeout_s;
};

static int take_label(void *ctx, const char *key, const char *value)
{
	struct labels *l = ctx;

	if (strcmp(key, DOCKER_LABEL_NAME) == 0)
		l->own_name = value;
	else if (strcmp(key, DOCKER_LABEL_TIMEOUT) == 0)
		(void)abx_parse_u64(value, INT64_MAX / 1000, &l->timeout_s);
	else if (strcmp(key, DOCKER_LABEL_PORTS) == 0 || strcmp(key, DOCKER_LABEL_INSIDE) == 0 ||
		 strcmp(key, DOCKER_LABEL_READ_ONLY) == 0)
		return 0;
	else if (l->n < LABELS_MAX)
		l->kv[l->n++] = (struct abx_kv){key, value};
	return 0;
}

/* Is the box what its labels say, or did it only inherit them? */
static bool is_own(const struct labels *l, const char *name)
{
	return l->own_name && strcmp(l->own_name, *name == '/' ? name + 1 : name) == 0;
}

static int32_t emit(struct abx_call *call, const char *id, const char *name, const char *created,
		    uint32_t state, const struct labels *l, int64_t expires_at_ms)
{
	const struct abx_sandbox sb = {
		ABX_INIT(struct abx_sandbox),
		.id = id,
		.name = *name == '/' ? name + 1 : name,
		.state = state,
		.created_at = *created ? created : NULL,
		.labels = l->kv,
		.n_labels = l->n,
		.expires_at_ms = expires_at_ms,
	};

	return abx_plugin_host->emit_sandbox(call, &sb);
}

int32_t docker_emit(struct abx_call *call, const cJSON *inspected)
{
	const cJSON *config = abx_json_get_part(inspected, "Config"),
		    *state = abx_json_get_part(inspected, "State");
	struct labels l = {.n = 0};
	char created[40];
	int64_t expires = 0;

	(void)abx_json_each_str(abx_json_get_part(config, "Labels"), take_label, &l);
	abx_rfc3339(abx_rfc3339_ms(abx_json_get_text(inspected, "Created")) / 1000, created);
	if (l.timeout_s && docker_state(inspected) == ABX_STATE_RUNNING)
		expires = abx_rfc3339_ms(abx_json_get_text(state, "StartedAt")) +
			  (int64_t)l.timeout_s * 1000;
	return emit(call, abx_json_get_text(inspected, "Id"), abx_json_get_text(inspected, "Name"),
		    created, docker_state(inspected), &l, expires);
}

int32_t docker_inspect(struct abx_session *s, struct abx_call *call, const char *id, cJSON **ret)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	struct labels l = {.n = 0};
	int32_t r;

	if (!docker_is_word(id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	r = docker_ask(s, call, &q, &a, "/containers/%s/json", id);
	if (r == ABX_OK)
		r = docker_expect(call, &a, "box %.*s", DOCKER_ID_SHOWN, id);
	if (r == ABX_OK) {
		(void)abx_json_each_str(
			abx_json_get_part(abx_json_get_part(a.doc, "Config"), "Labels"), take_label,
			&l);
		/* A container of somebody else's is none of ours, whatever it is asked for. */
		if (!is_own(&l, abx_json_get_text(a.doc, "Name")))
			r = abx_fail(call, ABX_ENOTFOUND, NULL, "box %.*s: no box of agentbox's",
				     DOCKER_ID_SHOWN, id);
	}
	if (r == ABX_OK)
		*ret = abx_steal_ptr(&a.doc);
	docker_answer_release(&a);
	return r;
}

int32_t docker_get(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	cJSON *doc = NULL;
	int32_t r = docker_inspect(s, call, sb->id, &doc);

	if (r == ABX_OK)
		r = docker_emit(call, doc);
	cJSON_Delete(doc);
	return r;
}

static int32_t list_one(struct abx_session *s, struct abx_call *call, const cJSON *item)
{
	const cJSON *names = cJSON_GetObjectItemCaseSensitive(item, "Names");
	const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(names, 0));
	struct labels l = {.n = 0};
	int64_t created = 0;
	char text[40];

	(void)abx_json_each_str(abx_json_get_part(item, "Labels"), take_label, &l);
	if (!name || !is_own(&l, name))
		return ABX_OK;
	/* When it began, which says when it ends, is not in the list. */
	if (l.timeout_s && state_of(abx_json_get_text(item, "State")) == ABX_STATE_RUNNING) {
		const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox),
					       .id = abx_json_get_text(item, "Id")};
		int32_t r = docker_get(s, call, &sb);

		return r == ABX_ENOTFOUND ? ABX_OK : r;
	}
	(void)abx_json_i64(item, "Created", &created);
	abx_rfc3339(created, text);
	return emit(call, abx_json_get_text(item, "Id"), name, text,
		    state_of(abx_json_get_text(item, "State")), &l, 0);
}

int32_t docker_list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	const struct docker_list l = {.path = "/containers/json?all=1&",
				      .what = "boxes",
				      .req = req,
				      .own = DOCKER_LABEL_NAME,
				      .each = list_one};

	return docker_each(s, call, &l);
}

/* The port that is published for `port`; 0 = none. */
static uint32_t published(const cJSON *inspected, uint32_t port)
{
	const char *at = abx_json_get_text(
		abx_json_get_part(abx_json_get_part(inspected, "Config"), "Labels"),
		DOCKER_LABEL_PORTS);
	char wanted[16];
	size_t len;

	(void)snprintf(wanted, sizeof(wanted), "%u", port);
	len = strlen(wanted);
	for (uint32_t i = 0; at && *at && i < DOCKER_PORTS_MAX; i++) {
		if (strncmp(at, wanted, len) == 0 && (!at[len] || at[len] == ','))
			return DOCKER_FIRST_PORT + i;
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return 0;
}

/* The port of this machine that leads to `port` of the box; 0 = none. */
static uint64_t host_port(const cJSON *inspected, uint32_t port)
{
	const cJSON *ports =
		abx_json_get_part(abx_json_get_part(inspected, "NetworkSettings"), "Ports");
	char key[16];
	uint64_t n = 0;

	(void)snprintf(key, sizeof(key), "%u/tcp", port);
	(void)abx_parse_u64(
		abx_json_get_text(
			cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(ports, key), 0),
			"HostPort"),
		65535, &n);
	return n;
}

int32_t docker_url(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_url_req *req)
{
	cJSON *doc = NULL;
	char text[64];
	struct abx_url url = {ABX_INIT(struct abx_url), .flags = ABX_URL_LOOPBACK, .url = text};
	uint64_t port;
	int32_t r = docker_inspect(s, call, sb->id, &doc);

	if (r != ABX_OK)
		return r;
	url.box_port = published(doc, req->port);
	port = url.box_port ? host_port(doc, url.box_port) : 0;
	if (docker_state(doc) != ABX_STATE_RUNNING)
		r = abx_fail(call, ABX_ESTATE, "start it", "box %.*s: it is not running",
			     DOCKER_ID_SHOWN, sb->id);
	else if (!port)
		r = abx_fail(
			call, ABX_ENOTFOUND, "ports are given when a box is made (create --port)",
			"box %.*s: port %u is not published", DOCKER_ID_SHOWN, sb->id, req->port);
	cJSON_Delete(doc);
	if (r != ABX_OK)
		return r;
	(void)snprintf(text, sizeof(text), "http://127.0.0.1:%u", (unsigned int)port);
	return abx_plugin_host->emit_url(call, &url);
}
