/* SPDX-License-Identifier: MIT */
/*
 * core/seed/status.h: reading `git status --porcelain=v2 -z --branch` without renames.
 */
#ifndef ABX_STATUS_H
#define ABX_STATUS_H

#include <stdbool.h>

#include "abxsdk/buf.h"
#include "core/util/err.h"
#include "core/util/mem.h"

/* The arguments that the host is asked with; abx_git_start takes them. */
extern const char *const abx_status_args[];

struct abx_status {
	char *head;		   /* the commit, or NULL before the first one */
	struct abx_buf changes;	   /* the records themselves, without the header lines */
	struct abx_strv dirty;	   /* tracked files that differ from the index, sorted */
	struct abx_strv untracked; /* sorted; a nested repository ends with a slash */
	struct abx_strv ignored;   /* as few as say it; a directory ends with a slash */
};

/* ABX_EIO for output that is not what was asked for. */
int abx_status_parse(const struct abx_buf *out, struct abx_status *ret, struct abx_err *err);
/* As if those untracked files, which are sorted, were not there. */
void abx_status_forget(struct abx_status *s, const struct abx_strv *paths);
void abx_status_release(struct abx_status *s);
/* The path that a record is about, or NULL for a header. */
const char *abx_status_path(const char *record);
bool abx_status_is_dirty(const struct abx_status *s, const char *path);

#endif
