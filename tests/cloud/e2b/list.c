/* SPDX-License-Identifier: MIT */
/* The emulated E2B: looking at sandboxes. */
#include <string.h>

#include "abxsdk/json.h"
#include "abxsdk/number.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/e2b.h"

#define PAGE_MAX 100

static void add_copy(cJSON *doc, const char *key, const cJSON *value)
{
	if (value)
		(void)cJSON_AddItemToObject(doc, key, cJSON_Duplicate(value, true));
}

/* What list and get have in common; the caller has the lock. */
static cJSON *listed(const struct e2b_box *b)
{
	cJSON *doc = cJSON_CreateObject();
	char started[40], end[40];

	e2b_time(b->started_ms, started);
	e2b_time(b->end_ms, end);
	(void)abx_json_add_str(doc, "templateID", b->template_id);
	if (*b->alias)
		(void)abx_json_add_str(doc, "alias", b->alias);
	(void)abx_json_add_str(doc, "sandboxID", b->id);
	(void)abx_json_add_str(doc, "clientID", "6532622b");
	(void)abx_json_add_str(doc, "startedAt", started);
	(void)abx_json_add_str(doc, "endAt", end);
	(void)abx_json_add_str(doc, "envdVersion", E2B_ENVD_VERSION);
	(void)abx_json_add_i64(doc, "cpuCount", b->cpus);
	(void)abx_json_add_i64(doc, "memoryMB", b->memory_mb);
	(void)abx_json_add_i64(doc, "diskSizeMB", E2B_DISK_MB);
	add_copy(doc, "metadata", b->metadata);
	(void)abx_json_add_str(doc, "state", b->state == E2B_PAUSED ? "paused" : "running");
	(void)cJSON_AddItemToObject(doc, "volumeMounts", cJSON_CreateArray());
	return doc;
}

void e2b_get(struct emu_request *req)
{
	struct e2b_box *b = e2b_named_box(req);
	cJSON *doc, *life;

	if (!b)
		return;
	(void)pthread_mutex_lock(&b->e->lock);
	doc = listed(b);
	if (*b->token)
		(void)abx_json_add_str(doc, "envdAccessToken", b->token);
	(void)abx_json_add_bool(doc, "allowInternetAccess", b->internet);
	(void)cJSON_AddNullToObject(doc, "domain");
	add_copy(doc, "network", b->network);
	life = cJSON_AddObjectToObject(doc, "lifecycle");
	(void)abx_json_add_bool(life, "autoResume", b->auto_resume);
	(void)abx_json_add_str(life, "onTimeout", b->auto_pause ? "pause" : "kill");
	(void)pthread_mutex_unlock(&b->e->lock);
	e2b_box_put(b);
	emu_reply_json(req, 200, doc, NULL);
}

/* Whom to list. */
struct filter {
	bool running, paused, ascending;
	char *metadata; /* k=v&k=v, each still encoded once; NULL: any */
	const char *template;
	uint64_t limit;
	const char *after; /* id of the last one of the page before; NULL */
};

static bool pair_matches(const struct e2b_box *b, const char *pair, size_t len, bool *bad)
{
	const char *eq = memchr(pair, '=', len);
	char *key = eq ? emu_decode(pair, (size_t)(eq - pair), true) : NULL;
	char *value = eq ? emu_decode(eq + 1, len - (size_t)(eq - pair) - 1, true) : NULL;
	const cJSON *have = key ? cJSON_GetObjectItemCaseSensitive(b->metadata, key) : NULL;
	bool ok = value && cJSON_IsString(have) && strcmp(have->valuestring, value) == 0;

	*bad = *bad || !key || !value;
	free(key);
	free(value);
	return ok;
}

static bool metadata_matches(const struct e2b_box *b, const char *wanted, bool *bad)
{
	bool all = true;

	while (wanted && *wanted) {
		size_t len = strcspn(wanted, "&");

		all = pair_matches(b, wanted, len, bad) && all;
		wanted += len + (wanted[len] == '&');
	}
	return all;
}

static bool passes(const struct e2b_box *b, const struct filter *f, bool *bad)
{
	if ((b->state == E2B_RUNNING && !f->running) || (b->state == E2B_PAUSED && !f->paused) ||
	    (b->state != E2B_RUNNING && b->state != E2B_PAUSED))
		return false;
	if (f->template && strcmp(f->template, b->template_id) != 0 &&
	    strcmp(f->template, b->alias) != 0)
		return false;
	return metadata_matches(b, f->metadata, bad);
}

/* One page, newest first; *ret_more: the last one's id, if more follow. */
static cJSON *page(struct e2b *e, const struct filter *f, char ret_more[24], unsigned int *ret_up)
{
	cJSON *list = cJSON_CreateArray();
	bool bad = false, begun = !f->after;
	const char *last = "";
	uint64_t n = 0;

	*ret_more = '\0';
	*ret_up = 0;
	(void)pthread_mutex_lock(&e->lock);
	for (const struct e2b_box *b = e->boxes; b; b = b->next) {
		*ret_up += b->state == E2B_RUNNING;
		if (begun && passes(b, f, &bad)) {
			if (n == f->limit) {
				(void)snprintf(ret_more, 24, "%s", last);
				n++;
			} else if (n < f->limit) {
				(void)cJSON_AddItemToArray(list, listed(b));
				last = b->id;
				n++;
			}
		}
		begun = begun || strcmp(b->id, f->after) == 0;
	}
	(void)pthread_mutex_unlock(&e->lock);
	if (bad) {
		cJSON_Delete(list);
		return NULL;
	}
	return list;
}

