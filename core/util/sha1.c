/* SPDX-License-Identifier: MIT */
/* Git's names for contents: FIPS 180-4, SHA-1. */
#include "core/util/sha1.h"

#include <stdio.h>
#include <string.h>

static inline uint32_t rol(uint32_t v, int by)
{
	return v << by | v >> (32 - by);
}

static inline uint32_t load_be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The message schedule, kept in sixteen words. */
static inline uint32_t schedule(uint32_t w[16], int i)
{
	const uint32_t v = w[(i + 13) & 15] ^ w[(i + 8) & 15] ^ w[(i + 2) & 15] ^ w[i & 15];

	return w[i & 15] = rol(v, 1);
}

#define ROUND(a, b, c, d, e, f, k, word)                          \
	do {                                                      \
		e += rol(a, 5) + (f) + UINT32_C(k) + (word);      \
		b = rol(b, 30);                                   \
	} while (0)
#define F1(b, c, d) ((d) ^ ((b) & ((c) ^ (d))))
#define F2(b, c, d) ((b) ^ (c) ^ (d))
#define F3(b, c, d) (((b) & (c)) | ((d) & ((b) | (c))))
/* Five rounds bring the five variables back to their places. */
#define FIVE(f, k, word, i)                                       \
	do {                                                      \
		ROUND(a, b, c, d, e, f(b, c, d), k, word(i));     \
		ROUND(e, a, b, c, d, f(a, b, c), k, word(i + 1)); \
		ROUND(d, e, a, b, c, f(e, a, b), k, word(i + 2)); \
		ROUND(c, d, e, a, b, f(d, e, a), k, word(i + 3)); \
		ROUND(b, c, d, e, a, f(c, d, e), k, word(i + 4)); \
	} while (0)
#define WORD(i) ((i) < 16 ? w[(i) & 15] : schedule(w, i))

static void compress(uint32_t s[5], const unsigned char *p)
{
	uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], w[16];

	for (int i = 0; i < 16; i++)
		w[i] = load_be32(p + 4 * i);
	for (int i = 0; i < 20; i += 5)
		FIVE(F1, 0x5a827999, WORD, i);
	for (int i = 20; i < 40; i += 5)
		FIVE(F2, 0x6ed9eba1, WORD, i);
	for (int i = 40; i < 60; i += 5)
		FIVE(F3, 0x8f1bbcdc, WORD, i);
	for (int i = 60; i < 80; i += 5)
		FIVE(F2, 0xca62c1d6, WORD, i);
	s[0] += a;
	s[1] += b;
	s[2] += c;
	s[3] += d;
	s[4] += e;
}

void abx_sha1_init(struct abx_sha1 *h)
{
	static const uint32_t start[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
					  0xc3d2e1f0};

	memcpy(h->state, start, sizeof(start));
	h->len = 0;
}

void abx_sha1_update(struct abx_sha1 *h, const void *data, size_t len)
{
	const unsigned char *at = data;
	const size_t used = (size_t)(h->len & 63);

	h->len += len;
	if (used) {
		const size_t take = len < 64 - used ? len : 64 - used;

		memcpy(h->block + used, at, take);
		at += take;
		len -= take;
		if (used + take < 64)
			return;
		compress(h->state, h->block);
	}
	for (; len >= 64; at += 64, len -= 64)
		compress(h->state, at);
	if (len)
		memcpy(h->block, at, len);
}

void abx_sha1_hex(struct abx_sha1 *h, char text[ABX_SHA1_HEX_BYTES])
{
	static const unsigned char pad[64] = {0x80};
	static const char digits[] = "0123456789abcdef";
	const uint64_t bits = h->len * 8;
	unsigned char tail[8];

	abx_sha1_update(h, pad, 1 + (size_t)((119 - (h->len & 63)) & 63));
	for (int i = 0; i < 8; i++)
		tail[i] = (unsigned char)(bits >> (56 - 8 * i));
	abx_sha1_update(h, tail, sizeof(tail));
	for (int i = 0; i < 40; i++)
		text[i] = digits[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
	text[40] = '\0';
}

void abx_blob_id_init(struct abx_sha1 *h, uint64_t size)
{
	char head[32];
	const int n = snprintf(head, sizeof(head), "blob %llu", (unsigned long long)size);

	abx_sha1_init(h);
	abx_sha1_update(h, head, (size_t)n + 1);
}
