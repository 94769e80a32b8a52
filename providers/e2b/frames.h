/* SPDX-License-Identifier: MIT */
/*
 * frames.h: a stream of the Connect protocol, taken apart.
 *
 * A frame is a byte of flags, the length in big endian, and that many bytes.  The last one has
 * the flag E2B_FRAME_END, and says in JSON whether all went well.  Fed in pieces of any size.
 * Nothing is compressed, for that is never asked for.
 */
#ifndef E2B_FRAMES_H
#define E2B_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "abxsdk/buf.h"

#define E2B_FRAME_END 0x02
#define E2B_FRAME_HEAD_BYTES 5
#define E2B_FRAME_MAX ((size_t)4 << 20)

struct e2b_frames {
	/* Non-zero ends e2b_frames_feed() with that. */
	int32_t (*message)(void *ctx, const void *data, size_t len);
	void *ctx;
	unsigned char head[E2B_FRAME_HEAD_BYTES];
	size_t n_head;
	struct abx_buf data; /* of a frame that came in pieces */
	bool ended;
	char code[32], text[512]; /* what the last frame says went wrong; "" */
};

#define E2B_FRAMES_INIT(message_, ctx_)                                                   \
	{                                                                                 \
		.message = (message_), .ctx = (ctx_), .data = ABX_BUF_INIT(E2B_FRAME_MAX) \
	}

/* 0, ABX_EPROTO, or what message() returned. */
int32_t e2b_frames_feed(struct e2b_frames *f, const void *data, size_t len);
void e2b_frames_release(struct e2b_frames *f);

void e2b_frame_head(unsigned char to[E2B_FRAME_HEAD_BYTES], size_t len);

/* {"code": "...", "message": "..."}; false: it is nothing of Connect's, whose codes are words. */
bool e2b_frames_error(const char *json, size_t len, char *code, size_t code_size, char *text,
		      size_t text_size);

#endif
