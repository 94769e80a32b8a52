/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/answer.h: the answer of an HTTP/1.1 server, taken in as it comes.
 *
 *	struct emu_answer a;
 *	emu_answer_init(&a, false, on_body, ctx);
 *	while (more comes)
 *		emu_answer_take(&a, data, len);    false: that is none, or all of it was there
 *	emu_answer_release(&a);
 *
 * Interim answers are passed over.  What follows the head of a 101 is all body.
 */
#ifndef CLOUD_ANSWER_H
#define CLOUD_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "abxsdk/buf.h"

#define EMU_ANSWER_HEADERS 64

enum emu_answer_state {
	ANSWER_HEAD,
	ANSWER_BYTES, /* `left` of them */
	ANSWER_REST,  /* until the connection ends */
	ANSWER_CHUNK_SIZE,
	ANSWER_CHUNK,
	ANSWER_CHUNK_END,
	ANSWER_TRAILER,
	ANSWER_OVER,
	ANSWER_BAD,
};

struct emu_answer {
	enum emu_answer_state state;
	bool no_body; /* of what was asked with HEAD */
	struct abx_buf head, line;
	int status;
	char *names[EMU_ANSWER_HEADERS], *values[EMU_ANSWER_HEADERS]; /* in the head's memory */
	size_t n;
	uint64_t left;
	uint64_t size; /* UINT64_MAX: not said */
	/* False: nobody wants more. */
	bool (*body)(void *ctx, const void *data, size_t len);
	void *ctx;
};

void emu_answer_init(struct emu_answer *a, bool head_only,
		     bool (*body)(void *ctx, const void *data, size_t len), void *ctx);
bool emu_answer_take(struct emu_answer *a, const void *data, size_t len);
const char *emu_answer_header(const struct emu_answer *a, const char *name);
void emu_answer_release(struct emu_answer *a);

#endif
