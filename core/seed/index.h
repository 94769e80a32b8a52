/* SPDX-License-Identifier: MIT */
/*
 * core/seed/index.h: what a git index file says, versions 2 to 4, SHA-1.
 *
 * The bytes are kept as they are, since the box gets the same file.  Paths point into memory
 * of the struct.  Every offset is checked; a file that is not an index is ABX_ECORRUPT.
 */
#ifndef ABX_INDEX_H
#define ABX_INDEX_H

#include <stdbool.h>
#include <sys/stat.h>

#include "abxsdk/buf.h"
#include "core/util/err.h"
#include "core/util/mem.h"

#define ABX_OID_BYTES 20

/* What git knows of a file: its kind, and whether its owner may run it. */
#define ABX_MODE_FILE 0100644U
#define ABX_MODE_EXEC 0100755U
#define ABX_MODE_LINK 0120000U
#define ABX_MODE_GITLINK 0160000U /* a commit: a submodule */
#define ABX_MODE_TREE 0040000U	  /* a directory, in a sparse index */

/* FILE, EXEC or LINK of a st_mode; 0 for all else. */
uint32_t abx_git_mode(mode_t mode);

struct abx_index_entry {
	const char *path;
	unsigned char oid[ABX_OID_BYTES];
	uint32_t mode; /* ABX_MODE_... */
	uint8_t stage; /* not 0: unmerged */
	size_t at;     /* where it is in the bytes */
	bool assume_valid, skip_worktree, intent_to_add;
};

struct abx_index {
	bool missing; /* a repository without an index, and so without entries */
	struct abx_buf bytes;
	struct stat st;
	struct abx_index_entry *entries;
	size_t len;
	bool split, sparse, untracked_cache, fsmonitor; /* extensions that it has */
	bool has_tree; /* git made a tree of all entries, and none has changed since */
	unsigned char tree[ABX_OID_BYTES];
	struct abx_strv paths; /* of version 4 */
};

/* `path` is the index file. */
int abx_index_read(const char *path, struct abx_index *ret, struct abx_err *err);
int abx_index_parse(struct abx_index *index, const char *path, struct abx_err *err);
void abx_index_release(struct abx_index *index);

/* Make git look at the content of entry i whatever its file's size and times are; then, once for
 * all of them, make the checksum right again. */
void abx_index_distrust(struct abx_index *index, size_t i);
int abx_index_sign(struct abx_index *index, struct abx_err *err);

void abx_oid_hex(const unsigned char oid[ABX_OID_BYTES], char text[2 * ABX_OID_BYTES + 1]);
/* 40 lower-case hexadecimal digits, and nothing else? */
bool abx_is_oid_hex(const char *text);

#endif
