/* SPDX-License-Identifier: MIT */
/* The emulated E2B: snapshots, which are templates. */
#include <string.h>

#include "abxsdk/json.h"
#include "abxsdk/number.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/template.h"

#define PAGE_MAX 100
#define ID_BYTES (2 * E2B_NAME_BYTES + sizeof(E2B_TEAM) + 2)

static void snapshot_id(const struct e2b_template *t, const char *tag, char id[ID_BYTES])
{
	(void)snprintf(id, ID_BYTES, "%s%s:%s", *t->name ? E2B_TEAM "/" : "",
		       *t->name ? t->name : t->id, tag);
}

static cJSON *snapshot_json(const struct e2b_template *t, const char *tag)
{
	cJSON *doc = cJSON_CreateObject();
	char id[ID_BYTES];

	snapshot_id(t, tag, id);
	(void)abx_json_add_str(doc, "snapshotID", id);
	(void)cJSON_AddItemToObject(doc, "names", e2b_template_names(t, true));
	return doc;
}

/* Listed as that; what it takes the place of is removed.  The answer. */
static cJSON *list_in(struct e2b_box *b, const char *name, const char *tag, const char *ref,
		      cJSON *procs)
{
	struct e2b *e = b->e;
	struct e2b_template *t;
	struct e2b_build *build;
	cJSON *doc;

	(void)pthread_mutex_lock(&e->lock);
	t = e2b_template_named(e, name);
	t->refs++;
	build = e2b_build_new(t);
	build->state = BUILD_READY;
	(void)snprintf(build->box_id, sizeof(build->box_id), "%s", b->id);
	(void)snprintf(build->boot.ref, sizeof(build->boot.ref), "%s", ref);
	(void)snprintf(build->boot.user, sizeof(build->boot.user), "%s", b->user);
	build->boot.cwd = abx_xstrdup_null(b->cwd);
	build->boot.cpus = b->cpus;
	build->boot.memory_mb = b->memory_mb;
	build->boot.procs = procs;
	e2b_tag_set(t, tag, build);
	doc = snapshot_json(t, tag);
	(void)pthread_mutex_unlock(&e->lock);
	e2b_builds_trim(t);
	e2b_template_put(t);
	return doc;
}

static void take(struct emu_request *req, struct e2b_box *b, const char *text)
{
	char name[E2B_NAME_BYTES] = "", tag[E2B_NAME_BYTES] = "default", ref[EMU_REF_BYTES];
	struct abx_err err = ABX_ERR_INIT;
	cJSON *procs;

	if (text && !e2b_split_name(text, name, tag)) {
		e2b_error(req, 400, "Invalid snapshot name '%.64s'", text);
		return;
	}
	if (b->state != E2B_RUNNING) {
		e2b_error(req, 409, "Sandbox \"%s\" cannot be snapshotted while in 'paused' state",
			  b->id);
		return;
	}
	procs = e2b_procs_describe(b);
	if (emu_box_snapshot(b->e->engine, b->id, ref, &err) < 0) {
		cJSON_Delete(procs);
		e2b_error_coded(req, 500, "internal_server_error", "%s", err.text);
		return;
	}
	emu_reply_json(req, 201, list_in(b, name, tag, ref, procs), NULL);
}

void e2b_post_snapshot(struct emu_request *req)
{
	struct e2b_box *b = e2b_named_box(req);
	cJSON *doc = emu_body_json(req);
	const char *name = NULL;

	if (b && (!doc || abx_json_str(doc, "name", 256, &name) < 0))
		e2b_error(req, 400, "validation error: name");
	else if (b) {
		(void)pthread_mutex_lock(&b->op);
		take(req, b, name);
		(void)pthread_mutex_unlock(&b->op);
	}
	if (b)
		e2b_box_put(b);
	cJSON_Delete(doc);
}

/* Which ones to list. */
struct page {
	const char *box, *name, *after;
	uint64_t max, n;
	char last[ID_BYTES];
	bool begun, more;
	cJSON *list;
};

static bool is_wanted(const struct page *p, struct e2b *e, const struct e2b_template *t,
		      const struct e2b_tag *tag)
{
	char name[E2B_NAME_BYTES], wanted[E2B_NAME_BYTES];

	if (!*tag->build->box_id || (p->box && strcmp(tag->build->box_id, p->box) != 0))
		return false;
	if (!p->name)
		return true;
	return e2b_template_find(e, p->name) == t && e2b_split_name(p->name, name, wanted) &&
	       (!strchr(p->name, ':') || strcmp(wanted, tag->name) == 0);
}

static void add_of(struct page *p, struct e2b *e, const struct e2b_template *t)
{
	for (const struct e2b_tag *tag = t->tags; tag && !p->more; tag = tag->next) {
		char id[ID_BYTES];

		snapshot_id(t, tag->name, id);
		if (p->begun && is_wanted(p, e, t, tag)) {
			p->more = p->n == p->max;
			if (p->more)
				return;
			(void)cJSON_AddItemToArray(p->list, snapshot_json(t, tag->name));
			memcpy(p->last, id, sizeof(id));
			p->n++;
		}
		p->begun = p->begun || strcmp(id, p->after) == 0;
	}
}

void e2b_list_snapshots(struct emu_request *req)
{
	const char *limit = emu_query(req, "limit");
	struct emu_header_pair headers[2] = {{NULL, NULL}};
	struct page p = {.box = emu_query(req, "sandboxID"),
			 .name = emu_query(req, "name"),
			 .after = emu_query(req, "nextToken"),
			 .max = PAGE_MAX};
	struct e2b *e = req->service;

	if (limit && (!abx_parse_u64(limit, PAGE_MAX, &p.max) || p.max == 0)) {
		e2b_error(req, 400, "validation error: limit must be between 1 and 100");
		return;
	}
	p.begun = !p.after;
	p.list = cJSON_CreateArray();
	(void)pthread_mutex_lock(&e->lock);
	for (const struct e2b_template *t = e->templates; t && !p.more; t = t->next)
		add_of(&p, e, t);
	(void)pthread_mutex_unlock(&e->lock);
	if (p.more)
		headers[0] = (struct emu_header_pair){"X-Next-Token", p.last};
	emu_reply_json(req, 200, p.list, headers);
}
