/* SPDX-License-Identifier: MIT */
/* Protobuf to JSON and back, by tables. */
#include "tests/cloud/e2b/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <string.h>
#include <time.h>

#include "core/util/mem.h"

#define WIRE_VARINT 0
#define WIRE_I64 1
#define WIRE_BYTES 2
#define WIRE_I32 5
#define NESTING_MAX 8
#define MESSAGE_MAX ((size_t)64 << 20)

char *e2b_base64(const void *data, size_t len)
{
	char *text = abx_xcalloc(1, 4 * ((len + 2) / 3) + 1);

	(void)EVP_EncodeBlock((unsigned char *)text, data, (int)len);
	return text;
}

int e2b_unbase64(const char *text, struct abx_buf *to)
{
	size_t len = strlen(text);
	unsigned char *to_bytes;
	int n;

	if (len % 4 != 0)
		return -EPROTO;
	if (len == 0)
		return 0;
	to_bytes = (unsigned char *)abx_buf_reserve(to, len / 4 * 3);
	n = to_bytes ? EVP_DecodeBlock(to_bytes, (const unsigned char *)text, (int)len) : -1;
	if (n < 0)
		return -EPROTO;
	n -= text[len - 1] == '=';
	n -= text[len - 2] == '=';
	abx_buf_commit(to, (size_t)n);
	return 0;
}

struct in {
	const unsigned char *at, *end;
};

static bool take_varint(struct in *in, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		unsigned char c = *in->at++;

		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static bool take_bytes(struct in *in, struct in *ret)
{
	uint64_t len;

	if (!take_varint(in, &len) || len > (uint64_t)(in->end - in->at))
		return false;
	ret->at = in->at;
	in->at += len;
	ret->end = in->at;
	return true;
}

static bool skip(struct in *in, unsigned int wire)
{
	struct in bytes;
	uint64_t v;
	ptrdiff_t n = wire == WIRE_I64 ? 8 : 4;

	if (wire == WIRE_VARINT)
		return take_varint(in, &v);
	if (wire == WIRE_BYTES)
		return take_bytes(in, &bytes);
	if ((wire != WIRE_I64 && wire != WIRE_I32) || in->end - in->at < n)
		return false;
	in->at += n;
	return true;
}

static cJSON *text_of(const struct in *bytes)
{
	char *s = abx_xstrndup((const char *)bytes->at, (size_t)(bytes->end - bytes->at));
	cJSON *item = cJSON_CreateString(s);

	free(s);
	return item;
}

static cJSON *decode(const struct proto_message *m, struct in *in, int depth);

static bool decode_pair(struct in bytes, cJSON *map)
{
	cJSON *key = NULL, *value = NULL;
	bool ok = true;

	while (ok && bytes.at < bytes.end) {
		uint64_t tag;
		struct in part;

		ok = take_varint(&bytes, &tag) && (tag & 7) == WIRE_BYTES &&
		     take_bytes(&bytes, &part);
		if (ok && tag >> 3 == 1 && !key)
			key = text_of(&part);
		else if (ok && tag >> 3 == 2 && !value)
			value = text_of(&part);
	}
	if (ok)
		(void)cJSON_AddStringToObject(map, key ? key->valuestring : "",
					      value ? value->valuestring : "");
	cJSON_Delete(key);
	cJSON_Delete(value);
	return ok;
}

static cJSON *decode_number(const struct proto_field *f, uint64_t v)
{
	char text[24];
	size_t n = 0;

	if (f->kind == PROTO_BOOL)
		return cJSON_CreateBool(v != 0);
	if (f->kind == PROTO_SINT32)
		return cJSON_CreateNumber((double)((int64_t)(v >> 1) ^ -(int64_t)(v & 1)));
	if (f->kind == PROTO_INT64) {
		(void)snprintf(text, sizeof(text), "%" PRId64, (int64_t)v);
		return cJSON_CreateString(text);
	}
	if (f->kind == PROTO_ENUM) {
		while (f->names[n] && n < v)
			n++;
		if (f->names[n] && *f->names[n])
			return cJSON_CreateString(f->names[n]);
	}
	return cJSON_CreateNumber((double)(uint32_t)v);
}

static cJSON *decode_bytes(const struct proto_field *f, struct in *bytes, int depth)
{
	cJSON *item;
	char *text;

	if (f->kind == PROTO_MESSAGE)
		return decode(f->message, bytes, depth + 1);
	if (f->kind == PROTO_STRING)
		return text_of(bytes);
	text = e2b_base64(bytes->at, (size_t)(bytes->end - bytes->at));
	item = cJSON_CreateString(text);
	free(text);
	return item;
}

static const struct proto_field *find_field(const struct proto_message *m, uint64_t number)
{
	for (const struct proto_field *f = m->fields; f->number; f++)
		if (f->number == number)
			return f;
	return NULL;
}

static cJSON *member(cJSON *doc, const char *name, bool array)
{
	cJSON *o = cJSON_GetObjectItemCaseSensitive(doc, name);

	if (!o && array)
		return cJSON_AddArrayToObject(doc, name);
	return o ? o : cJSON_AddObjectToObject(doc, name);
}

static bool decode_field(const struct proto_field *f, unsigned int wire, struct in *in, cJSON *doc,
			 int depth)
{
	bool by_length = f->kind == PROTO_STRING || f->kind == PROTO_BYTES ||
			 f->kind == PROTO_MESSAGE || f->kind == PROTO_MAP || f->kind == PROTO_TIME;
	cJSON *item = NULL;
	struct in bytes;
	uint64_t v;

	if (wire != (by_length ? WIRE_BYTES : WIRE_VARINT))
		return skip(in, wire);
	if (by_length ? !take_bytes(in, &bytes) : !take_varint(in, &v))
		return false;
	if (f->kind == PROTO_MAP)
		return decode_pair(bytes, member(doc, f->name, false));
	item = by_length ? decode_bytes(f, &bytes, depth) : decode_number(f, v);
	if (!item)
		return false;
	if (f->repeated) {
		(void)cJSON_AddItemToArray(member(doc, f->name, true), item);
	} else {
		cJSON_DeleteItemFromObjectCaseSensitive(doc, f->name);
		(void)cJSON_AddItemToObject(doc, f->name, item);
	}
	return true;
}

static cJSON *decode(const struct proto_message *m, struct in *in, int depth)
{
	cJSON *doc = depth < NESTING_MAX ? cJSON_CreateObject() : NULL;
	bool ok = doc != NULL;

	while (ok && in->at < in->end) {
		const struct proto_field *f;
		uint64_t tag;

		ok = take_varint(in, &tag);
		f = ok ? find_field(m, tag >> 3) : NULL;
		if (f)
			ok = decode_field(f, (unsigned int)(tag & 7), in, doc, depth);
		else if (ok)
			ok = skip(in, (unsigned int)(tag & 7));
	}
	if (!ok) {
		cJSON_Delete(doc);
		return NULL;
	}
	return doc;
}

int proto_decode(const struct proto_message *m, const void *data, size_t len, cJSON **ret)
{
	struct in in = {data, (const unsigned char *)data + len};
	cJSON *doc = decode(m, &in, 0);

	if (!doc)
		return -EPROTO;
	*ret = doc;
	return 0;
}

static void put_varint(struct abx_buf *to, uint64_t v)
{
	while (v > 0x7f) {
		abx_buf_addc(to, (char)((v & 0x7f) | 0x80));
		v >>= 7;
	}
	abx_buf_addc(to, (char)v);
}

static void put_tagged(struct abx_buf *to, uint32_t number, const void *data, size_t len)
{
	put_varint(to, (uint64_t)number << 3 | WIRE_BYTES);
	put_varint(to, len);
	abx_buf_add(to, data, len);
}

static void put_number(struct abx_buf *to, const struct proto_field *f, uint64_t v)
{
	put_varint(to, (uint64_t)f->number << 3 | WIRE_VARINT);
	put_varint(to, v);
}

static uint64_t enum_value(const struct proto_field *f, const char *name)
{
	for (size_t i = 0; name && f->names[i]; i++)
		if (strcmp(f->names[i], name) == 0)
			return i;
	return 0;
}

static void put_time(struct abx_buf *to, uint32_t number, const char *text)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(64);
	struct tm tm = {0};
	const char *dot = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	static const struct proto_field seconds = {.number = 1}, nanos = {.number = 2};

	put_number(&b, &seconds, (uint64_t)timegm(&tm));
	if (dot && *dot == '.') {
		uint64_t n = 0;

		for (int i = 1; i <= 9; i++)
			n = n * 10 +
			    (dot[i] >= '0' && dot[i] <= '9' ? (uint64_t)(dot[i] - '0') : 0);
		put_number(&b, &nanos, n);
	}
	put_tagged(to, number, b.data, b.len);
}

