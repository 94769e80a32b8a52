/* SPDX-License-Identifier: MIT */
/* A spec in a box's record. */
#include <string.h>

#include "abxsdk/json.h"
#include "core/box/spec-parse.h"
#include "core/util/mem.h"

#define SPEC_MAX_BYTES ((size_t)1 << 20)
#define TEXT_MAX_BYTES 8192

static void add_mounts(cJSON *doc, const char *key, const char *source_key,
		       const struct abx_spec_mounts *m, bool with_mode)
{
	cJSON *list = m->len ? cJSON_AddArrayToObject(doc, key) : NULL;

	for (size_t i = 0; i < m->len; i++) {
		cJSON *o = cJSON_CreateObject();

		(void)cJSON_AddStringToObject(o, source_key, m->items[i].source);
		(void)cJSON_AddStringToObject(o, "target", m->items[i].target);
		if (with_mode)
			(void)cJSON_AddBoolToObject(o, "read_only", m->items[i].read_only);
		(void)cJSON_AddItemToArray(list, o);
	}
}

static void add_number(cJSON *doc, const char *key, uint64_t n)
{
	if (n)
		(void)cJSON_AddNumberToObject(doc, key, (double)n);
}

/* Only what is there: an empty spec is an empty document. */
static void show(const struct abx_box_spec *s, cJSON *doc)
{
	abx_autofree char *egress = s->has_egress ? abx_egress_text(&s->egress) : NULL;
	cJSON *ports = s->n_ports ? cJSON_AddArrayToObject(doc, "ports") : NULL;

	if (egress)
		(void)cJSON_AddStringToObject(doc, "egress", egress);
	add_number(doc, "cpu_milli", s->cpu_milli);
	add_number(doc, "memory_bytes", s->mem_bytes);
	add_number(doc, "disk_bytes", s->disk_bytes);
	add_number(doc, "pids", s->max_pids);
	add_mounts(doc, "mounts", "source", &s->mounts, true);
	add_mounts(doc, "volumes", "name", &s->volumes, false);
	for (uint32_t i = 0; i < s->n_ports; i++)
		(void)cJSON_AddItemToArray(ports, cJSON_CreateNumber(s->ports[i]));
	if (s->read_only)
		(void)cJSON_AddBoolToObject(doc, "read_only", true);
	if (s->private_urls)
		(void)cJSON_AddBoolToObject(doc, "private_urls", true);
	if (s->committed)
		(void)cJSON_AddBoolToObject(doc, "committed", true);
	if (s->subdir)
		(void)cJSON_AddStringToObject(doc, "subdir", s->subdir);
	if (s->size)
		(void)cJSON_AddStringToObject(doc, "size", s->size);
	if (s->location)
		(void)cJSON_AddStringToObject(doc, "location", s->location);
	add_number(doc, "timeout_ms", (uint64_t)s->timeout_ms);
}

char *abx_box_spec_json(const struct abx_box_spec *s)
{
	cJSON *doc = cJSON_CreateObject();
	char *text = NULL;

	show(s, doc);
	if (doc && doc->child)
		text = cJSON_PrintUnformatted(doc);
	cJSON_Delete(doc);
	return text;
}

static int get_number(const cJSON *doc, const char *key, uint64_t max, uint64_t *ret)
{
	int64_t n = 0;
	int r = abx_json_i64(doc, key, &n);

	if (r == -ENOENT)
		return 0;
	if (r < 0 || n < 0 || (uint64_t)n > max)
		return -EPROTO;
	*ret = (uint64_t)n;
	return 0;
}

static int get_text(const cJSON *doc, const char *key, char **ret)
{
	const char *text = NULL;
	int r = abx_json_str(doc, key, TEXT_MAX_BYTES, &text);

	if (r == 0)
		*ret = abx_xstrdup_null(text);
	return r;
}

