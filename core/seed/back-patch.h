/* SPDX-License-Identifier: MIT */
/*
 * core/seed/back-patch.h: what a box changed, as a patch that `git apply` takes.
 *
 * The patch is written by this machine's git from contents that were checked against their
 * ids, in a repository of its own: a box cannot write a patch that says something else.
 */
#ifndef ABX_BACK_PATCH_H
#define ABX_BACK_PATCH_H

#include "core/seed/back-io.h"

/* Of the changes without a problem, to `fd`.  tmp: a directory of ours, empty.  ABX_ENOTFOUND
 * when this machine has no git. */
int abx_back_patch(struct abx_cloud *cloud, const struct abx_call_opts *o,
		   const struct abx_sandbox *sandbox, const struct abx_back *back, const char *tmp,
		   struct abx_changes *changes, int fd, struct abx_err *err);
int abx_back_patch_io(const struct abx_box_io *io, const struct abx_back *back, const char *tmp,
		      struct abx_changes *changes, int fd, struct abx_err *err);

#endif
