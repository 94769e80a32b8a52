/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/base.h: scope-bound clean-up and ownership transfer.
 *
 *	abx_autofree char *path = NULL;      freed when the scope ends
 *	abx_autoclose int fd = -1;           closed when the scope ends
 *	return abx_steal_ptr(&path);         ... unless it was handed on
 *
 * A function uses these or `goto out`, never both.  errno survives the clean-up.
 */
#ifndef ABXSDK_BASE_H
#define ABXSDK_BASE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ABX_PRINTF(fmt_arg, first_arg) __attribute__((format(printf, fmt_arg, first_arg)))
#define ABX_UNUSED __attribute__((unused))
#define ABX_MUST_USE __attribute__((warn_unused_result))
#define ABX_N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

#define abx_autofree __attribute__((cleanup(abx_cleanup_free)))
#define abx_autoclose __attribute__((cleanup(abx_cleanup_close)))
#define abx_autofclose __attribute__((cleanup(abx_cleanup_fclose)))
/* abx_auto(abx_buf) struct abx_buf b = ...;  calls abx_buf_release(&b). */
#define abx_auto(name) __attribute__((cleanup(name##_release)))

static inline void abx_cleanup_free(void *p)
{
	int saved = errno;

	free(*(void **)p);
	errno = saved;
}

static inline void abx_cleanup_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	errno = saved;
}

static inline void abx_cleanup_fclose(FILE **f)
{
	int saved = errno;

	if (*f)
		(void)fclose(*f);
	errno = saved;
}

static inline void *abx_steal_ptr_(void *pp)
{
	void *p = *(void **)pp;

	*(void **)pp = NULL;
	return p;
}
#define abx_steal_ptr(pp) ((__typeof__(*(pp)))abx_steal_ptr_(pp))

static inline int abx_steal_fd(int *fd)
{
	int old = *fd;

	*fd = -1;
	return old;
}

#endif
