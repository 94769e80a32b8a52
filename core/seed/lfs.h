/* SPDX-License-Identifier: MIT */
/*
 * core/seed/lfs.h: files that Git LFS keeps: what their pointers say, and where their contents
 * are on this machine.
 */
#ifndef ABX_LFS_H
#define ABX_LFS_H

#include "core/seed/git.h"
#include "core/seed/index.h"
#include "core/util/sha1.h"

#define ABX_LFS_OID_BYTES 65

struct abx_lfs_file {
	size_t entry; /* of the index */
	char *pointer;
	char oid[ABX_LFS_OID_BYTES]; /* SHA-256 */
	uint64_t size;
	bool here;		       /* the content is in the repository */
	char sent[ABX_SHA1_HEX_BYTES]; /* git's id of the content, once it was sent; or "" */
};

struct abx_lfs {
	struct abx_lfs_file *items; /* in the order of the index */
	size_t len;
};

/* Those of the entries of which `is_lfs` says so that are pointers; common_dir is where the
 * repository keeps their contents. */
int abx_lfs_find(const struct abx_git *git, const char *common_dir, const struct abx_index *index,
		 const bool *is_lfs, struct abx_lfs *ret, struct abx_err *err);
void abx_lfs_release(struct abx_lfs *l);

/* NULL when the entry is none of them. */
struct abx_lfs_file *abx_lfs_of_entry(const struct abx_lfs *l, size_t entry);

/* "lfs/objects/ab/cd/abcd...": where a content is below a git directory. */
char *abx_lfs_place(const struct abx_lfs_file *f);

#endif
