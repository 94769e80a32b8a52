/* SPDX-License-Identifier: MIT */
/*
 * core/seed/back-fetch.h: contents from a box by their git ids, in one trip.
 *
 * Each is checked against its id, so a box cannot give one thing and name another, and a
 * connection cannot lose a byte unseen.  Callbacks run on another thread, one at a time, in
 * the order of `ids`, never after abx_back_fetch() returned; a negative result ends it.
 */
#ifndef ABX_BACK_FETCH_H
#define ABX_BACK_FETCH_H

#include "core/seed/box-io.h"

struct abx_fetch {
	const char *const *ids;
	size_t len;
	int (*begin)(void *ctx, size_t i, uint64_t size, struct abx_err *err);
	int (*data)(void *ctx, size_t i, const void *data, size_t len, struct abx_err *err);
	int (*end)(void *ctx, size_t i, struct abx_err *err);
	/* Is one of this size not wanted?  It is passed over, at the cost of a trip more, instead
	 * of begin.  NULL: all are. */
	bool (*refuse)(void *ctx, size_t i, uint64_t size);
	void *ctx;
};
#define ABX_FETCH_REFUSALS_MAX 100

/* tmp: a directory of ours.  ABX_EPROTO for anything but exactly what was asked for. */
int abx_back_fetch(const struct abx_box_io *io, const char *dir, const char *tmp,
		   const struct abx_fetch *fetch, struct abx_err *err);

#endif
