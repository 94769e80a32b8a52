/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/server.h: the HTTP server that emulated clouds share, on libmicrohttpd.
 *
 *	static const struct emu_service service = {"e2b", open, is_inner, begin, close, free};
 *	r = emu_server_start(&service, &options, &server, err);
 *
 * Each connection has a thread, so a handler may block.  service->begin() is called when the
 * head of a request is there: it sets `handle`, and `sink` for a body that is not to be collected.
 * handle() is called when the body is whole and answers once, with an emu_reply function.
 *
 * Under /_emulator the server answers by itself: GET and DELETE log, POST limits, POST and DELETE
 * faults.  A
 * fault is {"method", "path" (a pattern of fnmatch), "kind", "skip", "count", "status", "body",
 * "headers", "delay_ms"}; kinds are in faults.h.
 */
#ifndef CLOUD_SERVER_H
#define CLOUD_SERVER_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "abxsdk/buf.h"
#include "core/util/err.h"
#include "tests/cloud/faults.h"
#include "tests/cloud/feed.h"

#define EMU_BODY_MAX ((size_t)16 << 20)
#define EMU_ARGS_MAX 6

struct MHD_Connection;
struct emu_server;
struct emu_engine;

struct emu_request {
	struct emu_server *server;
	struct MHD_Connection *conn;
	void *service;		   /* what open() made */
	char *method, *uri, *path; /* path: as it came, without the query */
	char *args[EMU_ARGS_MAX];  /* what stood for a * of the route, decoded */
	size_t n_args;
	struct abx_buf body; /* what it holds, if it came in gzip */

	void (*handle)(struct emu_request *req);
	/* Takes the body instead; 0, or it is not called again. */
	int (*sink)(struct emu_request *req, const void *data, size_t len);
	void *data; /* the handler's */
	void (*data_free)(void *data);
	void *subject; /* what it is about, of the service's */
	void (*subject_free)(void *subject);

	struct emu_fault fault; /* kind EMU_FAULT_NONE: none */
	size_t log_at;
	struct emu_gunzip *gunzip; /* of the body; a handler that wants it as it is frees it */
	bool inner;		   /* asked of a sandbox, not of the service */
	int status;		   /* of the answer; 0: none */
	bool begun, answered, refused, cut;
	int result; /* of libmicrohttpd's */
};

struct emu_service {
	const char *name;
	int (*open)(struct emu_server *server, struct emu_engine *engine, void **ret,
		    struct abx_err *err);
	/* Whether a sandbox is asked, and not the service; of one that is not begun, too. */
	bool (*is_inner)(const struct emu_request *req);
	void (*begin)(struct emu_request *req);
	void (*close)(void *service); /* what is under way ends, nothing more begins */
	void (*free)(void *service);
};

/* Of how much the service takes; 0: everything.  POST /_emulator/limits sets them. */
struct emu_limits {
	int64_t requests_per_second, sandboxes;
};

struct emu_options {
	const char *address;
	uint16_t port; /* 0: any */
	struct emu_engine *engine;
	const char *record; /* file for a line of JSON about each request; NULL */
};

int emu_server_start(const struct emu_service *service, const struct emu_options *options,
		     struct emu_server **ret, struct abx_err *err);
uint16_t emu_server_port(const struct emu_server *s);
void emu_server_stop(struct emu_server *s);
struct emu_limits emu_server_limits(struct emu_server *s);
/* A request more in this second; false: it is one too many. */
bool emu_server_may_ask(struct emu_server *s);
/* It is about to stop: who waits gives up. */
bool emu_server_ending(const struct emu_server *s);

/* NULL when it is not there. */
const char *emu_header(const struct emu_request *req, const char *name);
const char *emu_query(const struct emu_request *req, const char *key);
/* The body as a JSON object; NULL: it is none.  An empty one is {}. */
cJSON *emu_body_json(const struct emu_request *req);

struct emu_header_pair {
	const char *name, *value;
};
/* `headers` end with a name of NULL; may be NULL.  Deletes doc. */
void emu_reply_json(struct emu_request *req, int status, cJSON *doc,
		    const struct emu_header_pair *headers);
void emu_reply(struct emu_request *req, int status, const char *type, const void *data, size_t len,
	       const struct emu_header_pair *headers);
/* The body is what comes through the feed, of `size` bytes or UINT64_MAX. */
void emu_reply_feed(struct emu_request *req, int status, const char *type, uint64_t size,
		    struct emu_feed *feed, const struct emu_header_pair *headers);
/* The same in gzip. */
void emu_reply_gzip(struct emu_request *req, int status, const char *type, struct emu_feed *feed,
		    const struct emu_header_pair *headers);
/* The connection becomes something else: 101, and fn has its socket, and what came early, until it
 * calls close(handle), which any thread may. */
void emu_reply_upgrade(struct emu_request *req, const struct emu_header_pair *headers,
		       void (*fn)(void *ctx, int fd, const void *early, size_t len,
				  void (*close)(void *handle), void *handle),
		       void *ctx);
/* No answer: the connection is gone. */
void emu_reply_reset(struct emu_request *req);
/* What was ordered for it: status, headers, body. */
void emu_reply_fault(struct emu_request *req);

/* Everything but unreserved characters as it was before %XX; NULL: it cannot be text. */
char *emu_decode(const char *text, size_t len, bool plus);

struct emu_route {
	const char *method, *path; /* a segment "*" stands for any */
	void (*handle)(struct emu_request *req);
	void (*begin)(struct emu_request *req); /* may be NULL */
};
/* Sets req->handle and args; false: no route.  *ret_other: another method has this path. */
bool emu_route(struct emu_request *req, const struct emu_route *routes, size_t n, bool *ret_other);

#endif
