/* SPDX-License-Identifier: MIT */
/*
 * Volumes: the engine's, which outlive boxes.
 *
 * All users of an engine share its names: one of ours is agentbox-<install>-<name>, and
 * DOCKER_LABEL_VOLUME says what its user calls it.  One without that label is somebody else's.
 */
#include <string.h>

#include "providers/docker/docker.h"

#define ENGINE_NAME_MAX 160
#define INSTALL_MAX 64

static const char *label(const struct abx_kv *labels, uint32_t n, const char *key)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(labels[i].key, key) == 0)
			return labels[i].value;
	return "";
}

static int32_t engine_name(struct abx_call *call, const struct abx_volume_req *req,
			   char ret[ENGINE_NAME_MAX])
{
	const char *install = label(req->labels, req->n_labels, "agentbox.install");

	if (!docker_is_word(req->name) || strpbrk(req->name, "/:@") || strlen(req->name) > 64)
		return abx_fail(call, ABX_EINVAL, NULL,
				"volume %.80s: not a name (1 to 64 of A-Z a-z 0-9 . _ -)",
				req->name ? req->name : "");
	if (!docker_is_word(install) || strpbrk(install, "/:@") || strlen(install) > INSTALL_MAX)
		return abx_fail(call, ABX_EINVAL, NULL, "volume %s: without an install's label",
				req->name);
	(void)snprintf(ret, ENGINE_NAME_MAX, "agentbox-%s-%s", install, req->name);
	return ABX_OK;
}

#define LABELS_MAX 64

struct labels {
	struct abx_kv kv[LABELS_MAX];
	uint32_t n;
	const char *name;
};

static int take_label(void *ctx, const char *key, const char *value)
{
	struct labels *l = ctx;

	if (strcmp(key, DOCKER_LABEL_VOLUME) == 0)
		l->name = value;
	else if (l->n < LABELS_MAX)
		l->kv[l->n++] = (struct abx_kv){key, value};
	return 0;
}

/* ABX_ENOTFOUND, not yet failed, when it is none of ours. */
static int32_t emit(struct abx_call *call, const cJSON *doc, uint32_t phase)
{
	struct labels l = {.n = 0};
	struct abx_resource res = {ABX_INIT(struct abx_resource), .kind = "volume",
				   .id = abx_json_get_text(doc, "Name")};

	(void)abx_json_each_str(abx_json_get_part(doc, "Labels"), take_label, &l);
	if (!l.name || !*res.id)
		return ABX_ENOTFOUND;
	res.name = l.name;
	res.labels = l.kv;
	res.n_labels = l.n;
	return abx_plugin_host->emit_resource(call, &res, phase);
}

/* ABX_ENOTFOUND, not yet failed, when there is none of ours; cJSON_Delete() what it is. */
static int32_t look(struct abx_session *s, struct abx_call *call, const char *id, cJSON **ret)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	struct labels l = {.n = 0};
	int32_t r;

	if (!docker_is_word(id) || strpbrk(id, "/:@"))
		return ABX_ENOTFOUND;
	r = docker_ask(s, call, &q, &a, "/volumes/%s", id);
	if (r == ABX_OK && a.status != 404)
		r = docker_expect(call, &a, "volume %s", id);
	if (r == ABX_OK && a.status != 404)
		(void)abx_json_each_str(abx_json_get_part(a.doc, "Labels"), take_label, &l);
	if (r == ABX_OK && !l.name)
		r = ABX_ENOTFOUND;
	if (r == ABX_OK)
		*ret = abx_steal_ptr(&a.doc);
	docker_answer_release(&a);
	return r;
}

int32_t docker_volume_check(struct abx_session *s, struct abx_call *call, const char *id)
{
	cJSON *doc = NULL;
	int32_t r = look(s, call, id, &doc);

	cJSON_Delete(doc);
	/* Not "not found", which would be about a box. */
	return r == ABX_ENOTFOUND ? abx_fail(call, ABX_EINVAL, "make it first",
					     "volume: %.200s: there is no such volume", id)
				  : r;
}

