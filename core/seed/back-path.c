/* SPDX-License-Identifier: MIT */
/* Which paths a box may change on the host. */
#include "core/seed/back-path.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "core/util/beneath.h"

/* The length of a character that HFS+ ignores in names, or 0: U+200C to U+200F, U+202A to
 * U+202E, U+206A to U+206F, U+FEFF. */
static size_t ignored_len(const unsigned char *s, size_t left)
{
	if (left < 3)
		return 0;
	if (s[0] == 0xe2 && s[1] == 0x80 &&
	    ((s[2] >= 0x8c && s[2] <= 0x8f) || (s[2] >= 0xaa && s[2] <= 0xae)))
		return 3;
	if (s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xaa && s[2] <= 0xaf)
		return 3;
	return s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf ? 3 : 0;
}

/* Names longer than this are no spelling of ".git", however much is dropped. */
#define PLAIN_MAX 8

static bool is_git(const char *name, size_t len)
{
	char plain[PLAIN_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		const size_t skip = ignored_len((const unsigned char *)name + i, len - i);

		if (skip) {
			i += skip;
			continue;
		}
		/* NTFS: what follows a colon names a stream of the same file. */
		if (name[i] == ':')
			break;
		if (n < PLAIN_MAX)
			plain[n++] = name[i];
		else if (name[i] != '.' && name[i] != ' ')
			return false;
		i++;
	}
	while (n && (plain[n - 1] == '.' || plain[n - 1] == ' '))
		n--;
	plain[n] = '\0';
	return strcasecmp(plain, ".git") == 0 || strcasecmp(plain, "git~1") == 0;
}

const char *abx_back_path_problem(const char *path)
{
	if (!abx_is_clean_path(path))
		return "its name does not stay in the workspace";
	for (;;) {
		/* A backslash separates on some file systems. */
		const size_t len = strcspn(path, "/\\");

		if (is_git(path, len))
			return "it is git's own";
		if (len == 2 && path[0] == '.' && path[1] == '.')
			return "its name does not stay in the workspace";
		if (!path[len])
			return NULL;
		path += len + 1;
	}
}
