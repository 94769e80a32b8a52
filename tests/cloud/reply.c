/* SPDX-License-Identifier: MIT */
/* The HTTP server that emulated clouds share: answers and routes. */
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "abxsdk/json.h"
#include "core/util/mem.h"
#include "tests/cloud/gzip.h"
#include "tests/cloud/server-private.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define SLICE_MS 200
#define JSON_MAX ((size_t)64 << 20)

static void fail_hard(struct emu_request *req)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	const struct linger now = {.l_onoff = 1, .l_linger = 0};

	if (i)
		(void)setsockopt(i->connect_fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	req->result = MHD_NO;
}

void emu_reply_reset(struct emu_request *req)
{
	req->answered = true;
	fail_hard(req);
}

/* False: nothing is to be said. */
static bool may_answer(struct emu_request *req, int status)
{
	if (req->answered)
		return false;
	if (req->fault.kind == EMU_FAULT_DENY) {
		req->fault.kind = EMU_FAULT_STATUS;
		emu_reply_fault(req);
		return false;
	}
	req->answered = true;
	if (req->fault.kind == EMU_FAULT_LOSE) {
		fail_hard(req);
		return false;
	}
	req->status = status;
	emu_log_status(req->server->log, req->log_at, status);
	return true;
}

static void queue(struct emu_request *req, int status, const char *type,
		  const struct emu_header_pair *headers, struct MHD_Response *response)
{
	if (type)
		(void)MHD_add_response_header(response, "Content-Type", type);
	for (; headers && headers->name; headers++)
		(void)MHD_add_response_header(response, headers->name, headers->value);
	req->result = (int)MHD_queue_response(req->conn, (unsigned int)status, response);
	MHD_destroy_response(response);
}

/* The first half of something of known size. */
struct half {
	struct emu_request *req;
	size_t len;
	char data[];
};

