/* SPDX-License-Identifier: MIT */
/* The emulated E2B: aliases and tags of templates. */
#include <string.h>

#include "abxsdk/json.h"
#include "tests/cloud/e2b/template.h"

void e2b_get_alias(struct emu_request *req)
{
	char name[E2B_NAME_BYTES], tag[E2B_NAME_BYTES];
	const char *text = req->args[0];
	struct e2b *e = req->service;
	struct e2b_template *t;
	cJSON *doc = NULL;

	if (!e2b_split_name(text, name, tag)) {
		e2b_error(req, 400, "Invalid alias '%.64s'", text);
		return;
	}
	if (strcmp(name, "base") == 0) {
		e2b_error(req, 403, "You don't have access to the template '%.64s'", text);
		return;
	}
	(void)pthread_mutex_lock(&e->lock);
	t = e2b_template_find(e, text);
	if (t && (!strchr(text, ':') || e2b_tag_find(t, tag))) {
		doc = cJSON_CreateObject();
		(void)abx_json_add_str(doc, "templateID", t->id);
		(void)abx_json_add_bool(doc, "public", t->public);
	}
	(void)pthread_mutex_unlock(&e->lock);
	if (doc)
		emu_reply_json(req, 200, doc, NULL);
	else
		e2b_error(req, 404, "template alias '%.64s' not found", text);
}

/* The body's list of tags; NULL: there is none that can be. */
static const cJSON *take_tags(const cJSON *doc)
{
	const cJSON *tags = cJSON_GetObjectItemCaseSensitive(doc, "tags"), *i;

	if (!cJSON_IsArray(tags) || !tags->child)
		return NULL;
	cJSON_ArrayForEach(i, tags)
		if (!cJSON_IsString(i) || !e2b_is_tag(i->valuestring))
			return NULL;
	return tags;
}

void e2b_post_tags(struct emu_request *req)
{
	char name[E2B_NAME_BYTES], tag[E2B_NAME_BYTES];
	cJSON *doc = emu_body_json(req), *answer = NULL;
	const cJSON *tags = take_tags(doc), *i;
	const char *target = NULL;
	struct e2b *e = req->service;
	struct e2b_template *t;
	struct e2b_tag *from;

	if (!tags || abx_json_str(doc, "target", 256, &target) < 0 || !target ||
	    !e2b_split_name(target, name, tag)) {
		e2b_error(req, 400, "validation error: target and tags");
		cJSON_Delete(doc);
		return;
	}
	(void)pthread_mutex_lock(&e->lock);
	t = e2b_template_find(e, target);
	from = t ? e2b_tag_find(t, tag) : NULL;
	if (from) {
		struct e2b_build *b = from->build;

		answer = cJSON_CreateObject();
		(void)abx_json_add_str(answer, "buildID", b->id);
		(void)cJSON_AddItemToObject(answer, "tags", cJSON_Duplicate(tags, true));
		cJSON_ArrayForEach(i, tags)
			e2b_tag_set(t, i->valuestring, b);
		t->refs++;
	}
	(void)pthread_mutex_unlock(&e->lock);
	if (answer) {
		e2b_builds_trim(t);
		e2b_template_put(t);
		emu_reply_json(req, 201, answer, NULL);
	} else {
		e2b_error(req, 404, "template '%.128s' not found", target);
	}
	cJSON_Delete(doc);
}

static void remove_tag(struct e2b_template *t, const char *name)
{
	for (struct e2b_tag **p = &t->tags; *p; p = &(*p)->next) {
		struct e2b_tag *tag = *p;

		if (strcmp(tag->name, name) == 0) {
			*p = tag->next;
			free(tag);
			return;
		}
	}
}

/* NULL, or what is wrong; *ret_status is what to answer then. */
static const char *remove_tags(struct e2b *e, const char *name, const cJSON *tags, int *ret_status)
{
	const char *wrong = NULL;
	struct e2b_template *t;
	const cJSON *i;

	(void)pthread_mutex_lock(&e->lock);
	t = e2b_template_find(e, name);
	*ret_status = t ? 400 : 404;
	if (!t)
		wrong = "template not found";
	cJSON_ArrayForEach(i, tags)
		if (strcmp(i->valuestring, "default") == 0)
			wrong = wrong ? wrong : "Cannot delete the 'default' tag";
	if (!wrong) {
		cJSON_ArrayForEach(i, tags)
			remove_tag(t, i->valuestring);
		t->refs++;
	}
	(void)pthread_mutex_unlock(&e->lock);
	if (!wrong) {
		e2b_builds_trim(t);
		e2b_template_put(t);
	}
	return wrong;
}

void e2b_delete_tags(struct emu_request *req)
{
	cJSON *doc = emu_body_json(req);
	const cJSON *tags = take_tags(doc);
	const char *name = NULL, *wrong;
	int status = 400;

	if (!tags || abx_json_str(doc, "name", 256, &name) < 0 || !name)
		wrong = "validation error: name and tags";
	else
		wrong = remove_tags(req->service, name, tags, &status);
	if (wrong)
		e2b_error(req, status, "%s", wrong);
	else
		emu_reply(req, 204, NULL, NULL, 0, NULL);
	cJSON_Delete(doc);
}

void e2b_get_tags(struct emu_request *req)
{
	struct e2b *e = req->service;
	const struct e2b_template *t = e2b_named_template(req);
	cJSON *list;

	if (!t)
		return;
	list = cJSON_CreateArray();
	for (const struct e2b_tag *tag = t->tags; tag; tag = tag->next) {
		cJSON *o = cJSON_CreateObject();
		char made[40];

		e2b_time(tag->made_ms, made);
		(void)abx_json_add_str(o, "tag", tag->name);
		(void)abx_json_add_str(o, "buildID", tag->build->id);
		(void)abx_json_add_str(o, "createdAt", made);
		(void)cJSON_AddItemToArray(list, o);
	}
	(void)pthread_mutex_unlock(&e->lock);
	emu_reply_json(req, 200, list, NULL);
}
