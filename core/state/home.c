/* SPDX-License-Identifier: MIT */
/* AGENTBOX_HOME, the directory of one install. */
#include "core/state/home.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "abxsdk/text.h"
#include "core/util/mem.h"

static char *passwd_home(void)
{
	char buffer[16384];
	struct passwd pw, *found = NULL;

	if (getpwuid_r(geteuid(), &pw, buffer, sizeof(buffer), &found) != 0 || !found)
		return NULL;
	return found->pw_dir && *found->pw_dir == '/' ? abx_xstrdup(found->pw_dir) : NULL;
}

static int choose_path(char **ret, struct abx_err *err)
{
	const char *set = secure_getenv("AGENTBOX_HOME"), *home = secure_getenv("HOME");
	abx_autofree char *from_passwd = NULL;

	if (set && *set == '/') {
		*ret = abx_xstrdup(set);
		return 0;
	}
	if (set && *set) {
		abx_autofree char *cwd = realpath(".", NULL);

		if (!cwd)
			return abx_err_errno(err, errno, "AGENTBOX_HOME '%s'", set);
		*ret = abx_xasprintf("%s/%s", cwd, set);
		return 0;
	}
	if (!home || *home != '/')
		home = from_passwd = passwd_home();
	if (!home) {
		(void)abx_err_set(err, ABX_ENOTFOUND, "no home directory is known");
		return abx_err_remedy(err, "set AGENTBOX_HOME to a directory of yours");
	}
	*ret = abx_xasprintf("%s/.agentbox", home);
	return 0;
}

static int check_dir(int fd, const char *path, struct abx_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "home '%s'", path);
	if (st.st_uid != geteuid()) {
		(void)abx_err_set(err, ABX_EPERM,
				  "home '%s': belongs to user %lu, not to you (%lu)", path,
				  (unsigned long)st.st_uid, (unsigned long)geteuid());
		return abx_err_remedy(err, "set AGENTBOX_HOME to a directory of yours");
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		(void)abx_err_set(err, ABX_EPERM, "home '%s': others can write to it (mode %04o)",
				  path, (unsigned int)(st.st_mode & 07777));
		return abx_err_remedy(err, "chmod 700 '%s'", path);
	}
	if (faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) < 0) {
		int saved = errno;

		(void)abx_err_errno(err, saved, "home '%s': cannot write there", path);
		return saved == EACCES
			       ? abx_err_remedy(err, "chmod 700 '%s'", path)
			       : abx_err_remedy(err, "set AGENTBOX_HOME to a writable directory");
	}
	return 0;
}

/* May its owner, who is asked to, change its mode? */
static bool is_mine(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

static int open_made(const char *path, struct abx_err *err)
{
	int fd = abx_fs_open_dir(AT_FDCWD, path), r;

	if (fd == -ENOENT) {
		r = abx_fs_mkdir_p(AT_FDCWD, path, 0700);
		if (r < 0) {
			(void)abx_err_errno(err, r, "create home '%s'", path);
			return abx_remedy_of_errno(-r)
				       ? err->code
				       : abx_err_remedy(err, "set AGENTBOX_HOME to a directory of "
							     "yours");
		}
		fd = abx_fs_open_dir(AT_FDCWD, path);
	}
	if (fd == -ENOTDIR) {
		(void)abx_err_errno(err, fd, "home '%s'", path);
		return abx_err_remedy(err, "move that file away, or set AGENTBOX_HOME");
	}
	if (fd < 0) {
		r = fd;
		(void)abx_err_errno(err, r, "open home '%s'", path);
		return r == -EACCES && is_mine(path)
			       ? abx_err_remedy(err, "chmod 700 '%s'", path)
			       : abx_err_remedy(err, "set AGENTBOX_HOME to a directory of yours");
	}
	return fd;
}

int abx_home_open(struct abx_home *ret, struct abx_err *err)
{
	abx_autofree char *path = NULL, *real = NULL;
	abx_autoclose int fd = -1;
	int r = choose_path(&path, err);

	if (r < 0)
		return r;
	fd = open_made(path, err);
	if (fd < 0)
		return fd;
	r = check_dir(fd, path, err);
	if (r < 0)
		return r;
	real = realpath(path, NULL);
	if (!real)
		return abx_err_errno(err, errno, "home '%s'", path);
	ret->path = abx_steal_ptr(&real);
	ret->fd = abx_steal_fd(&fd);
	return 0;
}

void abx_home_release(struct abx_home *h)
{
	free(h->path);
	h->path = NULL;
	abx_cleanup_close(&h->fd);
	h->fd = -1;
}

static char *below(const struct abx_home *h, const char *fmt, va_list ap) ABX_PRINTF(2, 0);

static char *below(const struct abx_home *h, const char *fmt, va_list ap)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(PATH_MAX * 2);
	char *path;

	abx_buf_addf(&b, "%s/", h->path);
	abx_buf_addv(&b, fmt, ap);
	path = abx_buf_steal(&b);
	/* A name that long cannot exist; an empty path fails wherever it is used. */
	return path ? path : abx_xstrdup("");
}

char *abx_home_path(const struct abx_home *h, const char *fmt, ...)
{
	va_list ap;
	char *path;

	va_start(ap, fmt);
	path = below(h, fmt, ap);
	va_end(ap);
	return path;
}

int abx_home_dir(const struct abx_home *h, char **ret, struct abx_err *err, const char *fmt, ...)
{
	abx_autofree char *path = NULL;
	va_list ap;
	int r;

	va_start(ap, fmt);
	path = below(h, fmt, ap);
	va_end(ap);
	r = abx_fs_mkdir_p(AT_FDCWD, path, 0700);
	if (r < 0)
		return abx_err_errno(err, r, "create directory '%s'", path);
	*ret = abx_steal_ptr(&path);
	return 0;
}
