/* SPDX-License-Identifier: MIT */
/*
 * core/box/files.h: what is in a directory of a box, and which processes it has.
 *
 * Where the provider cannot say, a script in the box is asked.  Everything comes from the box:
 * names are bytes, to be quoted before they are shown.
 */
#ifndef ABX_BOX_FILES_H
#define ABX_BOX_FILES_H

#include "core/box/app.h"

/* Sorted by name; `dir` is relative to /workspace.  The box runs afterwards. */
int abx_box_files(struct abx_app *app, struct abx_box *box, const char *dir,
		  struct abx_file_list *ret, struct abx_err *err);

/*
 * What a box uses.  Rows of the provider's: one of kind "box", and perhaps one of kind "process"
 * for each process.  processes: rows of those are needed, and made up from the box's /proc where
 * the provider has none.
 */
int abx_box_stats(struct abx_app *app, struct abx_box *box, bool processes,
		  struct abx_row_list *ret, struct abx_err *err);

#endif
