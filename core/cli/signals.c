/* SPDX-License-Identifier: MIT */
/* What signals mean to the program. */
#include "core/cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>

#include "abxsdk/base.h"
#include "abxsdk/clock.h"
#include "agentbox/cloud_backend.h"
#include "core/cli/tty.h"

/* The same signal again so soon is the same one: timeout(1) and shells signal the process, and
 * then its group. */
#define SAME_MS 100
/* How long a command may take to end after a signal that was passed on. */
#define GRACE_S 10

static int cancel_pipe[2] = {-1, -1};
static int control_pipe[2] = {-1, -1};
static volatile sig_atomic_t seen, forwarding, on_terminal;

static void cancel(void)
{
	(void)!write(cancel_pipe[1], "", 1);
}

static void record(uint16_t kind, uint16_t a, uint16_t b)
{
	const uint16_t r[4] = {kind, a, b, 0};

	(void)!write(control_pipe[1], r, sizeof(r));
}

static void give_up_now(void)
{
	static const char text[] = "\nagentbox: interrupted again, not waiting "
				   "(agentbox prune removes what may be left)\n";

	abx_tty_restore();
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(130);
}

static bool is_same(int signo)
{
	static volatile sig_atomic_t last;
	static volatile int64_t when_ms;
	const int64_t ms = abx_monotonic_ms();
	bool same;

	same = last == signo && ms - when_ms < SAME_MS;
	last = signo;
	when_ms = ms;
	return same;
}

/* The first one asks everything to come to an orderly end; a second one does not wait. */
static void on_signal(int signo)
{
	int saved = errno;

	if (is_same(signo)) {
		errno = saved;
		return;
	}
	seen++;
	if (forwarding && seen == 1) {
		record(ABX_CTRL_SIGNAL, (uint16_t)signo, 0);
		(void)alarm(GRACE_S);
	} else if (seen == (forwarding ? 2 : 1)) {
		cancel();
	} else if (signo == SIGINT) {
		give_up_now();
	}
	errno = saved;
}

static void on_alarm(int signo)
{
	int saved = errno;

	(void)signo;
	if (forwarding)
		cancel();
	errno = saved;
}

static void on_user_signal(int signo)
{
	int saved = errno;

	if (forwarding)
		record(ABX_CTRL_SIGNAL, (uint16_t)signo, 0);
	errno = saved;
}

/* A user who drags a window makes many of them: only a size that is new is worth a record. */
static void on_resize(int signo)
{
	static uint16_t last_rows, last_cols;
	int saved = errno;
	uint16_t rows, cols;

	(void)signo;
	abx_tty_size(&rows, &cols);
	if (rows && (rows != last_rows || cols != last_cols)) {
		last_rows = rows;
		last_cols = cols;
		record(ABX_CTRL_RESIZE, rows, cols);
	}
	errno = saved;
}

static void on_stop(int signo)
{
	int saved = errno;

	(void)signo;
	abx_tty_restore();
	(void)kill(getpid(), SIGSTOP);
	errno = saved;
}

static void on_continue(int signo)
{
	if (!on_terminal)
		return;
	abx_tty_resume();
	if (control_pipe[1] >= 0)
		on_resize(signo);
}

static void handle(int signo, void (*handler)(int))
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	/* nohup and background jobs start with some ignored; that stays so. */
	if (sigaction(signo, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		(void)sigaction(signo, &sa, NULL);
}

int abx_signals_install(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	/* A closed standard descriptor must not be taken by a file of ours.  What is written to a
	 * stdout that nobody has is lost, and has to look so. */
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return -1;
	if (pipe2(cancel_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	for (size_t i = 0; i < ABX_N_ELEMENTS(signals); i++)
		handle(signals[i], on_signal);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	/* A limit on the size of files is an error to report. */
	(void)sigaction(SIGXFSZ, &ignore, NULL);
	return 0;
}

int abx_signals_cancel_fd(void)
{
	return cancel_pipe[0];
}

int abx_signals_open_control(bool terminal)
{
	if (pipe2(control_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	on_terminal = terminal;
	if (terminal) {
		handle(SIGWINCH, on_resize);
		handle(SIGTSTP, on_stop);
		handle(SIGCONT, on_continue);
	}
	return control_pipe[0];
}

void abx_signals_hidden(bool begin)
{
	static const int signals[] = {SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2};

	on_terminal = begin;
	for (size_t i = 0; i < ABX_N_ELEMENTS(signals); i++)
		handle(signals[i], begin ? on_signal : SIG_DFL);
	handle(SIGTSTP, begin ? on_stop : SIG_DFL);
	handle(SIGCONT, begin ? on_continue : SIG_DFL);
}

void abx_signals_forward(void)
{
	handle(SIGQUIT, on_signal);
	handle(SIGALRM, on_alarm);
	handle(SIGUSR1, on_user_signal);
	handle(SIGUSR2, on_user_signal);
	forwarding = 1;
}

void abx_signals_close_control(void)
{
	forwarding = on_terminal = 0;
	(void)alarm(0);
}
