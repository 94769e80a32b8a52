/* SPDX-License-Identifier: MIT */
/*
 * core/box/workspace.h: which directory a box is made of.
 */
#ifndef ABX_BOX_WORKSPACE_H
#define ABX_BOX_WORKSPACE_H

#include "core/box/app.h"

/* `given` as the user wrote it, NULL: the current directory.  *ret_path is absolute and real;
 * where that has files of a repository above, it is the repository, and *ret_subdir the way
 * down, otherwise NULL.  Opens the app. */
int abx_workspace_resolve(struct abx_app *app, const char *given, char **ret_path,
			  char **ret_subdir, struct abx_err *err);

#endif
