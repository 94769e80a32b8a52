/* SPDX-License-Identifier: MIT */
/*
 * core/cli/signals.h: what INT, TERM and others mean to the program.
 *
 * Usually the first one asks everything to come to an orderly end, and a second INT does not
 * wait.  While a command runs in a box they are its: each is passed on, and the command with
 * all that it started is ended when that did not end it within the grace, or at the second.
 */
#ifndef ABX_SIGNALS_H
#define ABX_SIGNALS_H

#include <stdbool.h>

/* Once, at the start: handlers, and /dev/null where a standard descriptor is closed (writing to
 * a stdout that was closed goes on failing).  0 or -1 with errno. */
int abx_signals_install(void);
/* Readable once the user gave up. */
int abx_signals_cancel_fd(void);

/* For exec: a descriptor of ABX_CTRL_* records, or -1 and errno.  With `terminal` also RESIZE,
 * and the terminal is put in order around a stop. */
int abx_signals_open_control(bool terminal);
/* Around abx_tty_hide(): no signal that can be caught leaves the terminal so, and a stop shows it
 * as it was. */
void abx_signals_hidden(bool begin);
/* The command runs: from now on, signals are for it.  Any thread. */
void abx_signals_forward(void);
/* It has ended. */
void abx_signals_close_control(void);

#endif
