/* SPDX-License-Identifier: MIT */
/*
 * core/util/archive.h: tar streams, both ways, in constant memory.
 *
 * What is written is plain and made here; libarchive reads what others wrote, and compresses
 * (pump.h).  It is opened when it is needed: its start costs milliseconds, as much as a small
 * tree.
 *
 * Streams are GNU tar: names and link targets are raw bytes of any length, sizes have no
 * limit, and every tar in use reads them.  Times are whole seconds.  Owners are not said.
 *
 *	abx_tar_open(fd, -1, &tar, err);
 *	abx_tar_dir(tar, "src", 0755, mtime, err);
 *	abx_tar_file(tar, "src/a.c", a_fd, &st, NULL, err);
 *	abx_tar_finish(tar, err);
 *	abx_tar_close(tar);
 *
 * The caller blocks SIGPIPE.  A tar is used by one thread at a time.
 */
#ifndef ABX_ARCHIVE_H
#define ABX_ARCHIVE_H

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "core/util/err.h"
#include "core/util/sha1.h"

/* The functions that are used, each a member of abx_archive_api without its "archive_". */
/* clang-format off */
#define ABX_ARCHIVE_FUNCTIONS(F) \
	F(entry_filetype) F(entry_free) F(entry_hardlink) F(entry_mtime) F(entry_mtime_nsec) \
	F(entry_new) F(entry_pathname) F(entry_perm) F(entry_set_filetype) F(entry_size) \
	F(entry_sparse_count) F(entry_symlink) F(error_string) \
	F(read_data_block) F(read_free) F(read_new) F(read_next_header) F(read_open_fd) \
	F(read_support_format_tar) \
	F(write_add_filter_zstd) F(write_close) F(write_data) F(write_free) F(write_header) \
	F(write_new) F(write_open) F(write_set_bytes_in_last_block) \
	F(write_set_bytes_per_block) F(write_set_filter_option) F(write_set_format_raw)
/* clang-format on */

#define ABX_ARCHIVE_MEMBER(name) __typeof__(archive_##name) *name;
struct abx_archive_api {
	ABX_ARCHIVE_FUNCTIONS(ABX_ARCHIVE_MEMBER)
};
#undef ABX_ARCHIVE_MEMBER

/* The library, or NULL with ABX_EIO when it is not installed.  Thread-safe. */
const struct abx_archive_api *abx_archive_api(struct abx_err *err);

/* ---- writing ---- */

struct abx_tar;

/* Write to `fd`, a pipe or a file.  When `stop_fd` (-1: none) becomes readable, the next
 * write fails with ABX_ECANCELED, even while the reader of a pipe does not read. */
int abx_tar_open(int fd, int stop_fd, struct abx_tar **ret, struct abx_err *err);
/* Ends the archive; without it what was written is an incomplete stream. */
int abx_tar_finish(struct abx_tar *t, struct abx_err *err);
void abx_tar_close(struct abx_tar *t); /* frees; `fd` stays the caller's */
/* Called with the bytes of the stream so far whenever some went out; non-zero gives up. */
void abx_tar_watch(struct abx_tar *t, int (*watch)(void *ctx, uint64_t written), void *ctx);

/* Names are relative and without a trailing slash; `mode` gives the permission bits, of
 * which setuid, setgid and sticky never travel.  Directories always let their owner in. */
int abx_tar_dir(struct abx_tar *t, const char *name, mode_t mode, time_t mtime,
		struct abx_err *err);
int abx_tar_symlink(struct abx_tar *t, const char *name, const char *target, time_t mtime,
		    struct abx_err *err);
/* A second name for `target`, an entry before. */
int abx_tar_hardlink(struct abx_tar *t, const char *name, const char *target, mode_t mode,
		     time_t mtime, struct abx_err *err);
int abx_tar_bytes(struct abx_tar *t, const char *name, mode_t mode, time_t mtime, const void *data,
		  size_t len, struct abx_err *err);
