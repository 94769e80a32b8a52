/* SPDX-License-Identifier: MIT */
/* Some members of a tar file, as a gzip tar. */
#include "providers/e2b/pick.h"

#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "abxsdk/tar.h"

#define CHUNK_BYTES ((size_t)32 << 10) /* a multiple of a block, and below 64 KiB */

struct gzip {
	int fd;
	uint32_t crc, size;
};

static uint32_t crc32_of(uint32_t crc, const unsigned char *data, size_t len)
{
	crc = ~crc;
	while (len--) {
		crc ^= *data++;
		for (int i = 0; i < 8; i++)
			crc = (crc >> 1) ^ (UINT32_C(0xEDB88320) & (0U - (crc & 1)));
	}
	return ~crc;
}

static void put_le(unsigned char *to, uint32_t n, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (unsigned char)(n >> (8 * i));
}

static int gzip_begin(struct gzip *z)
{
	static const unsigned char head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};

	return abx_fs_write_all(z->fd, head, sizeof(head));
}

/* One stored block. */
static int gzip_put(struct gzip *z, const void *data, size_t len, int last)
{
	unsigned char head[5] = {(unsigned char)last};
	int r;

	put_le(head + 1, (uint32_t)len, 2);
	put_le(head + 3, ~(uint32_t)len, 2);
	z->crc = crc32_of(z->crc, data, len);
	z->size += (uint32_t)len;
	r = abx_fs_write_all(z->fd, head, sizeof(head));
	return r < 0 || !len ? r : abx_fs_write_all(z->fd, data, len);
}

static int gzip_end(struct gzip *z)
{
	static const char zeros[2 * ABX_TAR_BLOCK];
	unsigned char tail[8];
	int r = gzip_put(z, zeros, sizeof(zeros), 0);

	if (r == 0)
		r = gzip_put(z, "", 0, 1);
	put_le(tail, z->crc, 4);
	put_le(tail + 4, z->size, 4);
	return r < 0 ? r : abx_fs_write_all(z->fd, tail, sizeof(tail));
}

static int read_all(int fd, char *to, size_t len)
{
	while (len) {
		ssize_t n = read(fd, to, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		to += n;
		len -= (size_t)n;
	}
	return 0;
}

static int copy_content(int fd, uint64_t size, struct gzip *z)
{
	char b[CHUNK_BYTES];
	uint64_t left = size + abx_tar_padding(size);
	int r = 0;

	while (left && r == 0) {
		size_t len = left < sizeof(b) ? (size_t)left : sizeof(b);

		r = read_all(fd, b, len);
		if (r == 0)
			r = gzip_put(z, b, len, 0);
		left -= len;
	}
	return r;
}

static int is_below(const char *name, const char *path)
{
	size_t len = strlen(path);

	return strncmp(name, path, len) == 0 && (!name[len] || name[len] == '/');
}

int e2b_pick(int tar_fd, const char *path, int out_fd)
{
	struct gzip z = {.fd = out_fd};
	char block[ABX_TAR_BLOCK];
	int found = 0, r;

	if (lseek(tar_fd, 0, SEEK_SET) < 0)
		return -errno;
	r = gzip_begin(&z);
	while (r == 0) {
		struct abx_tar_room room;
		struct abx_tar_head head;

		r = read_all(tar_fd, block, sizeof(block));
		if (r == 0)
			r = abx_tar_head_parse(block, &room, &head);
		if (r < 0 || head.type == ABX_TAR_END)
			break;
		if (head.type == ABX_TAR_LONG_NAME || head.type == ABX_TAR_LONG_TARGET) {
			r = -EBADMSG;
		} else if (is_below(head.name, path)) {
			found = 1;
			r = gzip_put(&z, block, sizeof(block), 0);
			if (r == 0)
				r = copy_content(tar_fd, head.size, &z);
		} else if (lseek(tar_fd, (off_t)(head.size + abx_tar_padding(head.size)),
				 SEEK_CUR) < 0) {
			r = -errno;
		}
	}
	if (r == 0)
		r = gzip_end(&z);
	return r == 0 && !found ? -ENOENT : r;
}
