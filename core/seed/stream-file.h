/* SPDX-License-Identifier: MIT */
/*
 * core/seed/stream-file.h: one file of the workspace into the stream, also while somebody
 * writes to it.
 *
 * What git has looked at must be as it was then, or it is looked at again.  All else is taken
 * as it is read: a small file as a whole, before its header; of a big one as much as its
 * header said.  Only one that shrinks or is rewritten meanwhile spoils the stream.
 *
 * Whoever may not begin again (`last`) carries what changed as it was read, and names it in
 * seed->taken.
 */
#ifndef ABX_STREAM_FILE_H
#define ABX_STREAM_FILE_H

#include "core/seed/cursor.h"
#include "core/seed/manifest.h"
#include "core/seed/seed-state.h"
#include "core/util/archive.h"

#define ABX_STREAM_SMALL_BYTES ((size_t)256 * 1024)

struct abx_file_writer {
	struct abx_seed *seed;
	struct abx_tar *tar;
	struct abx_manifest *sent;
	struct abx_cursor cursor;
	unsigned char *small; /* ABX_STREAM_SMALL_BYTES; the caller's */
	bool last;
};

/* A file or link, items[i] of the seed's.  ABX_ESTATE with seed->moved: it is another one than
 * was inspected, so begin again. */
int abx_stream_file(struct abx_file_writer *w, size_t i, struct abx_err *err);

#endif
