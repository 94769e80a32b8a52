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

#define ABX_CHANGES_MAX 1000000
#define ABX_CHANGES_BYTES_MAX ((size_t)256 << 20)

/* text: all of stdout.  said: stderr, where git names what it could not add.
 * The list is sorted by path, each path once; problems of the paths themselves are set. */
int abx_changes_parse(const struct abx_buf *text, const struct abx_buf *said,
		      struct abx_changes *ret, struct abx_err *err);

struct abx_change *abx_changes_find(const struct abx_changes *c, const char *path);
/* Is there a change without a problem below directory `path`, or of a directory above it, that
 * is (deletion) or is not (!deletion) a deletion? */
bool abx_changes_below(const struct abx_changes *c, const char *path, bool deletion);
bool abx_changes_above(const struct abx_changes *c, const char *path, bool deletion);

/* Set the problem, if there is none yet. */
void abx_change_fail(struct abx_change *c, const char *fmt, ...) ABX_PRINTF(2, 3);

#endif
