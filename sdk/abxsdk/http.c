/* SPDX-License-Identifier: MIT */
/* HTTP for providers: requests and their replies. */
#include "abxsdk/http.h"

#include <poll.h>
#include <string.h>
#include <strings.h>

#include "abxsdk/http-private.h"
#include "abxsdk/number.h"

struct exchange {
	struct abx_http *h;
	const struct abx_http_request *req;
	struct abx_http_reply *reply;
	CURL *easy;
	int64_t moved_ms, left; /* of the body; -1 = to its end */
	bool paused;
	int32_t failed; /* by the sink, or for its size */
};

int32_t abx_http_code(int32_t status)
{
	switch (status) {
	case 400:
	case 405:
	case 422:
		return ABX_EINVAL;
	case 401:
		return ABX_EAUTH;
	case 402:
		return ABX_EQUOTA;
	case 403:
		return ABX_EPERM;
	case 404:
	case 410:
		return ABX_ENOTFOUND;
	case 408:
	case 504:
		return ABX_ETIMEDOUT;
	case 409:
		return ABX_ESTATE;
	case 429:
		return ABX_ERATE;
	case 501:
		return ABX_ENOTSUP;
	default:
		break;
	}
	if (status >= 200 && status < 300)
		return ABX_OK;
	return status >= 500 ? ABX_EREMOTE : ABX_EPROTO;
}

void abx_http_escape(struct abx_buf *b, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";

	for (; *text; text++)
		if (strchr(plain, *text))
			abx_buf_addc(b, *text);
		else
			abx_buf_addf(b, "%%%02X", (unsigned char)*text);
}

