/* SPDX-License-Identifier: MIT */
/* A growing byte buffer with a mandatory upper bound. */
#include "abxsdk/buf.h"

#include <string.h>

static void buf_fail(struct abx_buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
	b->failed = true;
}

char *abx_buf_reserve(struct abx_buf *b, size_t len)
{
	size_t need, cap;
	char *data;

	if (b->failed)
		return NULL;
	if (len > b->max - b->len || len >= SIZE_MAX - b->len) {
		buf_fail(b);
		return NULL;
	}
	need = b->len + len + 1;
	if (need <= b->cap)
		return b->data + b->len;
	cap = b->cap ? b->cap : 64;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	data = realloc(b->data, cap);
	if (!data) {
		buf_fail(b);
		return NULL;
	}
	b->data = data;
	b->cap = cap;
	b->data[b->len] = '\0';
	return b->data + b->len;
}

void abx_buf_commit(struct abx_buf *b, size_t n)
{
	b->len += n;
	b->data[b->len] = '\0';
}

void abx_buf_add(struct abx_buf *b, const void *data, size_t len)
{
	char *at = abx_buf_reserve(b, len);

	if (!at)
		return;
	if (len)
		memcpy(at, data, len);
	abx_buf_commit(b, len);
}

void abx_buf_adds(struct abx_buf *b, const char *s)
{
	abx_buf_add(b, s, strlen(s));
}

void abx_buf_addc(struct abx_buf *b, char c)
{
	abx_buf_add(b, &c, 1);
}

void abx_buf_addv(struct abx_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	char *at;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0) {
		buf_fail(b);
		return;
	}
	at = abx_buf_reserve(b, (size_t)n);
	if (!at)
		return;
	(void)vsnprintf(at, (size_t)n + 1, fmt, ap);
	abx_buf_commit(b, (size_t)n);
}

void abx_buf_addf(struct abx_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	abx_buf_addv(b, fmt, ap);
	va_end(ap);
}

const char *abx_buf_str(const struct abx_buf *b)
{
	return b->data ? b->data : "";
}

char *abx_buf_steal(struct abx_buf *b)
{
	char *data;

	if (!b->data)
		(void)abx_buf_reserve(b, 0);
	data = b->failed ? NULL : b->data;
	b->data = NULL;
	b->len = b->cap = 0;
	return data;
}

void abx_buf_reset(struct abx_buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

void abx_buf_release(struct abx_buf *b)
{
	int saved = errno;

	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
	errno = saved;
}

int abx_buf_read_fd(struct abx_buf *b, int fd)
{
	char chunk[16384];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n == 0)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		abx_buf_add(b, chunk, (size_t)n);
		if (b->failed)
			return -EFBIG;
	}
}
