/* SPDX-License-Identifier: MIT */
/* Is it worth another try, and when? */
#include "core/host/retry.h"

#include "agentbox/cloud_backend.h"
#include "core/util/rand.h"

#define FIRST_MS 200
#define LONGEST_MS 10000
#define RETRY_AFTER_MAX_MS 60000
#define RETRY_AFTER_ABSURD_MS (24LL * 3600 * 1000)

bool abx_retry_code(int code)
{
	return code == ABX_ERATE || code == ABX_ENETWORK || code == ABX_EREMOTE;
}

static int64_t backoff_ms(uint32_t attempt)
{
	int64_t full = FIRST_MS;

	for (uint32_t i = 1; i < attempt && full < LONGEST_MS; i++)
		full *= 2;
	if (full > LONGEST_MS)
		full = LONGEST_MS;
	return full / 2 + abx_rand_below((uint32_t)(full / 2) + 1);
}

int64_t abx_retry_delay_ms(int code, int64_t retry_after_ms, uint32_t attempt, int64_t time_left_ms)
{
	int64_t delay;

	if (!abx_retry_code(code) || attempt < 1 || attempt >= ABX_RETRY_MAX_ATTEMPTS)
		return -1;
	delay = backoff_ms(attempt);
	if (retry_after_ms >= 0 && retry_after_ms <= RETRY_AFTER_ABSURD_MS) {
		if (retry_after_ms > RETRY_AFTER_MAX_MS)
			retry_after_ms = RETRY_AFTER_MAX_MS;
		if (retry_after_ms > delay)
			delay = retry_after_ms;
	}
	return delay >= time_left_ms ? -1 : delay;
}
