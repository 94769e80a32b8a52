/* SPDX-License-Identifier: MIT */
/* tests/cloud/gzip.h: streams of gzip, in pieces. */
#ifndef CLOUD_GZIP_H
#define CLOUD_GZIP_H

#include "tests/cloud/feed.h"

struct emu_gunzip;

struct emu_gunzip *emu_gunzip_new(void);
/* What it holds is given to fn: 0, what fn returned when that is not 0, or -EPROTO. */
int emu_gunzip_put(struct emu_gunzip *g, const void *data, size_t len,
		   int (*fn)(void *ctx, const void *data, size_t len), void *ctx);
void emu_gunzip_free(struct emu_gunzip *g);

struct emu_gzip;

struct emu_gzip *emu_gzip_new(void);
/* What comes through the feed, compressed: as emu_feed_pull. */
ssize_t emu_gzip_pull(struct emu_gzip *g, struct emu_feed *feed, void *data, size_t size,
		      int64_t wait_ms);
void emu_gzip_free(struct emu_gzip *g);

#endif
