/* SPDX-License-Identifier: MIT */
/*
 * The shared lower layer of boxes over the host's own root: an empty skeleton and a copy of
 * what anybody may read of /etc, made with the credentials of box root.
 *
 * A layer's name is a fingerprint of all that goes into it, so an unchanged host costs one
 * look at what is in /etc.  Each user of a layer holds a shared lock on "<name>.lock"; whoever
 * builds a new layer removes those that nobody holds.
 */
#include "providers/local/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "providers/local/print.h"

/* Part of the fingerprint: raise it when the contents are made differently. */
#define SKELETON_FORMAT 1
#define FILE_MAX_BYTES ((off_t)64 << 20)
#define DEPTH_MAX 32

/* Of /etc, what the box has its own of, or what is about this machine alone. */
static const char *const not_copied[] = {
	"passwd",     "passwd-",  "group",	 "group-",    "shadow",	  "shadow-",
	"gshadow",    "gshadow-", "subuid",	 "subuid-",   "subgid",	  "subgid-",
	"hostname",   "hosts",	  "mtab",	 "fstab",     "crypttab", "sudoers",
	"machine-id", "agentbox", "resolv.conf", ".pwd.lock",
};

static bool is_excluded(const char *name)
{
	for (size_t i = 0; i < sizeof(not_copied) / sizeof(not_copied[0]); i++)
		if (strcmp(name, not_copied[i]) == 0)
			return true;
	return false;
}

static void print_host(int cache_fd, int64_t since_ns, char name[LOCAL_PRINT_TEXT])
{
	static const char *const also[] = {"/bin",	    "/lib",	    "/lib64",
					   "/usr",	    "/opt",	    "/usr/local",
					   "/var/lib/dpkg", "/var/lib/rpm", "/var/lib/pacman"};
	struct local_print p = {SKELETON_FORMAT, geteuid()};
	struct stat st;

	local_print_tree(&p, "/etc", cache_fd, "etc.list", LOCAL_PRINT_SETTLED_S, since_ns);
	for (size_t i = 0; i < sizeof(also) / sizeof(also[0]); i++)
		if (lstat(also[i], &st) == 0) {
			/* Only that it is there, and what it is. */
			st.st_size = 0;
			if (strcmp(also[i], "/usr/local") != 0)
				st.st_mtim = (struct timespec){0, 0};
			local_print_add(&p, also[i], &st);
		}
	local_print_text(&p, name);
}

/* Whoever may not read it gets no copy; that is no failure. */
static void copy_file(int from_dir, int to_dir, const char *name, const struct stat *st,
		      uid_t owner)
{
	int in = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const struct timespec times[2] = {st->st_mtim, st->st_mtim};
	off_t left = st->st_size;
	int out;

	if (in < 0)
		return;
	out = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		box_fail_errno(errno, "copy /etc: %s", name);
	while (left > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		if (n < 0)
			box_fail_errno(errno, "copy /etc: %s", name);
		if (n == 0)
			break;
		left -= n;
	}
	if ((owner && fchown(out, owner, owner) < 0) || fchmod(out, st->st_mode & 0777) < 0 ||
	    futimens(out, times) < 0 || close(out) < 0)
		box_fail_errno(errno, "copy /etc: %s", name);
	(void)close(in);
}

static void copy_link(int from_dir, int to_dir, const char *name)
{
	char target[4096];
	ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return;
	target[n] = '\0';
	if (symlinkat(target, to_dir, name) < 0)
		box_fail_errno(errno, "copy /etc: %s", name);
}

/* Copy what is in `from` into `to`, a directory that exists. */
static void copy_tree(int from_dir, const char *from, int to_dir, const char *to, uid_t owner,
		      int depth)
{
	DIR *d = abx_fs_opendir(from_dir, from);
	struct dirent *e;
	struct stat st;
	int out;

	if (!d)
		return;
	out = openat(to_dir, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out < 0)
		box_fail_errno(errno, "copy /etc: %s", to);
	while ((e = readdir(d))) {
		const char *name = e->d_name;

		if (abx_fs_is_dot(name) || (depth == 0 && is_excluded(name)) ||
		    fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode) && (st.st_mode & 0004) && st.st_size <= FILE_MAX_BYTES) {
			copy_file(dirfd(d), out, name, &st, owner);
		} else if (S_ISLNK(st.st_mode)) {
			copy_link(dirfd(d), out, name);
		} else if (S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005 &&
			   depth < DEPTH_MAX) {
			if (mkdirat(out, name, 0755) < 0 && errno != EEXIST)
				box_fail_errno(errno, "copy /etc: %s", name);
			copy_tree(dirfd(d), name, out, name, owner, depth + 1);
			if ((owner && fchownat(out, name, owner, owner, 0) < 0) ||
			    fchmodat(out, name, st.st_mode & 0777, 0) < 0)
				box_fail_errno(errno, "copy /etc: %s", name);
		}
	}
	(void)close(out);
	(void)closedir(d);
}

