/* SPDX-License-Identifier: MIT */
/* Boxes are started, stopped, paused, and go. */
#include <string.h>

#include "providers/docker/docker.h"

#define GONE_WAIT_MS 50
#define GONE_ROUNDS 200

/* A box by its id, which is ours; what is asked of it happens to containers of no other. */
static int32_t find(struct abx_session *s, struct abx_call *call, const char *id,
		    uint32_t *ret_state)
{
	cJSON *doc = NULL;
	int32_t r = docker_inspect(s, call, id, &doc);

	if (r == ABX_OK)
		*ret_state = docker_state(doc);
	cJSON_Delete(doc);
	return r;
}

static int32_t emit_now(struct abx_session *s, struct abx_call *call, const char *id)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};

	return docker_get(s, call, &sb);
}

/* To do it again is no harm, and an engine whose answer was lost says then that it is done. */
static int32_t act(struct abx_session *s, struct abx_call *call, const char *id, const char *verb,
		   const char *query, int64_t takes_ms)
{
	const struct docker_request q = {
		.method = "POST", .idempotent = true, .takes_ms = takes_ms};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_ask(s, call, &q, &a, "/containers/%s/%s%s", id, verb, query);

	if (r == ABX_OK &&
	    !(strstr(a.message, "already paused") || strstr(a.message, "not paused")))
		r = docker_expect(call, &a, "%s box %.*s", verb, DOCKER_ID_SHOWN, id);
	docker_answer_release(&a);
	return r;
}

/* What is asked for beside the usual is judged when it starts. */
static int32_t start_it(struct abx_session *s, struct abx_call *call, const char *id, bool inside)
{
	const struct docker_request q = {.method = "POST", .idempotent = true};
	struct docker_answer a = {.status = 0};
	int32_t r;

	if (!inside)
		return act(s, call, id, "start", "", 0);
	r = docker_ask(s, call, &q, &a, "/containers/%s/start", id);
	if (r == ABX_OK && (a.status == 400 || a.status == 403 || a.status == 500))
		r = docker_inside_refused(s, call, a.message);
	else if (r == ABX_OK)
		r = docker_expect(call, &a, "start box %.*s", DOCKER_ID_SHOWN, id);
	docker_answer_release(&a);
	return r;
}

int32_t docker_start_it(struct abx_session *s, struct abx_call *call, const char *id, bool inside,
			cJSON **ret)
{
	cJSON *doc = NULL;
	const cJSON *state = NULL;
	const char *why = NULL;
	int32_t r = start_it(s, call, id, inside);

	if (r == ABX_OK)
		r = docker_inspect(s, call, id, &doc);
	if (r == ABX_OK && docker_state(doc) != ABX_STATE_RUNNING) {
		(void)abx_json_obj(doc, "State", &state);
		(void)abx_json_str(state, "Error", 65536, &why);
		r = abx_fail(call, ABX_EIO, "docker logs shows what it said",
			     "box %.*s: it ended at once%s%.300s", DOCKER_ID_SHOWN, id,
			     why && *why ? ": " : "", why ? why : "");
	}
	if (r == ABX_OK)
		r = docker_emit(call, doc);
	if (r == ABX_OK && ret)
		*ret = abx_steal_ptr(&doc);
	cJSON_Delete(doc);
	return r;
}

int32_t docker_start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_start_req *req)
{
	const uint32_t flags = req ? req->flags : 0;
	cJSON *doc = NULL;
	char id[80];
	bool inside;
	int32_t r = docker_inspect(s, call, sb->id, &doc);

	(void)snprintf(id, sizeof(id), "%.79s", sb->id);
	if (r == ABX_OK && flags & ~ABX_START_READ_ONLY)
		r = abx_fail(call, ABX_ENOTSUP, NULL, "start: unknown flags %#x", flags);
	if (r == ABX_OK && docker_state(doc) == ABX_STATE_PAUSED)
		r = abx_fail(call, ABX_ESTATE, "resume it", "box %.*s: it is paused",
			     DOCKER_ID_SHOWN, sb->id);
	if (r == ABX_OK && flags & ABX_START_READ_ONLY && !docker_readonly_is(doc))
		r = docker_readonly_make(s, call, doc, id);
	inside = docker_inside_is(doc);
	cJSON_Delete(doc);
	if (r == ABX_OK)
		r = docker_start_it(s, call, id, inside, NULL);
	return r == ABX_OK && inside ? docker_inside_start(s, call, id) : r;
}

