/* SPDX-License-Identifier: MIT */
/* Telling of every change of every box: the engine's events say of which, a look what it is. */
#include <string.h>

#include "providers/docker/docker.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)

struct watcher {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_list_req *req;
	struct abx_buf line;
};

/* Of what happens in a box most changes nothing about it. */
static bool changes(const char *action)
{
	static const char *const actions[] = {"create", "start",   "die",     "stop", "kill",
					      "pause",	"unpause", "destroy", "oom",  "rename"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(actions); i++)
		if (strcmp(action, actions[i]) == 0)
			return true;
	return false;
}

/* "Gone" is no state: nobody knows, until asked. */
static int32_t emit_gone(struct abx_call *call, const cJSON *event, const char *id)
{
	const cJSON *a = abx_json_get_part(abx_json_get_part(event, "Actor"), "Attributes");
	const struct abx_kv label = {"agentbox.box", abx_json_get_text(a, "agentbox.box")};
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox),
				       .id = id,
				       .name = abx_json_get_text(a, "name"),
				       .state = ABX_STATE_UNKNOWN,
				       .labels = &label,
				       .n_labels = 1};

	return abx_plugin_host->emit_sandbox(call, &sb);
}

static int32_t take_event(struct watcher *w, const cJSON *event)
{
	const char *id = abx_json_get_text(abx_json_get_part(event, "Actor"), "ID"),
		   *action = abx_json_get_text(event, "Action");
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	int32_t r;

	if (strcmp(abx_json_get_text(event, "Type"), "container") != 0 || !changes(action) ||
	    !*id ||
	    !docker_has_labels(abx_json_get_part(abx_json_get_part(event, "Actor"), "Attributes"),
			       w->req, DOCKER_LABEL_NAME))
		return ABX_OK;
	r = strcmp(action, "destroy") == 0 ? ABX_ENOTFOUND : docker_get(w->s, w->call, &sb);
	return r == ABX_ENOTFOUND ? emit_gone(w->call, event, id) : r;
}

static int32_t take_line(struct watcher *w)
{
	cJSON *event = cJSON_ParseWithLength(abx_buf_str(&w->line), w->line.len);
	int32_t r = event ? take_event(w, event) : ABX_OK;

	cJSON_Delete(event);
	abx_buf_reset(&w->line);
	return r;
}

static int32_t on_data(void *ctx, const void *data, size_t len)
{
	struct watcher *w = ctx;
	const char *at = data;
	int32_t r = ABX_OK;

	while (len && r == ABX_OK) {
		const char *end = memchr(at, '\n', len);
		size_t n = end ? (size_t)(end - at) + 1 : len;

		abx_buf_add(&w->line, at, n);
		if (w->line.failed)
			return ABX_EPROTO;
		if (end)
			r = take_line(w);
		at += n;
		len -= n;
	}
	return r;
}

int32_t docker_watch(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	struct watcher w = {.s = s, .call = call, .req = req, .line = ABX_BUF_INIT(LINE_MAX_BYTES)};
	const struct docker_request q = {
		.method = "GET", .sink = on_data, .sink_ctx = &w, .slow = true};
	abx_auto(abx_buf) struct abx_buf filters = ABX_BUF_INIT(1 << 20);
	struct docker_answer a = {.status = 0};
	int32_t r;

	docker_filters(&filters, req, DOCKER_LABEL_NAME);
	if (filters.failed)
		return abx_fail_no_memory(call);
	r = docker_ask(s, call, &q, &a, "/events?%s", filters.data);
	if (r == ABX_OK)
		r = docker_expect(call, &a, "events");
	if (r == ABX_OK)
		r = abx_fail(call, ABX_ENETWORK, NULL, "events: the engine broke off");
	abx_buf_release(&w.line);
	docker_answer_release(&a);
	return r;
}
