/* SPDX-License-Identifier: MIT */
/* Unguessable identifiers, from the kernel. */
#include "core/util/rand.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static void fill(void *data, size_t len)
{
	/* Requests of up to 256 bytes are never cut short. */
	if (getrandom(data, len, 0) != (ssize_t)len)
		abort();
}

void abx_rand_hex(char *text, size_t digits)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char raw[128];

	if (digits > 2 * sizeof(raw))
		abort();
	fill(raw, (digits + 1) / 2);
	for (size_t i = 0; i < digits; i++)
		text[i] = hex[i % 2 ? raw[i / 2] & 15 : raw[i / 2] >> 4];
	text[digits] = '\0';
}

void abx_rand_uuid(char text[ABX_UUID_BYTES])
{
	static const char hex[] = "0123456789abcdef";
	unsigned char raw[16];
	size_t at = 0;

	fill(raw, sizeof(raw));
	raw[6] = (unsigned char)((raw[6] & 0x0f) | 0x40);
	raw[8] = (unsigned char)((raw[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(raw); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[at++] = '-';
		text[at++] = hex[raw[i] >> 4];
		text[at++] = hex[raw[i] & 15];
	}
	text[at] = '\0';
}

uint32_t abx_rand_below(uint32_t bound)
{
	uint32_t limit = UINT32_MAX - UINT32_MAX % bound, value;

	do
		fill(&value, sizeof(value));
	while (value >= limit);
	return value % bound;
}

uint64_t abx_hash_text(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}
