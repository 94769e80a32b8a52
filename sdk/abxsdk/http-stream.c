/* SPDX-License-Identifier: MIT */
/* HTTP for providers: connections that are taken over. */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "abxsdk/http-private.h"
#include "abxsdk/number.h"

#define HEAD_MAX_BYTES ((size_t)64 << 10)
#define ERROR_MAX_BYTES ((size_t)64 << 10)
#define READ_BYTES ((size_t)4096)

struct abx_http_stream {
	struct abx_http_handle *handle;
	int fd;
	struct abx_buf early; /* came together with the head */
	size_t early_at;
};

int abx_http_stream_fd(const struct abx_http_stream *s)
{
	return s->fd;
}

ssize_t abx_http_stream_recv(struct abx_http_stream *s, void *data, size_t size)
{
	size_t n = s->early.len - s->early_at;
	CURLcode c;

	if (n) {
		n = n < size ? n : size;
		memcpy(data, s->early.data + s->early_at, n);
		s->early_at += n;
		return (ssize_t)n;
	}
	c = curl_easy_recv(s->handle->easy, data, size, &n);
	if (c == CURLE_AGAIN)
		return -EAGAIN;
	return c == CURLE_OK ? (ssize_t)n : -ECONNRESET;
}

ssize_t abx_http_stream_send(struct abx_http_stream *s, const void *data, size_t len)
{
	size_t n = 0;
	CURLcode c = curl_easy_send(s->handle->easy, data, len, &n);

	if (c == CURLE_AGAIN)
		return -EAGAIN;
	return c == CURLE_OK ? (ssize_t)n : -EPIPE;
}

void abx_http_stream_end(struct abx_http_stream *s)
{
	(void)shutdown(s->fd, SHUT_WR);
}

void abx_http_stream_close(struct abx_http_stream *s)
{
	if (!s)
		return;
	abx_http_handle_free(s->handle);
	abx_buf_release(&s->early);
	free(s);
}

/* quiet_ms: at most so long; 0 = as long as the call may last. */
static int32_t await(struct abx_http *h, struct abx_call *call, int fd, short events,
		     int64_t quiet_ms)
{
	const int64_t end = quiet_ms ? h->host->now_ms(h->host->ctx) + quiet_ms : INT64_MAX;

	for (;;) {
		struct pollfd p[2] = {{.fd = fd, .events = events},
				      {.fd = h->host->cancel_fd(call), .events = POLLIN}};
		int64_t left = h->host->time_left_ms(call);
		const int64_t quiet = end - h->host->now_ms(h->host->ctx);

		left = quiet < left ? quiet : left;
		if (left <= 0)
			return ABX_ETIMEDOUT;
		if (poll(p, 2, left > 60000 ? 60000 : (int)left) < 0 && errno != EINTR)
			return ABX_EIO;
		if (p[1].revents)
			return ABX_ECANCELED;
		if (p[0].revents)
			return ABX_OK;
	}
}

static int32_t send_head(struct abx_http *h, struct abx_call *call,
			 const struct abx_http_request *req, struct abx_http_stream *s)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(8 << 20);
	size_t at = 0;

	abx_buf_addf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", req->method, req->path, h->authority);
	if (h->user_agent)
		abx_buf_addf(&b, "User-Agent: %s\r\n", h->user_agent);
	abx_buf_adds(&b, "Connection: Upgrade\r\nUpgrade: tcp\r\n");
	for (size_t i = 0; req->headers && req->headers[i]; i++)
		abx_buf_addf(&b, "%s\r\n", req->headers[i]);
	if (req->content_type)
		abx_buf_addf(&b, "Content-Type: %s\r\n", req->content_type);
	abx_buf_addf(&b, "Content-Length: %zu\r\n\r\n", req->body_len);
	abx_buf_add(&b, req->body ? req->body : "", req->body_len);
	if (b.failed)
		return ABX_ENOMEM;
	while (at < b.len) {
		ssize_t n = abx_http_stream_send(s, b.data + at, b.len - at);
		int32_t r = ABX_OK;

		if (n == -EAGAIN)
			r = await(h, call, s->fd, POLLOUT, req->quiet_ms);
		else if (n < 0)
			r = ABX_ENETWORK;
		else
			at += (size_t)n;
		if (r != ABX_OK)
			return r;
	}
	return ABX_OK;
}

/* 1 more came, 0 the end, or a code. */
static int32_t read_more(struct abx_http *h, struct abx_call *call,
			 const struct abx_http_request *req, struct abx_http_stream *s,
			 struct abx_buf *b)
{
	for (;;) {
		char *to = abx_buf_reserve(b, READ_BYTES);
		ssize_t n;
		int32_t r;

		if (!to)
			return ABX_EPROTO;
		n = abx_http_stream_recv(s, to, READ_BYTES);
		if (n >= 0) {
			abx_buf_commit(b, (size_t)n);
			return n > 0;
		}
		if (n != -EAGAIN)
			return ABX_ENETWORK;
		r = await(h, call, s->fd, POLLIN, req->quiet_ms);
		if (r != ABX_OK)
			return r;
	}
}

