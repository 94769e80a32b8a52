/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/fs.h: files, the careful way.
 *
 * Every function takes a directory descriptor (or AT_FDCWD) and a path, returns 0 or -errno,
 * opens with O_CLOEXEC, and restarts interrupted calls.
 */
#ifndef ABXSDK_FS_H
#define ABXSDK_FS_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#include "abxsdk/buf.h"

/* Read a whole regular file of at most b->max bytes.  -EFBIG when it is larger. */
int abx_fs_read(int dirfd, const char *path, struct abx_buf *b);

/* Replace `path` with these bytes: temporary file beside it, fsync when `durable`, rename,
 * fsync of the directory.  Readers see the old file or the new one, never a part. */
int abx_fs_write_atomic(int dirfd, const char *path, const void *data, size_t len, mode_t mode,
			bool durable);
/* The same with bytes that are not all in memory: `fill` writes them to `fd`, and returns 0 or
 * -errno. */
int abx_fs_fill_atomic(int dirfd, const char *path, int (*fill)(void *ctx, int fd), void *ctx,
		       mode_t mode, bool durable);

/* Write all of it; handles short writes. */
int abx_fs_write_all(int fd, const void *data, size_t len);

/* Create `path` and the directories above it; existing directories are kept as they are.
 * Only for trusted paths: links on the way are followed. */
int abx_fs_mkdir_p(int dirfd, const char *path, mode_t mode);

/* Remove a file or a whole tree without following links or leaving the file system object
 * that `path` names.  A missing one is success. */
int abx_fs_remove_tree(int dirfd, const char *path);

/* A file in directory `dir` that has no name, so that whoever is killed leaves nothing, and its
 * name once it is whole; an existing one is -EEXIST.  Not every file system can: -EOPNOTSUPP,
 * -EISDIR, -ENOENT.  A descriptor for writing, or -errno. */
int abx_fs_open_unnamed(int dirfd, const char *dir, mode_t mode);
int abx_fs_name_it(int fd, int dirfd, const char *name);
/* A file of ours to write and read that never has a name, also where the file system needs one
 * first; a descriptor. */
int abx_fs_open_scratch(const char *dir);

/* Open a directory, O_PATH not used so that it can be read and locked. */
int abx_fs_open_dir(int dirfd, const char *path);
/* The same for readdir(), at its beginning whatever others have read; no link at the end of
 * `path`.  NULL and errno; closedir() it. */
DIR *abx_fs_opendir(int dirfd, const char *path);
/* How many bytes can still be written where `fd` lies; UINT64_MAX: the file system does not say. */
uint64_t abx_fs_room(int fd);
/* "." or "..", which every directory lists. */
bool abx_fs_is_dot(const char *name);

/* How many bytes of a regular file are left to read behind its offset; -1: not known. */
int64_t abx_fs_rest(int fd);

#endif
