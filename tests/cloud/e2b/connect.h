/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/e2b/connect.h: the Connect protocol, for envd.
 *
 * A call is unary (one message each way, errors have an HTTP status) or streaming (envelopes,
 * 200 whatever happens, an envelope of flag 2 at the end), in JSON or protobuf; the content type
 * of the request says which.
 */
#ifndef CLOUD_E2B_CONNECT_H
#define CLOUD_E2B_CONNECT_H

#include "tests/cloud/e2b/e2b.h"
#include "tests/cloud/e2b/proto.h"

#define CONNECT_HEAD_BYTES 5
#define CONNECT_END 2
#define CONNECT_MESSAGE_MAX ((size_t)16 << 20)

struct connect_kind {
	bool stream, proto;
};

/* By its content type, if that is one. */
bool connect_kind_of(const struct emu_request *req, bool stream, struct connect_kind *ret);
/* The same; false, and answered. */
bool connect_kind(struct emu_request *req, bool stream, struct connect_kind *ret);
/* The one message of the request; NULL, and answered. */
cJSON *connect_message(struct emu_request *req, const struct connect_kind *k,
		       const struct proto_message *m);
/* Deletes doc. */
void connect_reply(struct emu_request *req, const struct connect_kind *k,
		   const struct proto_message *m, cJSON *doc);
/* `code` is a word of the protocol. */
void connect_error(struct emu_request *req, const struct connect_kind *k, const char *code,
		   const char *fmt, ...) ABX_PRINTF(4, 5);

/* Envelopes. */
void connect_envelope(const struct connect_kind *k, const struct proto_message *m, const cJSON *doc,
		      struct abx_buf *to);
/* code NULL: all is well. */
void connect_end(const char *code, const char *text, struct abx_buf *to);
const char *connect_stream_type(const struct connect_kind *k);
/* Milliseconds that the client gives it; 0: all the time. */
int64_t connect_timeout_ms(const struct emu_request *req);
/* How often a silent stream says something. */
int64_t connect_keepalive_ms(const struct emu_request *req);

#endif
