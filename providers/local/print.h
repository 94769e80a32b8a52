/* SPDX-License-Identifier: MIT */
/*
 * print.h: the fingerprint of a directory tree, from what stat() says of everything in it.
 *
 *	struct local_print p = LOCAL_PRINT_INIT;
 *	char name[LOCAL_PRINT_TEXT];
 *
 *	local_print_tree(&p, "/etc", cache_fd, "etc.list", LOCAL_PRINT_SETTLED_S,
 *			 INT64_MAX);
 *	local_print_text(&p, name);
 *
 * Two trees with the same names, modes, sizes and times to the nanosecond have the same
 * print, and a tree keeps its print as long as nothing in it changes.  The order of directories
 * does not matter; what cannot be read is left out.  Not a cryptographic hash.
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

/* Look at a tree.  `visit` may be NULL; it is told of all but links, of the tree itself as ".",
 * with its path in the tree, or NULL where that is too long. */
typedef void (*local_print_visit)(void *ctx, const char *path, const struct stat *st);
void local_print_walk(struct local_print *p, int at, const char *name, local_print_visit visit,
		      void *ctx);

/* The same, with what is kept of it in the file `list` of the directory `keep_fd`: as long as
 * nothing has changed, no directory is read (print-kept.c).  Of a tree where something changed
 * within the last seconds, nothing is kept: what changes within the same tick of the clock would
 * look the same.  Where somebody began to look after `since_ns` (CLOCK_REALTIME; INT64_MAX: never),
 * what was seen then is as good: many boxes at once do not look one by one. */
void local_print_tree(struct local_print *p, const char *tree, int keep_fd, const char *list,
		      int settled_s, int64_t since_ns);
/* More than the coarsest times of file systems. */
#define LOCAL_PRINT_SETTLED_S 3

/* One fact more, by all that tells that a file or directory is untouched. */
void local_print_exact(struct local_print *p, const char *name, const struct stat *st);
/* One fact more. */
void local_print_add(struct local_print *p, const char *name, const struct stat *st);
void local_print_text(const struct local_print *p, char ret[LOCAL_PRINT_TEXT]);

#endif
