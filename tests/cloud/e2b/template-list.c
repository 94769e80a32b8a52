/* SPDX-License-Identifier: MIT */
/* The emulated E2B: looking at templates, and deleting them. */
#include <string.h>

#include "abxsdk/json.h"
#include "abxsdk/number.h"
#include "tests/cloud/e2b/template.h"

#define PAGE_MAX 100

static void add_time(cJSON *doc, const char *key, int64_t wall_ms)
{
	char text[40];

	e2b_time(wall_ms, text);
	(void)abx_json_add_str(doc, key, text);
}

/* What a list and one template have in common. */
static cJSON *common(const struct e2b_template *t)
{
	const struct e2b_build *newest = t->builds;
	cJSON *doc = cJSON_CreateObject();

	(void)abx_json_add_str(doc, "templateID", t->id);
	(void)abx_json_add_bool(doc, "public", t->public);
	(void)cJSON_AddItemToObject(doc, "aliases", e2b_template_names(t, false));
	(void)cJSON_AddItemToObject(doc, "names", e2b_template_names(t, true));
	add_time(doc, "createdAt", t->made_ms);
	add_time(doc, "updatedAt", newest ? newest->changed_ms : t->made_ms);
	if (t->spawned)
		add_time(doc, "lastSpawnedAt", t->spawned_ms);
	else
		(void)cJSON_AddNullToObject(doc, "lastSpawnedAt");
	(void)abx_json_add_i64(doc, "spawnCount", t->spawned);
	return doc;
}

static void add_size(cJSON *doc, const struct e2b_build *b)
{
	(void)abx_json_add_i64(doc, "cpuCount", b->boot.cpus);
	(void)abx_json_add_i64(doc, "memoryMB", b->boot.memory_mb);
	(void)abx_json_add_i64(doc, "diskSizeMB", E2B_DISK_MB);
	(void)abx_json_add_str(doc, "envdVersion", E2B_ENVD_VERSION);
}

static cJSON *listed(const struct e2b_template *t)
{
	cJSON *doc = common(t);
	int64_t n = 0;

	for (const struct e2b_build *b = t->builds; b; b = b->next)
		n++;
	(void)abx_json_add_str(doc, "buildID", t->builds->id);
	(void)abx_json_add_str(doc, "buildStatus", e2b_build_state_text(t->builds));
	(void)abx_json_add_i64(doc, "buildCount", n);
	add_size(doc, t->builds);
	(void)cJSON_AddNullToObject(doc, "createdBy");
	return doc;
}

/* Snapshots are no templates here. */
static bool is_listed(const struct e2b_template *t)
{
	return t->builds && !*t->builds->box_id;
}

static cJSON *page(struct e2b *e, uint64_t limit, const char *after, char ret_more[24])
{
	cJSON *list = cJSON_CreateArray();
	bool begun = !after;
	const char *last = "";
	uint64_t n = 0;

	*ret_more = '\0';
	(void)pthread_mutex_lock(&e->lock);
	for (const struct e2b_template *t = e->templates; t; t = t->next) {
		if (begun && is_listed(t)) {
			if (n == limit) {
				(void)snprintf(ret_more, 24, "%s", last);
				break;
			}
			(void)cJSON_AddItemToArray(list, listed(t));
			last = t->id;
			n++;
		}
		begun = begun || strcmp(t->id, after) == 0;
	}
	(void)pthread_mutex_unlock(&e->lock);
	return list;
}

void e2b_list_templates(struct emu_request *req)
{
	char more[24];

	emu_reply_json(req, 200, page(req->service, UINT64_MAX, NULL, more), NULL);
}

/* False, and answered. */
static bool take_limit(struct emu_request *req, uint64_t *ret)
{
	const char *limit = emu_query(req, "limit");

	*ret = PAGE_MAX;
	if (!limit || (abx_parse_u64(limit, PAGE_MAX, ret) && *ret > 0))
		return true;
	e2b_error(req, 400, "validation error: limit must be between 1 and 100");
	return false;
}

