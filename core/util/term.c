/* SPDX-License-Identifier: MIT */
/* Text from outside on somebody's terminal. */
#include "core/util/term.h"

#include <string.h>

#define ESC 0x1b

enum { PLAIN, AFTER_ESC, IN_SEQUENCE, AFTER_C2 };

static void add_plain(struct abx_buf *out, unsigned char c)
{
	if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
		abx_buf_addf(out, "^%c", c ^ 0x40);
	else
		abx_buf_addc(out, (char)c);
}

/* What was held back is no colour: show it. */
static void give_up(struct abx_term_filter *f, struct abx_buf *out)
{
	for (size_t i = 0; i < f->n_held; i++)
		add_plain(out, (unsigned char)f->held[i]);
	f->n_held = 0;
	f->state = PLAIN;
}

static void start(struct abx_term_filter *f, unsigned char c, struct abx_buf *out)
{
	if (c == ESC && f->colors) {
		f->held[0] = (char)c;
		f->n_held = 1;
		f->state = AFTER_ESC;
	} else if (c == 0xc2) {
		f->state = AFTER_C2;
	} else {
		add_plain(out, c);
	}
}

static void in_sequence(struct abx_term_filter *f, unsigned char c, struct abx_buf *out)
{
	const bool is_parameter = (c >= '0' && c <= '9') || c == ';';

	if (c != 'm' && c != 'K' && !(is_parameter && f->n_held + 1 < sizeof(f->held))) {
		give_up(f, out);
		start(f, c, out);
		return;
	}
	f->held[f->n_held++] = (char)c;
	if (is_parameter)
		return;
	abx_buf_add(out, f->held, f->n_held);
	f->n_held = 0;
	f->state = PLAIN;
}

void abx_term_filter(struct abx_term_filter *f, const void *data, size_t len, struct abx_buf *out)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < len; i++) {
		const unsigned char c = at[i];

		switch (f->state) {
		case AFTER_ESC:
			if (c == '[') {
				f->held[f->n_held++] = (char)c;
				f->state = IN_SEQUENCE;
				break;
			}
			give_up(f, out);
			start(f, c, out);
			break;
		case IN_SEQUENCE:
			in_sequence(f, c, out);
			break;
		case AFTER_C2:
			/* U+0080 to U+009F are control characters too. */
			f->state = PLAIN;
			if (c >= 0x80 && c <= 0x9f) {
				abx_buf_addf(out, "<U+%04X>", c);
				break;
			}
			abx_buf_addc(out, (char)0xc2);
			start(f, c, out);
			break;
		default:
			start(f, c, out);
		}
	}
}
