/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/tar.h: the headers of a GNU tar stream.
 *
 * Names and link targets are raw bytes of any length, sizes have no limit, times are whole
 * seconds.  Only what seeds and copies consist of: files, directories, links.  Whoever meets
 * more in a stream uses libarchive, whose start is dearer than a small stream.
 *
 *	abx_tar_head_add(&b, &head);     one entry's header; size bytes of content follow,
 *	abx_tar_padding(head.size);      and that many zeros
 *	two blocks of zeros              end the stream
 */
#ifndef ABXSDK_TAR_H
#define ABXSDK_TAR_H

#include <stdint.h>

#include "abxsdk/buf.h"

#define ABX_TAR_BLOCK ((size_t)512)
#define ABX_TAR_NAME_BYTES 100 /* of a header; longer ones take blocks of their own */

enum abx_tar_type {
	ABX_TAR_END = 0, /* a block of zeros */
	ABX_TAR_FILE = '0',
	ABX_TAR_HARDLINK = '1',
	ABX_TAR_SYMLINK = '2',
	ABX_TAR_DIR = '5',
	ABX_TAR_LONG_TARGET = 'K', /* the content is the next entry's target */
	ABX_TAR_LONG_NAME = 'L',   /* the content is the next entry's name */
};

struct abx_tar_head {
	enum abx_tar_type type;
	const char *name;   /* a directory's without the slash at its end */
	const char *target; /* of a link */
	uint32_t mode;
	uint64_t size;
	int64_t mtime_s;
};

/* Owner and group are root's, by number. */
void abx_tar_head_add(struct abx_buf *b, const struct abx_tar_head *head);

/* Strings of a parsed header. */
struct abx_tar_room {
	char name[ABX_TAR_NAME_BYTES + 1], target[ABX_TAR_NAME_BYTES + 1];
};
/* What a block says; strings are in `room`.  -EBADMSG: it is no header of this format;
 * -ENOTSUP: of another type or extension. */
int abx_tar_head_parse(const char block[ABX_TAR_BLOCK], struct abx_tar_room *room,
		       struct abx_tar_head *ret);

size_t abx_tar_padding(uint64_t size);

#endif
