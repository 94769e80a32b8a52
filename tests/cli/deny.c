/* SPDX-License-Identifier: MIT */
/*
 * What a security module or an outer container may forbid, one thing at a time.
 *
 * usage: deny WHAT COMMAND [ARG...]
 * WHAT fails with EPERM for the command and all that it starts: userns, mount, sethostname,
 * pivot_root, seccomp, or raising a network interface (interface).  `limit` makes the number of
 * user namespaces 0, in a user namespace where all ids are what they are outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define REFUSE RETURN(SECCOMP_RET_ERRNO | EPERM)

struct denied {
	const char *name;
	uint32_t number;
	int argument; /* -1: whatever it is called with */
	uint32_t bits, value;
};
static const struct denied denied[] = {
	{"userns", SYS_clone, 0, CLONE_NEWUSER, CLONE_NEWUSER},
	{"mount", SYS_mount, -1, 0, 0},
	{"sethostname", SYS_sethostname, -1, 0, 0},
	{"pivot_root", SYS_pivot_root, -1, 0, 0},
	{"seccomp", SYS_seccomp, -1, 0, 0},
	{"interface", SYS_ioctl, 1, UINT32_MAX, 0x8914 /* SIOCSIFFLAGS */},
};

static int forbid(const struct denied *d)
{
	uint32_t at = (uint32_t)offsetof(struct seccomp_data, args);
	struct sock_filter filter[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, d->number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 at + (uint32_t)(d->argument > 0 ? d->argument : 0) * 8),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, d->argument < 0 ? 0 : d->bits),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, d->value, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		REFUSE,
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		(void)close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* A child maps us from where we came from: nobody within may map all ids. */
static int no_more_namespaces(void)
{
	static const char all[] = "0 0 4294967295";
	pid_t self = getpid(), child;
	int ready[2], status = -1;
	char c, path[64];

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		if (read(ready[0], &c, 1) != 1)
			_exit(1);
		(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", self);
		if (write_file(path, all) < 0)
			_exit(1);
		(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", self);
		_exit(write_file(path, all) < 0);
	}
	if (child < 0 || unshare(CLONE_NEWUSER) < 0 || write(ready[1], "", 1) != 1 ||
	    waitpid(child, &status, 0) != child || status != 0)
		return -1;
	return write_file("/proc/sys/user/max_user_namespaces", "0");
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "limit") == 0 && no_more_namespaces() == 0)
		(void)execvp(argv[2], argv + 2);
	for (size_t i = 0; argc > 2 && i < sizeof(denied) / sizeof(denied[0]); i++)
		if (strcmp(argv[1], denied[i].name) == 0 && forbid(&denied[i]) == 0) {
			(void)execvp(argv[2], argv + 2);
			break;
		}
	perror("deny");
	return 125;
}
