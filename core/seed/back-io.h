/* SPDX-License-Identifier: MIT */
/*
 * core/seed/back-io.h: bringing back by any means of reaching a box; back.h has the cloud's.
 */
#ifndef ABX_BACK_IO_H
#define ABX_BACK_IO_H

#include "core/seed/back.h"
#include "core/seed/box-io.h"

int abx_back_changes_io(const struct abx_box_io *io, const struct abx_back *back,
			struct abx_changes *ret, struct abx_err *err);
int abx_back_apply_io(const struct abx_box_io *io, const struct abx_back *back,
		      struct abx_changes *changes, abx_progress_fn progress, void *progress_ctx,
		      struct abx_err *err);
int abx_back_check_tree(const struct abx_back *back, struct abx_err *err);
/* "BYTES:FILES": the largest file that may come, and how many new ones; to be freed. */
char *abx_back_limits(const struct abx_back *back);
int abx_back_no_workspace(const struct abx_back *back, int errnum, struct abx_err *err);
/* The directory of the manifest, for temporary files; to be freed. */
char *abx_back_tmp_dir(const struct abx_back *back);

#endif
