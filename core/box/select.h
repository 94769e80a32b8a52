/* SPDX-License-Identifier: MIT */
/*
 * core/box/select.h: which box the user means.
 *
 * A number is an index in the project.  Anything else is a name, an id, or a prefix of one
 * of them that fits a single box; names are found from any directory.  Nothing at all means
 * the project's only box.  Several matches are an error that lists them.
 */
#ifndef ABX_SELECT_H
#define ABX_SELECT_H

#include "core/box/app.h"

/* The project that the current directory belongs to: the nearest directory above it (or
 * itself) that has boxes, else itself.  Free both.  */
int abx_select_project(struct abx_app *app, char **ret_path, char **ret_key, struct abx_err *err);

/* ABX_ENOBOX when there is none.  `what` may be NULL. */
int abx_select_box(struct abx_app *app, const char *what, struct abx_box *ret, struct abx_err *err);

#endif