/* Is the line of this header?  Its value, without blanks around it. */
static bool value_of(const char *line, size_t len, const char *name, char *out, size_t size)
{
	size_t n = strlen(name);

	if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
		return false;
	line += n + 1;
	len -= n + 1;
	while (len && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	while (len && strchr(" \t\r\n", line[len - 1]))
		len--;
	(void)snprintf(out, size, "%.*s", (int)len, line);
	return true;
}

void abx_http_header(const struct abx_http *h, const struct abx_http_request *req, const char *line,
		     size_t len, struct abx_http_reply *reply)
{
	char text[32];
	uint64_t seconds;

	(void)value_of(line, len, "Content-Type", reply->content_type, sizeof(reply->content_type));
	(void)value_of(line, len, h->id_header, reply->request_id, sizeof(reply->request_id));
	if (req->want_header)
		(void)value_of(line, len, req->want_header, reply->header, sizeof(reply->header));
	/* The date that it may be instead is taken as not said. */
	if (value_of(line, len, "Retry-After", text, sizeof(text)) &&
	    abx_parse_u64(text, 86400, &seconds))
		reply->retry_after_ms = (int64_t)seconds * 1000;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;

	abx_http_header(x->h, x->req, data, size * n, x->reply);
	x->moved_ms = x->h->host->now_ms(x->h->host->ctx);
	return size * n;
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;
	const size_t len = size * n;
	long status = 0;

	(void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	x->moved_ms = x->h->host->now_ms(x->h->host->ctx);
	if (x->req->sink && status >= 200 && status < 300) {
		x->failed = x->req->sink(x->req->sink_ctx, data, len);
		/* The other side was not silent while the sink took its time. */
		x->moved_ms = x->h->host->now_ms(x->h->host->ctx);
	} else {
		abx_buf_add(&x->reply->body, data, len);
		if (x->reply->body.failed)
			x->failed = ABX_EPROTO;
	}
	return x->failed ? 0 : len;
}

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

/* From memory, in a way that cannot begin anew. */
static size_t on_read_once(char *to, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;
	const size_t room = size * n, left = (size_t)x->left;
	const size_t len = left < room ? left : room;

	memcpy(to, (const char *)x->req->body + (x->req->body_len - left), len);
	x->left -= (int64_t)len;
	return len;
}

static ssize_t read_body(const struct abx_http_request *req, char *to, size_t room)
{
	ssize_t got;

	if (req->source)
		return req->source(req->source_ctx, to, room);
	do {
		got = read(req->body_fd, to, room);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* Never waits for the descriptor: a pipe may stay silent for ever. */
static size_t on_read(char *to, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;
	size_t room = size * n;
	ssize_t got;

	if (x->left >= 0 && (uint64_t)x->left < room)
		room = (size_t)x->left;
	if (!room)
		return 0;
	if (!is_readable(x->req->body_fd)) {
		x->paused = true;
		return CURL_READFUNC_PAUSE;
	}
	got = read_body(x->req, to, room);
	if (got < 0 || (got == 0 && x->left > 0)) {
		x->failed = got == 0 ? ABX_EINVAL : x->req->source ? (int32_t)got : ABX_EIO;
		(void)snprintf(x->reply->text, sizeof(x->reply->text), "%s",
			       got == 0		? "the stream to send ended early"
			       : x->req->source ? "given up"
						: strerror(errno));
		return CURL_READFUNC_ABORT;
	}
	if (x->left > 0)
		x->left -= got;
	x->moved_ms = x->h->host->now_ms(x->h->host->ctx);
	return (size_t)got;
}

/* libcurl sends again what a connection that it kept has swallowed. */
static void set_own(struct exchange *x)
{
	const struct abx_http_request *req = x->req;
	const long own = !req->idempotent && !req->once && strcmp(req->method, "GET") != 0 &&
			 strcmp(req->method, "HEAD") != 0;

	(void)curl_easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, own);
	(void)curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, own);
}

/* The list of headers, or NULL: out of memory. */
static struct curl_slist *make_headers(const struct abx_http_request *req)
{
	/* Waiting for a "100 Continue" costs a second where it never comes. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:"), *more = list;
	char line[160];

	if (more) {
		/* Without a value it is left out. */
		(void)snprintf(line, sizeof(line), "Content-Type:%s%s",
			       req->content_type ? " " : "",
			       req->content_type ? req->content_type : "");
		more = curl_slist_append(list, line);
	}
	for (size_t i = 0; more && req->headers && req->headers[i]; i++)
		more = curl_slist_append(list, req->headers[i]);
	if (!more)
		curl_slist_free_all(list);
	return more ? list : NULL;
}

static void set_body(struct exchange *x)
{
	const struct abx_http_request *req = x->req;
	CURL *e = x->easy;

	if (req->body_fd >= 0) {
		x->left = req->body_size;
		(void)curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
		(void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
		(void)curl_easy_setopt(e, CURLOPT_READDATA, x);
		(void)curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)req->body_size);
		(void)curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
	} else if (req->once && req->body_len) {
		x->left = (int64_t)req->body_len;
		(void)curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
		(void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read_once);
		(void)curl_easy_setopt(e, CURLOPT_READDATA, x);
		(void)curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)req->body_len);
	} else if (req->body || strcmp(req->method, "POST") == 0 ||
		   strcmp(req->method, "PUT") == 0) {
		(void)curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body_len);
		(void)curl_easy_setopt(e, CURLOPT_POSTFIELDS, req->body ? req->body : "");
	}
	if (strcmp(req->method, "HEAD") == 0)
		(void)curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
	(void)curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, req->method);
}

