/* SPDX-License-Identifier: MIT */
/*
 * mock-enter ROOT DIR COMMAND...: run a command with ROOT as its root, over programs of this
 * machine, in a mount namespace of its own.  For the mock providers in whose boxes agentbox-ctl
 * works: what it gets from the host are names that only the box gives a meaning.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "abxsdk/base.h"

static void fail(const char *what)
{
	(void)fprintf(stderr, "mock-enter: %s: %s\n", what, strerror(errno));
	_exit(126);
}

static void write_file(const char *path, const char *text)
{
	abx_autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(path);
}

static void new_namespaces(void)
{
	const unsigned int uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0)
		fail("namespaces");
	if (uid) {
		write_file("/proc/self/setgroups", "deny");
		(void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
		write_file("/proc/self/uid_map", map);
		(void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
		write_file("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		fail("private mounts");
}

static void bind_dir(const char *root, const char *dir)
{
	char path[4096], target[4096];
	struct stat st;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s%s", root, dir);
	if (lstat(dir, &st) < 0)
		return;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(dir, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (symlink(target, path) < 0 && errno != EEXIST)
			fail(path);
		return;
	}
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		fail(path);
	if (mount(dir, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		fail(path);
}

int main(int argc, char **argv)
{
	static const char *const shared[] = {"/bin",   "/dev", "/etc",	"/lib",	 "/lib32",
					     "/lib64", "/opt", "/proc", "/sbin", "/usr"};
	static const char *const own[] = {"/root", "/run",     "/tmp",
					  "/var",  "/var/log", "/workspace"};
	char path[4096];

	if (argc < 4)
		return 2;
	new_namespaces();
	for (size_t i = 0; i < ABX_N_ELEMENTS(own); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", argv[1], own[i]);
		if (mkdir(path, 0755) == 0 && strcmp(own[i], "/tmp") == 0)
			(void)chmod(path, 01777);
	}
	for (size_t i = 0; i < ABX_N_ELEMENTS(shared); i++)
		bind_dir(argv[1], shared[i]);
	/* /usr/local/lib/agentbox is where agentbox puts programs of its own. */
	(void)snprintf(path, sizeof(path), "%s/.local", argv[1]);
	(void)mkdir(path, 0755);
	(void)snprintf(path + strlen(argv[1]), sizeof(path) - strlen(argv[1]), "/usr/local");
	{
		char from[4096];

		(void)snprintf(from, sizeof(from), "%s/.local", argv[1]);
		if (mount(from, path, NULL, MS_BIND, NULL) < 0)
			fail(path);
	}
	if (chroot(argv[1]) < 0)
		fail(argv[1]);
	if (chdir(argv[2]) < 0) {
		(void)fprintf(stderr, "mock-enter: no such directory: %s\n", argv[2]);
		return 126;
	}
	(void)execvp(argv[3], argv + 3);
	(void)fprintf(stderr, "mock-enter: %s: not found\n", argv[3]);
	return errno == ENOENT ? 127 : 126;
}
