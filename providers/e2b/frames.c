/* SPDX-License-Identifier: MIT */
/* A stream of the Connect protocol, taken apart. */
#include "providers/e2b/frames.h"

#include <string.h>

#include "abxsdk/json.h"
#include "agentbox/cloud_backend.h"

static bool take_error(const cJSON *error, char *code, size_t code_size, char *text,
		       size_t text_size)
{
	const char *c = NULL, *t = NULL;

	if (abx_json_str(error, "code", code_size - 1, &c) < 0 || !c)
		return false;
	if (abx_json_str(error, "message", E2B_FRAME_MAX, &t) < 0 || !t)
		t = "";
	(void)snprintf(code, code_size, "%s", c);
	(void)snprintf(text, text_size, "%.*s", (int)strcspn(t, "\r\n"), t);
	return true;
}

bool e2b_frames_error(const char *json, size_t len, char *code, size_t code_size, char *text,
		      size_t text_size)
{
	cJSON *doc = NULL;
	bool ok = abx_json_parse(json, len, E2B_FRAME_MAX, &doc) == 0 &&
		  take_error(doc, code, code_size, text, text_size);

	cJSON_Delete(doc);
	return ok;
}

static int32_t take_end(struct e2b_frames *f, const char *data, size_t len)
{
	const cJSON *error = NULL;
	cJSON *doc = NULL;
	int32_t r = ABX_OK;

	if (abx_json_parse(data, len, E2B_FRAME_MAX, &doc) < 0 ||
	    abx_json_obj(doc, "error", &error) < 0)
		r = ABX_EPROTO;
	else if (error && !take_error(error, f->code, sizeof(f->code), f->text, sizeof(f->text)))
		(void)snprintf(f->code, sizeof(f->code), "unknown");
	f->ended = r == ABX_OK;
	cJSON_Delete(doc);
	return r;
}

static int32_t take(struct e2b_frames *f, const void *data, size_t len)
{
	f->n_head = 0;
	return f->head[0] == E2B_FRAME_END ? take_end(f, data, len) : f->message(f->ctx, data, len);
}

static size_t length_of(const unsigned char *h)
{
	return (size_t)h[1] << 24 | (size_t)h[2] << 16 | (size_t)h[3] << 8 | h[4];
}

static int32_t take_piece(struct e2b_frames *f, const unsigned char **at, size_t *left)
{
	const size_t want = length_of(f->head);
	size_t n = want - f->data.len;
	int32_t r;

	/* Most frames come as a whole. */
	if (!f->data.len && *left >= want) {
		r = take(f, *at, want);
		n = want;
	} else {
		n = n < *left ? n : *left;
		abx_buf_add(&f->data, *at, n);
		r = f->data.failed ? ABX_ENOMEM : ABX_OK;
		if (r == ABX_OK && f->data.len == want) {
			r = take(f, f->data.data, want);
			abx_buf_reset(&f->data);
		}
	}
	*at += n;
	*left -= n;
	return r;
}

int32_t e2b_frames_feed(struct e2b_frames *f, const void *data, size_t len)
{
	const unsigned char *at = data;
	int32_t r = ABX_OK;

	while (r == ABX_OK && (len || f->n_head == E2B_FRAME_HEAD_BYTES)) {
		if (f->ended)
			return ABX_EPROTO;
		if (f->n_head == E2B_FRAME_HEAD_BYTES) {
			if (!len && length_of(f->head) > f->data.len)
				break;
			r = take_piece(f, &at, &len);
			continue;
		}
		f->head[f->n_head++] = *at++;
		len--;
		if (f->n_head == E2B_FRAME_HEAD_BYTES &&
		    ((f->head[0] != 0 && f->head[0] != E2B_FRAME_END) ||
		     length_of(f->head) > E2B_FRAME_MAX - 1))
			return ABX_EPROTO;
	}
	return r;
}

void e2b_frames_release(struct e2b_frames *f)
{
	abx_buf_release(&f->data);
}

void e2b_frame_head(unsigned char to[E2B_FRAME_HEAD_BYTES], size_t len)
{
	to[0] = 0;
	to[1] = (unsigned char)(len >> 24);
	to[2] = (unsigned char)(len >> 16);
	to[3] = (unsigned char)(len >> 8);
	to[4] = (unsigned char)len;
}
