/* SPDX-License-Identifier: MIT */
/* A tar stream becomes files below the current directory. */
#include "providers/local/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/tar.h"

#define LONG_NAME_MAX ((uint64_t)1 << 20)
#define READ_BYTES ((size_t)256 << 10)
#define SPECIAL_BITS 07000

struct source {
	const char *what;
	int fd; /* where the stream goes on */
	char *buffer;
	int64_t left; /* -1: until the end */
	int64_t done;
};

static la_ssize_t read_source(struct archive *a, void *arg, const void **ret_data)
{
	struct source *s = arg;
	size_t want = READ_BYTES;
	ssize_t n;

	if (s->left >= 0 && s->left < (int64_t)want)
		want = (size_t)s->left;
	if (!want)
		return 0;
	do
		n = read(s->fd, s->buffer, want);
	while (n < 0 && errno == EINTR);
	if (n == 0 && s->fd != STDIN_FILENO) {
		s->fd = STDIN_FILENO;
		return read_source(a, arg, ret_data);
	}
	if (n < 0) {
		archive_set_error(a, errno, "read: %s", strerror(errno));
		return ARCHIVE_FATAL;
	}
	if (s->left >= 0)
		s->left -= n;
	s->done += n;
	*ret_data = s->buffer;
	return n;
}

static const char *verb(const struct tar_unpack *u)
{
	return u->is_image ? "image" : "put";
}

static _Noreturn void fail_archive(const struct tar_unpack *u, struct archive *a, const char *name)
{
	int err = archive_errno(a);
	int code = err == EACCES || err == EPERM || err == EROFS  ? ABX_EPERM
		   : err == ENOSPC || err == EDQUOT || err == EIO ? ABX_EIO
		   : err == EILSEQ || err == -1			  ? ABX_EINVAL
								  : ABX_EIO;

	box_fail(code, NULL, "%s: %.256s%s%.256s: %s", verb(u), u->what, name ? ": " : "",
		 name ? name : "",
		 archive_error_string(a) ? archive_error_string(a) : "damaged stream");
}

static bool has_dotdot(const char *path)
{
	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || !p[2]))
			return true;
	}
	return false;
}

/* Refuse what leads outside: libarchive does as well, in words of its own. */
static void check_name(const struct tar_unpack *u, const char *name, const char *kind)
{
	if (!name || !*name)
		box_fail(ABX_EINVAL, NULL, "%s: %.256s: an entry without a %s", verb(u), u->what,
			 kind);
	if (name[0] == '/' || has_dotdot(name))
		box_fail(ABX_EINVAL, NULL, "%s: %.256s: %s leads outside: %.256s", verb(u), u->what,
			 kind, name);
}

/* "/./usr/bin" is "usr/bin" in an image; the root itself is ".". */
static const char *image_name(const char *name)
{
	while (*name == '/' || (name[0] == '.' && name[1] == '/'))
		name++;
	return *name ? name : ".";
}

static void prepare_image_entry(struct archive_entry *e)
{
	const char *link = archive_entry_hardlink(e), *name = archive_entry_pathname(e);
	char *copy = box_strdup(name ? image_name(name) : "");

	archive_entry_set_pathname(e, copy);
	free(copy);
	if (link) {
		copy = box_strdup(image_name(link));
		archive_entry_set_hardlink(e, copy);
		free(copy);
	}
}

/* Of an image, capabilities are kept, and nothing that would speak to overlayfs. */
static void filter_xattrs(struct archive_entry *e)
{
	static const char capability[] = "security.capability";
	const char *name;
	const void *value;
	void *kept = NULL;
	size_t len, kept_len = 0;

	if (archive_entry_xattr_reset(e) == 0)
		return;
	while (archive_entry_xattr_next(e, &name, &value, &len) == ARCHIVE_OK)
		if (name && strcmp(name, capability) == 0 && len <= 64) {
			free(kept);
			kept = box_alloc(len);
			memcpy(kept, value, len);
			kept_len = len;
		}
	archive_entry_xattr_clear(e);
	if (kept)
		archive_entry_xattr_add_entry(e, capability, kept, kept_len);
	free(kept);
}

/* False: nothing to be made of it. */
static bool prepare_entry(const struct tar_unpack *u, struct archive_entry *e)
{
	mode_t type = archive_entry_filetype(e);

	if (u->is_image)
		prepare_image_entry(e);
	check_name(u, archive_entry_pathname(e), "name");
	filter_xattrs(e);
	if (archive_entry_hardlink(e)) {
		check_name(u, archive_entry_hardlink(e), "hard link");
	} else if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK && type != AE_IFIFO) {
		/* A box has a /dev of its own. */
		if (u->is_image)
			return false;
		box_fail(ABX_EINVAL, NULL, "%s: %.256s: %.256s: a device or socket", verb(u),
			 u->what, archive_entry_pathname(e));
	}
	if (!u->is_image)
		archive_entry_set_perm(e, (mode_t)(archive_entry_perm(e) & ~(mode_t)SPECIAL_BITS));
	return true;
}

