/* SPDX-License-Identifier: MIT */
/* core/util/clock.h: time.  Monotonic for deadlines, wall clock for what people read. */
#ifndef ABX_CLOCK_H
#define ABX_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t abx_now_ms(void);  /* monotonic */
int64_t abx_wall_ms(void); /* Unix epoch */
/* RFC 3339 in UTC with seconds, "2026-11-30T12:00:00Z"; 0 gives "". */
#define ABX_TIME_TEXT_BYTES 32
void abx_time_text(int64_t wall_ms, char text[ABX_TIME_TEXT_BYTES]);

#endif
