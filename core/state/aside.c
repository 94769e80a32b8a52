/* SPDX-License-Identifier: MIT */
/* Damaged files of ours are kept, not overwritten. */
#include "core/state/aside.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/mem.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static char *dir_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? abx_xstrndup(path, (size_t)(slash - path)) : abx_xstrdup(".");
}

static bool is_companion(const char *entry, const char *const *companions)
{
	size_t len = strlen(entry);

	for (; companions && *companions; companions++) {
		size_t n = strlen(*companions);

		if (len > n && strcmp(entry + len - n, *companions) == 0)
			return true;
	}
	return false;
}

/* How many copies there are; the times in the names sort by age. */
static size_t count_copies(int dirfd, const char *prefix, const char *const *companions,
			   char **ret_oldest)
{
	DIR *dir = abx_fs_opendir(dirfd, ".");
	struct dirent *e;
	size_t n = 0;

	if (!dir)
		return 0;
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
		    is_companion(e->d_name, companions))
			continue;
		n++;
		if (!*ret_oldest || strcmp(e->d_name, *ret_oldest) < 0)
			abx_xreplace(ret_oldest, e->d_name);
	}
	(void)closedir(dir);
	return n;
}

static void drop_copy(int dirfd, const char *copy, const char *const *companions)
{
	abx_warn("removing '%s', the oldest of %d damaged copies that were kept", copy,
		 ABX_ASIDE_KEEP);
	for (; companions && *companions; companions++) {
		abx_autofree char *name = abx_xasprintf("%s%s", copy, *companions);

		(void)unlinkat(dirfd, name, 0);
	}
	(void)unlinkat(dirfd, copy, 0);
}

static void make_room(int dirfd, const char *base, const char *const *companions)
{
	abx_autofree char *prefix = abx_xasprintf("%s.damaged-", base);

	for (;;) {
		abx_autofree char *oldest = NULL;

		if (count_copies(dirfd, prefix, companions, &oldest) < ABX_ASIDE_KEEP)
			return;
		drop_copy(dirfd, oldest, companions);
		if (faccessat(dirfd, oldest, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return;
	}
}

/* Milliseconds, so that several damages in one second still sort by age. */
static void time_stamp(char *text, size_t size)
{
	char rfc[ABX_TIME_TEXT_BYTES];
	int64_t now = abx_wall_ms();
	size_t len = 0;

	abx_time_text(now, rfc);
	for (const char *at = rfc; *at && *at != 'Z' && len + 8 < size; at++)
		if (*at != '-' && *at != ':')
			text[len++] = *at;
	(void)snprintf(text + len, size - len, ".%03dZ", (int)(now % 1000));
}

static char *choose_copy(int dirfd, const char *base)
{
	char stamp[ABX_TIME_TEXT_BYTES];
	struct stat st;

	time_stamp(stamp, sizeof(stamp));
	for (unsigned int n = 0;; n++) {
		char *copy = n ? abx_xasprintf("%s.damaged-%s.%u", base, stamp, n)
			       : abx_xasprintf("%s.damaged-%s", base, stamp);

		if (fstatat(dirfd, copy, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return copy;
		free(copy);
	}
}

static int move(int dirfd, const char *base, const char *copy, const char *suffix)
{
	abx_autofree char *from = abx_xasprintf("%s%s", base, suffix);
	abx_autofree char *to = abx_xasprintf("%s%s", copy, suffix);

	return renameat(dirfd, from, dirfd, to) < 0 ? -errno : 0;
}

int abx_set_aside(const struct abx_home *home, const char *name, const char *const *companions,
		  const char *why, struct abx_err *err)
{
	const char *base = base_name(name);
	abx_autofree char *dir = dir_name(name), *copy = NULL;
	abx_autoclose int fd = abx_fs_open_dir(home->fd, dir);
	int r = fd;

	if (r >= 0) {
		make_room(fd, base, companions);
		copy = choose_copy(fd, base);
		r = 0;
		/* First what belongs to it: a write-ahead log left behind would be applied to
		 * the new database. */
		for (size_t i = 0; companions && companions[i] && r == 0; i++) {
			r = move(fd, base, copy, companions[i]);
			r = r == -ENOENT ? 0 : r;
		}
		if (r == 0)
			r = move(fd, base, copy, "");
	}
	if (r < 0) {
		(void)abx_err_errno(err, r, "set '%s/%s' aside (%s)", home->path, name, why);
		return abx_err_remedy(err, "move it away by hand");
	}
	abx_warn("'%s/%s' is damaged (%s): kept as '%s', a new one is started%s", home->path, name,
		 why, copy, strstr(name, ".db") ? "; agentbox recover finds the boxes again" : "");
	return 0;
}
