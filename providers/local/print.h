/* SPDX-License-Identifier: MIT */
/*
 * print.h: the fingerprint of a directory tree, from what stat() says of everything in it.
 *
 *	struct local_print p = LOCAL_PRINT_INIT;
 *	char name[LOCAL_PRINT_TEXT];
 *
 *	local_print_tree(&p, AT_FDCWD, "/etc");
 *	local_print_text(&p, name);
 *
 * Two trees with the same names, modes, sizes and times to the nanosecond have the same
 * print, and a tree keeps its print as long as nothing in it changes.  The order of directories
 *does not matter; what cannot be read is left out.  Not a cryptographic hash.
 */
#ifndef LOCAL_PRINT_H
#define LOCAL_PRINT_H

#include <stdint.h>
#include <sys/stat.h>

struct local_print {
	uint64_t a, b;
};
#define LOCAL_PRINT_INIT \
	{                \
		0, 0     \
	}
#define LOCAL_PRINT_TEXT 33

void local_print_tree(struct local_print *p, int at, const char *name);
/* One fact more. */
void local_print_add(struct local_print *p, const char *name, const struct stat *st);
void local_print_text(const struct local_print *p, char ret[LOCAL_PRINT_TEXT]);

#endif