static ssize_t give_half(void *ctx, uint64_t at, char *to, size_t max)
{
	const struct half *h = ctx;
	size_t left = at < h->len ? h->len - (size_t)at : 0;

	if (left == 0) {
		fail_hard(h->req);
		return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	if (left > max)
		left = max;
	memcpy(to, h->data + at, left);
	return (ssize_t)left;
}

static struct MHD_Response *half_response(struct emu_request *req, const void *data, size_t len)
{
	struct half *h = abx_xcalloc(1, sizeof(*h) + len);

	h->req = req;
	h->len = len / 2;
	if (len)
		memcpy(h->data, data, len);
	return MHD_create_response_from_callback(len ? len : 1, BLOCK_BYTES, give_half, h, free);
}

static struct MHD_Response *whole_response(const void *data, size_t len)
{
	void *copy = malloc(len ? len : 1);

	if (copy && len)
		memcpy(copy, data, len);
	return MHD_create_response_from_buffer(copy ? len : 0, copy, MHD_RESPMEM_MUST_FREE);
}

void emu_reply(struct emu_request *req, int status, const char *type, const void *data, size_t len,
	       const struct emu_header_pair *headers)
{
	struct MHD_Response *response;

	if (!may_answer(req, status))
		return;
	if (req->fault.kind == EMU_FAULT_TRUNCATE)
		response = half_response(req, data, len);
	else
		response = whole_response(data, len);
	queue(req, status, type, headers, response);
}

void emu_reply_json(struct emu_request *req, int status, cJSON *doc,
		    const struct emu_header_pair *headers)
{
	char *text = cJSON_PrintUnformatted(doc);

	cJSON_Delete(doc);
	emu_reply(req, status, "application/json", text ? text : "", text ? strlen(text) : 0,
		  headers);
	cJSON_free(text);
}

struct stream {
	struct emu_request *req;
	struct emu_feed *feed;
	struct emu_gzip *gzip; /* NULL: as it is */
};

static ssize_t give_feed(void *ctx, uint64_t at, char *to, size_t max)
{
	struct stream *s = ctx;

	const bool cut = at && s->req->fault.kind == EMU_FAULT_TRUNCATE;

	/* Of a truncated one there is the beginning. */
	for (;;) {
		ssize_t n = cut	      ? -EPIPE
			    : s->gzip ? emu_gzip_pull(s->gzip, s->feed, to, max, SLICE_MS)
				      : emu_feed_pull(s->feed, to, max, SLICE_MS);

		if (n > 0)
			return n;
		if (n == 0)
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (n != -EAGAIN || emu_client_left(s->req) || emu_server_ending(s->req->server)) {
			emu_feed_leave(s->feed);
			fail_hard(s->req);
			return MHD_CONTENT_READER_END_WITH_ERROR;
		}
	}
}

static void free_stream(void *ctx)
{
	struct stream *s = ctx;

	emu_feed_leave(s->feed);
	emu_feed_put(s->feed);
	emu_gzip_free(s->gzip);
	free(s);
}

static void reply_stream(struct emu_request *req, int status, const char *type, uint64_t size,
			 struct emu_feed *feed, struct emu_gzip *gzip,
			 const struct emu_header_pair *headers)
{
	struct stream *s;

	if (!may_answer(req, status)) {
		emu_feed_leave(feed);
		emu_feed_put(feed);
		emu_gzip_free(gzip);
		return;
	}
	s = abx_xcalloc(1, sizeof(*s));
	s->req = req;
	s->feed = feed;
	s->gzip = gzip;
	queue(req, status, type, headers,
	      MHD_create_response_from_callback(size == UINT64_MAX ? MHD_SIZE_UNKNOWN : size,
						BLOCK_BYTES, give_feed, s, free_stream));
}

void emu_reply_feed(struct emu_request *req, int status, const char *type, uint64_t size,
		    struct emu_feed *feed, const struct emu_header_pair *headers)
{
	reply_stream(req, status, type, size, feed, NULL, headers);
}

void emu_reply_gzip(struct emu_request *req, int status, const char *type, struct emu_feed *feed,
		    const struct emu_header_pair *headers)
{
	reply_stream(req, status, type, UINT64_MAX, feed, emu_gzip_new(), headers);
}

struct upgrade {
	void (*fn)(void *ctx, int fd, const void *early, size_t len, void (*close)(void *handle),
		   void *handle);
	void *ctx;
};

static void close_upgraded(void *handle)
{
	(void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

static void on_upgraded(void *ctx, struct MHD_Connection *conn, void *req, const char *early,
			size_t len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct upgrade *u = ctx;

	(void)conn;
	(void)req;
	u->fn(u->ctx, fd, early, len, close_upgraded, handle);
	free(u);
}

void emu_reply_upgrade(struct emu_request *req, const struct emu_header_pair *headers,
		       void (*fn)(void *ctx, int fd, const void *early, size_t len,
				  void (*close)(void *handle), void *handle),
		       void *ctx)
{
	struct upgrade *u;

	if (!may_answer(req, MHD_HTTP_SWITCHING_PROTOCOLS))
		return;
	u = abx_xcalloc(1, sizeof(*u));
	u->fn = fn;
	u->ctx = ctx;
	queue(req, MHD_HTTP_SWITCHING_PROTOCOLS, NULL, headers,
	      MHD_create_response_for_upgrade(on_upgraded, u));
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *emu_decode(const char *text, size_t len, bool plus)
{
	char *out = abx_xcalloc(len + 1, 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)text[i];

		if (c == '%') {
			int high = i + 2 < len ? digit(text[i + 1]) : -1;
			int low = high >= 0 ? digit(text[i + 2]) : -1;

			c = high >= 0 && low >= 0 ? high * 16 + low : 0;
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		if (c == 0) {
			free(out);
			return NULL;
		}
		out[n++] = (char)c;
	}
	return out;
}

/* Does the path match, segment by segment as it came? */
static bool matches(struct emu_request *req, const char *pattern)
{
	const char *p = req->path;

	while (*pattern == '/' && *p == '/') {
		size_t want = strcspn(++pattern, "/"), have = strcspn(++p, "/");

		if (want == 1 && *pattern == '*') {
			char *arg = have && req->n_args < EMU_ARGS_MAX ? emu_decode(p, have, false)
								       : NULL;

			if (!arg)
				return false;
			req->args[req->n_args++] = arg;
		} else if (want != have || memcmp(pattern, p, want) != 0) {
			return false;
		}
		pattern += want;
		p += have;
	}
	return !*pattern && !*p;
}

static void forget_args(struct emu_request *req)
{
	while (req->n_args)
		free(req->args[--req->n_args]);
}

bool emu_route(struct emu_request *req, const struct emu_route *routes, size_t n, bool *ret_other)
{
	bool other = false;

	for (size_t i = 0; i < n; i++) {
		forget_args(req);
		if (!matches(req, routes[i].path))
			continue;
		if (strcmp(routes[i].method, req->method) != 0) {
			other = true;
			continue;
		}
		req->handle = routes[i].handle;
		if (routes[i].begin)
			routes[i].begin(req);
		return true;
	}
	forget_args(req);
	*ret_other = other;
	return false;
}

void emu_reply_fault(struct emu_request *req)
{
	struct emu_header_pair headers[17] = {{NULL, NULL}};
	const char *body = req->fault.body ? req->fault.body : "";
	size_t n = 0;

	for (const cJSON *h = req->fault.headers ? req->fault.headers->child : NULL; h && n < 16;
	     h = h->next)
		if (cJSON_IsString(h))
			headers[n++] = (struct emu_header_pair){h->string, h->valuestring};
	emu_reply(req, req->fault.status, *body == '{' ? "application/json" : "text/plain", body,
		  strlen(body), headers);
}
