/* SPDX-License-Identifier: MIT */
/* Bytes as text. */
#include "abxsdk/base64.h"

#include <stdint.h>

void abx_base64_add(struct abx_buf *to, const void *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;
	char *out = abx_buf_reserve(to, (len + 2) / 3 * 4);
	size_t n = 0;

	if (!out)
		return;
	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;

		v |= i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0;
		v |= i + 2 < len ? p[i + 2] : 0;
		out[n++] = digits[v >> 18];
		out[n++] = digits[v >> 12 & 63];
		out[n++] = i + 1 < len ? digits[v >> 6 & 63] : '=';
		out[n++] = i + 2 < len ? digits[v & 63] : '=';
	}
	abx_buf_commit(to, n);
}
