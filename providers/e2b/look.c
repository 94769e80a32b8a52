/* SPDX-License-Identifier: MIT */
/* Sandboxes as the control plane shows them; nothing here wakes one. */
#include <string.h>

#include "abxsdk/clock.h"
#include "providers/e2b/e2b.h"

#define LABELS_MAX 128
#define QUERY_MAX_BYTES ((size_t)64 << 10)
#define PAGES_MAX 1000

struct labels {
	struct abx_kv kv[LABELS_MAX];
	uint32_t n;
	const char *name;
};

static int take_label(void *ctx, const char *key, const char *value)
{
	struct labels *l = ctx;

	if (strcmp(key, "agentbox.name") == 0)
		l->name = value;
	if (l->n < LABELS_MAX)
		l->kv[l->n++] = (struct abx_kv){key, value};
	return 0;
}

static uint32_t state_of(const cJSON *described)
{
	const char *state = abx_json_get_text(described, "state");

	return strcmp(state, "running") == 0  ? ABX_STATE_RUNNING
	       : strcmp(state, "paused") == 0 ? ABX_STATE_PAUSED
					      : ABX_STATE_UNKNOWN;
}

static uint64_t number(const cJSON *obj, const char *key)
{
	int64_t n = 0;

	return abx_json_i64(obj, key, &n) == 0 && n > 0 ? (uint64_t)n : 0;
}

int32_t e2b_emit(struct abx_session *s, struct abx_call *call, const cJSON *described,
		 const struct e2b_data *data)
{
	struct labels l = {.n = 0};
	char *text = data ? e2b_data_print(data) : NULL;
	const char *started = abx_json_get_text(described, "startedAt");
	const char *alias = abx_json_get_text(described, "alias");
	struct abx_sandbox sb = {
		ABX_INIT(struct abx_sandbox),
		.id = abx_json_get_text(described, "sandboxID"),
		.provider_data = text,
		.state = state_of(described),
		.created_at = *started ? started : NULL,
		.class_name = *alias ? alias : NULL,
		.labels = l.kv,
		.cpu_milli = (uint32_t)number(described, "cpuCount") * 1000,
		.mem_bytes = number(described, "memoryMB") << 20,
		.disk_bytes = number(described, "diskSizeMB") << 20,
	};
	int32_t r;

	(void)abx_json_each_str(abx_json_get_part(described, "metadata"), take_label, &l);
	sb.n_labels = l.n;
	sb.name = l.name;
	/* Of a paused one it says when it was paused. */
	if (sb.state == ABX_STATE_RUNNING) {
		sb.expires_at_ms = abx_rfc3339_ms(abx_json_get_text(described, "endAt"));
		e2b_kept_until(s, sb.id, sb.expires_at_ms);
	}
	r = data && !text ? abx_fail_no_memory(call) : abx_plugin_host->emit_sandbox(call, &sb);
	cJSON_free(text);
	return r;
}

