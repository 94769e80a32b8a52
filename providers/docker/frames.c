/* SPDX-License-Identifier: MIT */
/* Both outputs of a command in one stream, taken apart. */
#include "providers/docker/frames.h"

#include <string.h>

#include "agentbox/cloud_backend.h"

static int32_t take_head(struct docker_frames *f)
{
	const unsigned char *h = f->head;

	if (h[0] > 3 || h[1] || h[2] || h[3])
		return ABX_EPROTO;
	f->left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
	if (!f->left)
		f->n_head = 0;
	return ABX_OK;
}

int32_t docker_frames_feed(struct docker_frames *f, const void *data, size_t len)
{
	const unsigned char *at = data;
	int32_t r = ABX_OK;

	while (len && r == ABX_OK) {
		size_t n = sizeof(f->head) - f->n_head;

		if (n) {
			n = n < len ? n : len;
			memcpy(f->head + f->n_head, at, n);
			f->n_head += n;
			if (f->n_head == sizeof(f->head))
				r = take_head(f);
		} else {
			n = f->left < len ? f->left : len;
			r = f->output(f->ctx,
				      f->head[0] >= 2 ? ABX_STREAM_STDERR : ABX_STREAM_STDOUT, at,
				      n);
			f->left -= (uint32_t)n;
			if (!f->left)
				f->n_head = 0;
		}
		at += n;
		len -= n;
	}
	return r;
}

int docker_frames_whole(const struct docker_frames *f)
{
	return f->n_head == 0;
}
