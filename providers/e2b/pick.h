/* SPDX-License-Identifier: MIT */
/*
 * pick.h: some members of a tar file, as a gzip tar for a template build.
 *
 * Stored, not deflated: a build's files are few, and what is large among them is compressed as
 * it is.  Constant memory.
 */
#ifndef E2B_PICK_H
#define E2B_PICK_H

#include <stdint.h>

/* Of `tar_fd`, from its beginning, `path` and what is below, to `out_fd`.  0, -ENOENT: there is
 * none such; -EBADMSG: it is no tar of the kind that the host makes; another -errno. */
int e2b_pick(int tar_fd, const char *path, int out_fd);

#endif
