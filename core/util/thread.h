/* SPDX-License-Identifier: MIT */
/*
 * core/util/thread.h: threads of ours beside the main one.
 *
 * They take no signal but those of their own faults: everything else is for the main thread.
 */
#ifndef ABX_THREAD_H
#define ABX_THREAD_H

#include <pthread.h>

/* 0 or a positive errno, as pthread_create(). */
int abx_thread_start(pthread_t *ret, void *(*fn)(void *), void *arg);

#endif