/* "HTTP/1.1 101 ..." */
static bool take_status(const char *line, int32_t *ret)
{
	const char *at = line;
	uint64_t status;

	if (strncmp(at, "HTTP/1.", 7) != 0 || !at[7] || at[8] != ' ')
		return false;
	at += 9;
	if (!abx_parse_digits(&at, 999, &status))
		return false;
	*ret = (int32_t)status;
	return true;
}

/* Until the empty line; what came behind it is `early`. */
static int32_t read_head(struct abx_http *h, struct abx_call *call,
			 const struct abx_http_request *req, struct abx_http_stream *s,
			 struct abx_http_reply *reply, int64_t *ret_length)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(HEAD_MAX_BYTES);
	struct abx_http_request length = {.want_header = "Content-Length"};
	struct abx_http_reply lengths = {.retry_after_ms = -1};
	char *end = NULL;
	uint64_t n;
	int32_t r;

	while (!end) {
		r = read_more(h, call, req, s, &b);
		if (r <= 0)
			return r ? r : ABX_ENETWORK;
		end = memmem(b.data, b.len, "\r\n\r\n", 4);
	}
	if (!take_status(b.data, &reply->status))
		return ABX_EPROTO;
	for (char *line = b.data; line < end + 2;) {
		char *next = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);

		abx_http_header(h, req, line, (size_t)(next - line), reply);
		abx_http_header(h, &length, line, (size_t)(next - line), &lengths);
		line = next + 2;
	}
	*ret_length = abx_parse_u64(lengths.header, ERROR_MAX_BYTES, &n) ? (int64_t)n : -1;
	end += 4;
	abx_buf_add(&s->early, end, b.len - (size_t)(end - b.data));
	return s->early.failed ? ABX_ENOMEM : ABX_OK;
}

/* What is no stream says why, up to its length or to the end; more than enough is left there. */
static int32_t read_error(struct abx_http *h, struct abx_call *call,
			  const struct abx_http_request *req, struct abx_http_stream *s,
			  int64_t length, struct abx_http_reply *reply)
{
	int32_t r = 1;

	while (r > 0 && (length < 0 || reply->body.len < (size_t)length) &&
	       reply->body.len + READ_BYTES <= reply->body.max)
		r = read_more(h, call, req, s, &reply->body);
	return r < 0 ? r : ABX_OK;
}

static int32_t connect_it(struct abx_http *h, struct abx_call *call, struct abx_http_stream *s,
			  struct abx_http_reply *reply)
{
	struct abx_http_wait w = {.h = h, .call = call, .fd = -1, .stop_fd = -1};
	curl_socket_t fd = CURL_SOCKET_BAD;
	int32_t r;

	(void)curl_easy_setopt(s->handle->easy, CURLOPT_URL, h->base_url);
	(void)curl_easy_setopt(s->handle->easy, CURLOPT_CONNECT_ONLY, 1L);
	r = abx_http_drive(s->handle, &w);
	if (r == ABX_OK && w.result != CURLE_OK)
		return abx_http_why(h, s->handle, w.result, reply);
	if (r == ABX_OK &&
	    curl_easy_getinfo(s->handle->easy, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK)
		s->fd = fd;
	return r == ABX_OK && fd == CURL_SOCKET_BAD ? ABX_ENETWORK : r;
}

static struct abx_http_stream *stream_new(struct abx_http *h)
{
	struct abx_http_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = -1;
	s->early.max = HEAD_MAX_BYTES;
	s->handle = abx_http_handle_take(h, /* fresh= */ true);
	if (!s->handle) {
		free(s);
		return NULL;
	}
	return s;
}

static const char *text_of(int32_t r)
{
	switch (r) {
	case ABX_ECANCELED:
		return "cancelled";
	case ABX_ETIMEDOUT:
		return "no answer in time";
	case ABX_ENOMEM:
		return "out of memory";
	case ABX_EPROTO:
		return "the answer is not HTTP";
	default:
		return "the connection was closed";
	}
}

int32_t abx_http_upgrade(struct abx_http *h, struct abx_call *call,
			 const struct abx_http_request *req, struct abx_http_reply *reply,
			 struct abx_http_stream **ret)
{
	struct abx_http_stream *s = stream_new(h);
	int64_t begun = h->host->now_ms(h->host->ctx), length = -1;
	int32_t r = s ? ABX_OK : ABX_ENOMEM;

	*reply = (struct abx_http_reply){.retry_after_ms = -1, .body.max = ERROR_MAX_BYTES};
	if (r == ABX_OK)
		r = connect_it(h, call, s, reply);
	if (r == ABX_OK) {
		reply->sent = true;
		r = send_head(h, call, req, s);
	}
	if (r == ABX_OK)
		r = read_head(h, call, req, s, reply, &length);
	if (r == ABX_OK && reply->status != 101 && reply->status != 200)
		r = read_error(h, call, req, s, length, reply);
	if (r != ABX_OK && !*reply->text)
		(void)snprintf(reply->text, sizeof(reply->text), "%s", text_of(r));
	abx_http_trace(h, call, req, reply->status, begun);
	if (r == ABX_OK && (reply->status == 101 || reply->status == 200)) {
		*ret = s;
	} else {
		abx_http_stream_close(s);
		if (r == ABX_OK)
			*ret = NULL;
	}
	return r;
}
