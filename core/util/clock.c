/* SPDX-License-Identifier: MIT */
/* Time. */
#include "core/util/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "abxsdk/clock.h"

int64_t abx_now_ms(void)
{
	return abx_monotonic_ms();
}

int64_t abx_wall_ms(void)
{
	return abx_clock_ms(CLOCK_REALTIME);
}

void abx_time_text(int64_t wall_ms, char text[ABX_TIME_TEXT_BYTES])
{
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm;

	text[0] = '\0';
	if (!wall_ms || !gmtime_r(&t, &tm))
		return;
	(void)strftime(text, ABX_TIME_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
