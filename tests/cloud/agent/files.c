/* SPDX-License-Identifier: MIT */
/* Files, as root and for a user. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/number.h"
#include "tests/cloud/agent/agent.h"

#define COPY_BYTES ((size_t)256 << 10)
#define DEPTH_MAX 64

static int answer_entry(const char *path)
{
	(void)fputs("ok", stdout);
	(void)putchar('\0');
	return agent_entry(stdout, path) < 0 ? 1 : 0;
}

static int bad_path(const char *path)
{
	return agent_fail("invalid_argument", "path '%s' is in another user's home", path);
}

int agent_stat(const struct agent_user *u, char **args)
{
	char *path = agent_path(u, args[0]);
	struct stat st;

	if (!path)
		return bad_path(args[0]);
	if (lstat(path, &st) < 0)
		return agent_fail("not_found", "file not found: stat %s: %s", path,
				  strerror(errno));
	return answer_entry(path);
}

/* Directories that are missing on the way to `path`, and `path` itself when `all`. */
static int make_dirs(const struct agent_user *u, const char *path, bool all)
{
	char *copy = strdup(path);
	int r = 0;

	for (char *p = copy + 1; r == 0 && *p; p++) {
		bool last = !p[1];

		if (*p != '/' && !(last && all))
			continue;
		if (*p == '/')
			*p = '\0';
		if (mkdir(copy, 0755) == 0)
			r = chown(copy, u->user.uid, u->user.gid) < 0 ? -errno : 0;
		else if (errno != EEXIST)
			r = -errno;
		if (*p == '\0')
			*p = '/';
	}
	free(copy);
	return r;
}

int agent_mkdir(const struct agent_user *u, char **args)
{
	char *path = agent_path(u, args[0]);
	struct stat st;
	int r;

	if (!path)
		return bad_path(args[0]);
	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode)
			       ? agent_fail("already_exists", "directory already exists: %s", path)
			       : agent_fail("invalid_argument",
					    "path already exists but it is not a directory: %s",
					    path);
	r = make_dirs(u, path, true);
	if (r < 0)
		return agent_fail("internal", "error creating directory %s: %s", path,
				  strerror(-r));
	return answer_entry(path);
}

int agent_move(const struct agent_user *u, char **args)
{
	char *from = agent_path(u, args[0]), *to = agent_path(u, args[1]);
	struct stat st;

	if (!from || !to)
		return bad_path(args[0]);
	if (lstat(from, &st) < 0)
		return agent_fail("not_found", "source file not found: %s", from);
	if (make_dirs(u, to, false) < 0 || rename(from, to) < 0)
		return agent_fail("internal", "error renaming %s: %s", from, strerror(errno));
	return answer_entry(to);
}

int agent_remove(const struct agent_user *u, char **args)
{
	char *path = agent_path(u, args[0]);
	int r;

	if (!path)
		return bad_path(args[0]);
	r = abx_fs_remove_tree(AT_FDCWD, path);
	if (r < 0 && r != -ENOENT && r != -ENOTDIR)
		return agent_fail("internal", "error removing %s: %s", path, strerror(-r));
	(void)fputs("ok", stdout);
	(void)putchar('\0');
	return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void list_into(const char *dir, uint64_t depth)
{
	struct dirent **names = NULL;
	int n = scandir(dir, &names, NULL, by_name);

	for (int i = 0; i < n; i++) {
		char *path = NULL;
		struct stat st;

		if (!abx_fs_is_dot(names[i]->d_name)) {
			if (asprintf(&path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir,
				     names[i]->d_name) < 0)
				_exit(1);
			(void)agent_entry(stdout, path);
			if (depth > 1 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
				list_into(path, depth - 1);
		}
		free(path);
		free(names[i]);
	}
	free(names);
}

int agent_list(const struct agent_user *u, char **args)
{
	char *path = agent_path(u, args[0]);
	uint64_t depth = 1;
	struct stat st;

	if (!path)
		return bad_path(args[0]);
	if (stat(path, &st) < 0)
		return errno == ELOOP
			       ? agent_fail("failed_precondition", "cyclic symlink: %s", path)
			       : agent_fail("not_found", "path not found: %s", path);
	if (!S_ISDIR(st.st_mode))
		return agent_fail("invalid_argument", "path is not a directory: %s", path);
	(void)abx_parse_u64(args[1], DEPTH_MAX, &depth);
	(void)fputs("ok", stdout);
	(void)putchar('\0');
	list_into(path, depth ? depth : 1);
	return 0;
}

static int copy(int from, int to)
{
	char *b = agent_alloc(1, COPY_BYTES);
	int r = 0;

	while (r == 0) {
		ssize_t n = read(from, b, COPY_BYTES);

		if (n == 0)
			break;
		if (n < 0)
			r = errno == EINTR ? 0 : -errno;
		else
			r = abx_fs_write_all(to, b, (size_t)n);
	}
	free(b);
	return r;
}

int agent_get(const struct agent_user *u, char **args)
{
	char *path = agent_path(u, args[0]);
	abx_autoclose int fd = -1;
	struct stat st;

	if (!path)
		return bad_path(args[0]);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? agent_fail("not_found", "path '%s' does not exist", path)
			       : agent_fail("internal", "error opening file '%s': %s", path,
					    strerror(errno));
	if (S_ISDIR(st.st_mode))
		return agent_fail("invalid_argument", "path '%s' is a directory", path);
	if (!S_ISREG(st.st_mode))
		return agent_fail("invalid_argument", "path '%s' is not a regular file", path);
	(void)printf("ok%c%" PRId64 "%c%s%c", 0, (int64_t)st.st_size, 0, path, 0);
	if (fflush(stdout) != 0)
		return 1;
	return copy(fd, STDOUT_FILENO) < 0 ? 1 : 0;
}

int agent_put(const struct agent_user *u, char **args)
{
	char *path = agent_path(u, args[0]);
	abx_autoclose int fd = -1;
	struct stat st;
	int r;

	if (!path)
		return bad_path(args[0]);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return agent_fail("invalid_argument", "path is a directory: %s", path);
	r = make_dirs(u, path, false);
	(void)umask(022);
	fd = r < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return agent_fail("internal", "error opening file: %s: %s", path,
				  strerror(r < 0 ? -r : errno));
	r = fchown(fd, u->user.uid, u->user.gid) < 0 ? -errno : copy(STDIN_FILENO, fd);
	if (r == -ENOSPC || r == -EDQUOT)
		return agent_fail("resource_exhausted", "not enough disk space available");
	if (r < 0)
		return agent_fail("internal", "error writing file: %s: %s", path, strerror(-r));
	return answer_entry(path);
}
