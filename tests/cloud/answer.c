/* SPDX-License-Identifier: MIT */
/* The answer of an HTTP/1.1 server. */
#include "tests/cloud/answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abxsdk/number.h"

#define HEAD_MAX ((size_t)64 << 10)
#define LINE_MAX_BYTES 1024

void emu_answer_init(struct emu_answer *a, bool head_only,
		     bool (*body)(void *ctx, const void *data, size_t len), void *ctx)
{
	memset(a, 0, sizeof(*a));
	a->head = (struct abx_buf)ABX_BUF_INIT(HEAD_MAX);
	a->line = (struct abx_buf)ABX_BUF_INIT(LINE_MAX_BYTES);
	a->no_body = head_only;
	a->size = UINT64_MAX;
	a->body = body;
	a->ctx = ctx;
}

void emu_answer_release(struct emu_answer *a)
{
	abx_buf_release(&a->head);
	abx_buf_release(&a->line);
}

const char *emu_answer_header(const struct emu_answer *a, const char *name)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcasecmp(a->names[i], name) == 0)
			return a->values[i];
	return NULL;
}

/* "HTTP/1.1 200 OK", and the lines that follow. */
static bool parse_head(struct emu_answer *a)
{
	char *line = a->head.data, *next;

	if (strncmp(line, "HTTP/1.", 7) != 0 || strlen(line) < 12)
		return false;
	a->status = (int)strtol(line + 9, NULL, 10);
	a->n = 0;
	while ((next = strstr(line, "\r\n"))) {
		char *colon;

		*next = '\0';
		colon = strchr(line, ':');
		if (colon && line != a->head.data && a->n < EMU_ANSWER_HEADERS) {
			*colon = '\0';
			a->names[a->n] = line;
			a->values[a->n++] = colon + 1 + strspn(colon + 1, " \t");
		}
		line = next + 2;
	}
	return a->status >= 100 && a->status <= 599;
}

static enum emu_answer_state framing(struct emu_answer *a)
{
	const char *length = emu_answer_header(a, "Content-Length");
	const char *coding = emu_answer_header(a, "Transfer-Encoding");

	if (a->status == 101)
		return ANSWER_REST;
	if (a->no_body || a->status == 204 || a->status == 304) {
		if (length)
			(void)abx_parse_u64(length, INT64_MAX, &a->size);
		return ANSWER_OVER;
	}
	if (coding && strcasecmp(coding, "chunked") == 0)
		return ANSWER_CHUNK_SIZE;
	if (!length)
		return ANSWER_REST;
	if (!abx_parse_u64(length, INT64_MAX, &a->size))
		return ANSWER_BAD;
	a->left = a->size;
	return a->left ? ANSWER_BYTES : ANSWER_OVER;
}

/* How much of it was the head's. */
static size_t take_head(struct emu_answer *a, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		abx_buf_add(&a->head, data + i, 1);
		if (a->head.len < 4 || memcmp(a->head.data + a->head.len - 4, "\r\n\r\n", 4) != 0)
			continue;
		if (!parse_head(a))
			a->state = ANSWER_BAD;
		else if (a->status < 200 && a->status != 101)
			abx_buf_reset(&a->head);
		else
			a->state = framing(a);
		if (a->state != ANSWER_HEAD)
			return i + 1;
	}
	if (a->head.failed)
		a->state = ANSWER_BAD;
	return len;
}

/* A line of the chunks' is there. */
static void end_line(struct emu_answer *a)
{
	const char *text = abx_buf_str(&a->line);
	char *end;

	if (a->state == ANSWER_CHUNK_SIZE) {
		a->left = strtoull(text, &end, 16);
		a->state = end == text ? ANSWER_BAD : a->left ? ANSWER_CHUNK : ANSWER_TRAILER;
	} else if (a->state == ANSWER_CHUNK_END) {
		a->state = ANSWER_CHUNK_SIZE;
	} else if (!*text) {
		a->state = ANSWER_OVER;
	}
	abx_buf_reset(&a->line);
}

static size_t take_line(struct emu_answer *a, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n') {
			end_line(a);
			return i + 1;
		}
		if (data[i] != '\r')
			abx_buf_add(&a->line, data + i, 1);
	}
	if (a->line.failed)
		a->state = ANSWER_BAD;
	return len;
}

static size_t take_bytes(struct emu_answer *a, const char *data, size_t len)
{
	if (a->state != ANSWER_REST && len > a->left)
		len = (size_t)a->left;
	if (!a->body(a->ctx, data, len)) {
		a->state = ANSWER_BAD;
		return len;
	}
	if (a->state == ANSWER_REST)
		return len;
	a->left -= len;
	if (a->left == 0)
		a->state = a->state == ANSWER_CHUNK ? ANSWER_CHUNK_END : ANSWER_OVER;
	return len;
}

bool emu_answer_take(struct emu_answer *a, const void *data, size_t len)
{
	const char *at = data;
	size_t n;

	while (len) {
		switch (a->state) {
		case ANSWER_HEAD:
			n = take_head(a, at, len);
			break;
		case ANSWER_BYTES:
		case ANSWER_REST:
		case ANSWER_CHUNK:
			n = take_bytes(a, at, len);
			break;
		case ANSWER_CHUNK_SIZE:
		case ANSWER_CHUNK_END:
		case ANSWER_TRAILER:
			n = take_line(a, at, len);
			break;
		case ANSWER_OVER:
		case ANSWER_BAD:
		default:
			return false;
		}
		at += n;
		len -= n;
	}
	return a->state != ANSWER_BAD && a->state != ANSWER_OVER;
}
