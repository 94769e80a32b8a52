/* SPDX-License-Identifier: MIT */
/* Texts that a provider wrote, before anybody sees them. */
#include "core/host/text.h"

#include <string.h>

#include "abxsdk/buf.h"
#include "core/util/parse.h"

/* Bytes of the longest run of `s` that abx_quote_text() need not see: quotes stay quotes. */
static size_t literal_len(const char *s, size_t len)
{
	return len && (*s == '\'' || *s == '\\' || *s == '"') ? 1 : 0;
}

static bool is_white(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* One character, or one byte that is none, in printable form. */
static size_t next_piece(const char *s, size_t len, char piece[16])
{
	char one[8] = "";
	size_t n;

	if (literal_len(s, len)) {
		(void)snprintf(piece, 16, "%c", *s);
		return 1;
	}
	if (is_white(*s)) {
		for (n = 0; n < len && is_white(s[n]); n++)
			;
		(void)snprintf(piece, 16, " ");
		return n;
	}
	memcpy(one, s, len < 4 ? len : 4);
	n = abx_utf8_len((const unsigned char *)one);
	if (n == 0)
		n = 1;
	one[n] = '\0';
	abx_quote_text(one, piece, 16);
	/* A character of several bytes that is not plain was escaped byte by byte. */
	return n;
}

void abx_text_line(const char *bytes, size_t max, char *text, size_t size)
{
	size_t len = strnlen(bytes, max), from = 0, at = 0;

	while (len && is_white(bytes[len - 1]))
		len--;
	while (from < len && is_white(bytes[from]))
		from++;
	while (from < len) {
		char piece[16];
		size_t used = next_piece(bytes + from, len - from, piece), n = strlen(piece);

		if (at + n + 4 > size) {
			(void)snprintf(text + at, size - at, "...");
			return;
		}
		memcpy(text + at, piece, n);
		at += n;
		from += used;
	}
	text[at] = '\0';
}

bool abx_text_is_line(const char *text)
{
	size_t len = strlen(text), from = 0;

	while (from < len) {
		char piece[16];
		size_t used = next_piece(text + from, len - from, piece);

		if (strlen(piece) != used || memcmp(piece, text + from, used) != 0)
			return false;
		from += used;
	}
	return true;
}
