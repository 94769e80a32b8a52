/* SPDX-License-Identifier: MIT */
/* The emulated E2B: changing a sandbox that is there. */
#include <string.h>

#include "abxsdk/json.h"
#include "core/util/clock.h"
#include "tests/cloud/e2b/e2b.h"

#define CONNECT_S 300
#define RESUME_S 15
#define REFRESH_MAX_S 3600
#define REFRESH_MIN_S 15

static void finish(struct emu_request *req, struct e2b_box *b)
{
	(void)req;
	(void)pthread_mutex_unlock(&b->op);
	e2b_box_put(b);
}

/* The box that is named, one lifecycle operation at a time. */
static struct e2b_box *begin(struct emu_request *req)
{
	struct e2b_box *b = e2b_named_box(req);

	if (!b)
		return NULL;
	(void)pthread_mutex_lock(&b->op);
	if (b->state != E2B_GONE)
		return b;
	finish(req, b);
	e2b_error(req, 404, "Sandbox \"%.64s\" doesn't exist or you don't have access to it",
		  req->args[0]);
	return NULL;
}

static void failed(struct emu_request *req, const struct abx_err *err)
{
	e2b_error_coded(req, 500, "internal_server_error", "%s", err->text);
}

void e2b_delete(struct emu_request *req)
{
	struct abx_err err = ABX_ERR_INIT;
	struct e2b_box *b = begin(req);

	if (!b)
		return;
	if (e2b_kill(b, &err) < 0)
		failed(req, &err);
	else
		emu_reply(req, 204, NULL, NULL, 0, NULL);
	finish(req, b);
}

/* The body; NULL and an answer: it is no object, or its `timeout` no number. */
static cJSON *body_with(struct emu_request *req, const char *key, int64_t dflt, int64_t *ret)
{
	cJSON *doc = emu_body_json(req);
	int r = doc ? abx_json_i64(doc, key, ret) : -EPROTO;

	if (r == -ENOENT && dflt >= 0) {
		*ret = dflt;
		r = 0;
	}
	if (r == 0 && *ret >= 0)
		return doc;
	e2b_error(req, 400, "validation error: %s", doc ? key : "the body is no JSON object");
	cJSON_Delete(doc);
	return NULL;
}

void e2b_post_pause(struct emu_request *req)
{
	struct abx_err err = ABX_ERR_INIT;
	cJSON *doc = emu_body_json(req);
	bool memory = true;
	struct e2b_box *b;

	if (!doc || abx_json_bool(doc, "memory", true, &memory) < 0) {
		e2b_error(req, 400, "validation error: memory");
	} else if ((b = begin(req))) {
		if (b->state == E2B_PAUSED)
			e2b_error(req, 409,
				  "Error pausing sandbox - sandbox '%s' is already paused", b->id);
		else if (e2b_pause(b, memory, &err) < 0)
			failed(req, &err);
		else
			emu_reply(req, 204, NULL, NULL, 0, NULL);
		finish(req, b);
	}
	cJSON_Delete(doc);
}

static void extend(struct e2b_box *b, int64_t timeout_s)
{
	int64_t end = abx_wall_ms() + e2b_clamp(b, timeout_s) * 1000;

	(void)pthread_mutex_lock(&b->e->lock);
	if (end > b->end_ms)
		b->end_ms = end;
	(void)pthread_mutex_unlock(&b->e->lock);
}

/* dflt < 0: a timeout must be said. */
static void connect_to(struct emu_request *req, int64_t dflt, bool resume_only)
{
	struct abx_err err = ABX_ERR_INIT;
	int64_t timeout_s = 0;
	cJSON *doc = body_with(req, "timeout", dflt, &timeout_s);
	bool memory = true, pause = false;
	struct e2b_box *b;

	if (!doc)
		return;
	if (abx_json_bool(doc, "memory", true, &memory) < 0 || timeout_s == 0) {
		e2b_error(req, 400,
			  timeout_s ? "validation error: memory"
				    : "Timeout must be greater than 0");
	} else if ((b = begin(req))) {
		if (b->state == E2B_RUNNING && resume_only) {
			e2b_error(req, 409, "Sandbox \"%s\" is already running", b->id);
		} else if (b->state == E2B_RUNNING) {
			extend(b, timeout_s);
			emu_reply_json(req, 200, e2b_sandbox_json(b), NULL);
		} else if (e2b_resume(b, timeout_s, memory, &err) < 0) {
			failed(req, &err);
		} else {
			(void)abx_json_bool(doc, "autoPause", b->auto_pause, &pause);
			if (resume_only)
				b->auto_pause = pause;
			emu_reply_json(req, 201, e2b_sandbox_json(b), NULL);
		}
		finish(req, b);
	}
	cJSON_Delete(doc);
}