/* The content of `fd`, a regular file that was just opened, as `st` (its fstat) says.
 * ABX_ESTATE when it grew, shrank or was written meanwhile: the stream is then spoiled.
 * `blob` (may be NULL) gets git's id of what was written; abx_sha1_hex() ends it. */
int abx_tar_file(struct abx_tar *t, const char *name, int fd, const struct stat *st,
		 struct abx_sha1 *blob, struct abx_err *err);

/* The same, of a file that somebody may be writing to: its fstat when all that `st` says
 * has been written is in *ret_after, for the caller to judge.  ABX_ESTATE only when it shrank. */
int abx_tar_file_live(struct abx_tar *t, const char *name, int fd, const struct stat *st,
		      struct abx_sha1 *blob, struct stat *ret_after, struct abx_err *err);

struct abx_tar_count {
	uint64_t files, dirs, links, bytes;
	uint64_t skipped; /* sockets, FIFOs, devices: not written */
};
/* What happens, after each entry and each MiB or so; non-zero gives up (ABX_ECANCELED). */
typedef int (*abx_tar_progress_fn)(void *ctx, const struct abx_tar_count *so_far);

struct abx_tar_tree {
	int dirfd;	  /* AT_FDCWD works */
	const char *path; /* a directory, file or link there; a link is taken as itself */
	const char *as;	  /* its name in the archive; "" with a directory: only what it holds */
	abx_tar_progress_fn progress;
	void *progress_ctx;
};
/* A whole tree, entries in byte order.  ret may be NULL. */
int abx_tar_write_tree(struct abx_tar *t, const struct abx_tar_tree *tree,
		       struct abx_tar_count *ret, struct abx_err *err);

/* ---- reading ---- */

/* Why an entry was not extracted. */
enum abx_tar_refusal {
	ABX_TAR_BAD_NAME,     /* absolute, with "..", empty, or too long */
	ABX_TAR_THROUGH_LINK, /* a symbolic link is on the way */
	ABX_TAR_LINK_LEAVES,  /* a symbolic link to outside of the directory */
	ABX_TAR_HARD_LINK,    /* a hard link to anything but a file below the directory */
	ABX_TAR_SPECIAL,      /* a device, FIFO or socket */
	ABX_TAR_IN_THE_WAY,   /* a directory where a file must go, or the reverse */
	ABX_TAR_NOT_WRITTEN,  /* the system refused: permission, name too long for it, ... */
	ABX_TAR_REFUSALS
};

struct abx_tar_extract {
	uint64_t max_entries, max_bytes; /* 0: ten million, and no bound but the disk's */
	const char *notes;		 /* of abx_landing, or NULL */
	abx_tar_progress_fn progress;
	void *progress_ctx;
};
struct abx_tar_result {
	struct abx_tar_count count;
	struct {
		uint64_t n;
		char *first; /* the first such name, printable; to be freed */
	} refused[ABX_TAR_REFUSALS];
	uint64_t n_refused;
};
void abx_tar_result_release(struct abx_tar_result *r);
/* "3 devices, FIFOs or sockets left out, first 'dev/null'", or NULL when there is none of
 * that kind; to be freed. */
char *abx_tar_refusal_text(const struct abx_tar_result *r, enum abx_tar_refusal kind);

/*
 * Unpack an untrusted stream below `dirfd`.  Nothing is written outside of it or through a
 * link, no setuid, setgid or sticky bit is set, owners are ours, a file that is there is
 * replaced as a whole.  What is refused is counted by kind and the rest is delivered: that is
 * success, with ret->n_refused.  Times are restored.  The end of the stream is read too.
 * ABX_EPROTO: not a tar stream, or one that breaks off; ABX_EQUOTA: past a bound; ABX_EIO:
 * the disk is full.  *ret is filled in any case and released by the caller.
 */
int abx_tar_extract(int fd, int dirfd, const struct abx_tar_extract *how,
		    struct abx_tar_result *ret, struct abx_err *err);

#endif
