/* SPDX-License-Identifier: MIT */
/*
 * tar.h: tar streams inside a box.  Only the helper agentbox-local-tar links libarchive.
 *
 * Names are bytes.  Each function works in the current directory, on the standard streams,
 * and ends by sending LB_MSG_DONE or by box_fail().
 */
#ifndef LOCAL_TAR_H
#define LOCAL_TAR_H

#include "providers/local/box.h"

/* How a stream is unpacked. */
struct tar_unpack {
	int64_t size_bytes; /* of the stream; -1: to its end */
	bool keep_owner;    /* numeric ids of the stream instead of the caller's own */
	bool is_image;	    /* a whole root, and this process is confined to it: setuid bits and
			     * capabilities too, absolute names, links on the way */
	bool begun;	    /* what was read of it already is on standard output */
	const char *what;   /* for messages */
};
/* Returns the bytes of the stream. */
int64_t tar_unpack(const struct tar_unpack *u);

/* Pack what is in the current directory, or the one file `only`.  An image keeps extended
 * attributes, and leaves out what is mounted on it. */
void tar_pack(const char *only, bool is_image, const char *what);

#endif
