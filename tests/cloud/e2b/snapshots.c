/* SPDX-License-Identifier: MIT */
/* The emulated E2B: snapshots, which are templates. */
#include <ctype.h>
#include <string.h>

#include "abxsdk/json.h"
#include "abxsdk/number.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/e2b.h"

#define PAGE_MAX 100

/* x, x:tag, team/x, team/x:tag.  False: it is no name. */
static bool split_name(const char *text, char name[64], char tag[64])
{
	const char *slash = strchr(text, '/'), *colon;
	size_t n;

	if (slash)
		text = slash + 1;
	colon = strchr(text, ':');
	n = colon ? (size_t)(colon - text) : strlen(text);
	if (n == 0 || n >= 64 || (colon && (!colon[1] || strlen(colon + 1) >= 64)))
		return false;
	for (size_t i = 0; i < n; i++) {
		name[i] = (char)tolower((unsigned char)text[i]);
		if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_')
			return false;
	}
	name[n] = '\0';
	(void)snprintf(tag, 64, "%s", colon ? colon + 1 : "default");
	return strspn(tag, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(tag);
}

static cJSON *snapshot_json(const struct e2b_snapshot *s)
{
	cJSON *doc = cJSON_CreateObject(), *names = cJSON_CreateArray();
	char full[160];

	(void)abx_json_add_str(doc, "snapshotID", s->id);
	(void)snprintf(full, sizeof(full), E2B_TEAM "/%s", s->name);
	if (*s->name)
		(void)cJSON_AddItemToArray(names, cJSON_CreateString(full));
	(void)cJSON_AddItemToObject(doc, "names", names);
	return doc;
}

/* Listed, in the place of one with this id; its ref is to be removed. */
static cJSON *list_in(struct e2b *e, struct e2b_snapshot *s, char old_ref[EMU_REF_BYTES])
{
	cJSON *doc;

	*old_ref = '\0';
	(void)pthread_mutex_lock(&e->lock);
	for (struct e2b_snapshot **p = &e->snapshots; *p; p = &(*p)->next) {
		struct e2b_snapshot *old = *p;

		if (*s->name && strcmp(old->name, s->name) == 0)
			(void)snprintf(s->template_id, sizeof(s->template_id), "%s",
				       old->template_id);
		if (strcmp(old->id, s->id) != 0)
			continue;
		*p = old->next;
		(void)snprintf(old_ref, EMU_REF_BYTES, "%s", old->ref);
		free(old);
		break;
	}
	s->next = e->snapshots;
	e->snapshots = s;
	doc = snapshot_json(s);
	(void)pthread_mutex_unlock(&e->lock);
	return doc;
}

static void take(struct emu_request *req, struct e2b_box *b, const char *name)
{
	struct e2b_snapshot *s = abx_xcalloc(1, sizeof(*s));
	struct abx_err err = ABX_ERR_INIT;
	char tag[64] = "default", old[EMU_REF_BYTES];

	if (name && !split_name(name, s->name, tag)) {
		e2b_error(req, 400, "Invalid snapshot name '%.64s'", name);
	} else if (b->state != E2B_RUNNING) {
		e2b_error(req, 409, "Sandbox \"%s\" cannot be snapshotted while in 'paused' state",
			  b->id);
	} else if (emu_box_snapshot(b->e->engine, b->id, s->ref, &err) < 0) {
		e2b_error_coded(req, 500, "internal_server_error", "%s", err.text);
	} else {
		e2b_random_id(s->template_id, 20);
		if (*s->name)
			(void)snprintf(s->id, sizeof(s->id), E2B_TEAM "/%s:%s", s->name, tag);
		else
			(void)snprintf(s->id, sizeof(s->id), "%s:default", s->template_id);
		(void)snprintf(s->box_id, sizeof(s->box_id), "%s", b->id);
		s->made_ms = abx_wall_ms();
		emu_reply_json(req, 201, list_in(b->e, s, old), NULL);
		if (*old)
			(void)emu_snapshot_end(b->e->engine, old, &err);
		return;
	}
	free(s);
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

static bool is_named(const struct e2b_snapshot *s, const char *wanted)
{
	char name[64], tag[64], id[160];
	size_t n = strcspn(wanted, ":");

	if (strcmp(s->id, wanted) == 0 || strcmp(s->template_id, wanted) == 0)
		return true;
	if (strlen(s->template_id) == n && memcmp(s->template_id, wanted, n) == 0 && !*s->name)
		return true;
	if (!split_name(wanted, name, tag))
		return false;
	(void)snprintf(id, sizeof(id), E2B_TEAM "/%s:%s", name, tag);
	return strcmp(s->id, id) == 0;
}

bool e2b_snapshot_ref(struct e2b *e, const char *name, char ref[EMU_REF_BYTES],
		      char template_id[128])
{
	bool found = false;

	(void)pthread_mutex_lock(&e->lock);
	for (const struct e2b_snapshot *s = e->snapshots; s && !found; s = s->next) {
		found = is_named(s, name);
		if (found) {
			(void)snprintf(ref, EMU_REF_BYTES, "%s", s->ref);
			(void)snprintf(template_id, 128, "%s", s->template_id);
		}
	}
	(void)pthread_mutex_unlock(&e->lock);
	return found;
}

void e2b_list_snapshots(struct emu_request *req)
{
	const char *box = emu_query(req, "sandboxID"), *name = emu_query(req, "name");
	const char *after = emu_query(req, "nextToken"), *limit = emu_query(req, "limit");
	struct emu_header_pair headers[2] = {{NULL, NULL}};
	struct e2b *e = req->service;
	uint64_t max = PAGE_MAX, n = 0;
	char last[160] = "", more[160];
	bool begun = !after;
	cJSON *list;

	if (limit && (!abx_parse_u64(limit, PAGE_MAX, &max) || max == 0)) {
		e2b_error(req, 400, "validation error: limit must be between 1 and 100");
		return;
	}
	list = cJSON_CreateArray();
	(void)pthread_mutex_lock(&e->lock);
	for (const struct e2b_snapshot *s = e->snapshots; s; s = s->next) {
		if (begun && (!box || strcmp(s->box_id, box) == 0) &&
		    (!name || is_named(s, name))) {
			if (n == max) {
				(void)snprintf(more, sizeof(more), "%s", last);
				headers[0] = (struct emu_header_pair){"X-Next-Token", more};
				break;
			}
			(void)cJSON_AddItemToArray(list, snapshot_json(s));
			(void)snprintf(last, sizeof(last), "%s", s->id);
			n++;
		}
		begun = begun || strcmp(s->id, after) == 0;
	}
	(void)pthread_mutex_unlock(&e->lock);
	emu_reply_json(req, 200, list, headers);
}

/* A template of which boxes are up stays. */
static bool in_use(const struct e2b *e, const char *template_id)
{
	for (const struct e2b_box *b = e->boxes; b; b = b->next)
		if (strcmp(b->template_id, template_id) == 0)
			return true;
	return false;
}

/* The first snapshot of that template, taken off the list. */
static struct e2b_snapshot *take_off(struct e2b *e, const char *template_id)
{
	struct e2b_snapshot *s = NULL;

	(void)pthread_mutex_lock(&e->lock);
	for (struct e2b_snapshot **p = &e->snapshots; *p; p = &(*p)->next) {
		if (strcmp((*p)->template_id, template_id) == 0) {
			s = *p;
			*p = s->next;
			break;
		}
	}
	(void)pthread_mutex_unlock(&e->lock);
	return s;
}

void e2b_delete_template(struct emu_request *req)
{
	struct abx_err err = ABX_ERR_INIT;
	struct e2b *e = req->service;
	char ref[EMU_REF_BYTES], id[128];
	struct e2b_snapshot *s;
	bool used;

	if (!e2b_snapshot_ref(e, req->args[0], ref, id)) {
		e2b_error(req, 404, "template '%.128s' not found", req->args[0]);
		return;
	}
	(void)pthread_mutex_lock(&e->lock);
	used = in_use(e, id);
	(void)pthread_mutex_unlock(&e->lock);
	if (used) {
		e2b_error(req, 400,
			  "cannot delete template '%s' because there are sandboxes "
			  "using it",
			  id);
		return;
	}
	/* The tag does not matter: all of the template goes. */
	while ((s = take_off(e, id))) {
		(void)emu_snapshot_end(e->engine, s->ref, &err);
		free(s);
	}
	emu_reply(req, 204, NULL, NULL, 0, NULL);
}
