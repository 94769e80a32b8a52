/* SPDX-License-Identifier: MIT */
/* Files below the current directory become a tar stream. */
#include "providers/local/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Noreturn void fail_archive(struct archive *a, const char *what, const char *name)
{
	int err = archive_errno(a);

	box_fail(err == EACCES || err == EPERM ? ABX_EPERM
		 : err == ENOENT	       ? ABX_ENOTFOUND
					       : ABX_EIO,
		 NULL, "get: %.256s%s%.256s: %s", what, name ? ": " : "", name ? name : "",
		 archive_error_string(a) ? archive_error_string(a) : "failed");
}

static struct archive *open_out(const char *what)
{
	struct archive *a = archive_write_new();

	/* pax: names of any length, times to the nanosecond, holes.  A name that is not UTF-8
	 * makes libarchive mark its entry as raw bytes, and warn.  A pipe needs no padding. */
	if (!a || archive_write_set_format_pax(a) < ARCHIVE_WARN ||
	    archive_write_set_bytes_per_block(a, 131072) < ARCHIVE_WARN ||
	    archive_write_set_bytes_in_last_block(a, 512) < ARCHIVE_WARN ||
	    archive_write_open_fd(a, STDOUT_FILENO) < ARCHIVE_WARN)
		box_fail(ABX_EIO, NULL, "get: %.256s: libarchive: %s", what,
			 a ? archive_error_string(a) : "out of memory");
	return a;
}

static struct archive *open_in(const char *what, const char *only, bool is_image)
{
	struct archive *a = archive_read_disk_new();
	int behavior = ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS;

	behavior |= is_image ? ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS : ARCHIVE_READDISK_NO_XATTR;
	if (!a || archive_read_disk_set_symlink_physical(a) < ARCHIVE_WARN ||
	    archive_read_disk_set_behavior(a, behavior) < ARCHIVE_WARN ||
	    archive_read_disk_open(a, only ? only : ".") < ARCHIVE_WARN)
		fail_archive(a, what, NULL);
	return a;
}

/* "./a/b" is "a/b"; the directory itself is no entry. */
static bool prepare_entry(struct archive_entry *e)
{
	const char *name = archive_entry_pathname(e);

	if (name[0] == '.' && name[1] == '/') {
		char *copy = box_strdup(name + 2);

		archive_entry_set_pathname(e, copy);
		free(copy);
	} else if (strcmp(name, ".") == 0) {
		return false;
	}
	archive_entry_unset_atime(e);
	archive_entry_unset_ctime(e);
	archive_entry_unset_birthtime(e);
	/* A socket is nothing that could be carried. */
	return archive_entry_filetype(e) != AE_IFSOCK;
}

static void write_data(struct archive *in, struct archive *out, struct archive_entry *e,
		       const char *what)
{
	const char *name = archive_entry_pathname(e);
	la_int64_t at = 0;

	for (;;) {
		static const char zeros[65536];
		const void *data;
		size_t len;
		la_int64_t offset;
		int r = archive_read_data_block(in, &data, &len, &offset);

		if (r == ARCHIVE_EOF)
			return;
		if (r < ARCHIVE_WARN)
			fail_archive(in, what, name);
		/* The writer leaves out what the entry's sparse map says are holes, but it
		 * counts them. */
		while (at < offset) {
			size_t n = offset - at < (la_int64_t)sizeof(zeros) ? (size_t)(offset - at)
									   : sizeof(zeros);

			if (archive_write_data(out, zeros, n) < 0)
				fail_archive(out, what, name);
			at += (la_int64_t)n;
		}
		if (archive_write_data(out, data, len) < 0)
			fail_archive(out, what, name);
		at += (la_int64_t)len;
	}
}

static void write_entry(struct archive *in, struct archive *out, struct archive_entry *e,
			const char *what)
{
	if (archive_write_header(out, e) < ARCHIVE_WARN)
		fail_archive(out, what, archive_entry_pathname(e));
	if (archive_entry_filetype(e) == AE_IFREG && archive_entry_size(e) > 0)
		write_data(in, out, e, what);
	if (archive_write_finish_entry(out) < ARCHIVE_WARN)
		fail_archive(out, what, archive_entry_pathname(e));
}

void tar_pack(const char *only, bool is_image, const char *what)
{
	struct archive_entry_linkresolver *links = archive_entry_linkresolver_new();
	struct archive *out = open_out(what), *in = open_in(what, only, is_image);
	int r;

	if (!links)
		box_fail(ABX_ENOMEM, NULL, "get: out of memory");
	archive_entry_linkresolver_set_strategy(links, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE);
	for (;;) {
		struct archive_entry *e = archive_entry_new(), *spare = NULL;

		if (!e)
			box_fail(ABX_ENOMEM, NULL, "get: out of memory");
		r = archive_read_next_header2(in, e);
		if (r == ARCHIVE_EOF) {
			archive_entry_free(e);
			break;
		}
		/* A file that vanished while the tree is read is no failure; what may not be
		 * read is. */
		if (r < ARCHIVE_OK && archive_errno(in) != ENOENT)
			fail_archive(in, what, archive_entry_pathname(e));
		(void)archive_read_disk_descend(in);
		if (r >= ARCHIVE_OK && prepare_entry(e)) {
			archive_entry_linkify(links, &e, &spare);
			if (e)
				write_entry(in, out, e, what);
		}
		archive_entry_free(e);
	}
	archive_entry_linkresolver_free(links);
	if (archive_write_close(out) != ARCHIVE_OK)
		fail_archive(out, what, NULL);
}
