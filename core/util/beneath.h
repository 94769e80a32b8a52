/* SPDX-License-Identifier: MIT */
/*
 * core/util/beneath.h: opening what an untrusted relative path names, inside one directory.
 *
 *	fd = abx_open_beneath(dirfd, "a/b/file", O_RDONLY, 0);
 *
 *	r = abx_open_parent_beneath(dirfd, "a/b/new", 0755, &fd, &name);
 *	renameat(fd, tmp, fd, name);
 *
 * No component is followed when it is a symbolic link, and `..`, absolute paths and empty
 * components never resolve: what is opened lies below `dirfd` whatever the tree holds, and
 * however it changes meanwhile.  Everything is close-on-exec.  Descriptors or -errno; a link
 * on the way is -ELOOP, a path that leaves is -EXDEV.
 */
#ifndef ABX_BENEATH_H
#define ABX_BENEATH_H

#include <stdbool.h>
#include <sys/types.h>

/* Non-empty, relative, without empty, `.` and `..` components or a trailing slash, and short
 * enough for the system. */
bool abx_is_clean_path(const char *path);

/* Open the object itself; "" is the directory.  `mode` counts with O_CREAT. */
int abx_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/* Open the directory that holds `path`; *ret_name points at the last component inside
 * `path`.  With a non-zero `mkdir_mode`, missing directories are made. */
int abx_open_parent_beneath(int dirfd, const char *path, mode_t mkdir_mode, int *ret_fd,
			    const char **ret_name);

/* Does a symbolic link at `path` that says `target` stay below the directory?  Judged by the
 * text alone: relative, `..` only in front, and no more of them than directories above. */
bool abx_link_stays_beneath(const char *path, const char *target);

#endif
