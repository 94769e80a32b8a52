/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/text.h: what bytes are characters, which may be in a name, and words for what is wrong.
 *
 * Allocates nothing.
 */
#ifndef ABXSDK_TEXT_H
#define ABXSDK_TEXT_H

#include <stddef.h>

/* How many bytes the UTF-8 character at the NUL-terminated `s` has; 0: it is none. */
size_t abx_utf8_len(const unsigned char *s);

/* Of `name`, which may be NULL, what host names and names of containers consist of; "box" where
 * nothing of it is left.  A host name has 63 bytes at most: `size` of 64. */
void abx_plain_name(const char *name, char *out, size_t size);

/* What whoever gets this errno (positive) can do, wherever it comes from; NULL: it depends. */
const char *abx_remedy_of_errno(int errnum);

#endif
