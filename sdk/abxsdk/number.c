/* SPDX-License-Identifier: MIT */
/* Decimal numbers from text. */
#include "abxsdk/number.h"

bool abx_parse_digits(const char **at, uint64_t max, uint64_t *ret)
{
	const char *s = *at;
	uint64_t value = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		uint64_t digit = (uint64_t)(*s - '0');

		if (digit > max || value > (max - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*at = s;
	*ret = value;
	return true;
}

bool abx_parse_u64(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t value;

	if (!abx_parse_digits(&text, max, &value) || *text)
		return false;
	*ret = value;
	return true;
}
