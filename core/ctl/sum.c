/* SPDX-License-Identifier: MIT */
/* A checksum of a program. */
#include "core/ctl/sum.h"

#include <fcntl.h>

#include "abxsdk/base.h"

int abx_sum_file(const char *path, struct abx_sum *ret)
{
	abx_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t hash = UINT64_C(0xcbf29ce484222325), size = 0;
	unsigned char data[16384];
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, data, sizeof(data))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		for (ssize_t i = 0; i < n; i++)
			hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
		size += (uint64_t)n;
	}
	(void)snprintf(ret->text, sizeof(ret->text), "%llx-%016llx", (unsigned long long)size,
		       (unsigned long long)hash);
	return 0;
}
