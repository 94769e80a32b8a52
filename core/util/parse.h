/* SPDX-License-Identifier: MIT */
/*
 * core/util/parse.h: numbers, durations, sizes and names from text.  Whole strings only:
 * trailing bytes, signs, blanks and overflow are refused.  0, or ABX_EINVAL with a text.
 */
#ifndef ABX_PARSE_H
#define ABX_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "abxsdk/number.h" /* abx_parse_u64() */
#include "abxsdk/text.h"   /* abx_utf8_len() */
#include "core/util/err.h"

/* "90" (seconds), "250ms", "1s", "5m", "2h", "1d"; at most ten years. */
int abx_parse_duration_ms(const char *text, int64_t *ret_ms, struct abx_err *err);
/* "1024", "64K", "512M", "2G", "1T", powers of 1024. */
int abx_parse_size_bytes(const char *text, uint64_t *ret_bytes, struct abx_err *err);
/* Processors: "2", "0.5", at most three digits behind the point; from 0.01 to 1024. */
int abx_parse_cpu_milli(const char *text, uint32_t *ret_milli, struct abx_err *err);
/* Commits of history: "full" (-1), or a number from 1. */
int abx_parse_depth(const char *text, int64_t *ret, struct abx_err *err);
/* true/false, yes/no, on/off, 1/0 */
int abx_parse_bool(const char *text, bool *ret, struct abx_err *err);

/* A box name: 1 to 63 of a-z, 0-9 and -, neither beginning nor ending with -, not only digits
 * (those are indices); ABX_EUSAGE.  A provider name: [a-z][a-z0-9-]{0,30}. */
int abx_check_box_name(const char *name, struct abx_err *err);
bool abx_is_provider_name(const char *name);

/* Printable form of bytes from outside for one line of text: control characters, quotes and
 * invalid UTF-8 become \xNN; cut with "..." to fit. */
void abx_quote_text(const char *bytes, char *text, size_t size);

/* The same for a text that stands by itself: quotes and backslashes stay. */
void abx_show_text(const char *bytes, char *text, size_t size);

#endif