static int32_t stop_it(struct abx_session *s, struct abx_call *call, const char *id, bool inside,
		       const struct abx_stop_req *req)
{
	const int64_t seconds = req && req->grace_ms > 0 ? (req->grace_ms + 999) / 1000 : 0;
	char query[40];

	if (inside && seconds)
		(void)docker_inside_stop(s, call, id, req->grace_ms);

	(void)snprintf(query, sizeof(query), "?t=%lld", (long long)seconds);
	return act(s, call, id, "stop", query, seconds * 1000);
}

int32_t docker_stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_stop_req *req)
{
	cJSON *doc = NULL;
	int32_t r = docker_inspect(s, call, sb->id, &doc);

	/* What is frozen hears nothing before it is killed. */
	if (r == ABX_OK && docker_state(doc) == ABX_STATE_PAUSED)
		r = act(s, call, sb->id, "unpause", "", 0);
	if (r == ABX_OK)
		r = stop_it(s, call, sb->id, docker_inside_is(doc), req);
	cJSON_Delete(doc);
	return r == ABX_OK ? emit_now(s, call, sb->id) : r;
}

int32_t docker_pause(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_stop_req *req ABX_UNUSED)
{
	uint32_t state = 0;
	int32_t r = find(s, call, sb->id, &state);

	if (r == ABX_OK && state != ABX_STATE_PAUSED)
		r = act(s, call, sb->id, "pause", "", 0);
	return r == ABX_OK ? emit_now(s, call, sb->id) : r;
}

int32_t docker_resume(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_start_req *req)
{
	uint32_t state = 0;
	int32_t r = find(s, call, sb->id, &state);

	if (r == ABX_OK && state == ABX_STATE_PAUSED)
		r = act(s, call, sb->id, "unpause", "", 0);
	else if (r == ABX_OK && state != ABX_STATE_RUNNING)
		return docker_start(s, call, sb, req);
	return r == ABX_OK ? emit_now(s, call, sb->id) : r;
}

/* A removal that somebody else began goes on without us. */
static int32_t await_gone(struct abx_session *s, struct abx_call *call, const char *id)
{
	for (int i = 0; i < GONE_ROUNDS; i++) {
		const struct docker_request q = {.method = "GET", .idempotent = true};
		struct docker_answer a;
		int32_t r = docker_ask(s, call, &q, &a, "/containers/%s/json", id);
		int32_t status = a.status;

		docker_answer_release(&a);
		if (r != ABX_OK || status == 404)
			return r;
		r = abx_plugin_host->wait_ms(call, GONE_WAIT_MS);
		if (r != ABX_OK)
			return r == ABX_ECANCELED ? abx_fail_canceled(call)
						  : abx_fail_timed_out(call);
	}
	return abx_fail(call, ABX_EREMOTE, "look into the engine's log, or start it again",
			"box %.*s: the engine does not come to an end with removing it",
			DOCKER_ID_SHOWN, id);
}

int32_t docker_remove(struct abx_session *s, struct abx_call *call, const char *id)
{
	const struct docker_request q = {.method = "DELETE", .idempotent = true, .slow = true};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_ask(s, call, &q, &a, "/containers/%s?force=1&v=1", id);

	if (r == ABX_OK && a.status == 409 && strstr(a.message, "in progress"))
		r = await_gone(s, call, id);
	else if (r == ABX_OK && a.status != 404)
		r = docker_expect(call, &a, "destroy box %.*s", DOCKER_ID_SHOWN, id);
	docker_answer_release(&a);
	return r;
}

int32_t docker_destroy(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_stop_req *req)
{
	bool of_snapshot = true, read_only = true;
	cJSON *doc = NULL;
	int32_t r = docker_inspect(s, call, sb->id, &doc);

	if (r != ABX_OK && r != ABX_ENOTFOUND)
		return r;
	if (r == ABX_OK) {
		if (req && req->grace_ms > 0 && docker_state(doc) == ABX_STATE_RUNNING)
			r = stop_it(s, call, sb->id, docker_inside_is(doc), req);
		if (r == ABX_OK || r == ABX_ENOTFOUND)
			r = docker_remove(s, call, sb->id);
		of_snapshot = strncmp(abx_json_get_text(abx_json_get_part(doc, "Config"), "Image"),
				      "sha256:", 7) == 0;
		read_only = docker_readonly_is(doc);
		cJSON_Delete(doc);
		if (r != ABX_OK)
			return r;
		docker_readonly_forget(s, call, sb->id);
	}
	docker_env_remove(s, sb->id);
	/* Also when whoever removed it got no further: then nobody knows any more what it was. */
	r = read_only ? docker_readonly_sweep(s, call) : ABX_OK;
	/* It may have been the last that stood on one that was removed. */
	if (r == ABX_OK && of_snapshot)
		r = docker_removed_sweep(s, call);
	return r;
}
