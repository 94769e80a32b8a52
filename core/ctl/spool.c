/* SPDX-License-Identifier: MIT */
/* Input as files that the host uploads, for transports that cannot send while they listen. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "core/ctl/ctl.h"

#define FILE_MAX_BYTES ((size_t)20 << 20)

static int name_of(const struct ctl_spool *s, char *path, size_t size)
{
	int n = s->next ? snprintf(path, size, "%s.d/%u", s->base, s->next)
			: snprintf(path, size, "%s.0", s->base);

	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

int ctl_spool_open(struct ctl_spool *s)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s.d", s->base);
	if (mkdir(path, 0700) < 0)
		return -errno;
	s->dir_made = true;
	return 0;
}

/* The file as it is now; 1 when it is whole. */
static int load(int fd, struct abx_buf *b, size_t *ret_len)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size < 4)
		return 0;
	r = abx_buf_read_fd(b, fd);
	if (r < 0)
		return r;
	if (b->len < 4)
		return 0;
	*ret_len = abx_wire_u32((unsigned char *)b->data);
	return *ret_len <= b->len - 4;
}

int ctl_spool_take(struct ctl_spool *s, struct abx_wire_in *in)
{
	struct abx_buf b = ABX_BUF_INIT(FILE_MAX_BYTES);
	char path[4096];
	size_t len = 0;
	int fd, r;

	if (name_of(s, path, sizeof(path)) < 0)
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = load(fd, &b, &len);
	(void)close(fd);
	if (r == 1) {
		(void)unlink(path);
		s->next++;
		r = abx_wire_feed(in, b.data + 4, len);
		r = r < 0 ? r : 1;
	}
	if (b.data)
		explicit_bzero(b.data, b.len);
	abx_buf_release(&b);
	return r;
}

void ctl_spool_remove(struct ctl_spool *s)
{
	char path[4096];

	if (!s->dir_made)
		return;
	/* One more may have come meanwhile. */
	for (int i = 0; i < 64; i++, s->next++)
		if (name_of(s, path, sizeof(path)) == 0)
			(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s.d", s->base);
	(void)rmdir(path);
}
