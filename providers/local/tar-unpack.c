/* SPDX-License-Identifier: MIT */
/* A tar stream becomes files below the current directory. */
#include "providers/local/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)
#define SPECIAL_BITS 07000

struct source {
	const char *what;
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
		n = read(STDIN_FILENO, s->buffer, want);
	while (n < 0 && errno == EINTR);
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

static _Noreturn void fail_archive(struct archive *a, const char *what, const char *name)
{
	int err = archive_errno(a);
	int code = err == EACCES || err == EPERM ? ABX_EPERM
		   : err == ENOSPC || err == EDQUOT || err == EIO ? ABX_EIO
		   : err == EILSEQ || err == -1 ? ABX_EINVAL
										    : ABX_EIO;

	box_fail(code, NULL, "put: %.256s%s%.256s: %s", what, name ? ": " : "", name ? name : "",
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
		box_fail(ABX_EINVAL, NULL, "put: %.256s: an entry without a %s", u->what, kind);
	if (name[0] == '/' || has_dotdot(name))
		box_fail(ABX_EINVAL, NULL, "put: %.256s: %s leads outside: %.256s", u->what, kind,
			 name);
}

static void prepare_entry(const struct tar_unpack *u, struct archive_entry *e)
{
	const char *name = archive_entry_pathname(e);
	mode_t type = archive_entry_filetype(e);

	check_name(u, name, "name");
	if (archive_entry_hardlink(e))
		check_name(u, archive_entry_hardlink(e), "hard link");
	else if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK && type != AE_IFIFO)
		box_fail(ABX_EINVAL, NULL, "put: %.256s: %.256s: a device or socket", u->what, name);
	if (!u->keep_special)
		archive_entry_set_perm(e, (mode_t)(archive_entry_perm(e) & ~(mode_t)SPECIAL_BITS));
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
			fail_archive(in, u->what, name);
		if (archive_write_data_block(out, data, len, offset) < ARCHIVE_WARN)
			fail_archive(out, u->what, name);
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
		box_fail(ABX_ENOMEM, NULL, "put: %.256s: libarchive: %s", u->what,
			 a ? archive_error_string(a) : "out of memory");
	if (archive_read_open(a, s, NULL, read_source, NULL) != ARCHIVE_OK)
		fail_archive(a, u->what, NULL);
	return a;
}

static struct archive *open_out(const struct tar_unpack *u)
{
	struct archive *a = archive_write_disk_new();
	int flags = ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_UNLINK |
		    ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS |
		    ARCHIVE_EXTRACT_SECURE_SYMLINKS;

	if (u->keep_owner)
		flags |= ARCHIVE_EXTRACT_OWNER;
	if (u->keep_special)
		flags |= ARCHIVE_EXTRACT_XATTR;
	if (!a || archive_write_disk_set_options(a, flags) < ARCHIVE_WARN)
		box_fail(ABX_ENOMEM, NULL, "put: %.256s: libarchive: out of memory", u->what);
	return a;
}

int64_t tar_unpack(const struct tar_unpack *u)
{
	struct source s = {.what = u->what, .left = u->size_bytes};
	struct archive_entry *e;
	struct archive *in, *out;
	const void *rest;
	int r;

	s.buffer = box_alloc(READ_BYTES);
	in = open_in(u, &s);
	out = open_out(u);
	while ((r = archive_read_next_header(in, &e)) != ARCHIVE_EOF) {
		const char *name = archive_entry_pathname(e);

		/* A name in a pax header that is not UTF-8 is kept as it is, with a warning. */
		if (r < ARCHIVE_WARN || (r < ARCHIVE_OK && archive_errno(in) != EILSEQ))
			fail_archive(in, u->what, name);
		prepare_entry(u, e);
		r = archive_write_header(out, e);
		if (r < ARCHIVE_OK)
			fail_archive(out, u->what, name);
		if (!archive_entry_size_is_set(e) || archive_entry_size(e) > 0)
			copy_data(u, in, out, name);
		if (archive_write_finish_entry(out) < ARCHIVE_OK)
			fail_archive(out, u->what, name);
	}
	/* Padding after the end: whoever writes it must not meet a closed pipe. */
	while (read_source(in, &s, &rest) > 0)
		;
	if (archive_write_close(out) != ARCHIVE_OK)
		fail_archive(out, u->what, NULL);
	if (u->size_bytes >= 0 && s.left > 0)
		box_fail(ABX_EIO, NULL, "put: %.256s: the stream ended %lld bytes early", u->what,
			 (long long)s.left);
	return s.done;
}
