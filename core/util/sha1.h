/* SPDX-License-Identifier: MIT */
/*
 * core/util/sha1.h: git's names for contents.
 *
 *	struct abx_sha1 h;
 *	char id[ABX_SHA1_HEX_BYTES];
 *	abx_blob_id_init(&h, size);
 *	abx_sha1_update(&h, data, size);
 *	abx_sha1_hex(&h, id);
 *
 * For telling whether two contents are the same, not for security: the program links no
 * cryptographic library, and a `git hash-object` for each file would cost a process.
 */
#ifndef ABX_SHA1_H
#define ABX_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define ABX_SHA1_HEX_BYTES 41

struct abx_sha1 {
	uint32_t state[5];
	uint64_t len;
	unsigned char block[64];
};

void abx_sha1_init(struct abx_sha1 *h);
void abx_sha1_update(struct abx_sha1 *h, const void *data, size_t len);
/* The digest as 40 lower-case digits; `h` is used up. */
void abx_sha1_hex(struct abx_sha1 *h, char text[ABX_SHA1_HEX_BYTES]);

/* Start the object id of a blob of `size` bytes. */
void abx_blob_id_init(struct abx_sha1 *h, uint64_t size);

#endif