static void put_text(int dirfd_, const char *path, mode_t mode, const char *text)
{
	int fd = openat(dirfd_, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0)
		box_fail_errno(errno, "%s", path);
	box_write_all(fd, text, strlen(text));
	if (fchmod(fd, mode) < 0 || close(fd) < 0)
		box_fail_errno(errno, "%s", path);
}

static void make_accounts(int root)
{
	const char *shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
	char *host_passwd = box_read_file(AT_FDCWD, "/etc/passwd", (size_t)1 << 20, NULL);
	char *host_group = box_read_file(AT_FDCWD, "/etc/group", (size_t)1 << 20, NULL);
	char *passwd = box_make_passwd(host_passwd ? host_passwd : "", shell);
	char *group = box_make_group(host_group ? host_group : "");
	char *shadow = box_make_shadow(passwd);

	put_text(root, "etc/passwd", 0644, passwd);
	put_text(root, "etc/group", 0644, group);
	put_text(root, "etc/shadow", 0600, shadow);
	free(host_passwd);
	free(host_group);
	free(passwd);
	free(group);
	free(shadow);
}

static void make_directories(int root, uid_t user)
{
	static const struct {
		const char *path;
		mode_t mode;
		bool of_user;
	} dirs[] = {
		{"etc", 0755, false},	    {"etc/agentbox", 0755, false},
		{"home", 0755, false},	    {&LB_BOX_HOME[1], 0755, true},
		{"root", 0700, false},	    {"tmp", 01777, false},
		{"var", 0755, false},	    {"var/tmp", 01777, false},
		{"var/lib", 0755, false},   {"var/cache", 0755, false},
		{"var/log", 0755, false},   {"var/log/agentbox", 0755, true},
		{"var/spool", 0755, false}, {"run", 0755, false},
		{"dev", 0755, false},	    {"proc", 0555, false},
		{"sys", 0555, false},	    {"mnt", 0755, false},
		{"srv", 0755, false},	    {&LB_WORKSPACE[1], 0755, true},
	};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdirat(root, dirs[i].path, dirs[i].mode) < 0 ||
		    fchmodat(root, dirs[i].path, dirs[i].mode, 0) < 0 ||
		    (dirs[i].of_user && user && fchownat(root, dirs[i].path, user, user, 0) < 0))
			box_fail_errno(errno, "skeleton: /%s", dirs[i].path);
	if (symlinkat("/run", root, "var/run") < 0 ||
	    symlinkat("/run/lock", root, "var/lock") < 0 ||
	    symlinkat("/proc/self/mounts", root, "etc/mtab") < 0)
		box_fail_errno(errno, "skeleton: /var/run");
}

/* Mount points for directories of the host, or the host's own links in their place. */
static void make_top(int root)
{
	static const char *const tops[] = {"usr", "opt",   "bin",   "sbin",
					   "lib", "lib32", "lib64", "libx32"};
	static const char *const packages[] = {"dpkg", "rpm", "pacman"};
	char path[64];
	struct stat st;

	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		(void)snprintf(path, sizeof(path), "/%s", tops[i]);
		if (lstat(path, &st) < 0)
			continue;
		if (S_ISLNK(st.st_mode)) {
			int host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

			copy_link(host, root, tops[i]);
			(void)close(host);
		} else if (S_ISDIR(st.st_mode) && mkdirat(root, tops[i], 0755) < 0) {
			box_fail_errno(errno, "skeleton: %s", path);
		}
	}
	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++) {
		(void)snprintf(path, sizeof(path), "/var/lib/%s", packages[i]);
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005 &&
		    mkdirat(root, path + 1, 0755) < 0)
			box_fail_errno(errno, "skeleton: %s", path);
	}
}

