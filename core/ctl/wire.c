/* SPDX-License-Identifier: MIT */
/* Frames between the host and agentbox-ctl. */
#include "core/ctl/wire.h"

#include <string.h>

#include "abxsdk/base64.h"

static void store_u16(unsigned char *p, uint16_t v)
{
	p[0] = (unsigned char)v;
	p[1] = (unsigned char)(v >> 8);
}

static void store_u32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

uint16_t abx_wire_u16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t abx_wire_u32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_one(struct abx_wire_out *o, struct abx_buf *to, enum abx_wire_kind kind,
		    const void *data, size_t len)
{
	unsigned char frame[ABX_WIRE_HEADER_BYTES + ABX_WIRE_TEXT_PAYLOAD_MAX];

	frame[0] = ABX_WIRE_MAGIC;
	frame[1] = (unsigned char)kind;
	store_u16(frame + 2, o->number++);
	store_u32(frame + 4, (uint32_t)len);
	if (!o->text) {
		abx_buf_add(to, frame, ABX_WIRE_HEADER_BYTES);
		abx_buf_add(to, data, len);
		return;
	}
	if (len)
		memcpy(frame + ABX_WIRE_HEADER_BYTES, data, len);
	abx_buf_addc(to, '=');
	abx_base64_add(to, frame, ABX_WIRE_HEADER_BYTES + len);
	abx_buf_addc(to, '\n');
	explicit_bzero(frame, sizeof(frame));
}

void abx_wire_put(struct abx_wire_out *o, struct abx_buf *to, enum abx_wire_kind kind,
		  const void *data, size_t len)
{
	const size_t max = !o->text	    ? ABX_WIRE_PAYLOAD_MAX
			   : o->short_lines ? ABX_WIRE_TEXT_PAYLOAD_IN
					    : ABX_WIRE_TEXT_PAYLOAD_MAX;
	const char *p = data;

	do {
		size_t n = len < max ? len : max;

		put_one(o, to, kind, p, n);
		p = n ? p + n : p;
		len -= n;
	} while (len);
}

void abx_wire_put_u16s(struct abx_wire_out *o, struct abx_buf *to, enum abx_wire_kind kind,
		       uint16_t a, uint16_t b)
{
	unsigned char p[4];

	store_u16(p, a);
	store_u16(p + 2, b);
	abx_wire_put(o, to, kind, p, sizeof(p));
}

void abx_wire_put_u32(struct abx_wire_out *o, struct abx_buf *to, enum abx_wire_kind kind,
		      uint32_t v)
{
	unsigned char p[4];

	store_u32(p, v);
	abx_wire_put(o, to, kind, p, sizeof(p));
}

static void put_numbers(struct abx_wire_out *o, struct abx_buf *to, enum abx_wire_kind kind,
			const uint32_t *v, size_t n, const char *text)
{
	unsigned char p[1024];
	size_t len = strlen(text);

	for (size_t i = 0; i < n; i++)
		store_u32(p + 4 * i, v[i]);
	if (len > sizeof(p) - 4 * n)
		len = sizeof(p) - 4 * n;
	memcpy(p + 4 * n, text, len);
	abx_wire_put(o, to, kind, p, 4 * n + len);
}

void abx_wire_put_exit(struct abx_wire_out *o, struct abx_buf *to, int32_t code, int32_t signo,
		       uint32_t flags, const char *text)
{
	const uint32_t v[3] = {(uint32_t)code, (uint32_t)signo, flags};

	put_numbers(o, to, ABX_WIRE_EXIT, v, 3, text);
}

void abx_wire_put_fail(struct abx_wire_out *o, struct abx_buf *to, int32_t code, const char *text)
{
	const uint32_t v[1] = {(uint32_t)code};

	put_numbers(o, to, ABX_WIRE_FAIL, v, 1, text);
}

/* Decoding. */

static int give_frame(struct abx_wire_in *in)
{
	const uint32_t len = abx_wire_u32(in->data + 4);

	if (in->data[0] != ABX_WIRE_MAGIC || abx_wire_u16(in->data + 2) != in->number ||
	    len > ABX_WIRE_PAYLOAD_MAX)
		return -EPROTO;
	if (in->len < ABX_WIRE_HEADER_BYTES + len)
		return 1;
	in->number++;
	in->len = 0;
	return in->frame(in->ctx, (enum abx_wire_kind)in->data[1], in->data + ABX_WIRE_HEADER_BYTES,
			 len);
}

