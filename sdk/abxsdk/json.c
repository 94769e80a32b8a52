/* SPDX-License-Identifier: MIT */
/* Typed, bounded reading of JSON objects. */
#include "abxsdk/json.h"

#include <ctype.h>
#include <string.h>

#define TEXT_MAX ((size_t)64 << 10)
#define EXACT_INTEGER_MAX 9007199254740992.0 /* 2^53 */

int abx_json_parse(const char *text, size_t len, size_t max, cJSON **ret_doc)
{
	const char *end = NULL;
	cJSON *doc;

	if (len > max)
		return -EFBIG;
	doc = cJSON_ParseWithLengthOpts(text, len, &end, 0);
	if (!doc)
		return -EPROTO;
	while (end < text + len && isspace((unsigned char)*end))
		end++;
	if (end != text + len || !cJSON_IsObject(doc)) {
		cJSON_Delete(doc);
		return -EPROTO;
	}
	*ret_doc = doc;
	return 0;
}

static const cJSON *member(const cJSON *obj, const char *key)
{
	const cJSON *m = cJSON_GetObjectItemCaseSensitive(obj, key);

	return cJSON_IsNull(m) ? NULL : m;
}

int abx_json_str(const cJSON *obj, const char *key, size_t max_len, const char **ret)
{
	const cJSON *m = member(obj, key);

	if (!m) {
		*ret = NULL;
		return 0;
	}
	if (!cJSON_IsString(m) || strnlen(m->valuestring, max_len + 1) > max_len)
		return -EPROTO;
	*ret = m->valuestring;
	return 0;
}

int abx_json_i64(const cJSON *obj, const char *key, int64_t *ret)
{
	const cJSON *m = member(obj, key);
	double v;

	if (!m)
		return -ENOENT;
	if (!cJSON_IsNumber(m))
		return -EPROTO;
	v = m->valuedouble;
	if (!(v >= -EXACT_INTEGER_MAX && v <= EXACT_INTEGER_MAX) || v != (double)(int64_t)v)
		return -EPROTO;
	*ret = (int64_t)v;
	return 0;
}

int abx_json_bool(const cJSON *obj, const char *key, bool dflt, bool *ret)
{
	const cJSON *m = member(obj, key);

	if (m && !cJSON_IsBool(m))
		return -EPROTO;
	*ret = m ? cJSON_IsTrue(m) : dflt;
	return 0;
}

int abx_json_obj(const cJSON *obj, const char *key, const cJSON **ret)
{
	const cJSON *m = member(obj, key);

	if (m && !cJSON_IsObject(m))
		return -EPROTO;
	*ret = m;
	return 0;
}

const char *abx_json_get_text(const cJSON *obj, const char *key)
{
	const char *text = NULL;

	return abx_json_str(obj, key, TEXT_MAX, &text) == 0 && text ? text : "";
}

const cJSON *abx_json_get_part(const cJSON *obj, const char *key)
{
	const cJSON *part = NULL;

	return obj && abx_json_obj(obj, key, &part) == 0 ? part : NULL;
}

int abx_json_each_str(const cJSON *obj, int (*visit)(void *ctx, const char *key, const char *value),
		      void *ctx)
{
	const cJSON *m;

	cJSON_ArrayForEach(m, obj) {
		int r;

		if (!cJSON_IsString(m))
			return -EPROTO;
		r = visit(ctx, m->string, m->valuestring);
		if (r)
			return r;
	}
	return 0;
}

int abx_json_add_str(cJSON *obj, const char *key, const char *value)
{
	if (!value)
		return 0;
	return cJSON_AddStringToObject(obj, key, value) ? 0 : -ENOMEM;
}

int abx_json_add_i64(cJSON *obj, const char *key, int64_t value)
{
	return cJSON_AddNumberToObject(obj, key, (double)value) ? 0 : -ENOMEM;
}

int abx_json_add_bool(cJSON *obj, const char *key, bool value)
{
	return cJSON_AddBoolToObject(obj, key, value) ? 0 : -ENOMEM;
}

int abx_json_print(const cJSON *doc, struct abx_buf *b)
{
	char *text = cJSON_Print(doc);

	if (!text)
		return -ENOMEM;
	abx_buf_adds(b, text);
	abx_buf_addc(b, '\n');
	cJSON_free(text);
	return b->failed ? -ENOMEM : 0;
}
