/* SPDX-License-Identifier: MIT */
/* The user's terminal while it belongs to a command in a box. */
#include "core/cli/tty.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "abxsdk/base.h"

static struct termios before, raw;
static volatile sig_atomic_t is_raw;

void abx_tty_size(uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct winsize w = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || !w.ws_row || !w.ws_col)
		(void)ioctl(STDIN_FILENO, TIOCGWINSZ, &w);
	*ret_rows = w.ws_col ? w.ws_row : 0;
	*ret_cols = w.ws_row ? w.ws_col : 0;
}

void abx_tty_raw(void)
{
	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return;
	raw = before;
	cfmakeraw(&raw);
	/* What was typed ahead is the command's. */
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0)
		is_raw = 1;
}

int abx_tty_hide(void)
{
	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return -errno;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
	raw.c_lflag |= ICANON | ISIG;
	/* What was typed ahead has been seen. */
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) < 0)
		return -errno;
	is_raw = 1;
	return 0;
}

void abx_tty_restore(void)
{
	int saved = errno;

	if (is_raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
	is_raw = 0;
	errno = saved;
}

void abx_tty_resume(void)
{
	int saved = errno;

	/* In the background it is somebody else's. */
	if (tcgetpgrp(STDIN_FILENO) == getpgrp() && tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0)
		is_raw = 1;
	errno = saved;
}

const char *abx_tty_term(void)
{
	const char *term = secure_getenv("TERM");

	if (!term || !*term || strlen(term) > 64 ||
	    term[strspn(term, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			      "0123456789.+_-")])
		return NULL;
	return term;
}
