/* SPDX-License-Identifier: MIT */
/*
 * core/host/retry.h: is it worth another try, and when?
 *
 * ERATE, ENETWORK and EREMOTE may pass.  Waits double from 200 ms to 10 s, each with jitter
 * (between half of it and all of it), so that many clients do not come back together.  What
 * a service asked for in Retry-After is honoured up to 60 s; nonsense (negative, beyond a
 * day) is ignored.  A wait that would pass the deadline is not begun.
 */
#ifndef ABX_RETRY_H
#define ABX_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#define ABX_RETRY_MAX_ATTEMPTS 6

/* Might the same request succeed later? */
bool abx_retry_code(int code);

/*
 * `attempt` counts from 1 and is the one that just failed.  Milliseconds to wait before the
 * next one, or -1: give up.  time_left_ms INT64_MAX = no deadline.
 */
int64_t abx_retry_delay_ms(int code, int64_t retry_after_ms, uint32_t attempt,
			   int64_t time_left_ms);

#endif