/* Directories of box root over those of /usr/local, for `make install`. */
static void make_usr_local(int layer)
{
	DIR *d = abx_fs_opendir(AT_FDCWD, "/usr/local");
	struct dirent *e;
	struct stat st;
	int local;

	if (mkdirat(layer, "top", 0755) < 0 || mkdirat(layer, "top/usr", 0755) < 0 ||
	    mkdirat(layer, "top/usr/local", 0755) < 0)
		box_fail_errno(errno, "skeleton: /usr/local");
	if (!d)
		return;
	local = openat(layer, "top/usr/local", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (local >= 0 && (e = readdir(d)))
		if (!abx_fs_is_dot(e->d_name) &&
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005)
			(void)mkdirat(local, e->d_name, 0755);
	(void)close(local);
	(void)closedir(d);
}

/* One builder at a time, under the lock: a directory of this name is a dead one's. */
static const char tmp[] = "building";
static int building_fd = -1;

/* What could not be finished, on a full disk perhaps, must not keep the disk full. */
static void give_up_building(void)
{
	(void)abx_fs_remove_tree(building_fd, tmp);
}

static void build(int cache_fd, const char *name)
{
	uid_t user = LB_BOX_UID;
	int layer, root, r = abx_fs_remove_tree(cache_fd, tmp);

	if (r < 0)
		box_fail_errno(-r, "state directory: cache");
	building_fd = cache_fd;
	box_at_fail = give_up_building;
	if (mkdirat(cache_fd, tmp, 0755) < 0)
		box_fail_errno(errno, "state directory: cache");
	layer = openat(cache_fd, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (layer < 0 || mkdirat(layer, "root", 0755) < 0)
		box_fail_errno(errno, "state directory: cache");
	root = openat(layer, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* A box with a single id has no second owner to give anything to. */
	if (fchown(root, user, user) < 0 || fchown(root, 0, 0) < 0)
		user = 0;
	make_directories(root, user);
	make_top(root);
	make_usr_local(layer);
	copy_tree(AT_FDCWD, "/etc", root, "etc", 0, 0);
	copy_tree(AT_FDCWD, "/etc/skel", root, &LB_BOX_HOME[1], user, 1);
	make_accounts(root);
	put_text(root, "etc/machine-id", 0444, "");
	put_text(root, "etc/resolv.conf", 0644, "");
	put_text(root, "etc/fstab", 0644, "");
	(void)close(root);
	(void)close(layer);
	if (renameat(cache_fd, tmp, cache_fd, name) < 0)
		box_fail_errno(errno, "state directory: cache");
	box_at_fail = NULL;
}

static void remove_unused(int cache_fd, const char *keep)
{
	DIR *d = abx_fs_opendir(cache_fd, ".");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char lock[64];
		int fd;

		if (strlen(e->d_name) != 32 || strcmp(e->d_name, keep) == 0)
			continue;
		(void)snprintf(lock, sizeof(lock), "%.32s.lock", e->d_name);
		fd = openat(cache_fd, lock, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
			(void)abx_fs_remove_tree(cache_fd, e->d_name);
			(void)unlinkat(cache_fd, lock, 0);
		}
		if (fd >= 0)
			(void)close(fd);
	}
	if (d)
		(void)closedir(d);
}

/* A shared lock on the layer's lock file; never on one that was removed meanwhile. */
static void hold(int cache_fd, const char *lock)
{
	struct stat held, named;
	int fd;

	for (;;) {
		fd = openat(cache_fd, lock, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 || flock(fd, LOCK_SH) < 0 || fstat(fd, &held) < 0)
			box_fail_errno(errno, "state directory: cache lock");
		if (fstatat(cache_fd, lock, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		    named.st_ino == held.st_ino) {
			box_keep_lock(fd);
			return;
		}
		(void)close(fd);
	}
}

void box_skel_ensure(int cache_fd, int64_t since_ns, char ret_name[33])
{
	char lock[48];
	int build_lock;

	print_host(cache_fd, since_ns, ret_name);
	(void)snprintf(lock, sizeof(lock), "%s.lock", ret_name);
	hold(cache_fd, lock);
	if (faccessat(cache_fd, ret_name, F_OK, 0) == 0)
		return;
	build_lock = openat(cache_fd, "build.lock", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	if (build_lock < 0 || flock(build_lock, LOCK_EX) < 0)
		box_fail_errno(errno, "state directory: cache lock");
	if (faccessat(cache_fd, ret_name, F_OK, 0) < 0) {
		build(cache_fd, ret_name);
		remove_unused(cache_fd, ret_name);
	}
	(void)close(build_lock);
}
