/* SPDX-License-Identifier: MIT */
/* The wire format of protocol buffers. */
#include "providers/e2b/pb.h"

#include <string.h>

#define TYPE_VARINT 0
#define TYPE_64 1
#define TYPE_BYTES 2
#define TYPE_32 5

static int take_varint(struct e2b_pb *m, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64 && m->left; shift += 7) {
		const unsigned char c = *m->at++;

		m->left--;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EPROTO;
}

static int take_fixed(struct e2b_pb *m, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if (m->left < n)
		return -EPROTO;
	for (size_t i = n; i-- > 0;)
		v = v << 8 | m->at[i];
	m->at += n;
	m->left -= n;
	*ret = v;
	return 0;
}

int e2b_pb_next(struct e2b_pb *m, struct e2b_pb_field *ret)
{
	struct e2b_pb_field f = {0};
	uint64_t key;
	int r;

	if (!m->left)
		return 0;
	r = take_varint(m, &key);
	if (r < 0)
		return r;
	if (key >> 3 == 0 || key >> 3 > UINT32_MAX)
		return -EPROTO;
	f.number = (uint32_t)(key >> 3);
	switch (key & 7) {
	case TYPE_VARINT:
		r = take_varint(m, &f.value);
		break;
	case TYPE_64:
		r = take_fixed(m, 8, &f.value);
		break;
	case TYPE_32:
		r = take_fixed(m, 4, &f.value);
		break;
	case TYPE_BYTES:
		r = take_varint(m, &f.value);
		if (r == 0 && f.value > m->left)
			r = -EPROTO;
		if (r < 0)
			break;
		f.data = m->at;
		f.len = (size_t)f.value;
		m->at += f.len;
		m->left -= f.len;
		break;
	default:
		r = -EPROTO;
	}
	if (r < 0)
		return r;
	*ret = f;
	return 1;
}

int32_t e2b_pb_sint32(uint64_t value)
{
	const uint32_t v = (uint32_t)value;

	return (int32_t)((v >> 1) ^ (~(v & 1) + 1));
}

void e2b_pb_text(const struct e2b_pb_field *f, char *to, size_t size)
{
	const size_t n = f->len < size - 1 ? f->len : size - 1;

	if (n)
		memcpy(to, f->data, n);
	to[n] = '\0';
}

static size_t put_varint(unsigned char *to, uint64_t v)
{
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		to[n++] = (unsigned char)(v | 0x80);
	to[n++] = (unsigned char)v;
	return n;
}

size_t e2b_pb_head(unsigned char to[E2B_PB_HEAD_MAX], uint32_t number, size_t len)
{
	size_t n = put_varint(to, (uint64_t)number << 3 | TYPE_BYTES);

	return n + put_varint(to + n, len);
}

void e2b_pb_put_uint(struct abx_buf *b, uint32_t number, uint64_t value)
{
	unsigned char text[20];
	size_t n = put_varint(text, (uint64_t)number << 3 | TYPE_VARINT);

	n += put_varint(text + n, value);
	abx_buf_add(b, text, n);
}

void e2b_pb_put_bytes(struct abx_buf *b, uint32_t number, const void *data, size_t len)
{
	unsigned char head[E2B_PB_HEAD_MAX];

	abx_buf_add(b, head, e2b_pb_head(head, number, len));
	abx_buf_add(b, data, len);
}

void e2b_pb_put_str(struct abx_buf *b, uint32_t number, const char *text)
{
	e2b_pb_put_bytes(b, number, text, strlen(text));
}
