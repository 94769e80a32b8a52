/* SPDX-License-Identifier: MIT */
/* Single files and directory listings, as a user of the box. */
#include "providers/local/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/fs.h"

#define COPY_BYTES ((size_t)256 << 10)

/* Bytes copied, or -errno. */
static int64_t copy_bytes(int from, int to, int64_t limit)
{
	char *buffer = box_alloc(COPY_BYTES);
	int64_t done = 0;
	int r = 0;

	while (r == 0 && (limit < 0 || done < limit)) {
		size_t want = COPY_BYTES;
		ssize_t n;

		if (limit >= 0 && limit - done < (int64_t)want)
			want = (size_t)(limit - done);
		n = read(from, buffer, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			break;
		r = n < 0 ? -errno : abx_fs_write_all(to, buffer, (size_t)n);
		done += n;
	}
	free(buffer);
	return r < 0 ? r : done;
}

int box_upload(const struct box_req *rq)
{
	mode_t mode = rq->h.file_mode ? rq->h.file_mode & 0777 : 0644;
	const char *slash = strrchr(rq->path, '/');
	bool unnamed;
	char *tmp, *dir;
	uint64_t nonce;
	int64_t n;
	int fd, err;

	if (rq->path[0] != '/' || !slash[1])
		box_fail(ABX_EINVAL, NULL, "upload: %.512s: not an absolute path of a file",
			 rq->path);
	if (rq->h.flags & LB_F_CREATE_PARENTS)
		box_make_parents(rq->path, false);
	/* Readers see the old file or the new one. */
	if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		box_fail_errno(errno, "upload");
	tmp = box_printf("%.*s/.agentbox-%016llx", (int)(slash - rq->path), rq->path,
			 (unsigned long long)nonce);
	dir = box_printf("%.*s", slash == rq->path ? 1 : (int)(slash - rq->path), rq->path);
	fd = abx_fs_open_unnamed(AT_FDCWD, dir, 0600);
	unnamed = fd >= 0;
	if (!unnamed)
		fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		box_fail_errno(errno, "upload: %.512s", rq->path);
	n = copy_bytes(STDIN_FILENO, fd, rq->h.size_bytes);
	if (n >= 0 && (rq->h.size_bytes < 0 || n == rq->h.size_bytes) && fchmod(fd, mode) == 0 &&
	    (!unnamed || abx_fs_name_it(fd, AT_FDCWD, tmp) == 0) && close(fd) == 0 &&
	    rename(tmp, rq->path) == 0) {
		box_send_kind(LB_MSG_DONE, n);
		return 0;
	}
	err = n < 0 ? (int)-n : errno;
	(void)unlink(tmp);
	if (n >= 0 && rq->h.size_bytes >= 0 && n != rq->h.size_bytes)
		box_fail(ABX_EIO, NULL, "upload: %.512s: the input ended after %lld of %lld bytes",
			 rq->path, (long long)n, (long long)rq->h.size_bytes);
	box_fail_errno(err, "upload: %.512s", rq->path);
}

int box_download(const struct box_req *rq)
{
	struct stat st;
	int64_t n;
	int fd = open(rq->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (rq->path[0] != '/')
		box_fail(ABX_EINVAL, NULL, "download: %.512s: not an absolute path", rq->path);
	if (fd < 0 || fstat(fd, &st) < 0)
		box_fail_errno(errno, "download: %.512s", rq->path);
	if (!S_ISREG(st.st_mode))
		box_fail(ABX_EINVAL, NULL, "download: %.512s: not a regular file", rq->path);
	n = copy_bytes(fd, STDOUT_FILENO, -1);
	if (n < 0)
		box_fail_errno((int)-n, "download: %.512s", rq->path);
	box_send_kind(LB_MSG_DONE, n);
	return 0;
}

/* Entries leave in blocks; a directory of a million names must not grow us. */
struct listing {
	char b[32768];
	size_t len;
};

static void flush_listing(struct listing *l)
{
	box_write_all(STDOUT_FILENO, l->b, l->len);
	l->len = 0;
}

int box_list(const struct box_req *rq)
{
	static struct listing l;
	DIR *d = opendir(rq->path);
	struct dirent *e;

	if (!d)
		box_fail_errno(errno, "list: %.512s", rq->path);
	while ((errno = 0, e = readdir(d))) {
		struct lb_entry entry = {.name_len = (uint32_t)strlen(e->d_name)};
		struct stat st;

		if (abx_fs_is_dot(e->d_name) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		entry.size_bytes = (uint64_t)st.st_size;
		entry.mtime_s = st.st_mtim.tv_sec;
		entry.mode = st.st_mode;
		if (l.len + sizeof(entry) + entry.name_len > sizeof(l.b))
			flush_listing(&l);
		memcpy(l.b + l.len, &entry, sizeof(entry));
		memcpy(l.b + l.len + sizeof(entry), e->d_name, entry.name_len);
		l.len += sizeof(entry) + entry.name_len;
	}
	if (errno)
		box_fail_errno(errno, "list: %.512s", rq->path);
	flush_listing(&l);
	(void)closedir(d);
	box_send_kind(LB_MSG_DONE, 0);
	return 0;
}
