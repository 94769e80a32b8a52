/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/json.h: typed, bounded reading of JSON objects, and the one way to write them.
 *
 *	cJSON *doc;
 *	const char *image;
 *	int64_t pid;
 *	int r = abx_json_parse(text, len, 1 << 20, &doc);
 *
 *	if (r == 0)
 *		r = abx_json_i64(doc, "pid", &pid);
 *	if (r == 0)
 *		r = abx_json_str(doc, "image", 4096, &image);   NULL when absent
 *	cJSON_Delete(doc);
 *
 * Accessors return 0, -ENOENT for an absent or null member (abx_json_i64 only), and
 * -EPROTO for a member of the wrong type, a number that is no exact integer, or a string
 * longer than its bound.  Unknown members are ignored.  Strings belong to the document.
 */
#ifndef ABXSDK_JSON_H
#define ABXSDK_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abxsdk/buf.h"

/* One object, nothing behind it but white space.  -EFBIG past `max`, -EPROTO, -ENOMEM. */
int abx_json_parse(const char *text, size_t len, size_t max, cJSON **ret_doc);

/* Absent or null: 0 and *ret = NULL. */
int abx_json_str(const cJSON *obj, const char *key, size_t max_len, const char **ret);
/* Absent: -ENOENT.  Integers beyond 2^53 do not survive JSON: -EPROTO. */
int abx_json_i64(const cJSON *obj, const char *key, int64_t *ret);
/* Absent: 0 and *ret = dflt. */
int abx_json_bool(const cJSON *obj, const char *key, bool dflt, bool *ret);
/* Absent: 0 and *ret = NULL. */
int abx_json_obj(const cJSON *obj, const char *key, const cJSON **ret);

/* What is missing or nonsense (or longer than 64 KiB) is "" or NULL; `obj` may be NULL. */
const char *abx_json_get_text(const cJSON *obj, const char *key);
const cJSON *abx_json_get_part(const cJSON *obj, const char *key);

/* Visit each member of an object whose values are all strings; `obj` may be NULL. */
int abx_json_each_str(const cJSON *obj, int (*visit)(void *ctx, const char *key, const char *value),
		      void *ctx);

/* Add to an object; 0 or -ENOMEM.  A NULL string adds nothing. */
int abx_json_add_str(cJSON *obj, const char *key, const char *value);
int abx_json_add_i64(cJSON *obj, const char *key, int64_t value);
int abx_json_add_bool(cJSON *obj, const char *key, bool value);

/* Append the document as indented text and a newline. */
int abx_json_print(const cJSON *doc, struct abx_buf *b);

#endif
