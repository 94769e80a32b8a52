/* SPDX-License-Identifier: MIT */
/*
 * core/seed/manifest.h: what was sent into a box, so that a file that changed here since can
 * be told from one that did not.
 *
 * Only this machine writes it, so nothing that a box says can make a changed file look
 * unchanged.  A file on disk is a sequence of NUL-terminated strings, thus any name is safe.
 */
#ifndef ABX_MANIFEST_H
#define ABX_MANIFEST_H

#include <stdbool.h>
#include <sys/stat.h>

#include "core/util/err.h"
#include "core/util/sha1.h"

struct abx_manifest_entry {
	const char *path;
	uint64_t size, inode;
	struct timespec mtime, ctime;
	mode_t mode;		      /* st_mode */
	char oid[ABX_SHA1_HEX_BYTES]; /* git's id of the raw content; of a link, its target */
};

/* What came back from the box since: this machine has it so, whatever was sent. */
struct abx_manifest_brought {
	const char *path;
	uint32_t mode; /* as git has it; 0: it is gone */
	char oid[ABX_SHA1_HEX_BYTES];
};

struct abx_manifest {
	struct abx_manifest_entry *items;
	size_t len, cap, sorted; /* the first `sorted` ones are in order of path */
	struct abx_manifest_brought *brought;
	size_t n_brought, brought_cap, brought_sorted; /* the same */
	struct abx_manifest_names *names;	       /* where the paths are, until the end */
};

void abx_manifest_add(struct abx_manifest *m, const char *path, const struct stat *st,
		      const char *oid);
void abx_manifest_release(struct abx_manifest *m);

/* Atomic, 0600, durable. */
int abx_manifest_save(struct abx_manifest *m, const char *path, struct abx_err *err);
/* ABX_ECORRUPT when it is damaged. */
int abx_manifest_load(const char *path, struct abx_manifest *ret, struct abx_err *err);

/* NULL when nothing of that name was sent.  Finds what was there when it was loaded or saved. */
struct abx_manifest_entry *abx_manifest_find(const struct abx_manifest *m, const char *path);

/* Certainly the same file as then, untouched; otherwise its content must be looked at. */
bool abx_manifest_untouched(const struct abx_manifest_entry *e, const struct stat *st);

/* Take over what is there now; or that nothing is (st == NULL).  Each path at most once, then
 * save. */
void abx_manifest_set(struct abx_manifest *m, const char *path, const struct stat *st,
		      const char *oid);

/* The box's version of a path is here now; mode 0 and oid NULL: it is gone here too. */
void abx_manifest_bring(struct abx_manifest *m, const char *path, uint32_t mode, const char *oid);
/* What the box began with says it again: nothing of that path was brought. */
void abx_manifest_unbring(struct abx_manifest *m, const char *path);

#endif
