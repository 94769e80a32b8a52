/* SPDX-License-Identifier: MIT */
/* Opening what an untrusted relative path names, inside one directory. */
#include "core/util/beneath.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "abxsdk/base.h"

#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

bool abx_is_clean_path(const char *path)
{
	const char *at = path;

	if (strlen(path) >= PATH_MAX)
		return false;
	for (;;) {
		size_t len = strcspn(at, "/");

		if (len == 0 || len > NAME_MAX || (len == 1 && at[0] == '.') ||
		    (len == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		if (!at[len])
			return true;
		at += len + 1;
	}
}

/* One O_NOFOLLOW open a component, for kernels and filters without openat2. */
static int open_by_component(int dirfd, const char *path, int flags, mode_t mode)
{
	abx_autoclose int at = -1;
	const char *rest = path;

	for (;;) {
		size_t len = strcspn(rest, "/");
		char name[NAME_MAX + 1];
		int fd;

		if (len == 0 || len > NAME_MAX)
			return -EINVAL;
		memcpy(name, rest, len);
		name[len] = '\0';
		if (strcmp(name, "..") == 0)
			return -EXDEV;
		if (!rest[len]) {
			fd = openat(at < 0 ? dirfd : at, name, flags | O_NOFOLLOW | O_CLOEXEC,
				    mode);
			return fd < 0 ? -errno : fd;
		}
		fd = openat(at < 0 ? dirfd : at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (at >= 0)
			(void)close(at);
		at = fd;
		rest += len + 1;
	}
}

#ifdef SYS_openat2
static int open_at_once(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};

	for (;;) {
		long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

		if (fd >= 0)
			return (int)fd;
		/* EAGAIN: a rename elsewhere made the kernel unsure about a `..`. */
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}
#else
static int open_at_once(int dirfd, const char *path, int flags, mode_t mode)
{
	(void)dirfd, (void)path, (void)flags, (void)mode;
	return -ENOSYS;
}
#endif

int abx_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd;

	if (!*path) {
		fd = openat(dirfd, ".", flags | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (*path == '/')
		return -EXDEV;
	fd = open_at_once(dirfd, path, flags, mode);
	/* EPERM also comes from seccomp filters that do not know the call. */
	if (fd == -ENOSYS || fd == -EPERM)
		fd = open_by_component(dirfd, path, flags, mode);
	return fd;
}

/* Make the directories of `path` (all but its last component) that are missing. */
static int make_parents(int dirfd, const char *path, size_t parent_len, mode_t mode)
{
	abx_autoclose int at = -1;
	size_t done = 0;

	while (done < parent_len) {
		size_t len = strcspn(path + done, "/");
		char name[NAME_MAX + 1];
		int fd;

		if (len == 0 || len > NAME_MAX)
			return -EINVAL;
		memcpy(name, path + done, len);
		name[len] = '\0';
		if (strcmp(name, "..") == 0)
			return -EXDEV;
		if (mkdirat(at < 0 ? dirfd : at, name, mode) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(at < 0 ? dirfd : at, name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (at >= 0)
			(void)close(at);
		at = fd;
		done += len + 1;
	}
	return 0;
}

int abx_open_parent_beneath(int dirfd, const char *path, mode_t mkdir_mode, int *ret_fd,
			    const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	const size_t len = slash ? (size_t)(slash - path) : 0;
	abx_autofree char *parent = strndup(path, len);
	int fd;

	if (!parent)
		return -ENOMEM;
	fd = abx_open_beneath(dirfd, parent, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT && mkdir_mode && len) {
		int r = make_parents(dirfd, path, len, mkdir_mode);

		if (r < 0)
			return r;
		fd = abx_open_beneath(dirfd, parent, O_RDONLY | O_DIRECTORY, 0);
	}
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	*ret_name = slash ? slash + 1 : path;
	return 0;
}

bool abx_link_stays_beneath(const char *path, const char *target)
{
	bool named = false;
	long depth = 0;
	const char *at;

	if (*target == '/' || !*target)
		return false;
	for (at = path; (at = strchr(at, '/')); at++)
		depth++;
	for (at = target; *at;) {
		size_t len = strcspn(at, "/");

		if (len == 2 && at[0] == '.' && at[1] == '.')
			depth--;
		else if (len && !(len == 1 && at[0] == '.'))
			named = true;
		/* Behind a name, `..` leads to wherever that name may lead. */
		if (depth < 0 || (named && len == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		at += len;
		at += strspn(at, "/");
	}
	return true;
}
