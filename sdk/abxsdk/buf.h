/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/buf.h: a growing byte buffer with a mandatory upper bound.
 *
 *	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);
 *
 *	abx_buf_addf(&b, "%s/%s", dir, name);
 *	if (b.failed)
 *		return -ENOMEM;          one check after any number of adds
 *
 * `data` is NUL-terminated behind `len` as soon as something was added, and NULL before.
 * An add that would pass `max` bytes, or that finds no memory, sets `failed` and empties
 * the buffer; later adds do nothing.  Not thread-safe.
 */
#ifndef ABXSDK_BUF_H
#define ABXSDK_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "abxsdk/base.h"

struct abx_buf {
	char *data;
	size_t len, cap, max;
	bool failed;
};

#define ABX_BUF_INIT(max_bytes)                \
	{                                      \
		NULL, 0, 0, (max_bytes), false \
	}

void abx_buf_add(struct abx_buf *b, const void *data, size_t len);
void abx_buf_adds(struct abx_buf *b, const char *s);
void abx_buf_addc(struct abx_buf *b, char c);
void abx_buf_addf(struct abx_buf *b, const char *fmt, ...) ABX_PRINTF(2, 3);
void abx_buf_addv(struct abx_buf *b, const char *fmt, va_list ap) ABX_PRINTF(2, 0);

/* Make room for `len` more bytes and return where they go, or NULL.  After writing n <= len
 * of them, add n to b->len and keep the terminator: abx_buf_commit(b, n). */
char *abx_buf_reserve(struct abx_buf *b, size_t len);
void abx_buf_commit(struct abx_buf *b, size_t n);

/* "" instead of NULL for an empty buffer. */
const char *abx_buf_str(const struct abx_buf *b);
/* Hand the memory over (free() it); NULL when failed.  The buffer is empty afterwards. */
char *abx_buf_steal(struct abx_buf *b);
void abx_buf_reset(struct abx_buf *b);
void abx_buf_release(struct abx_buf *b);

/* Read until end of file.  0, -EFBIG past the bound, -errno. */
int abx_buf_read_fd(struct abx_buf *b, int fd);

#endif
