/* SPDX-License-Identifier: MIT */
/*
 * core/cli/tty.h: the user's terminal while it belongs to a command in a box, or a
 * secret is typed.
 *
 * One at a time; abx_tty_restore() and abx_tty_resume() may be called in signal handlers.
 */
#ifndef ABX_TTY_H
#define ABX_TTY_H

#include <stdbool.h>
#include <stdint.h>

/* Rows and columns of stdout's or stdin's terminal; both 0 when nobody knows. */
void abx_tty_size(uint16_t *ret_rows, uint16_t *ret_cols);
/* Raw mode for stdin, if that is a terminal: every key goes to the box. */
void abx_tty_raw(void);
/* Lines as usual, but what is typed is not shown; 0 or a negative errno. */
int abx_tty_hide(void);
/* As it was before; fine to call at any time. */
void abx_tty_restore(void);
/* Raw again after a stop, when it was and the terminal is ours to change. */
void abx_tty_resume(void);
/* TERM, when it can be the name of a terminal; NULL otherwise. */
const char *abx_tty_term(void);

#endif
