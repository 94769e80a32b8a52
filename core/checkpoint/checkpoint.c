/* SPDX-License-Identifier: MIT */
/* A checkpoint as a JSON document. */
#include "core/checkpoint/checkpoint.h"

#include <string.h>

#include "abxsdk/json.h"
#include "core/checkpoint/store.h"
#include "core/util/mem.h"

#define VERSION 1
#define TEXT_MAX 65536

/* Every text member; the first N_REQUIRED must be there. */
#define N_REQUIRED 6
static const struct {
	const char *key;
	size_t offset;
} members[] = {
	{"name", offsetof(struct abx_checkpoint, name)},
	{"provider", offsetof(struct abx_checkpoint, provider)},
	{"snapshot", offsetof(struct abx_checkpoint, ref)},
	{"attempt", offsetof(struct abx_checkpoint, attempt)},
	{"project", offsetof(struct abx_checkpoint, project)},
	{"created_at", offsetof(struct abx_checkpoint, created_at)},
	{"account", offsetof(struct abx_checkpoint, account)},
	{"box_id", offsetof(struct abx_checkpoint, box_id)},
	{"box_name", offsetof(struct abx_checkpoint, box_name)},
	{"workspace", offsetof(struct abx_checkpoint, workspace)},
	{"branch", offsetof(struct abx_checkpoint, branch)},
	{"base_commit", offsetof(struct abx_checkpoint, base_commit)},
	{"seed_tree", offsetof(struct abx_checkpoint, seed_tree)},
	{"image", offsetof(struct abx_checkpoint, image)},
};

static char **member(struct abx_checkpoint *c, size_t i)
{
	return (char **)((char *)c + members[i].offset);
}

static const char *text_of(const struct abx_checkpoint *c, size_t i)
{
	return *(char *const *)((const char *)c + members[i].offset);
}

void abx_checkpoint_release(struct abx_checkpoint *c)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(members); i++)
		free(*member(c, i));
	free(c->spec);
	memset(c, 0, sizeof(*c));
}

void abx_checkpoint_list_release(struct abx_checkpoint_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		abx_checkpoint_release(&l->items[i]);
	free(l->items);
	memset(l, 0, sizeof(*l));
}

int abx_checkpoint_print(const struct abx_checkpoint *c, struct abx_buf *ret, struct abx_err *err)
{
	cJSON *doc = cJSON_CreateObject(), *spec = c->spec ? cJSON_Parse(c->spec) : NULL;
	int r = abx_json_add_i64(doc, "version", VERSION);

	for (size_t i = 0; i < ABX_N_ELEMENTS(members) && r == 0; i++)
		r = abx_json_add_str(doc, members[i].key, text_of(c, i));
	if (r == 0 && c->size_bytes)
		r = abx_json_add_i64(doc, "size_bytes", (int64_t)c->size_bytes);
	if (r == 0)
		r = abx_json_add_bool(doc, "memory", c->memory);
	if (spec)
		(void)cJSON_AddItemToObject(doc, "spec", spec);
	if (r == 0)
		r = abx_json_print(doc, ret);
	cJSON_Delete(doc);
	return r < 0 ? abx_err_errno(err, r, "write down checkpoint '%s'", c->name) : 0;
}

static bool is_attempt(const char *s)
{
	return strlen(s) == 16 && strspn(s, "0123456789abcdef") == 16;
}

static int fill(const cJSON *doc, struct abx_checkpoint *c)
{
	const cJSON *spec = NULL;
	const char *text = NULL;
	int64_t size = 0;
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(members) && r == 0; i++) {
		r = abx_json_str(doc, members[i].key, TEXT_MAX, &text);
		if (r == 0 && i < N_REQUIRED && !(text && *text))
			r = -EPROTO;
		if (r == 0)
			*member(c, i) = abx_xstrdup_null(text);
	}
	if (r == 0 && !is_attempt(c->attempt))
		r = -EPROTO;
	if (r == 0)
		r = abx_json_bool(doc, "memory", false, &c->memory);
	if (r == 0)
		r = abx_json_i64(doc, "size_bytes", &size);
	if (r == -ENOENT)
		r = 0;
	c->size_bytes = size > 0 ? (uint64_t)size : 0;
	if (r == 0)
		r = abx_json_obj(doc, "spec", &spec);
	if (r == 0 && spec)
		c->spec = cJSON_PrintUnformatted(spec);
	return r;
}

int abx_checkpoint_parse(const char *text, size_t len, struct abx_checkpoint *ret,
			 struct abx_err *err)
{
	struct abx_checkpoint c = {0};
	int64_t version = 0;
	cJSON *doc = NULL;
	int r = abx_json_parse(text, len, ABX_CHECKPOINT_BYTES_MAX, &doc);

	if (r == 0)
		r = abx_json_i64(doc, "version", &version);
	if (r == 0 && version > VERSION) {
		cJSON_Delete(doc);
		return abx_err_set(err, ABX_ENOTSUP,
				   "a newer agentbox wrote it (version %lld, known is %d)",
				   (long long)version, VERSION);
	}
	if (r == 0)
		r = version == VERSION ? fill(doc, &c) : -EPROTO;
	cJSON_Delete(doc);
	if (r < 0) {
		abx_checkpoint_release(&c);
		return abx_err_set(err, ABX_ECORRUPT, "it does not describe a checkpoint");
	}
	*ret = c;
	return 0;
}
