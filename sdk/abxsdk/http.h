/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/http.h: HTTP for providers, on libcurl.  Only providers link it (libabxhttp.la).
 *
 *	struct abx_http_options o = {.host = host, .base_url = "http://docker",
 *				     .unix_path = "/var/run/docker.sock"};
 *	struct abx_http_request req = {ABX_HTTP_REQUEST_INIT, .method = "GET",
 *				       .path = "/containers/json?all=1", .idempotent = true};
 *	struct abx_http_reply reply;
 *	int32_t r = abx_http_do(http, call, &req, &reply);
 *
 *	if (r != ABX_OK)
 *		... nothing was answered; reply.text says why, nothing was said to the host
 *	else if (reply.status != 200)
 *		... reply.body is what it said
 *	abx_http_reply_release(&reply);        in any case
 *
 * One abx_http is a session's: any number of threads may use it.  Each request has a handle of
 * its own while it lasts; idle ones keep their connection.  A request ends within a second
 * after the call's cancel_fd became readable, at the call's deadline, and when nothing moved
 * for `quiet_ms`.  Redirects are not followed.  Every exchange is reported to host->trace().
 * An idempotent request without a streamed body is sent again when host->retry() says so.  One
 * that is not, and changes something, has a connection of its own and is never sent twice; with
 * `once` it may use one that was kept, and fails where libcurl would send it again by itself.
 *
 * Bodies are bounded: `max_bytes` of what is collected.  What is streamed, up from a
 * descriptor or down into a sink, takes constant memory.
 */
#ifndef ABXSDK_HTTP_H
#define ABXSDK_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abxsdk/buf.h"
#include "agentbox/cloud_backend.h"

#define ABX_HTTP_BODY_MAX ((size_t)16 << 20) /* when max_bytes is 0 */
#define ABX_HTTP_CONNECT_MS 10000

struct abx_http;

/* Everything is copied but the host. */
struct abx_http_options {
	const struct abx_host *host;
	const char *base_url;  /* scheme, host and port; nothing behind */
	const char *unix_path; /* of a socket to connect to instead; NULL */
	const char *user_agent;
	const char *ca_file, *cert_file, *key_file; /* NULL: the system's, none, none */
	const char *proxy, *no_proxy;
	const char *id_header; /* of replies: names the request; NULL: X-Request-Id */
	bool plain;	       /* http:// may leave this machine: no request has a credential */
};

/* 0, -EINVAL (no address), -EPERM (an http:// to elsewhere without `plain`), -ENOMEM, -ENOSYS
 * (libcurl cannot).  An http:// to this machine never goes through a proxy. */
int abx_http_open(const struct abx_http_options *o, struct abx_http **ret);
/* The same, and what is wrong is said to the host; `service` begins the text. */
int32_t abx_http_open_for(struct abx_call *call, const char *service,
			  const struct abx_http_options *o, struct abx_http **ret);
/* The same place by connections of its own, whose functions of the host are these. */
int abx_http_open_like(const struct abx_http *h, const struct abx_host *host,
		       struct abx_http **ret);
void abx_http_close(struct abx_http *h);

struct abx_http_request {
	const char *method, *path; /* escaped, beginning with a slash */
	const char *content_type;
	const void *body;
	size_t body_len;
	int body_fd;	   /* -1, or what is sent instead: any kind of file */
	int64_t body_size; /* of it; -1 = to its end */
	/* Makes of it what is sent, and is called when it is readable: how many bytes it put at
	 * `to`, 0 at the end, a negative code to give up.  NULL: it is sent as it is. */
	ssize_t (*source)(void *ctx, void *to, size_t room);
	void *source_ctx;
	const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
	const char *want_header;    /* one of the reply's to keep; may be NULL */
	/* Takes the body of a 2xx reply as it comes; non-zero gives up with that code. */
	int32_t (*sink)(void *ctx, const void *data, size_t len);
	void *sink_ctx;
	size_t max_bytes;
	const int *stop_fd; /* readable: it is given up, as if it were cancelled; may be NULL */
	int64_t quiet_ms;   /* 0 = no limit but the call's */
	bool idempotent;
	bool once; /* with a body: see above */
	/* Of 429: with Retry-After nothing was done, so it is sent again even if it is not
	 * idempotent; without, it is a limit that waiting does not raise. */
	bool rate_limited;
};

#define ABX_HTTP_REQUEST_INIT .body_fd = -1, .body_size = -1

struct abx_http_reply {
	int32_t status; /* 0: none came */
	struct abx_buf body;
	char content_type[64], header[256], request_id[80];
	int64_t retry_after_ms; /* -1 = not said */
	int os_errno;		/* of a connection that was not made; 0 */
	bool sent;		/* the other side may have acted on it */
	char text[300];		/* why none came */
};

/* ABX_OK when a reply came, whatever its status; else why not. */
int32_t abx_http_do(struct abx_http *h, struct abx_call *call, const struct abx_http_request *req,
		    struct abx_http_reply *ret);
void abx_http_reply_release(struct abx_http_reply *reply);

/* The code that a status means. */
int32_t abx_http_code(int32_t status);

/* Append with everything but unreserved characters percent-encoded. */
void abx_http_escape(struct abx_buf *b, const char *text);

/*
 * A connection that is taken over: the request asks for an upgrade, and from then on both
 * sides send what they like.  Each stream has a connection of its own.  One thread at a time.
 *
 *	r = abx_http_upgrade(http, call, &req, &reply, &stream);
 *	if (r == ABX_OK && stream)
 *		... 101, or 200 without an upgrade
 *
 * poll() abx_http_stream_fd() for reading only when abx_http_stream_recv() returned -EAGAIN.
 */
struct abx_http_stream;

/* *ret is NULL when the reply is any other than these two; its body is in `reply` then. */
int32_t abx_http_upgrade(struct abx_http *h, struct abx_call *call,
			 const struct abx_http_request *req, struct abx_http_reply *reply,
			 struct abx_http_stream **ret);
int abx_http_stream_fd(const struct abx_http_stream *s);
/* > 0, 0 at the end, -EAGAIN, another -errno. */
ssize_t abx_http_stream_recv(struct abx_http_stream *s, void *data, size_t size);
ssize_t abx_http_stream_send(struct abx_http_stream *s, const void *data, size_t len);
/* Nothing more will be sent; the other side still may. */
void abx_http_stream_end(struct abx_http_stream *s);
void abx_http_stream_close(struct abx_http_stream *s);

#endif