void e2b_post_connect(struct emu_request *req)
{
	connect_to(req, CONNECT_S, false);
}

void e2b_post_connect_v1(struct emu_request *req)
{
	connect_to(req, -1, false);
}

void e2b_post_resume(struct emu_request *req)
{
	if (req->body.len == 0)
		e2b_error(req, 400, "validation error: request body is missing");
	else
		connect_to(req, RESUME_S, true);
}

void e2b_post_timeout(struct emu_request *req)
{
	int64_t timeout_s = 0;
	cJSON *doc = body_with(req, "timeout", -1, &timeout_s);
	struct e2b_box *b = doc ? begin(req) : NULL;

	cJSON_Delete(doc);
	if (!b)
		return;
	if (b->state != E2B_RUNNING) {
		e2b_error(req, 409, "Sandbox \"%s\" is not running", b->id);
	} else {
		(void)pthread_mutex_lock(&b->e->lock);
		b->end_ms = abx_wall_ms() + e2b_clamp(b, timeout_s) * 1000;
		(void)pthread_mutex_unlock(&b->e->lock);
		emu_reply(req, 204, NULL, NULL, 0, NULL);
	}
	finish(req, b);
}

void e2b_post_refreshes(struct emu_request *req)
{
	int64_t duration_s = 0;
	cJSON *doc = body_with(req, "duration", 0, &duration_s);
	struct e2b_box *b = NULL;

	cJSON_Delete(doc);
	if (!doc)
		return;
	if (duration_s > REFRESH_MAX_S)
		e2b_error(req, 400, "validation error: duration");
	else
		b = begin(req);
	if (!b)
		return;
	extend(b, duration_s < REFRESH_MIN_S ? REFRESH_MIN_S : duration_s);
	emu_reply(req, 204, NULL, NULL, 0, NULL);
	finish(req, b);
}

/* All of where it may connect to is new; who may connect to it stays.  NULL, or what is wrong. */
static const char *set_network(struct e2b_box *b, const cJSON *doc, struct abx_err *err)
{
	static const char *const kept[] = {"allowPublicTraffic", "maskRequestHost"};
	cJSON *network = cJSON_Duplicate(doc, true);
	struct emu_box_options o = {.allow = NULL};
	const char *wrong = e2b_check_network(doc);
	bool internet = true;
	struct e2b_egress egress;

	if (wrong || abx_json_bool(doc, "allow_internet_access", true, &internet) < 0) {
		cJSON_Delete(network);
		return wrong ? wrong : "validation error: allow_internet_access";
	}
	cJSON_DeleteItemFromObjectCaseSensitive(network, "allow_internet_access");
	(void)pthread_mutex_lock(&b->e->lock);
	for (size_t i = 0; i < ABX_N_ELEMENTS(kept); i++) {
		cJSON *old = cJSON_DetachItemFromObjectCaseSensitive(b->network, kept[i]);

		if (old)
			(void)cJSON_AddItemToObject(network, kept[i], old);
	}
	b->internet = internet;
	cJSON_Delete(b->network);
	b->network = network;
	(void)pthread_mutex_unlock(&b->e->lock);
	e2b_egress_of(b, &egress, &o);
	if (emu_box_set_egress(b->e->engine, b->id, &o, err) < 0)
		wrong = err->text;
	e2b_egress_release(&egress);
	return wrong;
}

void e2b_put_network(struct emu_request *req)
{
	cJSON *doc = emu_body_json(req);
	struct e2b_box *b = doc ? begin(req) : NULL;
	struct abx_err err = ABX_ERR_INIT;
	const char *wrong;

	if (!doc)
		e2b_error(req, 400, "validation error: the body is no JSON object");
	if (b) {
		if (b->state != E2B_RUNNING)
			e2b_error(req, 409, "Sandbox \"%s\" is not running", b->id);
		else if ((wrong = set_network(b, doc, &err)))
			e2b_error(req, wrong == err.text ? 500 : 400, "%s", wrong);
		else
			emu_reply(req, 204, NULL, NULL, 0, NULL);
		finish(req, b);
	}
	cJSON_Delete(doc);
}
