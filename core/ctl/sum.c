/* SPDX-License-Identifier: MIT */
/* A checksum of a program. */
#include "core/ctl/sum.h"

#include <fcntl.h>
#include <string.h>

#include "abxsdk/base.h"

#define PRIME UINT64_C(0x100000001b3)

/* Each command computes it anew: as many words at once as a processor multiplies at once. */
enum { LANES = 4, BLOCK_BYTES = LANES * sizeof(uint64_t) };

struct state {
	uint64_t lane[LANES];
	size_t left; /* bytes of a block that is not full yet */
	unsigned char data[1 << 16];
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * PRIME;
	return hash ^ hash >> 29;
}

static void take_blocks(struct state *s, size_t len)
{
	size_t at = 0;

	for (; len - at >= BLOCK_BYTES; at += BLOCK_BYTES) {
		uint64_t words[LANES];

		memcpy(words, s->data + at, sizeof(words));
		for (int i = 0; i < LANES; i++)
			s->lane[i] = mix(s->lane[i], words[i]);
	}
	s->left = len - at;
	memmove(s->data, s->data + at, s->left);
}

int abx_sum_file(const char *path, struct abx_sum *ret)
{
	abx_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct state s = {.left = 0};
	uint64_t hash = UINT64_C(0xcbf29ce484222325), size = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, s.data + s.left, sizeof(s.data) - s.left)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		size += (uint64_t)n;
		take_blocks(&s, s.left + (size_t)n);
	}
	for (int i = 0; i < LANES; i++)
		hash = mix(hash, s.lane[i]);
	for (size_t i = 0; i < s.left; i++)
		hash = mix(hash, s.data[i]);
	(void)snprintf(ret->text, sizeof(ret->text), "%llx-%016llx", (unsigned long long)size,
		       (unsigned long long)hash);
	return 0;
}
