/* SPDX-License-Identifier: MIT */
/*
 * core/seed/files.h: which files and directories of a workspace are put into a box.
 *
 * Of a repository: what is tracked and there, and what is untracked and not ignored, with the
 * directories that hold them.  Of a plain directory: everything.  A directory comes before
 * what it holds, which comes together.  Sockets, FIFOs and devices are counted and left out;
 * git does not name untracked ones.
 */
#ifndef ABX_SEED_FILES_H
#define ABX_SEED_FILES_H

#include <sys/stat.h>

#include "core/seed/index.h"
#include "core/seed/status.h"

struct abx_seed_file {
	char *path;
	mode_t mode; /* st_mode */
	uint64_t size;
	struct timespec mtime;
	char *instead; /* what travels in place of its content, or NULL */
	bool has_oid;  /* the content is this blob of its repository */
	bool steady;   /* git has looked at it, and the box's git must find the same */
	unsigned char oid[ABX_OID_BYTES];
};

struct abx_seed_files {
	struct abx_seed_file *items;
	size_t len, cap;
	uint64_t files, bytes; /* without directories */
	uint64_t skipped;
	char *skipped_first;
	struct abx_strv gone; /* what git has just seen, and is not there any more */
};

/* Everything below root_fd, but what lies in repositories, whose paths go to `nested`. */
int abx_seed_files_walk(const char *workspace, int root_fd, struct abx_seed_files *ret,
			struct abx_strv *nested, struct abx_err *err);

/* A repository of the workspace. */
struct abx_seed_known {
	const char *workspace; /* for errors */
	const char *prefix;    /* where in it, "" for itself; comes before each path */
	int root_fd;	       /* of the repository's work tree */
	const struct abx_index *index;
	const struct abx_status *status;
	const struct abx_strv *others; /* what is not tracked and travels, sorted */
	const bool *raw;	       /* for each index entry: not what its blob is; NULL = none */
	/* Get the paths of repositories in it, and of submodules that are not checked out. */
	struct abx_strv *nested, *absent;
};
/* What git knows; refuses tracked special files, and a repository that lies in a directory
 * with files that this one tracks. */
int abx_seed_files_known(const struct abx_seed_known *known, struct abx_seed_files *ret,
			 struct abx_err *err);
/* Without those; `paths` is sorted, and directories end with a slash in it. */
void abx_seed_files_drop(struct abx_seed_files *f, const struct abx_strv *paths);
void abx_seed_files_release(struct abx_seed_files *f);

#endif
