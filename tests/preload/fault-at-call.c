/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD: something happens to agentbox at its Nth call that changes a file below a directory.
 *
 *	FAULT_UNDER	the directory, as in /proc/self/fd; "pipe:" and "socket:" are streams
 *	FAULT_AT	N; 0 or none: never
 *	FAULT_KIND	kill: SIGKILL, after half of the bytes of a write; int: SIGINT; full: the
 *			disk is full from now on; stop: SIGSTOP
 *	FAULT_COUNT	a file that gets the number of such calls, when agentbox ends by itself
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
#define REAL(name)                                                 \
	static __typeof__(&(name)) real;                           \
	do {                                                       \
		if (!real)                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
	} while (0)

static atomic_int seen;
static atomic_bool full;
static int wanted;
static const char *under, *kind;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAULT_AT");

	if (strcmp(program_invocation_short_name, "agentbox") != 0)
		return;
	wanted = at ? (int)strtol(at, NULL, 10) : 0;
	kind = getenv("FAULT_KIND");
	kind = kind ? kind : "";
	under = getenv("FAULT_UNDER");
}

__attribute__((destructor)) static void end(void)
{
	const char *path = under ? getenv("FAULT_COUNT") : NULL;
	FILE *file = path ? fopen(path, "we") : NULL;

	if (!file)
		return;
	(void)fprintf(file, "%d\n", (int)seen);
	(void)fclose(file);
}

static bool fd_is_under(int fd)
{
	char self[40], path[PATH_MAX];
	ssize_t n;

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(fd == AT_FDCWD ? "/proc/self/cwd" : self, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	return strncmp(path, under, strlen(under)) == 0;
}

static bool is_under(int dirfd, const char *path)
{
	return *path == '/' ? strncmp(path, under, strlen(under)) == 0 : fd_is_under(dirfd);
}

/* Is it this one's turn? */
static bool is_now(bool counts)
{
	if (!under || !counts)
		return false;
	if (++seen != wanted)
		return false;
	if (strcmp(kind, "full") == 0)
		full = true;
	else if (strcmp(kind, "int") == 0)
		(void)raise(SIGINT);
	else if (strcmp(kind, "stop") == 0)
		(void)raise(SIGSTOP);
	return strcmp(kind, "kill") == 0;
}

/* A call that takes no room. */
static void before(bool counts)
{
	if (is_now(counts))
		(void)raise(SIGKILL);
}

/* One that does; false when there is none. */
static bool has_room(bool counts)
{
	before(counts);
	if (!counts || !full)
		return true;
	errno = ENOSPC;
	return false;
}

SHOWN ssize_t write(int fd, const void *data, size_t len)
{
	const bool counts = under && fd_is_under(fd);

	REAL(write);
	if (is_now(counts)) {
		(void)!real(fd, data, len / 2);
		(void)raise(SIGKILL);
	}
	if (counts && full) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, data, len);
}

static ssize_t put_at(ssize_t (*real)(int, const void *, size_t, off_t), int fd, const void *data,
		      size_t len, off_t offset)
{
	const bool counts = under && fd_is_under(fd);

	if (is_now(counts)) {
		(void)!real(fd, data, len / 2, offset);
		(void)raise(SIGKILL);
	}
	if (counts && full) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, data, len, offset);
}

SHOWN ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
	REAL(pwrite);
	return put_at(real, fd, data, len, offset);
}

SHOWN ssize_t pwrite64(int fd, const void *data, size_t len, off_t offset);
SHOWN ssize_t pwrite64(int fd, const void *data, size_t len, off_t offset)
{
	REAL(pwrite64);
	return put_at(real, fd, data, len, offset);
}

/* Of those that open, what makes a file counts. */
static bool may_open(int dirfd, const char *path, int flags)
{
	struct stat st;
	const bool makes =
		(flags & O_TMPFILE) == O_TMPFILE ||
		((flags & O_CREAT) && fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0);

	return !under || !makes || has_room(is_under(dirfd, path));
}

#define OPEN_BODY(call)                                              \
	mode_t mode = 0;                                             \
	va_list ap;                                                  \
                                                                     \
	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
		va_start(ap, flags);                                 \
		mode = va_arg(ap, mode_t);                           \
		va_end(ap);                                          \
	}                                                            \
	call

SHOWN int open(const char *path, int flags, ...)
{
	REAL(open);
	OPEN_BODY(return may_open(AT_FDCWD, path, flags) ? real(path, flags, mode) : -1;)
}

SHOWN int open64(const char *path, int flags, ...);
SHOWN int open64(const char *path, int flags, ...)
{
	REAL(open64);
	OPEN_BODY(return may_open(AT_FDCWD, path, flags) ? real(path, flags, mode) : -1;)
}

SHOWN int openat(int dirfd, const char *path, int flags, ...)
{
	REAL(openat);
	OPEN_BODY(return may_open(dirfd, path, flags) ? real(dirfd, path, flags, mode) : -1;)
}

SHOWN int openat64(int dirfd, const char *path, int flags, ...);
SHOWN int openat64(int dirfd, const char *path, int flags, ...)
{
	REAL(openat64);
	OPEN_BODY(return may_open(dirfd, path, flags) ? real(dirfd, path, flags, mode) : -1;)
}

SHOWN int mkdir(const char *path, mode_t mode)
{
	REAL(mkdir);
	return has_room(under && is_under(AT_FDCWD, path)) ? real(path, mode) : -1;
}

SHOWN int mkdirat(int dirfd, const char *path, mode_t mode)
{
	REAL(mkdirat);
	return has_room(under && is_under(dirfd, path)) ? real(dirfd, path, mode) : -1;
}

SHOWN int symlinkat(const char *target, int dirfd, const char *path)
{
	REAL(symlinkat);
	return has_room(under && is_under(dirfd, path)) ? real(target, dirfd, path) : -1;
}

SHOWN int linkat(int from, const char *old, int dirfd, const char *path, int flags)
{
	REAL(linkat);
	return has_room(under && is_under(dirfd, path)) ? real(from, old, dirfd, path, flags) : -1;
}

SHOWN int renameat(int from, const char *old, int dirfd, const char *path)
{
	REAL(renameat);
	before(under && is_under(dirfd, path));
	return real(from, old, dirfd, path);
}

SHOWN int rename(const char *old, const char *path)
{
	REAL(rename);
	before(under && is_under(AT_FDCWD, path));
	return real(old, path);
}

SHOWN int unlinkat(int dirfd, const char *path, int flags)
{
	REAL(unlinkat);
	before(under && is_under(dirfd, path));
	return real(dirfd, path, flags);
}

SHOWN int unlink(const char *path)
{
	REAL(unlink);
	before(under && is_under(AT_FDCWD, path));
	return real(path);
}

SHOWN int fsync(int fd)
{
	REAL(fsync);
	before(under && fd_is_under(fd));
	return real(fd);
}

SHOWN int fchmod(int fd, mode_t mode)
{
	REAL(fchmod);
	before(under && fd_is_under(fd));
	return real(fd, mode);
}
