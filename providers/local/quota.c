/* SPDX-License-Identifier: MIT */
/* Project quotas of ext4 and xfs: how much a box may write to disk. */
#include "providers/local/limits.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "abxsdk/fs.h"

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef PRJQUOTA
#define PRJQUOTA 2
#endif
#define CHOOSE_TRIES 64
/* Apart from the small numbers that people give to their own projects. */
#define FIRST_PROJECT UINT32_C(0x40000000)

static int quota(int fd, int command, uint32_t project, struct if_dqblk *q)
{
	return syscall(SYS_quotactl_fd, fd, QCMD((unsigned int)command, PRJQUOTA), project, q) < 0
		       ? -errno
		       : 0;
}

int local_quota_choose(int dir_fd, uint32_t *ret_project)
{
	if (geteuid() != 0)
		return -EPERM;
	for (int i = 0; i < CHOOSE_TRIES; i++) {
		struct if_dqblk q = {.dqb_valid = 0};
		uint32_t project;
		int r;

		if (getrandom(&project, sizeof(project), 0) != (ssize_t)sizeof(project))
			return -EIO;
		project = FIRST_PROJECT | (project & (FIRST_PROJECT - 1));
		r = quota(dir_fd, Q_GETQUOTA, project, &q);
		if (r == -ENOENT)
			memset(&q, 0, sizeof(q));
		else if (r < 0)
			return r == -EPERM ? r : -EOPNOTSUPP;
		if (q.dqb_bhardlimit || q.dqb_curspace || q.dqb_curinodes)
			continue;
		*ret_project = project;
		return 0;
	}
	return -EAGAIN;
}

int local_quota_limit(int dir_fd, uint32_t project, uint64_t bytes)
{
	struct if_dqblk q = {
		.dqb_valid = QIF_BLIMITS,
		.dqb_bhardlimit = (bytes + QIF_DQBLKSIZE - 1) / QIF_DQBLKSIZE,
	};

	return quota(dir_fd, Q_SETQUOTA, project, &q);
}

int local_quota_set(int dir_fd, const char *name, const struct local_limits *l)
{
	abx_autoclose int fd =
		openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct fsxattr x;
	int r;

	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
		return -errno;
	/* The limit first: it marks the project as taken. */
	r = local_quota_limit(fd, l->project, l->disk_bytes);
	x.fsx_projid = l->project;
	x.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (r == 0 && ioctl(fd, FS_IOC_FSSETXATTR, &x) < 0)
		r = -errno;
	return r;
}

void local_quota_release(int dir_fd, uint32_t project)
{
	(void)local_quota_limit(dir_fd, project, 0);
}

int local_quota_used(int dir_fd, uint32_t project, uint64_t *ret_bytes)
{
	struct if_dqblk q = {.dqb_valid = 0};
	int r = quota(dir_fd, Q_GETQUOTA, project, &q);

	if (r == 0)
		*ret_bytes = q.dqb_curspace;
	return r;
}
