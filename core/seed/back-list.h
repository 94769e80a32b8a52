/* SPDX-License-Identifier: MIT */
/*
 * core/seed/back-list.h: a box's own account of what changed, read without trust.
 *
 * What abx_script_changes prints is fed in pieces of any size; anything but the exact format
 * is ABX_EPROTO, and so is more than ABX_CHANGES_MAX changes or ABX_CHANGES_BYTES_MAX bytes.
 */
#ifndef ABX_BACK_LIST_H
#define ABX_BACK_LIST_H

#include "abxsdk/buf.h"
#include "core/seed/back.h"
#include "core/util/sha1.h"

#define ABX_CHANGES_MAX 1000000
#define ABX_CHANGES_BYTES_MAX ((size_t)256 << 20)

/* text: all of stdout.
 * The list is sorted by path, each path once; problems of the paths themselves are set. */
int abx_changes_parse(const struct abx_buf *text, struct abx_changes *ret, struct abx_err *err);

/* For parsers of NUL-terminated strings: the next one, or NULL when none is complete. */
const char *abx_next_string(const char **at, const char *end);
/* ":<mode> <mode> <oid> <oid> ", RECORD_BYTES less the status letter; false: no such record. */
bool abx_parse_raw(const char *record, uint32_t *ret_old_mode, uint32_t *ret_mode,
		   char ret_oid[ABX_SHA1_HEX_BYTES]);
#define ABX_RAW_BYTES 97

struct abx_change *abx_changes_find(const struct abx_changes *c, const char *path);
/* Is there a change without a problem below directory `path`, or of a directory above it, that
 * is (deletion) or is not (!deletion) a deletion? */
bool abx_changes_below(const struct abx_changes *c, const char *path, bool deletion);
bool abx_changes_above(const struct abx_changes *c, const char *path, bool deletion);

/* Set the problem, if there is none yet. */
void abx_change_fail(struct abx_change *c, const char *fmt, ...) ABX_PRINTF(2, 3);

#endif