static int get_mounts(const cJSON *doc, const char *key, const char *source_key,
		      struct abx_spec_mounts *ret)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(doc, key), *one;
	int r = 0;

	if (list && !cJSON_IsArray(list))
		return -EPROTO;
	cJSON_ArrayForEach(one, list) {
		struct abx_spec_mount *m;

		ret->items = abx_xreallocarray(ret->items, ret->len + 1, sizeof(*ret->items));
		m = &ret->items[ret->len++];
		memset(m, 0, sizeof(*m));
		r = get_text(one, source_key, &m->source);
		if (r == 0)
			r = get_text(one, "target", &m->target);
		if (r == 0)
			r = abx_json_bool(one, "read_only", false, &m->read_only);
		if (r == 0 && (!m->source || !m->target))
			r = -EPROTO;
		if (r < 0)
			break;
	}
	return r;
}

static int get_ports(const cJSON *doc, struct abx_box_spec *s)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(doc, "ports"), *one;

	if (list && !cJSON_IsArray(list))
		return -EPROTO;
	cJSON_ArrayForEach(one, list) {
		abx_autofree char *text = NULL;

		if (!cJSON_IsNumber(one))
			return -EPROTO;
		text = abx_xasprintf("%d", one->valueint);
		if (abx_spec_add_port(s, text, NULL) < 0)
			return -EPROTO;
	}
	return 0;
}

static int get_egress(const cJSON *doc, struct abx_box_spec *s)
{
	abx_autofree char *text = NULL;
	int r = get_text(doc, "egress", &text);

	if (r < 0 || !text)
		return r;
	s->has_egress = true;
	return abx_egress_parse(text, &s->egress, NULL) < 0 ? -EPROTO : 0;
}

static int parse(const cJSON *doc, struct abx_box_spec *s)
{
	uint64_t cpu = 0, pids = 0, timeout = 0;
	int r = get_egress(doc, s);

	if (r == 0)
		r = get_number(doc, "cpu_milli", UINT32_MAX, &cpu);
	if (r == 0)
		r = get_number(doc, "memory_bytes", INT64_MAX, &s->mem_bytes);
	if (r == 0)
		r = get_number(doc, "disk_bytes", INT64_MAX, &s->disk_bytes);
	if (r == 0)
		r = get_number(doc, "pids", UINT32_MAX, &pids);
	if (r == 0)
		r = get_mounts(doc, "mounts", "source", &s->mounts);
	if (r == 0)
		r = get_mounts(doc, "volumes", "name", &s->volumes);
	if (r == 0)
		r = get_ports(doc, s);
	if (r == 0)
		r = abx_json_bool(doc, "read_only", false, &s->read_only);
	if (r == 0)
		r = abx_json_bool(doc, "private_urls", false, &s->private_urls);
	if (r == 0)
		r = abx_json_bool(doc, "committed", false, &s->committed);
	if (r == 0)
		r = get_text(doc, "size", &s->size);
	if (r == 0)
		r = get_text(doc, "subdir", &s->subdir);
	if (r == 0)
		r = get_text(doc, "location", &s->location);
	if (r == 0)
		r = get_number(doc, "timeout_ms", INT64_MAX, &timeout);
	s->timeout_ms = (int64_t)timeout;
	s->cpu_milli = (uint32_t)cpu;
	s->max_pids = (uint32_t)pids;
	return r;
}

int abx_box_spec_parse(const char *json, struct abx_box_spec *ret, struct abx_err *err)
{
	struct abx_box_spec s = {0};
	cJSON *doc = NULL;
	int r;

	if (!json) {
		*ret = s;
		return 0;
	}
	r = abx_json_parse(json, strlen(json), SPEC_MAX_BYTES, &doc);
	if (r == 0)
		r = parse(doc, &s);
	cJSON_Delete(doc);
	if (r < 0) {
		abx_box_spec_release(&s);
		return abx_err_set(err, ABX_ECORRUPT,
				   "what the box was made with is not readable "
				   "in its record");
	}
	*ret = s;
	return 0;
}
