/* SPDX-License-Identifier: MIT */
/*
 * frames.h: both outputs of a command in one stream, as the engine sends them.
 *
 * A frame is a byte for the stream (0 stdin, 1 stdout, 2 stderr, 3 the engine itself), three
 * zeros, the length in big endian, and that many bytes.  Fed in pieces of any size.
 */
#ifndef DOCKER_FRAMES_H
#define DOCKER_FRAMES_H

#include <stddef.h>
#include <stdint.h>

struct docker_frames {
	/* Non-zero ends docker_frames_feed() with that. */
	int32_t (*output)(void *ctx, int32_t stream, const void *data, size_t len);
	void *ctx;
	unsigned char head[8];
	size_t n_head;
	uint32_t left; /* of the frame's content */
};

/* 0, ABX_EPROTO, or what output() returned. */
int32_t docker_frames_feed(struct docker_frames *f, const void *data, size_t len);
/* Did the stream end between two frames? */
int docker_frames_whole(const struct docker_frames *f);

#endif
