/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/e2b/proto.h: messages of envd, as JSON in memory and as JSON or protobuf outside.
 *
 * In memory a message is what proto3 JSON says: lowerCamelCase, bytes in base64, enums by name,
 * 64-bit numbers as text.  Absent members have their zero value.
 */
#ifndef CLOUD_E2B_PROTO_H
#define CLOUD_E2B_PROTO_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "abxsdk/buf.h"

enum proto_kind {
	PROTO_STRING,
	PROTO_BYTES,
	PROTO_BOOL,
	PROTO_UINT32,
	PROTO_SINT32,
	PROTO_INT64,
	PROTO_ENUM,
	PROTO_MESSAGE,
	PROTO_MAP, /* of text to text */
	PROTO_TIME,
};

struct proto_message;

struct proto_field {
	uint32_t number;
	const char *name;
	enum proto_kind kind;
	bool repeated;
	const struct proto_message *message;
	const char *const *names; /* of an enum: "NAME", by value; ends with NULL, may have "" */
};

struct proto_message {
	const char *name;
	struct proto_field fields[12]; /* ends with number 0 */
};

/* 0, or -EPROTO. */
int proto_decode(const struct proto_message *m, const void *data, size_t len, cJSON **ret);
void proto_encode(const struct proto_message *m, const cJSON *doc, struct abx_buf *to);

/* messages.c */
extern const struct proto_message proto_empty, proto_list_processes, proto_start, proto_event,
	proto_connect, proto_send_input, proto_stream_input, proto_send_signal, proto_close_stdin,
	proto_update, proto_stat, proto_entry_reply, proto_move, proto_list_dir, proto_entries,
	proto_watch, proto_watch_event, proto_watcher_id, proto_watcher_events;

/* Base64; text is NUL-terminated.  -EPROTO when it is none. */
char *e2b_base64(const void *data, size_t len);
int e2b_unbase64(const char *text, struct abx_buf *to);

#endif