int32_t e2b_inspect(struct abx_session *s, struct abx_call *call, const char *id, cJSON **ret)
{
	const struct e2b_request q = {.method = "GET", .idempotent = true};
	struct e2b_answer a;
	int32_t r;

	if (!e2b_is_id(id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	r = e2b_ask(s, call, &q, &a, "/sandboxes/%s", id);
	if (r == ABX_OK)
		r = e2b_expect(call, &a, "box %s", id);
	if (r == ABX_OK && !e2b_is_id(abx_json_get_text(a.doc, "sandboxID")))
		r = abx_fail(call, ABX_EPROTO, NULL, "box %s: E2B describes it without an id", id);
	if (r == ABX_OK)
		*ret = abx_steal_ptr(&a.doc);
	e2b_answer_release(&a);
	return r;
}

int32_t e2b_look(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		 cJSON **ret)
{
	struct e2b_data data;
	cJSON *doc = NULL;
	int32_t r = e2b_inspect(s, call, sb->id, &doc);

	if (r == ABX_OK) {
		e2b_data_read(call, sb, &data);
		e2b_data_take(call, doc, &data);
		r = e2b_emit(s, call, doc, &data);
		explicit_bzero(&data, sizeof(data));
	}
	if (r == ABX_OK)
		*ret = abx_steal_ptr(&doc);
	cJSON_Delete(doc);
	return r;
}

int32_t e2b_get(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	cJSON *doc = NULL;
	int32_t r = e2b_look(s, call, sb, &doc);

	cJSON_Delete(doc);
	return r;
}

static bool is_plain(const char *text)
{
	return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789._-")] == '\0';
}

/* Clients and servers differ in how often a pair is encoded; of those that need no encoding it
 * makes no difference, and the others are only compared here. */
static void add_filter(struct abx_buf *path, const struct abx_list_req *req)
{
	bool begun = false;

	for (uint32_t i = 0; req && i < req->n_labels; i++) {
		if (!is_plain(req->labels[i].key) || !is_plain(req->labels[i].value))
			continue;
		abx_buf_addf(path, "%s%s%%3D%s", begun ? "%26" : "&metadata=", req->labels[i].key,
			     req->labels[i].value);
		begun = true;
	}
}

static bool has_labels(const cJSON *item, const struct abx_list_req *req)
{
	const cJSON *metadata = abx_json_get_part(item, "metadata");

	for (uint32_t i = 0; req && i < req->n_labels; i++)
		if (strcmp(abx_json_get_text(metadata, req->labels[i].key), req->labels[i].value) !=
		    0)
			return false;
	return true;
}

static int32_t emit_page(struct abx_session *s, struct abx_call *call, const cJSON *list,
			 const struct abx_list_req *req)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list) {
		int32_t r;

		if (!has_labels(item, req) || !e2b_is_id(abx_json_get_text(item, "sandboxID")))
			continue;
		r = e2b_emit(s, call, item, NULL);
		if (r != ABX_OK)
			return r;
	}
	return ABX_OK;
}

int32_t e2b_pages(struct abx_session *s, struct abx_call *call, const char *path, const char *what,
		  int32_t (*page)(void *ctx, const cJSON *list), void *ctx)
{
	const struct e2b_request q = {.method = "GET", .idempotent = true};
	abx_auto(abx_buf) struct abx_buf next = ABX_BUF_INIT(4096);

	for (int i = 0; i < PAGES_MAX; i++) {
		struct e2b_answer a;
		int32_t r = e2b_ask(s, call, &q, &a, "%s%s", path, abx_buf_str(&next));

		if (r == ABX_OK)
			r = e2b_expect(call, &a, "%s", what);
		if (r == ABX_OK && !cJSON_IsArray(a.doc))
			r = abx_fail(call, ABX_EPROTO, NULL, "%s: E2B answers no list", what);
		if (r == ABX_OK)
			r = page(ctx, a.doc);
		abx_buf_reset(&next);
		abx_buf_adds(&next, "&nextToken=");
		abx_http_escape(&next, a.next);
		e2b_answer_release(&a);
		if (r != ABX_OK || !*a.next)
			return r;
		if (next.failed)
			return abx_fail_no_memory(call);
	}
	return abx_fail(call, ABX_EPROTO, NULL, "%s: it does not come to an end", what);
}

struct listing {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_list_req *req;
};

static int32_t one_page(void *ctx, const cJSON *list)
{
	struct listing *l = ctx;

	return emit_page(l->s, l->call, list, l->req);
}

int32_t e2b_list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	struct listing l = {s, call, req};
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(QUERY_MAX_BYTES);

	abx_buf_adds(&path, "/v2/sandboxes?limit=100&state=running,paused");
	add_filter(&path, req);
	if (path.failed)
		return abx_fail_no_memory(call);
	return e2b_pages(s, call, path.data, "list of boxes", one_page, &l);
}

/* Computed: no request, and nothing that would wake a paused one. */
int32_t e2b_url(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		const struct abx_url_req *req)
{
	struct e2b_data data;
	char text[512];
	struct abx_url url = {ABX_INIT(struct abx_url), .url = text};

	if (!e2b_is_id(sb->id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	e2b_data_read(call, sb, &data);
	(void)snprintf(text, sizeof(text), "%s://%u-%s.%s",
		       strncmp(s->api_url, "http://", 7) == 0 ? "http" : "https", req->port, sb->id,
		       *data.domain ? data.domain : s->domain);
	url.flags = *data.traffic ? 0 : ABX_URL_PUBLIC;
	url.expires_at_ms = sb->expires_at_ms;
	if (*data.traffic) {
		url.header = "e2b-traffic-access-token";
		url.token = data.traffic;
	}
	return abx_plugin_host->emit_url(call, &url);
}
