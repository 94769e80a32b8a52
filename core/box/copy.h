/* SPDX-License-Identifier: MIT */
/*
 * core/box/copy.h: files and trees between this machine and a box, wherever they lie.
 *
 * As `cp -r` does it: an existing directory as destination takes the sources in under their
 * own names, anything else is the new name.  Paths in a box are relative to /workspace.
 * What comes out of a box is not trusted (core/util/archive.h says what is refused).
 */
#ifndef ABX_COPY_H
#define ABX_COPY_H

#include "core/box/app.h"
#include "core/util/archive.h"

struct abx_copy {
	const char *const *sources;
	size_t n_sources;
	const char *target;
};

int abx_copy_in(struct abx_app *app, struct abx_box *box, const struct abx_copy *what,
		struct abx_err *err);
/* ret->n_refused counts what a box sent and this machine does not take. */
int abx_copy_out(struct abx_app *app, struct abx_box *box, const struct abx_copy *what,
		 struct abx_tar_result *ret, struct abx_err *err);

/* `fd` is read to its end: into a file, or, where `target` is a directory, as a tar stream that is
 * unpacked below it. */
int abx_copy_stream_in(struct abx_app *app, struct abx_box *box, int fd, const char *target,
		       struct abx_err *err);
/* The bytes of a file, or a directory's contents as a tar stream, as the box gives them. */
int abx_copy_stream_out(struct abx_app *app, struct abx_box *box, const char *source, int fd,
			struct abx_err *err);

#endif