static void put_map(struct abx_buf *to, uint32_t number, const cJSON *map)
{
	for (const cJSON *i = map->child; i; i = i->next) {
		abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(MESSAGE_MAX);

		if (!cJSON_IsString(i))
			continue;
		put_tagged(&b, 1, i->string, strlen(i->string));
		put_tagged(&b, 2, i->valuestring, strlen(i->valuestring));
		put_tagged(to, number, b.data, b.len);
	}
}

static void put_item(struct abx_buf *to, const struct proto_field *f, const cJSON *i)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(MESSAGE_MAX);
	const char *s = cJSON_IsString(i) ? i->valuestring : "";
	int64_t v = cJSON_IsNumber(i) ? (int64_t)i->valuedouble : cJSON_IsTrue(i);

	switch (f->kind) {
	case PROTO_STRING:
		put_tagged(to, f->number, s, strlen(s));
		break;
	case PROTO_BYTES:
		(void)e2b_unbase64(s, &b);
		put_tagged(to, f->number, b.data, b.len);
		break;
	case PROTO_MESSAGE:
		proto_encode(f->message, i, &b);
		put_tagged(to, f->number, b.data, b.len);
		break;
	case PROTO_MAP:
		put_map(to, f->number, i);
		break;
	case PROTO_TIME:
		put_time(to, f->number, s);
		break;
	case PROTO_ENUM:
		put_number(to, f, enum_value(f, s));
		break;
	case PROTO_SINT32:
		put_number(to, f, (uint32_t)((uint32_t)v << 1) ^ (v < 0 ? UINT32_MAX : 0));
		break;
	case PROTO_INT64:
		put_number(to, f, *s ? strtoull(s, NULL, 10) : (uint64_t)v);
		break;
	case PROTO_BOOL:
	case PROTO_UINT32:
		put_number(to, f, (uint64_t)v);
	}
}

void proto_encode(const struct proto_message *m, const cJSON *doc, struct abx_buf *to)
{
	for (const struct proto_field *f = m->fields; f->number; f++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(doc, f->name), *i;

		if (!item || cJSON_IsNull(item))
			continue;
		if (!f->repeated) {
			put_item(to, f, item);
			continue;
		}
		cJSON_ArrayForEach(i, item)
			put_item(to, f, i);
	}
}