static bool take_states(const char *text, struct filter *f)
{
	f->running = f->paused = !text;
	while (text && *text) {
		size_t len = strcspn(text, ",");

		if (len == 7 && memcmp(text, "running", len) == 0)
			f->running = true;
		else if (len == 6 && memcmp(text, "paused", len) == 0)
			f->paused = true;
		else
			return false;
		text += len + (text[len] == ',');
	}
	return true;
}

/* NULL, or what is wrong. */
static const char *take_filter(struct emu_request *req, struct filter *f)
{
	const char *metadata = emu_query(req, "metadata"), *limit = emu_query(req, "limit");
	const char *order = emu_query(req, "order");

	f->limit = PAGE_MAX;
	f->template = emu_query(req, "template");
	f->after = emu_query(req, "nextToken");
	if (limit && (!abx_parse_u64(limit, PAGE_MAX, &f->limit) || f->limit == 0))
		return "validation error: limit must be between 1 and 100";
	if (!take_states(emu_query(req, "state"), f))
		return "validation error: state";
	if (order && strcmp(order, "desc") != 0)
		return strcmp(order, "asc") == 0 ? "order asc is not emulated"
						 : "validation error: order";
	if (metadata) {
		f->metadata = emu_decode(metadata, strlen(metadata), true);
		if (!f->metadata)
			return "metadata cannot be decoded";
	}
	return NULL;
}

void e2b_list(struct emu_request *req)
{
	struct filter f = {.limit = PAGE_MAX};
	struct emu_header_pair headers[3] = {{"X-Total-Running", NULL}};
	const char *wrong = take_filter(req, &f);
	char more[24], running[16];
	unsigned int up = 0;
	cJSON *list = wrong ? NULL : page(req->service, &f, more, &up);

	if (list) {
		(void)snprintf(running, sizeof(running), "%u", up);
		headers[0].value = running;
		if (*more)
			headers[1] = (struct emu_header_pair){"X-Next-Token", more};
		emu_reply_json(req, 200, list, headers);
	} else {
		e2b_error(req, 400, "%s", wrong ? wrong : "metadata cannot be decoded");
	}
	free(f.metadata);
}

void e2b_list_v1(struct emu_request *req)
{
	struct filter f = {.limit = PAGE_MAX};
	const char *wrong = take_filter(req, &f);
	char more[24];
	unsigned int up;
	cJSON *list;

	f.limit = UINT64_MAX - 1;
	f.running = true;
	f.paused = false;
	list = wrong ? NULL : page(req->service, &f, more, &up);
	if (list)
		emu_reply_json(req, 200, list, NULL);
	else
		e2b_error(req, 400, "%s", wrong ? wrong : "metadata cannot be decoded");
	free(f.metadata);
}

void e2b_get_metrics(struct emu_request *req)
{
	struct e2b_box *b = e2b_named_box(req);
	cJSON *list = b ? cJSON_CreateArray() : NULL, *o;
	char now[40];

	if (!b)
		return;
	e2b_time(abx_wall_ms(), now);
	o = cJSON_CreateObject();
	(void)abx_json_add_str(o, "timestamp", now);
	(void)abx_json_add_i64(o, "timestampUnix", abx_wall_ms() / 1000);
	(void)abx_json_add_i64(o, "cpuCount", b->cpus);
	(void)abx_json_add_i64(o, "cpuUsedPct", 1);
	(void)abx_json_add_i64(o, "memUsed", (int64_t)64 << 20);
	(void)abx_json_add_i64(o, "memTotal", b->memory_mb << 20);
	(void)abx_json_add_i64(o, "memCache", 0);
	(void)abx_json_add_i64(o, "diskUsed", (int64_t)256 << 20);
	(void)abx_json_add_i64(o, "diskTotal", (int64_t)E2B_DISK_MB << 20);
	(void)cJSON_AddItemToArray(list, o);
	e2b_box_put(b);
	emu_reply_json(req, 200, list, NULL);
}

static void logs(struct emu_request *req, bool v2)
{
	struct e2b_box *b = e2b_named_box(req);
	cJSON *doc = b ? cJSON_CreateObject() : NULL;

	if (!b)
		return;
	(void)cJSON_AddItemToObject(doc, "logs", cJSON_CreateArray());
	if (!v2)
		(void)cJSON_AddItemToObject(doc, "logEntries", cJSON_CreateArray());
	e2b_box_put(b);
	emu_reply_json(req, 200, doc, NULL);
}

void e2b_get_logs(struct emu_request *req)
{
	logs(req, false);
}

void e2b_get_logs_v2(struct emu_request *req)
{
	logs(req, true);
}
