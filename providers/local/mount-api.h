/* SPDX-License-Identifier: MIT */
/* mount-api.h: calls of the mount API of Linux 5.12, which older C libraries lack. */
#ifndef LOCAL_MOUNT_API_H
#define LOCAL_MOUNT_API_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ABX_ATTR_RDONLY UINT64_C(1)
#define ABX_ATTR_NOSUID UINT64_C(2)
#define ABX_ATTR_NODEV UINT64_C(4)
#define ABX_ATTR_NOEXEC UINT64_C(8)
#define ABX_ATTR_IDMAP UINT64_C(0x100000)
#define ABX_PROPAGATION_PRIVATE UINT64_C(0x40000) /* MS_PRIVATE */

#define ABX_AT_RECURSIVE 0x8000u
#define ABX_OPEN_TREE_CLONE 1u
#define ABX_MOVE_MOUNT_F_EMPTY_PATH 4u
#define ABX_MOVE_MOUNT_T_EMPTY_PATH 0x40u

struct abx_mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

/* A detached copy of the mount at `path` and of all below it. */
static inline int abx_open_tree(int dirfd, const char *path)
{
	return (int)syscall(SYS_open_tree, dirfd, path,
			    ABX_OPEN_TREE_CLONE | ABX_AT_RECURSIVE | (unsigned int)O_CLOEXEC);
}

/* The same of what is behind an O_PATH descriptor. */
static inline int abx_open_tree_fd(int fd)
{
	return (int)syscall(SYS_open_tree, fd, "",
			    ABX_OPEN_TREE_CLONE | ABX_AT_RECURSIVE | (unsigned int)O_CLOEXEC |
				    (unsigned int)AT_EMPTY_PATH);
}

static inline int abx_mount_setattr(int fd, const struct abx_mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, fd, "",
			    (unsigned int)AT_EMPTY_PATH | ABX_AT_RECURSIVE, attr, sizeof(*attr));
}

/* Without what is mounted below it. */
static inline int abx_mount_setattr_top(int fd, const struct abx_mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, fd, "", (unsigned int)AT_EMPTY_PATH, attr,
			    sizeof(*attr));
}

static inline int abx_move_mount(int fd, const char *target)
{
	return (int)syscall(SYS_move_mount, fd, "", AT_FDCWD, target, ABX_MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int abx_move_mount_fd(int fd, int target_fd)
{
	return (int)syscall(SYS_move_mount, fd, "", target_fd, "",
			    ABX_MOVE_MOUNT_F_EMPTY_PATH | ABX_MOVE_MOUNT_T_EMPTY_PATH);
}

#define ABX_FSCONFIG_SET_FLAG 0u
#define ABX_FSCONFIG_SET_STRING 1u
#define ABX_FSCONFIG_CMD_CREATE 6u

static inline int abx_fsopen(const char *type)
{
	return (int)syscall(SYS_fsopen, type, 1u /* FSOPEN_CLOEXEC */);
}

/* A detached mount of it. */
static inline int abx_fsmount(int fd)
{
	return (int)syscall(SYS_fsmount, fd, 1u /* FSMOUNT_CLOEXEC */, ABX_ATTR_NODEV);
}

static inline int abx_fsconfig(int fd, unsigned int cmd, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, 0);
}

#endif
