/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/feed.h: bytes from one thread to another, at most so many at a time.
 *
 *	struct emu_feed *f = emu_feed_new(1 << 20);        two references: one for each side
 *	emu_feed_push(f, data, len);       waits for room; false: nobody reads any more
 *	emu_feed_end(f, false);            no more will come
 *	emu_feed_put(f);                   done with it
 */
#ifndef CLOUD_FEED_H
#define CLOUD_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct emu_feed;

struct emu_feed *emu_feed_new(size_t max_bytes);
struct emu_feed *emu_feed_get(struct emu_feed *f);
void emu_feed_put(struct emu_feed *f);
/* What is given to the reader when nothing came for `ms`. */
void emu_feed_idle(struct emu_feed *f, int64_t ms, const void *data, size_t len);

/* The reader gets this and the end, `ms` from now. */
void emu_feed_until(struct emu_feed *f, int64_t ms, const void *data, size_t len);
/* Called once, when nobody reads any more. */
void emu_feed_on_left(struct emu_feed *f, void (*fn)(void *ctx), void *ctx);

bool emu_feed_push(struct emu_feed *f, const void *data, size_t len);
/* The same without waiting: for last words. */
void emu_feed_push_now(struct emu_feed *f, const void *data, size_t len);
/* broken: the reader does not get a proper end. */
void emu_feed_end(struct emu_feed *f, bool broken);

/* Whole pieces stay whole as far as `size` allows.  > 0, 0 at the end, -EPIPE broken, -EAGAIN
 * after wait_ms. */
ssize_t emu_feed_pull(struct emu_feed *f, void *data, size_t size, int64_t wait_ms);
/* Nobody reads any more. */
void emu_feed_leave(struct emu_feed *f);
bool emu_feed_left(struct emu_feed *f);

#endif
