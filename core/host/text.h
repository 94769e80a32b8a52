/* SPDX-License-Identifier: MIT */
/*
 * core/host/text.h: texts that a provider wrote, before anybody sees them.
 *
 * abx_quote_text() would also escape quotes, which belong into messages; here they stay.
 */
#ifndef ABX_HOST_TEXT_H
#define ABX_HOST_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* One printable line: white space becomes one blank, other control characters and bytes that
 * are no UTF-8 become \xNN; cut with "..." to fit.  At most `max` bytes of `bytes` are read. */
void abx_text_line(const char *bytes, size_t max, char *text, size_t size);

/* Is it already such a line? */
bool abx_text_is_line(const char *text);

#endif
