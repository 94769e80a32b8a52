/* SPDX-License-Identifier: MIT */
/*
 * A plain tar stream into files that are not there yet, which is what a seed is.
 *
 * At the first entry that is anything else (another format, a name that exists, a parent that
 * does not), the rest is handed over: the entry and all that was read go to standard output,
 * and agentbox-local-tar goes on from there.  Its libarchive takes longer to start than a
 * small tree to write.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/tar.h"
#include "providers/local/box.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define LONG_MAX_BYTES ((size_t)32 << 10) /* of one name; two of them fit into the buffer */
#define PERMISSIONS 0777u
#define ASKS_BYTES ((uint64_t)1 << 20) /* from here on whether there is room for a file */
#define DIRS_MAX_BYTES ((size_t)64 << 20)

/* A directory that was made: its time is set when all is in it. */
struct made_dir {
	char *name;
	uint32_t mode;
	int64_t mtime_s;
};

struct plain {
	const char *what; /* for messages */
	char *b;
	size_t at, len; /* at: the entry under way */
	bool eof;
	struct abx_tar_head head;
	struct abx_tar_room room;
	size_t head_len; /* of the entry's blocks before its content */
	struct made_dir *dirs;
	size_t n_dirs, room_dirs;
	char *parent; /* of the last entry, opened */
	int parent_fd;
};

/* Have `n` bytes from the entry's begin on; false at the end of the stream. */
static bool fill(struct plain *p, size_t n)
{
	while (p->len - p->at < n && !p->eof) {
		ssize_t got;

		if (p->at == p->len)
			p->at = p->len = 0;
		if (p->at + n > BUFFER_BYTES) {
			memmove(p->b, p->b + p->at, p->len - p->at);
			p->len -= p->at;
			p->at = 0;
		}
		got = read(STDIN_FILENO, p->b + p->len, BUFFER_BYTES - p->len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			box_fail_errno(errno, "put: %.256s: read", p->what);
		p->eof = got == 0;
		p->len += (size_t)got;
	}
	return p->len - p->at >= n;
}

/* Make the directories known, that their times be set there, and give the rest away. */
static int hand_over(const struct plain *p)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(DIRS_MAX_BYTES);

	for (size_t i = 0; i < p->n_dirs; i++) {
		const struct abx_tar_head head = {.type = ABX_TAR_DIR,
						  .name = p->dirs[i].name,
						  .mode = p->dirs[i].mode,
						  .mtime_s = p->dirs[i].mtime_s};

		abx_tar_head_add(&b, &head);
	}
	if (b.failed)
		box_fail(ABX_ENOMEM, NULL, "put: %.256s: out of memory", p->what);
	box_write_all(STDOUT_FILENO, abx_buf_str(&b), b.len);
	box_write_all(STDOUT_FILENO, p->b + p->at, p->len - p->at);
	box_send_kind(LB_MSG_MORE, 0);
	return 0;
}

/* A name or target in blocks of its own, at `n` behind the entry's begin. */
static bool take_long(struct plain *p, size_t n, uint64_t size, size_t *ret_at)
{
	if (size < 1 || size > LONG_MAX_BYTES || !fill(p, n + size + abx_tar_padding(size)) ||
	    p->b[p->at + n + size - 1] != '\0')
		return false;
	*ret_at = n;
	return true;
}

/* The next entry's header with what belongs to it; false: not for us. */
static bool take_head(struct plain *p)
{
	size_t n = 0, name = 0, target = 0;

	for (;;) {
		size_t *is_long;

		if (!fill(p, n + ABX_TAR_BLOCK) ||
		    abx_tar_head_parse(p->b + p->at + n, &p->room, &p->head) < 0)
			return false;
		n += ABX_TAR_BLOCK;
		is_long = p->head.type == ABX_TAR_LONG_NAME	? &name
			  : p->head.type == ABX_TAR_LONG_TARGET ? &target
								: NULL;
		if (!is_long)
			break;
		if (*is_long || !take_long(p, n, p->head.size, is_long))
			return false;
		n += p->head.size + abx_tar_padding(p->head.size);
	}
	if (name)
		p->head.name = p->b + p->at + name;
	if (target)
		p->head.target = p->b + p->at + target;
	p->head_len = n;
	return p->head.type == ABX_TAR_END || p->head.type == ABX_TAR_FILE || !p->head.size;
}

