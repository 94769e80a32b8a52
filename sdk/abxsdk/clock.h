/* SPDX-License-Identifier: MIT */
/* abxsdk/clock.h: clocks in milliseconds. */
#ifndef ABXSDK_CLOCK_H
#define ABXSDK_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t abx_clock_ms(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* For deadlines. */
static inline int64_t abx_monotonic_ms(void)
{
	return abx_clock_ms(CLOCK_MONOTONIC);
}

/* The wall clock, as expiries are. */
static inline int64_t abx_realtime_ms(void)
{
	return abx_clock_ms(CLOCK_REALTIME);
}

#endif
