/* SPDX-License-Identifier: MIT */
/* The emulated E2B: templates, their builds, and what boots. */
#include <ctype.h>
#include <string.h>

#include "core/util/clock.h"
#include "core/util/mem.h"
#include "core/util/rand.h"
#include "tests/cloud/e2b/template.h"

#define DEFAULT_CPUS 2
#define DEFAULT_MEMORY_MB 512

static bool is_uuid(const char *text)
{
	return strlen(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' &&
	       strspn(text, "0123456789abcdef-") == 36;
}

bool e2b_is_tag(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n < E2B_NAME_BYTES && !is_uuid(text) &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n;
}

/* x, x:tag, team/x, team/x:tag.  False: it is no name. */
bool e2b_split_name(const char *text, char name[E2B_NAME_BYTES], char tag[E2B_NAME_BYTES])
{
	const char *slash = strchr(text, '/'), *colon;
	size_t n;

	if (slash)
		text = slash + 1;
	colon = strchr(text, ':');
	n = colon ? (size_t)(colon - text) : strlen(text);
	if (n == 0 || n >= E2B_NAME_BYTES || (colon && !e2b_is_tag(colon + 1)))
		return false;
	for (size_t i = 0; i < n; i++) {
		name[i] = (char)tolower((unsigned char)text[i]);
		if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_')
			return false;
	}
	name[n] = '\0';
	(void)snprintf(tag, E2B_NAME_BYTES, "%s", colon ? colon + 1 : "default");
	return !is_uuid(name);
}

struct e2b_template *e2b_template_find(struct e2b *e, const char *text)
{
	char name[E2B_NAME_BYTES], tag[E2B_NAME_BYTES];
	struct e2b_template *t;

	if (!e2b_split_name(text, name, tag))
		return NULL;
	for (t = e->templates; t; t = t->next)
		if (strcmp(t->id, name) == 0 || (*t->name && strcmp(t->name, name) == 0))
			break;
	return t;
}

struct e2b_template *e2b_template_named(struct e2b *e, const char *name)
{
	struct e2b_template *t = *name ? e2b_template_find(e, name) : NULL;

	if (t)
		return t;
	t = abx_xcalloc(1, sizeof(*t));
	t->e = e;
	t->refs = 1;
	t->made_ms = abx_wall_ms();
	e2b_random_id(t->id, 20);
	(void)snprintf(t->name, sizeof(t->name), "%s", name);
	t->next = e->templates;
	e->templates = t;
	return t;
}

void e2b_boot_init(struct e2b_boot *b)
{
	*b = (struct e2b_boot){.cpus = DEFAULT_CPUS, .memory_mb = DEFAULT_MEMORY_MB};
	(void)snprintf(b->user, sizeof(b->user), E2B_DEFAULT_USER);
}

void e2b_boot_copy(const struct e2b_boot *from, struct e2b_boot *to)
{
	*to = *from;
	to->cwd = abx_xstrdup_null(from->cwd);
	to->procs = cJSON_Duplicate(from->procs, true);
}

void e2b_boot_release(struct e2b_boot *b)
{
	free(b->cwd);
	cJSON_Delete(b->procs);
	b->cwd = NULL;
	b->procs = NULL;
}

struct e2b_build *e2b_build_new(struct e2b_template *t)
{
	struct e2b_build *b = abx_xcalloc(1, sizeof(*b));
	char hex[33];

	abx_rand_hex(hex, 32);
	(void)snprintf(b->id, sizeof(b->id), "%.8s-%.4s-4%.3s-8%.3s-%.12s", hex, hex + 8, hex + 13,
		       hex + 17, hex + 20);
	b->of = t;
	b->made_ms = b->changed_ms = abx_wall_ms();
	b->log = cJSON_CreateArray();
	e2b_boot_init(&b->boot);
	b->next = t->builds;
	t->builds = b;
	return b;
}

struct e2b_build *e2b_build_find(struct e2b_template *t, const char *id)
{
	struct e2b_build *b = t->builds;

	while (b && strcmp(b->id, id) != 0)
		b = b->next;
	return b;
}

struct e2b_tag *e2b_tag_find(struct e2b_template *t, const char *name)
{
	struct e2b_tag *tag = t->tags;

	while (tag && strcmp(tag->name, name) != 0)
		tag = tag->next;
	return tag;
}

void e2b_tag_set(struct e2b_template *t, const char *name, struct e2b_build *b)
{
	struct e2b_tag *tag = e2b_tag_find(t, name);

	if (!tag) {
		tag = abx_xcalloc(1, sizeof(*tag));
		(void)snprintf(tag->name, sizeof(tag->name), "%s", name);
		tag->next = t->tags;
		t->tags = tag;
	}
	tag->build = b;
	tag->made_ms = abx_wall_ms();
}

const char *e2b_build_state_text(const struct e2b_build *b)
{
	static const char *const texts[] = {"waiting", "building", "ready", "error"};

	return texts[b->state];
}

cJSON *e2b_template_names(const struct e2b_template *t, bool with_team)
{
	cJSON *list = cJSON_CreateArray();
	char full[E2B_NAME_BYTES + sizeof(E2B_TEAM) + 1];

	(void)snprintf(full, sizeof(full), "%s%s", with_team ? E2B_TEAM "/" : "", t->name);
	if (*t->name)
		(void)cJSON_AddItemToArray(list, cJSON_CreateString(full));
	return list;
}

bool e2b_boot_find(struct e2b *e, const char *name, struct e2b_boot *ret, char template_id[24],
		   char alias[64])
{
	char plain[E2B_NAME_BYTES], tag_name[E2B_NAME_BYTES];
	const struct e2b_tag *tag = NULL;
	struct e2b_template *t;

	if (strcmp(name, "base") == 0 || strcmp(name, "base:default") == 0 ||
	    strcmp(name, E2B_BASE_ID) == 0) {
		e2b_boot_init(ret);
		(void)snprintf(template_id, 24, E2B_BASE_ID);
		(void)snprintf(alias, 64, "base");
		return true;
	}
	if (!e2b_split_name(name, plain, tag_name))
		return false;
	(void)pthread_mutex_lock(&e->lock);
	t = e2b_template_find(e, name);
	if (t)
		tag = e2b_tag_find(t, tag_name);
	if (tag && tag->build->state == BUILD_READY) {
		e2b_boot_copy(&tag->build->boot, ret);
		(void)snprintf(template_id, 24, "%s", t->id);
		(void)snprintf(alias, 64, "%s", t->name);
		t->spawned++;
		t->spawned_ms = abx_wall_ms();
	} else {
		tag = NULL;
	}
	(void)pthread_mutex_unlock(&e->lock);
	return tag != NULL;
}

void e2b_builds_trim(struct e2b_template *t)
{
	struct abx_err err = ABX_ERR_INIT;
	struct e2b *e = t->e;
	char ref[EMU_REF_BYTES];

	do {
		*ref = '\0';
		(void)pthread_mutex_lock(&e->lock);
		for (struct e2b_build *b = t->builds; b && !*ref; b = b->next) {
			const struct e2b_tag *tag = t->tags;

			while (tag && tag->build != b)
				tag = tag->next;
			if (!tag && *b->boot.ref) {
				(void)snprintf(ref, sizeof(ref), "%s", b->boot.ref);
				*b->boot.ref = '\0';
			}
		}
		(void)pthread_mutex_unlock(&e->lock);
		if (*ref)
			(void)emu_snapshot_end(e->engine, ref, &err);
	} while (*ref);
}

static void forget_tags(struct e2b_template *t)
{
	while (t->tags) {
		struct e2b_tag *tag = t->tags;

		t->tags = tag->next;
		free(tag);
	}
}

static void template_free(struct e2b_template *t)
{
	forget_tags(t);
	while (t->builds) {
		struct e2b_build *b = t->builds;

		t->builds = b->next;
		e2b_boot_release(&b->boot);
		cJSON_Delete(b->request);
		cJSON_Delete(b->log);
		cJSON_Delete(b->reason);
		free(b);
	}
	free(t);
}

void e2b_template_put(struct e2b_template *t)
{
	struct e2b *e = t->e;
	bool last;

	(void)pthread_mutex_lock(&e->lock);
	last = --t->refs == 0;
	(void)pthread_mutex_unlock(&e->lock);
	if (!last)
		return;
	e2b_builds_trim(t);
	template_free(t);
}

void e2b_template_end(struct e2b_template *t)
{
	struct e2b *e = t->e;
	bool found = false;

	(void)pthread_mutex_lock(&e->lock);
	for (struct e2b_template **p = &e->templates; *p && !found; p = &(*p)->next) {
		if (*p == t) {
			*p = t->next;
			found = t->gone = true;
			forget_tags(t);
			break;
		}
	}
	(void)pthread_mutex_unlock(&e->lock);
	if (found)
		e2b_template_put(t);
}

void e2b_templates_free(struct e2b *e)
{
	while (e->templates) {
		struct e2b_template *t = e->templates;

		e->templates = t->next;
		template_free(t);
	}
}

struct e2b_template *e2b_named_template(struct emu_request *req)
{
	struct e2b *e = req->service;
	struct e2b_template *t;

	(void)pthread_mutex_lock(&e->lock);
	t = e2b_template_find(e, req->args[0]);
	if (t)
		return t;
	(void)pthread_mutex_unlock(&e->lock);
	e2b_error(req, 404, "template '%.128s' not found", req->args[0]);
	return NULL;
}