static void copy_data(const struct tar_unpack *u, struct archive *in, struct archive *out,
		      const char *name)
{
	for (;;) {
		const void *data;
		size_t len;
		la_int64_t offset;
		int r = archive_read_data_block(in, &data, &len, &offset);

		if (r == ARCHIVE_EOF)
			return;
		if (r < ARCHIVE_WARN)
			fail_archive(u, in, name);
		if (archive_write_data_block(out, data, len, offset) < ARCHIVE_WARN)
			fail_archive(u, out, name);
	}
}

static struct archive *open_in(const struct tar_unpack *u, struct source *s)
{
	struct archive *a = archive_read_new();

	if (!a || archive_read_support_format_tar(a) < ARCHIVE_WARN ||
	    archive_read_support_format_empty(a) < ARCHIVE_WARN ||
	    archive_read_support_filter_gzip(a) < ARCHIVE_WARN ||
	    archive_read_support_filter_zstd(a) < ARCHIVE_WARN ||
	    archive_read_support_filter_xz(a) < ARCHIVE_WARN)
		box_fail(ABX_ENOMEM, NULL, "%s: %.256s: libarchive: %s", verb(u), u->what,
			 a ? archive_error_string(a) : "out of memory");
	if (archive_read_open(a, s, NULL, read_source, NULL) != ARCHIVE_OK)
		fail_archive(u, a, NULL);
	return a;
}

static struct archive *open_out(const struct tar_unpack *u)
{
	struct archive *a = archive_write_disk_new();
	int flags = ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_UNLINK |
		    ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS;

	if (u->keep_owner)
		flags |= ARCHIVE_EXTRACT_OWNER;
	flags |= u->is_image ? ARCHIVE_EXTRACT_XATTR : ARCHIVE_EXTRACT_SECURE_SYMLINKS;
	if (!a || archive_write_disk_set_options(a, flags) < ARCHIVE_WARN)
		box_fail(ABX_ENOMEM, NULL, "%s: %.256s: libarchive: out of memory", verb(u),
			 u->what);
	return a;
}

static void write_entry(const struct tar_unpack *u, struct archive *in, struct archive *out,
			struct archive_entry *e)
{
	/* An owner or attribute that cannot be had here makes an image no worse. */
	int worst = u->is_image ? ARCHIVE_WARN : ARCHIVE_OK;
	const char *name = archive_entry_pathname(e);

	if (archive_write_header(out, e) < worst)
		fail_archive(u, out, name);
	if (!archive_entry_size_is_set(e) || archive_entry_size(e) > 0)
		copy_data(u, in, out, name);
	if (archive_write_finish_entry(out) < worst)
		fail_archive(u, out, name);
}

/* libarchive sets the times of directories that exist at once, so what came into them later
 * has changed those that were made before the stream was handed over. */
static void restore_dir_times(void)
{
	char block[ABX_TAR_BLOCK], *long_name = NULL;
	struct abx_tar_head head;
	struct abx_tar_room room;
	off_t at = 0;

	while (pread(STDOUT_FILENO, block, sizeof(block), at) == (ssize_t)sizeof(block) &&
	       abx_tar_head_parse(block, &room, &head) == 0 &&
	       (head.type == ABX_TAR_DIR ||
		(head.type == ABX_TAR_LONG_NAME && head.size <= LONG_NAME_MAX))) {
		at += (off_t)sizeof(block);
		if (head.type == ABX_TAR_LONG_NAME) {
			free(long_name);
			long_name = box_alloc((size_t)head.size + 1);
			if (pread(STDOUT_FILENO, long_name, (size_t)head.size, at) !=
			    (ssize_t)head.size)
				break;
			at += (off_t)(head.size + abx_tar_padding(head.size));
		} else {
			const struct timespec t[2] = {{.tv_nsec = UTIME_OMIT},
						      {.tv_sec = head.mtime_s}};

			(void)utimensat(AT_FDCWD, long_name ? long_name : head.name, t,
					AT_SYMLINK_NOFOLLOW);
			free(long_name);
			long_name = NULL;
		}
	}
	free(long_name);
}

int64_t tar_unpack(const struct tar_unpack *u)
{
	struct source s = {.what = u->what,
			   .fd = u->begun ? STDOUT_FILENO : STDIN_FILENO,
			   .left = u->size_bytes};
	struct archive_entry *e;
	struct archive *in, *out;
	const void *rest;
	int r;

	s.buffer = box_alloc(READ_BYTES);
	in = open_in(u, &s);
	out = open_out(u);
	while ((r = archive_read_next_header(in, &e)) != ARCHIVE_EOF) {
		/* A name in a pax header that is not UTF-8 is kept as it is, with a warning. */
		if (r < ARCHIVE_WARN || (r < ARCHIVE_OK && archive_errno(in) != EILSEQ))
			fail_archive(u, in, archive_entry_pathname(e));
		if (prepare_entry(u, e))
			write_entry(u, in, out, e);
	}
	/* Padding after the end: whoever writes it must not meet a closed pipe. */
	while (read_source(in, &s, &rest) > 0)
		;
	if (archive_write_close(out) < (u->is_image ? ARCHIVE_WARN : ARCHIVE_OK))
		fail_archive(u, out, NULL);
	if (u->begun)
		restore_dir_times();
	if (u->size_bytes >= 0 && s.left > 0)
		box_fail(ABX_EIO, NULL, "%s: %.256s: the stream ended %lld bytes early", verb(u),
			 u->what, (long long)s.left);
	return s.done;
}
