/* SPDX-License-Identifier: MIT */
/* Starting threads. */
#include "core/util/thread.h"

#include <signal.h>

#include "abxsdk/base.h"

int abx_thread_start(pthread_t *ret, void *(*fn)(void *), void *arg)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	sigset_t set, old;
	int r;

	(void)sigfillset(&set);
	for (size_t i = 0; i < ABX_N_ELEMENTS(faults); i++)
		(void)sigdelset(&set, faults[i]);
	(void)pthread_sigmask(SIG_SETMASK, &set, &old);
	r = pthread_create(ret, NULL, fn, arg);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}
