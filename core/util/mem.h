/* SPDX-License-Identifier: MIT */
/*
 * core/util/mem.h: memory for the program's own control structures.
 *
 * These end the program when there is no memory: nothing sensible can follow, and whatever
 * exists outside is in the journal.  Sizes that come from a file, the network or a box use
 * abx_buf (abxsdk/buf.h) instead.
 */
#ifndef ABX_MEM_H
#define ABX_MEM_H

#include <stdarg.h>
#include <stddef.h>

#include "abxsdk/base.h"

void *abx_xcalloc(size_t n, size_t size) __attribute__((returns_nonnull));
void *abx_xreallocarray(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *abx_xstrdup(const char *s) __attribute__((returns_nonnull));
char *abx_xstrndup(const char *s, size_t n) __attribute__((returns_nonnull));
char *abx_xasprintf(const char *fmt, ...) ABX_PRINTF(1, 2) __attribute__((returns_nonnull));
/* NULL stays NULL. */
char *abx_xstrdup_null(const char *s);
/* free(*at), then *at = a copy of s. */
void abx_xreplace(char **at, const char *s);

/* A list of strings that owns them; `items` is always NULL-terminated once non-NULL. */
struct abx_strv {
	char **items;
	size_t len, cap;
};

void abx_strv_add(struct abx_strv *v, const char *s);
void abx_strv_take(struct abx_strv *v, char *s);
void abx_strv_release(struct abx_strv *v);

#endif
