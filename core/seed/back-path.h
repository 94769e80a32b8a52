/* SPDX-License-Identifier: MIT */
/*
 * core/seed/back-path.h: which paths a box may change on the host.
 */
#ifndef ABX_BACK_PATH_H
#define ABX_BACK_PATH_H

/* Why this path is not written, or NULL when it is fine.  Refused: what is not below the
 * workspace, and git's own directory in every spelling that some file system takes for it
 * (case, dots and blanks behind, `git~1`, alternate streams, characters that HFS+ ignores). */
const char *abx_back_path_problem(const char *path);

#endif
