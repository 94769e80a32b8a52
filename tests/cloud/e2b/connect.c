/* SPDX-License-Identifier: MIT */
/* The Connect protocol, for envd. */
#include "tests/cloud/e2b/connect.h"

#include <stdarg.h>
#include <string.h>

#include "abxsdk/json.h"
#include "abxsdk/number.h"
#include "core/util/mem.h"

#define KEEPALIVE_S 90
#define TEXT_MAX 2048

static const struct {
	const char *code;
	int status;
} statuses[] = {
	{"canceled", 499},
	{"unknown", 500},
	{"invalid_argument", 400},
	{"deadline_exceeded", 504},
	{"not_found", 404},
	{"already_exists", 409},
	{"permission_denied", 403},
	{"resource_exhausted", 429},
	{"failed_precondition", 400},
	{"aborted", 409},
	{"out_of_range", 400},
	{"unimplemented", 501},
	{"internal", 500},
	{"unavailable", 503},
	{"unauthenticated", 401},
};

bool connect_kind_of(const struct emu_request *req, bool stream, struct connect_kind *ret)
{
	static const char *const types[2][2] = {
		{"application/json", "application/proto"},
		{"application/connect+json", "application/connect+proto"}};
	const char *type = emu_header(req, "Content-Type");
	size_t len = type ? strcspn(type, "; ") : 0;

	for (size_t i = 0; i < 2; i++) {
		if (strlen(types[stream][i]) != len ||
		    strncasecmp(type, types[stream][i], len) != 0)
			continue;
		ret->stream = stream;
		ret->proto = i == 1;
		return true;
	}
	return false;
}

bool connect_kind(struct emu_request *req, bool stream, struct connect_kind *ret)
{
	if (connect_kind_of(req, stream, ret))
		return true;
	emu_reply(req, 415, NULL, NULL, 0, NULL);
	return false;
}

static void error_doc(const char *code, const char *text, bool nested, struct abx_buf *to)
{
	cJSON *doc = cJSON_CreateObject(), *o = doc;
	char *out;

	if (nested)
		o = cJSON_AddObjectToObject(doc, "error");
	(void)abx_json_add_str(o, "code", code);
	(void)abx_json_add_str(o, "message", text);
	out = cJSON_PrintUnformatted(doc);
	abx_buf_adds(to, out ? out : "{}");
	cJSON_free(out);
	cJSON_Delete(doc);
}

static void add_envelope(struct abx_buf *to, unsigned char flags, const char *data, size_t len)
{
	const unsigned char head[CONNECT_HEAD_BYTES] = {
		flags, (unsigned char)(len >> 24), (unsigned char)(len >> 16),
		(unsigned char)(len >> 8), (unsigned char)len};

	abx_buf_add(to, head, sizeof(head));
	abx_buf_add(to, data, len);
}

void connect_end(const char *code, const char *text, struct abx_buf *to)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(2 * TEXT_MAX);

	if (code)
		error_doc(code, text, true, &b);
	else
		abx_buf_adds(&b, "{}");
	add_envelope(to, CONNECT_END, b.data, b.len);
}

static void add_message(bool proto, const struct proto_message *m, const cJSON *doc,
			struct abx_buf *to)
{
	char *text;

	if (proto) {
		proto_encode(m, doc, to);
		return;
	}
	text = cJSON_PrintUnformatted(doc);
	abx_buf_adds(to, text ? text : "{}");
	cJSON_free(text);
}

void connect_envelope(const struct connect_kind *k, const struct proto_message *m, const cJSON *doc,
		      struct abx_buf *to)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(CONNECT_MESSAGE_MAX);

	add_message(k->proto, m, doc, &b);
	add_envelope(to, 0, abx_buf_str(&b), b.len);
}

const char *connect_stream_type(const struct connect_kind *k)
{
	return k->proto ? "application/connect+proto" : "application/connect+json";
}

void connect_error(struct emu_request *req, const struct connect_kind *k, const char *code,
		   const char *fmt, ...)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(4 * TEXT_MAX);
	char text[TEXT_MAX];
	int status = 500;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (k->stream) {
		connect_end(code, text, &b);
		emu_reply(req, 200, connect_stream_type(k), b.data, b.len, NULL);
		return;
	}
	for (size_t i = 0; i < ABX_N_ELEMENTS(statuses); i++)
		if (strcmp(statuses[i].code, code) == 0)
			status = statuses[i].status;
	error_doc(code, text, false, &b);
	emu_reply(req, status, "application/json", b.data, b.len, NULL);
}

void connect_reply(struct emu_request *req, const struct connect_kind *k,
		   const struct proto_message *m, cJSON *doc)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(CONNECT_MESSAGE_MAX);

	if (k->stream) {
		connect_envelope(k, m, doc, &b);
		connect_end(NULL, NULL, &b);
	} else {
		add_message(k->proto, m, doc, &b);
	}
	cJSON_Delete(doc);
	emu_reply(req, 200,
		  k->stream  ? connect_stream_type(k)
		  : k->proto ? "application/proto"
			     : "application/json",
		  abx_buf_str(&b), b.len, NULL);
}

cJSON *connect_message(struct emu_request *req, const struct connect_kind *k,
		       const struct proto_message *m)
{
	const char *data = abx_buf_str(&req->body);
	const unsigned char *head = (const unsigned char *)data;
	size_t len = req->body.len, want;
	cJSON *doc = NULL;
	int r;

	if (k->stream) {
		want = len < CONNECT_HEAD_BYTES ? 0
						: (size_t)head[1] << 24 | (size_t)head[2] << 16 |
							  (size_t)head[3] << 8 | head[4];
		if (len < CONNECT_HEAD_BYTES || head[0] != 0 || want != len - CONNECT_HEAD_BYTES) {
			connect_error(req, k, "invalid_argument",
				      "protocol error: not one whole envelope");
			return NULL;
		}
		data += CONNECT_HEAD_BYTES;
		len = want;
	}
	r = k->proto ? proto_decode(m, data, len, &doc)
		     : abx_json_parse(data, len, CONNECT_MESSAGE_MAX, &doc);
	if (r == 0)
		return doc;
	connect_error(req, k, "invalid_argument", "unmarshal message: not a %s", m->name);
	return NULL;
}

int64_t connect_timeout_ms(const struct emu_request *req)
{
	const char *text = emu_header(req, "Connect-Timeout-Ms");
	uint64_t ms = 0;

	return text && abx_parse_u64(text, UINT64_C(9999999999), &ms) ? (int64_t)ms : 0;
}

int64_t connect_keepalive_ms(const struct emu_request *req)
{
	const char *text = emu_header(req, "Keepalive-Ping-Interval");
	uint64_t s = KEEPALIVE_S;

	/* A real one ends itself for less than 1. */
	if (!text || !abx_parse_u64(text, 86400, &s) || s < 1)
		s = text ? 1 : KEEPALIVE_S;
	return (int64_t)s * 1000;
}