void e2b_list_templates_v2(struct emu_request *req)
{
	struct emu_header_pair headers[2] = {{NULL, NULL}};
	uint64_t limit;
	char more[24];
	cJSON *list;

	if (!take_limit(req, &limit))
		return;
	list = page(req->service, limit, emu_query(req, "nextToken"), more);
	if (*more)
		headers[0] = (struct emu_header_pair){"X-Next-Token", more};
	emu_reply_json(req, 200, list, headers);
}

static cJSON *build_json(const struct e2b_build *b)
{
	cJSON *doc = cJSON_CreateObject();

	(void)abx_json_add_str(doc, "buildID", b->id);
	(void)abx_json_add_str(doc, "status", e2b_build_state_text(b));
	add_time(doc, "createdAt", b->made_ms);
	add_time(doc, "updatedAt", b->changed_ms);
	if (b->state == BUILD_READY || b->state == BUILD_ERROR)
		add_time(doc, "finishedAt", b->changed_ms);
	add_size(doc, b);
	return doc;
}

void e2b_get_template(struct emu_request *req)
{
	const char *after = emu_query(req, "nextToken");
	struct emu_header_pair headers[2] = {{NULL, NULL}};
	struct e2b *e = req->service;
	const struct e2b_template *t;
	char more[40] = "";
	bool begun = !after;
	uint64_t limit, n = 0;
	cJSON *doc, *list;

	if (!take_limit(req, &limit))
		return;
	t = e2b_named_template(req);
	if (!t)
		return;
	doc = common(t);
	list = cJSON_AddArrayToObject(doc, "builds");
	for (const struct e2b_build *b = t->builds; b && n <= limit; b = b->next) {
		if (begun && n++ < limit) {
			(void)cJSON_AddItemToArray(list, build_json(b));
			if (n == limit && b->next)
				(void)snprintf(more, sizeof(more), "%s", b->id);
		}
		begun = begun || strcmp(b->id, after) == 0;
	}
	(void)pthread_mutex_unlock(&e->lock);
	if (*more)
		headers[0] = (struct emu_header_pair){"X-Next-Token", more};
	emu_reply_json(req, 200, doc, headers);
}

void e2b_patch_template(struct emu_request *req)
{
	struct e2b *e = req->service;
	cJSON *doc = emu_body_json(req), *answer = NULL;
	struct e2b_template *t;
	bool public = false;

	if (!doc || abx_json_bool(doc, "public", false, &public) < 0) {
		e2b_error(req, 400, "validation error: public");
	} else if ((t = e2b_named_template(req))) {
		t->public = public;
		answer = cJSON_CreateObject();
		(void)cJSON_AddItemToObject(answer, "names", e2b_template_names(t, true));
		(void)pthread_mutex_unlock(&e->lock);
		emu_reply_json(req, 200, answer, NULL);
	}
	cJSON_Delete(doc);
}

/* Is a box up that it made? */
static bool in_use(const struct e2b *e, const char *template_id)
{
	for (const struct e2b_box *b = e->boxes; b; b = b->next)
		if (b->state != E2B_STARTING && strcmp(b->template_id, template_id) == 0)
			return true;
	return false;
}

/* The tag does not matter: all of the template goes. */
void e2b_delete_template(struct emu_request *req)
{
	struct e2b *e = req->service;
	struct e2b_template *t = e2b_named_template(req);
	char id[24];
	bool used;

	if (!t)
		return;
	(void)snprintf(id, sizeof(id), "%s", t->id);
	used = in_use(e, id);
	t->refs++;
	(void)pthread_mutex_unlock(&e->lock);
	if (used) {
		e2b_error(req, 400,
			  "cannot delete template '%s' because there are sandboxes "
			  "using it",
			  id);
	} else {
		e2b_template_end(t);
		emu_reply(req, 204, NULL, NULL, 0, NULL);
	}
	e2b_template_put(t);
}
