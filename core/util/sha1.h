/* SPDX-License-Identifier: MIT */
/*
 * core/util/sha1.h: git's names for contents, and SHA-256 of what people give with theirs.
 *
 *	abx_auto(abx_sha1) struct abx_sha1 h = ABX_SHA1_INIT;
 *	char id[ABX_SHA1_HEX_BYTES];
 *
 *	r = abx_sha1_open(err);			once, before the first
 *	abx_blob_id_init(&h, size);
 *	abx_sha1_update(&h, data, size);
 *	abx_sha1_hex(&h, id);
 *
 * SHA-1 is for telling whether two contents are the same, not for security.  libcrypto computes it;
 *it is opened by abx_sha1_open(), because linking it would cost every command milliseconds.  A hash
 *is used by one thread at a time.
 */
#ifndef ABX_SHA1_H
#define ABX_SHA1_H

#include <stddef.h>
#include <stdint.h>

#include "core/util/err.h"

#define ABX_SHA1_HEX_BYTES 41
#define ABX_SHA256_HEX_BYTES 65

struct abx_sha1 {
	void *context;
};
#define ABX_SHA1_INIT \
	{             \
		NULL  \
	}

/* Open the library; ABX_EIO when it is not installed.  Thread-safe, cheap the second time. */
int abx_sha1_open(struct abx_err *err);

/* Start (again), take data in, end: the digest as 40 lower-case digits. */
void abx_sha1_init(struct abx_sha1 *h);
void abx_sha1_update(struct abx_sha1 *h, const void *data, size_t len);
void abx_sha1_hex(struct abx_sha1 *h, char text[ABX_SHA1_HEX_BYTES]);
void abx_sha1_release(struct abx_sha1 *h);

/* The same with SHA-256; abx_sha1_update() takes data in. */
void abx_sha256_init(struct abx_sha1 *h);
void abx_sha256_hex(struct abx_sha1 *h, char text[ABX_SHA256_HEX_BYTES]);

/* Start the object id of a blob of `size` bytes. */
void abx_blob_id_init(struct abx_sha1 *h, uint64_t size);

#endif
