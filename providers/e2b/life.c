/* SPDX-License-Identifier: MIT */
/* Boxes are resumed, paused, renewed, and go. */
#include <string.h>

#include "abxsdk/clock.h"
#include "providers/e2b/e2b.h"

/* So long a box lives: as it was asked for, as it was made, or as is configured. */
static int64_t life_s(const struct abx_session *s, const struct e2b_data *data, int64_t asked_ms)
{
	if (asked_ms > 0)
		return (asked_ms + 999) / 1000;
	return data->timeout_s > 0 ? data->timeout_s : (s->timeout_ms + 999) / 1000;
}

static int32_t emit_running(struct abx_session *s, struct abx_call *call,
			    const struct abx_sandbox *sb, const struct e2b_data *data,
			    int64_t expires_at_ms)
{
	char *text = e2b_data_print(data);
	const struct abx_sandbox now = {ABX_INIT(struct abx_sandbox),
					.id = sb->id,
					.name = sb->name,
					.state = ABX_STATE_RUNNING,
					.provider_data = text,
					.expires_at_ms = expires_at_ms};
	int32_t r = text ? abx_plugin_host->emit_sandbox(call, &now) : abx_fail_no_memory(call);

	if (r == ABX_OK)
		e2b_kept_until(s, sb->id, expires_at_ms);
	cJSON_free(text);
	return r;
}

/* An older server has no v2 of it. */
static int32_t connect_to(struct abx_session *s, struct abx_call *call, const char *id,
			  int64_t timeout_s, struct e2b_answer *a)
{
	cJSON *body = cJSON_CreateObject();
	const struct e2b_request q = {
		.method = "POST", .body = body, .idempotent = true, .quiet_ms = E2B_QUIET_LONG_MS};
	int32_t r;

	(void)abx_json_add_i64(body, "timeout", timeout_s);
	r = e2b_ask(s, call, &q, a, "/v2/sandboxes/%s/connect", id);
	if (r == ABX_OK && e2b_no_route(a)) {
		e2b_answer_release(a);
		r = e2b_ask(s, call, &q, a, "/sandboxes/%s/connect", id);
	}
	cJSON_Delete(body);
	return r;
}

int32_t e2b_connect(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    struct e2b_data *io, int64_t timeout_s)
{
	const int64_t until_ms = abx_realtime_ms() + timeout_s * 1000;
	struct e2b_answer a = {.status = 0};
	int32_t r;

	if (!e2b_is_id(sb->id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	r = connect_to(s, call, sb->id, timeout_s, &a);
	if (r == ABX_OK)
		r = e2b_expect(call, &a, "start box %s", sb->id);
	if (r == ABX_OK && strcmp(abx_json_get_text(a.doc, "sandboxID"), sb->id) != 0)
		r = abx_fail(call, ABX_EPROTO, NULL, "start box %s: E2B answers with another one",
			     sb->id);
	if (r == ABX_OK) {
		io->timeout_s = timeout_s;
		e2b_data_take(call, a.doc, io);
		/* One that ran already keeps a deadline that is later. */
		r = emit_running(s, call, sb, io,
				 a.status == 200 && sb->expires_at_ms > until_ms ? sb->expires_at_ms
										 : until_ms);
	}
	e2b_answer_release(&a);
	return r;
}

int32_t e2b_start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_start_req *req)
{
	struct e2b_data data;
	int32_t r;

	if (req && req->flags)
		return abx_fail(call, ABX_ENOTSUP, NULL, "start: unknown flags %#x", req->flags);
	e2b_data_read(call, sb, &data);
	r = e2b_connect(s, call, sb, &data, life_s(s, &data, req ? req->timeout_ms : 0));
	explicit_bzero(&data, sizeof(data));
	return r;
}

int32_t e2b_pause(struct abx_session *s, struct abx_call *call, const char *id, bool memory)
{
	cJSON *body = cJSON_CreateObject();
	const struct e2b_request q = {
		.method = "POST", .body = body, .idempotent = true, .quiet_ms = E2B_QUIET_LONG_MS};
	struct e2b_answer a;
	int32_t r;

	if (!memory)
		(void)abx_json_add_bool(body, "memory", false);
	r = e2b_ask(s, call, &q, &a, "/sandboxes/%s/pause", id);

	if (r == ABX_OK && !(a.status == 409 && strstr(a.message, "already paused")))
		r = e2b_expect(call, &a, "pause box %s", id);
	e2b_answer_release(&a);
	cJSON_Delete(body);
	return r;
}

int32_t e2b_stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		 const struct abx_stop_req *req ABX_UNUSED)
{
	const struct abx_sandbox now = {ABX_INIT(struct abx_sandbox), .id = sb->id,
					.name = sb->name, .state = ABX_STATE_PAUSED};
	struct e2b_data data;
	int32_t r;

	if (!e2b_is_id(sb->id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	e2b_data_read(call, sb, &data);
	if (data.foreign)
		return abx_fail(call, ABX_ENOTSUP, "who made it may pause it",
				"box %s: agentbox did not make this sandbox and does not pause it",
				sb->id);
	r = e2b_pause(s, call, sb->id, /* memory= */ true);
	return r == ABX_OK ? abx_plugin_host->emit_sandbox(call, &now) : r;
}

static int32_t kill_it(struct abx_session *s, struct abx_call *call, const char *id)
{
	const struct e2b_request q = {
		.method = "DELETE", .idempotent = true, .quiet_ms = E2B_QUIET_LONG_MS};
	struct e2b_answer a;
	int32_t r = e2b_ask(s, call, &q, &a, "/sandboxes/%s", id);

	if (r == ABX_OK && a.status != 404)
		r = e2b_expect(call, &a, "destroy box %s", id);
	e2b_answer_release(&a);
	return r;
}

int32_t e2b_destroy(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_stop_req *req ABX_UNUSED)
{
	struct e2b_data data;
	int32_t r;

	e2b_data_read(call, sb, &data);
	if (!e2b_is_id(sb->id) || data.foreign || s->on_destroy == E2B_END_LEAVE)
		return ABX_OK;
	if (s->on_destroy == E2B_END_KILL) {
		r = kill_it(s, call, sb->id);
		/* It may have been the last that stood on one that is to go. */
		if (r == ABX_OK)
			e2b_removed_sweep(s, call);
		return r;
	}
	r = e2b_pause(s, call, sb->id, /* memory= */ true);
	return r == ABX_ENOTFOUND ? ABX_OK : r;
}

/* Longer than the plan allows is cut short without a word: what was granted is looked up. */
int32_t e2b_renew(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  int64_t target_ms, int64_t current_ms ABX_UNUSED)
{
	const int64_t left_s = (target_ms - abx_realtime_ms() + 999) / 1000;
	struct e2b_request q = {.method = "POST", .idempotent = true};
	struct e2b_answer a;
	cJSON *body;
	int32_t r;

	if (!e2b_is_id(sb->id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	if (left_s <= 0)
		return abx_fail(call, ABX_EINVAL, "a time that is to come",
				"box %s: its deadline would be over", sb->id);
	body = cJSON_CreateObject();
	(void)abx_json_add_i64(body, "timeout", left_s);
	q.body = body;
	r = e2b_ask(s, call, &q, &a, "/sandboxes/%s/timeout", sb->id);
	if (r == ABX_OK)
		r = e2b_expect(call, &a, "renew box %s", sb->id);
	e2b_answer_release(&a);
	cJSON_Delete(body);
	return r == ABX_OK ? e2b_get(s, call, sb) : r;
}
