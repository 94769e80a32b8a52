/* SPDX-License-Identifier: MIT */
/*
 * The least that a box can be: floor-box DIR COMMAND...
 *
 * clone3 with user, mount, pid, ipc, uts and network namespaces, an overlay of /usr with its upper
 * layer in DIR, proc, pivot_root, exec.  The floor of a local box's first output.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	(void)fprintf(stderr, "floor-box: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) != 0)
		die(path);
}

static void map_ids(uid_t uid, gid_t gid)
{
	char text[64];

	write_file("/proc/self/setgroups", "deny");
	(void)snprintf(text, sizeof(text), "0 %lu 1", (unsigned long)uid);
	write_file("/proc/self/uid_map", text);
	(void)snprintf(text, sizeof(text), "0 %lu 1", (unsigned long)gid);
	write_file("/proc/self/gid_map", text);
}

static void make_dir(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		die(path);
}

static void enter_root(void)
{
	static const char *const links[][2] = {
		{"usr/bin", "root/bin"}, {"usr/lib", "root/lib"}, {"usr/lib64", "root/lib64"}};

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("private mounts");
	if (mount("tmpfs", "root", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
		die("tmpfs");
	make_dir("root/usr");
	make_dir("root/proc");
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			die(links[i][1]);
	if (mount("overlay", "root/usr", "overlay", MS_NODEV,
		  "lowerdir=/usr,upperdir=upper,workdir=work,userxattr") < 0)
		die("overlay");
	if (mount("proc", "root/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		die("proc");
	if (chdir("root") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		die("pivot_root");
}

int main(int argc, char **argv)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_NEWNET,
		.exit_signal = SIGCHLD,
	};
	uid_t uid = getuid();
	gid_t gid = getgid();
	int status;
	long pid;

	if (argc < 3) {
		(void)fprintf(stderr, "usage: floor-box DIR COMMAND...\n");
		return 2;
	}
	make_dir(argv[1]);
	if (chdir(argv[1]) < 0)
		die(argv[1]);
	make_dir("root");
	make_dir("upper");
	make_dir("work");
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		die("clone3");
	if (pid == 0) {
		map_ids(uid, gid);
		enter_root();
		(void)execv(argv[2], argv + 2);
		die(argv[2]);
	}
	if (waitpid((pid_t)pid, &status, 0) < 0)
		die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
