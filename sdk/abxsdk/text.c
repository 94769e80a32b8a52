/* SPDX-License-Identifier: MIT */
#include "abxsdk/text.h"

#include <errno.h>
#include <stdio.h>

size_t abx_utf8_len(const unsigned char *s)
{
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, halves of surrogate pairs, and what is above the last character. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void abx_plain_name(const char *name, char *out, size_t size)
{
	size_t n = 0;

	for (; name && *name && n + 1 < size; name++) {
		char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;

		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && n))
			out[n++] = c;
	}
	while (n && out[n - 1] == '-')
		n--;
	out[n] = '\0';
	if (!n)
		(void)snprintf(out, size, "box");
}

const char *abx_remedy_of_errno(int errnum)
{
	switch (errnum) {
	case ENOSPC:
	case EDQUOT:
		return "free some space there";
	case EMFILE:
		return "allow more open files: ulimit -n 1024";
	case ENFILE:
		return "close some programs: no more files can be open on this machine";
	case EFBIG:
		return "allow larger files: ulimit -f unlimited";
	default:
		return NULL;
	}
}