static int32_t finish(struct exchange *x, const struct abx_http_handle *handle, int32_t r,
		      CURLcode result)
{
	struct abx_http_reply *reply = x->reply;
	long status = 0;

	(void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	if (r != ABX_OK) {
		reply->sent = true;
		(void)snprintf(reply->text, sizeof(reply->text), "%s",
			       r == ABX_ECANCELED ? "cancelled" : "no answer in time");
	} else if (x->failed) {
		reply->sent = true;
		r = x->failed;
		if (!*reply->text)
			(void)snprintf(reply->text, sizeof(reply->text), "%s",
				       r == ABX_EPROTO ? "the answer is too long" : "given up");
	} else if (result != CURLE_OK) {
		/* Who refuses an upload may close the connection while it goes on. */
		if (status >= 400 && (result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR))
			reply->status = (int32_t)status;
		else
			r = abx_http_why(x->h, handle, result, reply);
	} else {
		reply->status = (int32_t)status;
	}
	return r;
}

static int32_t once(struct abx_http *h, struct abx_call *call, const struct abx_http_request *req,
		    struct abx_http_reply *reply)
{
	struct abx_http_handle *handle = abx_http_handle_take(h, /* fresh= */ false);
	struct curl_slist *headers = make_headers(req);
	abx_auto(abx_buf) struct abx_buf url = ABX_BUF_INIT(1 << 20);
	struct exchange x = {.h = h, .req = req, .reply = reply};
	struct abx_http_wait w = {.h = h,
				  .call = call,
				  .fd = req->body_fd,
				  .paused = &x.paused,
				  .stop_fd = req->stop_fd ? *req->stop_fd : -1,
				  .quiet_ms = req->quiet_ms,
				  .moved_ms = &x.moved_ms};
	int64_t begun = h->host->now_ms(h->host->ctx);
	int32_t r = ABX_ENOMEM;

	abx_buf_addf(&url, "%s%s", h->base_url, req->path);
	if (!handle || !headers || url.failed) {
		(void)snprintf(reply->text, sizeof(reply->text), "out of memory");
	} else {
		x.easy = handle->easy;
		x.moved_ms = begun;
		(void)curl_easy_setopt(x.easy, CURLOPT_URL, url.data);
		(void)curl_easy_setopt(x.easy, CURLOPT_HTTPHEADER, headers);
		(void)curl_easy_setopt(x.easy, CURLOPT_HEADERFUNCTION, on_header);
		(void)curl_easy_setopt(x.easy, CURLOPT_HEADERDATA, &x);
		(void)curl_easy_setopt(x.easy, CURLOPT_WRITEFUNCTION, on_data);
		(void)curl_easy_setopt(x.easy, CURLOPT_WRITEDATA, &x);
		set_own(&x);
		set_body(&x);
		r = abx_http_drive(handle, &w);
		r = finish(&x, handle, r, w.result);
		abx_http_trace(h, call, req, reply->status, begun);
	}
	if (handle && r == ABX_OK)
		abx_http_handle_put(h, handle);
	else
		abx_http_handle_free(handle);
	curl_slist_free_all(headers);
	return r;
}

/* Worth another try, when the host agrees? */
static int32_t passing(const struct abx_http_request *req, int32_t r,
		       const struct abx_http_reply *reply)
{
	if (r == ABX_ENETWORK)
		return r;
	if (r != ABX_OK)
		return ABX_OK;
	if (reply->status == 429 && req->rate_limited && reply->retry_after_ms < 0)
		return ABX_OK;
	return reply->status == 429			      ? ABX_ERATE
	       : reply->status >= 502 && reply->status <= 504 ? ABX_EREMOTE
							      : ABX_OK;
}

static void reply_init(struct abx_http_reply *reply, const struct abx_http_request *req)
{
	*reply = (struct abx_http_reply){.retry_after_ms = -1};
	reply->body.max = req->max_bytes ? req->max_bytes : ABX_HTTP_BODY_MAX;
}

int32_t abx_http_do(struct abx_http *h, struct abx_call *call, const struct abx_http_request *req,
		    struct abx_http_reply *ret)
{
	for (uint32_t attempt = 1;; attempt++) {
		struct abx_failure f = {ABX_INIT(struct abx_failure)};
		int32_t r;

		reply_init(ret, req);
		r = once(h, call, req, ret);
		f.code = passing(req, r, ret);
		if (f.code == ABX_OK || req->body_fd >= 0 || req->sink ||
		    !(req->idempotent || (req->rate_limited && f.code == ABX_ERATE)))
			return r;
		/* Nobody listens: the provider knows better what that means. */
		if (ret->os_errno && attempt == 1)
			return r;
		f.http_status = ret->status;
		f.retry_after_ms = ret->retry_after_ms;
		f.text = *ret->text ? ret->text : "the service failed";
		if (!h->host->retry(call, &f, attempt))
			return r;
		abx_http_reply_release(ret);
	}
}

void abx_http_reply_release(struct abx_http_reply *reply)
{
	abx_buf_release(&reply->body);
}