/* Names as our own streams have them. */
static bool is_plain_name(const char *name)
{
	for (const char *at = name;; at++) {
		size_t n = strcspn(at, "/");

		if (n == 0 || n > NAME_MAX ||
		    (at[0] == '.' && (n == 1 || (n == 2 && at[1] == '.'))))
			return false;
		at += n;
		if (!*at)
			return strlen(name) < PATH_MAX;
	}
}

/* Below the current directory, and through no link. */
static int open_beneath(const char *path, uint64_t flags)
{
	const struct open_how how = {.flags = flags | O_DIRECTORY | O_CLOEXEC,
				     .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* The directory that a name is in, and its last part. */
static bool enter_parent(struct plain *p, const char *name, int *ret_fd, const char **ret_last)
{
	const char *slash = strrchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;

	*ret_last = slash ? slash + 1 : name;
	if (!slash) {
		*ret_fd = AT_FDCWD;
		return true;
	}
	if (!p->parent || strlen(p->parent) != n || memcmp(p->parent, name, n) != 0) {
		if (p->parent_fd >= 0)
			(void)close(p->parent_fd);
		free(p->parent);
		p->parent = box_printf("%.*s", (int)n, name);
		p->parent_fd = open_beneath(p->parent, O_PATH);
	}
	*ret_fd = p->parent_fd;
	return p->parent_fd >= 0;
}

static const struct timespec *times_of(int64_t mtime_s, struct timespec t[2])
{
	t[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	t[1] = (struct timespec){.tv_sec = mtime_s};
	return t;
}

static _Noreturn void fail_at(const struct plain *p, const char *name, int err)
{
	box_fail_errno(err, "put: %.256s: %.256s", p->what, name);
}

/* What is behind the header, and then its padding.  A disk that fills up halfway is worse for all
 * others on it than a refusal. */
static void copy_content(struct plain *p, const char *name, int fd)
{
	uint64_t left = p->head.size;
	const uint64_t room = left < ASKS_BYTES ? left : abx_fs_room(fd);
	size_t pad = abx_tar_padding(left);

	if (left > room)
		box_fail(ABX_EIO, "free some space there, or give the box more with --disk",
			 "put: %.256s: %.256s: No space left on device: %.1f MiB are coming, "
			 "%.1f MiB are free",
			 p->what, name, (double)left / (1 << 20), (double)room / (1 << 20));
	/* The name may lie in the buffer, which moves on. */
	p->at += p->head_len;
	while (left + pad) {
		size_t n;

		if (!fill(p, 1))
			box_fail(ABX_EINVAL, NULL, "put: %.256s: %.256s: the stream is cut short",
				 p->what, name);
		n = p->len - p->at;
		if (left) {
			n = n < left ? n : (size_t)left;
			box_write_all(fd, p->b + p->at, n);
			left -= n;
		} else {
			n = n < pad ? n : pad;
			pad -= n;
		}
		p->at += n;
	}
}

static bool make_file(struct plain *p, int dirfd, const char *last)
{
	int fd = openat(dirfd, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			p->head.mode & PERMISSIONS);
	struct timespec t[2];
	char *name;

	if (fd < 0)
		return false;
	name = box_strdup(last);
	copy_content(p, name, fd);
	if (futimens(fd, times_of(p->head.mtime_s, t)) < 0 || close(fd) < 0)
		fail_at(p, name, errno);
	free(name);
	return true;
}

static struct made_dir *find_made(struct plain *p, const char *name)
{
	for (size_t i = p->n_dirs; i-- > 0;)
		if (strcmp(p->dirs[i].name, name) == 0)
			return &p->dirs[i];
	return NULL;
}

static bool make_dir(struct plain *p, int dirfd, const char *last, const char *name)
{
	struct made_dir *d;

	if (mkdirat(dirfd, last, S_IRWXU) < 0) {
		/* Twice in the stream: the last one counts. */
		d = errno == EEXIST ? find_made(p, name) : NULL;
		if (!d)
			return false;
		d->mode = p->head.mode & PERMISSIONS;
		d->mtime_s = p->head.mtime_s;
		return true;
	}
	if (p->n_dirs == p->room_dirs) {
		p->room_dirs = p->room_dirs ? 2 * p->room_dirs : 64;
		p->dirs = reallocarray(p->dirs, p->room_dirs, sizeof(*p->dirs));
		if (!p->dirs)
			box_fail(ABX_ENOMEM, NULL, "put: %.256s: out of memory", p->what);
	}
	d = &p->dirs[p->n_dirs++];
	d->name = box_strdup(name);
	d->mode = p->head.mode & PERMISSIONS;
	d->mtime_s = p->head.mtime_s;
	return true;
}

static bool make_link(struct plain *p, int dirfd, const char *last)
{
	const char *from;
	struct timespec t[2];
	int from_fd;
	bool made;

	if (p->head.type == ABX_TAR_SYMLINK) {
		if (symlinkat(p->head.target, dirfd, last) < 0)
			return false;
		/* A file system without times of links is no worse for it. */
		(void)utimensat(dirfd, last, times_of(p->head.mtime_s, t), AT_SYMLINK_NOFOLLOW);
		return true;
	}
	if (!is_plain_name(p->head.target))
		return false;
	/* Both parents are needed at once. */
	dirfd = dirfd == AT_FDCWD ? AT_FDCWD : fcntl(dirfd, F_DUPFD_CLOEXEC, LB_FD_LAST + 1);
	made = dirfd != -1 && enter_parent(p, p->head.target, &from_fd, &from) &&
	       linkat(from_fd, from, dirfd, last, 0) == 0;
	if (dirfd >= 0)
		(void)close(dirfd);
	return made;
}

/* False: nothing was made, and somebody else has to look at it. */
static bool make_entry(struct plain *p)
{
	abx_autofree char *name = box_strdup(p->head.name);
	size_t len = strlen(name);
	const char *last;
	bool made;
	int dirfd;

	if (p->head.type == ABX_TAR_DIR && len && name[len - 1] == '/')
		name[len - 1] = '\0';
	if (!is_plain_name(name) || !enter_parent(p, name, &dirfd, &last))
		return false;
	if (p->head.type == ABX_TAR_FILE)
		return make_file(p, dirfd, last);
	made = p->head.type == ABX_TAR_DIR ? make_dir(p, dirfd, last, name)
					   : make_link(p, dirfd, last);
	if (made)
		p->at += p->head_len;
	return made;
}

/* The innermost first: a directory may be closed to its owner. */
static void finish_dirs(const struct plain *p)
{
	for (size_t i = p->n_dirs; i-- > 0;) {
		const struct made_dir *d = &p->dirs[i];
		int fd = open_beneath(d->name, O_RDONLY);
		struct timespec t[2];

		if (fd < 0 || (d->mode != S_IRWXU && fchmod(fd, d->mode) < 0) ||
		    futimens(fd, times_of(d->mtime_s, t)) < 0)
			fail_at(p, d->name, errno);
		(void)close(fd);
	}
}

int box_put_tar(const struct box_req *rq)
{
	struct plain p = {.what = rq->path, .parent_fd = -1};

	box_enter_target(rq);
	p.b = box_alloc(BUFFER_BYTES);
	/* Modes are those of the stream. */
	(void)umask(0);
	for (;;) {
		if (!take_head(&p))
			return hand_over(&p);
		if (p.head.type == ABX_TAR_END)
			break;
		if (!make_entry(&p))
			return hand_over(&p);
	}
	/* Padding after the end: whoever writes it must not meet a closed pipe. */
	do
		p.at = p.len = 0;
	while (fill(&p, 1));
	finish_dirs(&p);
	box_send_kind(LB_MSG_DONE, 0);
	return 0;
}
