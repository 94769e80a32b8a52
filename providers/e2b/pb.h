/* SPDX-License-Identifier: MIT */
/*
 * pb.h: the wire format of protocol buffers, as far as process.proto needs it.
 *
 *	struct e2b_pb m = {data, len};
 *	struct e2b_pb_field f;
 *	int r;
 *
 *	while ((r = e2b_pb_next(&m, &f)) > 0)
 *		if (f.number == 3)
 *			... f.value of a number, f.data and f.len of anything else
 *	r is 0, or -EPROTO: it is no message
 *
 * Unknown fields are met and passed over; what is absent is zero.  Fields point into the message.
 */
#ifndef E2B_PB_H
#define E2B_PB_H

#include <stdint.h>

#include "abxsdk/buf.h"

struct e2b_pb {
	const unsigned char *at;
	size_t left;
};

struct e2b_pb_field {
	uint32_t number;
	uint64_t value;
	const unsigned char *data; /* NULL: it is a number */
	size_t len;
};

int e2b_pb_next(struct e2b_pb *m, struct e2b_pb_field *ret);
int32_t e2b_pb_sint32(uint64_t value);
/* A string, cut where there is no room for it. */
void e2b_pb_text(const struct e2b_pb_field *f, char *to, size_t size);

void e2b_pb_put_uint(struct abx_buf *b, uint32_t number, uint64_t value);
void e2b_pb_put_bytes(struct abx_buf *b, uint32_t number, const void *data, size_t len);
void e2b_pb_put_str(struct abx_buf *b, uint32_t number, const char *text);
/* Only what stands before so many bytes. */
#define E2B_PB_HEAD_MAX 15
size_t e2b_pb_head(unsigned char to[E2B_PB_HEAD_MAX], uint32_t number, size_t len);

#endif
