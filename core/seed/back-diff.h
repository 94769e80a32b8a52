/* SPDX-License-Identifier: MIT */
/*
 * core/seed/back-diff.h: how a box's work looks as a diff.
 *
 * The base is the commits that the box began with, so that edits which were sent along and
 * commits made since are all in it; or, since_create, what was sent, so that it is what
 * download brings.  A directory without a repository has only the latter.  A file that moved
 * is a rename when half of it is the same, looked for among up to 1000 files.
 */
#ifndef ABX_BACK_DIFF_H
#define ABX_BACK_DIFF_H

#include "core/seed/back.h"
#include "core/seed/box-io.h"

enum abx_diff_form { ABX_DIFF_TEXT, ABX_DIFF_STAT };

struct abx_diff_how {
	enum abx_diff_form form;
	bool since_create;
	bool color;
};

/* git's own text, binary as text says so, to `fd`.  *ret_more (may be NULL): the box has files
 * that cannot be in a diff. */
int abx_back_diff(struct abx_cloud *cloud, const struct abx_call_opts *o,
		  const struct abx_sandbox *sandbox, const struct abx_back *back,
		  const struct abx_diff_how *how, int fd, bool *ret_more, struct abx_err *err);
int abx_back_diff_io(const struct abx_box_io *io, const struct abx_back *back,
		     const struct abx_diff_how *how, int fd, bool *ret_more, struct abx_err *err);

struct abx_diff_entry {
	char *path, *old_path;	 /* old_path: NULL unless it was renamed */
	char status;		 /* git's: A, M, D, R, T */
	uint32_t mode, old_mode; /* 0: there is none */
	bool binary;
	uint64_t added, deleted; /* lines, unless binary */
};
struct abx_diff_list {
	struct abx_diff_entry *items;
	size_t len;
};
void abx_diff_list_release(struct abx_diff_list *l);

/* Sorted as git does.  Paths are as the box says them, not checked: to be shown only. */
int abx_back_diff_list(struct abx_cloud *cloud, const struct abx_call_opts *o,
		       const struct abx_sandbox *sandbox, const struct abx_back *back,
		       bool since_create, struct abx_diff_list *ret, struct abx_err *err);
int abx_back_diff_list_io(const struct abx_box_io *io, const struct abx_back *back,
			  bool since_create, struct abx_diff_list *ret, struct abx_err *err);

#endif
