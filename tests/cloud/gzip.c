/* SPDX-License-Identifier: MIT */
/* Streams of gzip. */
#include "tests/cloud/gzip.h"

#include <errno.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

#include "core/util/mem.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define GZIP_BITS (MAX_WBITS + 16)

struct emu_gunzip {
	z_stream z;
	unsigned char out[BLOCK_BYTES];
};

struct emu_gunzip *emu_gunzip_new(void)
{
	struct emu_gunzip *g = abx_xcalloc(1, sizeof(*g));

	if (inflateInit2(&g->z, GZIP_BITS) != Z_OK)
		abort();
	return g;
}

int emu_gunzip_put(struct emu_gunzip *g, const void *data, size_t len,
		   int (*fn)(void *ctx, const void *data, size_t len), void *ctx)
{
	int r = Z_OK;

	g->z.next_in = data;
	g->z.avail_in = (uInt)len;
	do {
		int e;

		g->z.next_out = g->out;
		g->z.avail_out = (uInt)sizeof(g->out);
		r = inflate(&g->z, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return -EPROTO;
		e = fn(ctx, g->out, sizeof(g->out) - g->z.avail_out);
		if (e)
			return e;
	} while (r == Z_OK && (g->z.avail_in || g->z.avail_out == 0));
	return 0;
}

void emu_gunzip_free(struct emu_gunzip *g)
{
	if (!g)
		return;
	(void)inflateEnd(&g->z);
	free(g);
}

struct emu_gzip {
	z_stream z;
	unsigned char in[BLOCK_BYTES];
	bool whole, over;
};

struct emu_gzip *emu_gzip_new(void)
{
	struct emu_gzip *g = abx_xcalloc(1, sizeof(*g));

	if (deflateInit2(&g->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	return g;
}

ssize_t emu_gzip_pull(struct emu_gzip *g, struct emu_feed *feed, void *data, size_t size,
		      int64_t wait_ms)
{
	g->z.next_out = data;
	g->z.avail_out = (uInt)size;
	while (!g->over && g->z.avail_out == size) {
		if (g->z.avail_in == 0 && !g->whole) {
			ssize_t n = emu_feed_pull(feed, g->in, sizeof(g->in), wait_ms);

			if (n < 0)
				return n;
			g->whole = n == 0;
			g->z.next_in = g->in;
			g->z.avail_in = (uInt)n;
		}
		g->over = deflate(&g->z, g->whole ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_END;
	}
	return (ssize_t)(size - g->z.avail_out);
}

void emu_gzip_free(struct emu_gzip *g)
{
	if (!g)
		return;
	(void)deflateEnd(&g->z);
	free(g);
}