static int32_t make(struct abx_session *s, struct abx_call *call, const struct abx_volume_req *req,
		    const char *id)
{
	struct abx_resource res = {ABX_INIT(struct abx_resource),
				   .kind = "volume",
				   .id = id,
				   .name = req->name,
				   .labels = req->labels,
				   .n_labels = req->n_labels};
	cJSON *body = cJSON_CreateObject(), *labels = cJSON_AddObjectToObject(body, "Labels");
	/* Made twice it is the same. */
	const struct docker_request q = {.method = "POST", .body = body, .idempotent = true};
	struct docker_answer a = {.status = 0};
	int32_t r = abx_plugin_host->emit_resource(call, &res, ABX_PHASE_INTENT);

	(void)abx_json_add_str(body, "Name", id);
	(void)abx_json_add_str(body, "Driver", "local");
	for (uint32_t i = 0; i < req->n_labels; i++)
		(void)abx_json_add_str(labels, req->labels[i].key, req->labels[i].value);
	(void)abx_json_add_str(labels, DOCKER_LABEL_VOLUME, req->name);
	if (r == ABX_OK)
		r = docker_ask(s, call, &q, &a, "/volumes/create");
	if (r == ABX_OK)
		r = docker_expect(call, &a, "volume %s: make it", req->name);
	if (r == ABX_OK)
		r = emit(call, a.doc, ABX_PHASE_EXISTS);
	if (r == ABX_ENOTFOUND)
		r = abx_fail(call, ABX_EPROTO, NULL, "Docker engine: a volume without labels");
	docker_answer_release(&a);
	cJSON_Delete(body);
	return r;
}

int32_t docker_volume_ensure(struct abx_session *s, struct abx_call *call,
			     const struct abx_volume_req *req)
{
	char id[ENGINE_NAME_MAX];
	cJSON *doc = NULL;
	int32_t r = engine_name(call, req, id);

	if (r == ABX_OK && req->size && *req->size)
		r = abx_fail(call, ABX_ENOTSUP, "make it without a size",
			     "volume %s: the engine keeps no size", req->name);
	if (r != ABX_OK)
		return r;
	r = look(s, call, id, &doc);
	if (r == ABX_OK)
		r = emit(call, doc, ABX_PHASE_EXISTS);
	else if (r == ABX_ENOTFOUND)
		r = make(s, call, req, id);
	cJSON_Delete(doc);
	return r;
}

static int32_t emit_listed(struct abx_session *s ABX_UNUSED, struct abx_call *call,
			   const cJSON *item)
{
	int32_t r = emit(call, item, ABX_PHASE_EXISTS);

	return r == ABX_ENOTFOUND ? ABX_OK : r;
}

int32_t docker_volume_list(struct abx_session *s, struct abx_call *call,
			   const struct abx_list_req *req)
{
	const struct docker_list l = {.path = "/volumes?",
				      .member = "Volumes",
				      .what = "volumes",
				      .req = req,
				      .own = DOCKER_LABEL_VOLUME,
				      .each = emit_listed};

	return docker_each(s, call, &l);
}

int32_t docker_volume_delete(struct abx_session *s, struct abx_call *call, const char *id)
{
	const struct docker_request q = {.method = "DELETE", .idempotent = true, .slow = true};
	struct docker_answer a = {.status = 0};
	cJSON *doc = NULL;
	int32_t r = look(s, call, id, &doc);

	if (r == ABX_ENOTFOUND)
		return abx_fail(call, r, NULL, "volume: %.200s: there is no such volume", id);
	if (r == ABX_OK)
		r = docker_ask(s, call, &q, &a, "/volumes/%s", id);
	if (r == ABX_OK && a.status == 409)
		r = abx_fail(call, ABX_ESTATE, "destroy the boxes that have it first",
			     "volume %s: %.300s", id, a.message);
	else if (r == ABX_OK && a.status != 404)
		r = docker_expect(call, &a, "volume %s", id);
	if (r == ABX_OK)
		r = emit(call, doc, ABX_PHASE_GONE);
	docker_answer_release(&a);
	cJSON_Delete(doc);
	return r;
}
