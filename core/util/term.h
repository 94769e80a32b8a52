/* SPDX-License-Identifier: MIT */
/*
 * core/util/term.h: text from outside on somebody's terminal.
 *
 * Control characters become visible (`^[`, `^M`), so that nobody can move the cursor, set a
 * title or answer for the user.  Line feeds and tabs pass, and with `colors` so do the
 * sequences that git colours with.  May be fed in pieces of any size.
 */
#ifndef ABX_TERM_H
#define ABX_TERM_H

#include <stdbool.h>

#include "abxsdk/buf.h"

struct abx_term_filter {
	bool colors;
	/* Zero at first. */
	unsigned int state;
	char held[32];
	size_t n_held;
};

void abx_term_filter(struct abx_term_filter *f, const void *data, size_t len, struct abx_buf *out);

#endif