static void tell_noise(struct abx_wire_in *in, const void *data, size_t len)
{
	if (in->noise && len)
		in->noise(in->ctx, data, len);
}

static int feed_binary(struct abx_wire_in *in, const unsigned char *p, size_t len)
{
	while (len) {
		size_t want = ABX_WIRE_HEADER_BYTES, n;
		int r;

		if (in->len >= ABX_WIRE_HEADER_BYTES)
			want += abx_wire_u32(in->data + 4);
		n = want - in->len < len ? want - in->len : len;
		memcpy(in->data + in->len, p, n);
		in->len += n;
		p += n;
		len -= n;
		/* The first byte already tells somebody else's words. */
		if (in->data[0] != ABX_WIRE_MAGIC)
			r = -EPROTO;
		else
			r = in->len < ABX_WIRE_HEADER_BYTES ? 1 : give_frame(in);
		if (r == -EPROTO) {
			tell_noise(in, in->data, in->len);
			tell_noise(in, p, len);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int digit(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* In place; the decoded length, or -1. */
static ssize_t decode_base64(unsigned char *p, size_t len)
{
	size_t n = 0;

	if (len % 4)
		return -1;
	for (size_t i = 0; i < len; i += 4) {
		const bool last = i + 4 == len;
		const size_t pad = last && p[i + 3] == '=' ? (p[i + 2] == '=' ? 2 : 1) : 0;
		uint32_t v = 0;

		for (size_t k = 0; k < 4; k++) {
			int d = k >= 4 - pad ? 0 : digit(p[i + k]);

			if (d < 0)
				return -1;
			v = v << 6 | (uint32_t)d;
		}
		p[n++] = (unsigned char)(v >> 16);
		if (pad < 2)
			p[n++] = (unsigned char)(v >> 8);
		if (pad < 1)
			p[n++] = (unsigned char)v;
	}
	return (ssize_t)n;
}

static int end_line(struct abx_wire_in *in)
{
	size_t len = in->len;
	ssize_t n;
	int r;

	in->len = 0;
	if (len && in->data[len - 1] == '\r')
		len--;
	if (!len || in->data[0] != '=') {
		tell_noise(in, in->data, len);
		return 0;
	}
	memmove(in->data, in->data + 1, --len);
	n = decode_base64(in->data, len);
	if (n < ABX_WIRE_HEADER_BYTES)
		return -EPROTO;
	in->len = (size_t)n;
	if (in->len != ABX_WIRE_HEADER_BYTES + (size_t)abx_wire_u32(in->data + 4))
		return -EPROTO;
	r = give_frame(in);
	return r > 0 ? -EPROTO : r;
}

/* Keep a piece of a line that has no end yet. */
static int add_to_line(struct abx_wire_in *in, const unsigned char *p, size_t len)
{
	if (in->skipping || !len)
		return 0;
	if (len > sizeof(in->data) - in->len) {
		if ((in->len ? in->data[0] : *p) == '=')
			return -EPROTO;
		tell_noise(in, in->data, in->len);
		in->skipping = true;
		in->len = 0;
		return 0;
	}
	memcpy(in->data + in->len, p, len);
	in->len += len;
	return 0;
}

static int feed_text(struct abx_wire_in *in, const unsigned char *p, size_t len)
{
	while (len) {
		const unsigned char *end = memchr(p, '\n', len);
		const size_t n = end ? (size_t)(end - p) : len;
		int r = add_to_line(in, p, n);

		if (r == 0 && end) {
			r = in->skipping ? 0 : end_line(in);
			in->skipping = false;
			in->len = 0;
		}
		if (r < 0)
			return r;
		p += n + (end ? 1 : 0);
		len -= n + (end ? 1 : 0);
	}
	return 0;
}

int abx_wire_feed(struct abx_wire_in *in, const void *data, size_t len)
{
	return in->text ? feed_text(in, data, len) : feed_binary(in, data, len);
}
