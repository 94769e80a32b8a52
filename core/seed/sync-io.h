/* SPDX-License-Identifier: MIT */
/*
 * core/seed/sync-io.h: the parts of bringing a box up to date; sync.h has the cloud's.
 */
#ifndef ABX_SYNC_IO_H
#define ABX_SYNC_IO_H

#include "core/seed/box-io.h"
#include "core/seed/manifest.h"
#include "core/seed/seed-state.h"
#include "core/seed/sync.h"

int abx_sync_io(const struct abx_box_io *io, const struct abx_sync_ask *ask, struct abx_synced *ret,
		struct abx_err *err);

/* sync-delta.c: what the host has otherwise than it was sent. */
struct abx_sync_item {
	char *path;
	uint32_t old_mode, new_mode; /* as git has them; 0: not there */
	char old_oid[ABX_SHA1_HEX_BYTES], new_oid[ABX_SHA1_HEX_BYTES];
	struct stat st;
	bool committed; /* in the host's HEAD just so */
};
struct abx_sync_delta {
	struct abx_sync_item *items; /* sorted by path */
	size_t len, cap;
};
/* Also takes over into `sent` what was touched without being changed. */
int abx_sync_delta(const struct abx_seed *seed, struct abx_manifest *sent,
		   struct abx_sync_delta *ret, struct abx_err *err);
int abx_sync_mark_committed(const struct abx_seed_repo *root, struct abx_sync_delta *delta,
			    struct abx_err *err);
void abx_sync_delta_release(struct abx_sync_delta *d);
/* The tar stream that the script reads; pack: a file, or NULL.  contents: with the files. */
int abx_sync_write(const struct abx_seed *seed, const struct abx_sync_delta *delta,
		   const char *pack, int fd, struct abx_err *err);

#endif
