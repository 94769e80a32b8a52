/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/number.h: decimal numbers from text, without a sign, blanks or overflow.
 *
 * Allocates nothing.  *ret and *at are untouched on failure.
 */
#ifndef ABXSDK_NUMBER_H
#define ABXSDK_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* The digits at *at, which moves behind them; false: there is none, or it is more than max. */
bool abx_parse_digits(const char **at, uint64_t max, uint64_t *ret);
/* The whole of `text`. */
bool abx_parse_u64(const char *text, uint64_t max, uint64_t *ret);

#endif
