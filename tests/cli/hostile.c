/* SPDX-License-Identifier: MIT */
/*
 * What somebody who is root in a box would try, one after the other; run by hostile-root.sh.
 *
 * usage: hostile HOST-PID HOST-PATH...
 * Prints "OPEN what" for each attempt that works, "tried N" at the end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH_MAX 12

static int tried;

static void attempt(const char *what, long r)
{
	tried++;
	if (r >= 0)
		(void)printf("OPEN %s\n", what);
}

/* It has to fail in this way and in no other. */
static void attempt_errno(const char *what, long r, int expected)
{
	int err = errno;

	tried++;
	if (r >= 0 || err != expected)
		(void)printf("OPEN %s: %s\n", what, r >= 0 ? "it works" : strerror(err));
}

static void refused_calls(void)
{
	uint64_t zero[32] = {0};

	attempt_errno("keyctl", syscall(SYS_keyctl, 0, -3, 0), EPERM);
	attempt_errno("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3), EPERM);
	attempt_errno("request_key", syscall(SYS_request_key, "user", "x", NULL, 0), EPERM);
	attempt_errno("bpf", syscall(SYS_bpf, 0, zero, sizeof(zero)), EPERM);
	attempt_errno("perf_event_open", syscall(SYS_perf_event_open, zero, 0, -1, -1, 0), EPERM);
	attempt_errno("userfaultfd", syscall(SYS_userfaultfd, 1), EPERM);
	attempt_errno("io_uring_setup", syscall(SYS_io_uring_setup, 4, zero), EPERM);
	attempt_errno("init_module", syscall(SYS_init_module, zero, 8, ""), EPERM);
	attempt_errno("finit_module", syscall(SYS_finit_module, 0, "", 0), EPERM);
	attempt_errno("delete_module", syscall(SYS_delete_module, "loop", 0), EPERM);
	attempt_errno("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0), EPERM);
	attempt_errno("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL), EPERM);
	attempt_errno("swapon", syscall(SYS_swapon, "/tmp", 0), EPERM);
	attempt_errno("acct", syscall(SYS_acct, "/tmp/acct"), EPERM);
	attempt_errno("quotactl", syscall(SYS_quotactl, 0, "/", 0, zero), EPERM);
	attempt_errno("settimeofday", syscall(SYS_settimeofday, zero, NULL), EPERM);
	attempt_errno("clock_settime", syscall(SYS_clock_settime, 0, zero), EPERM);
	attempt_errno("syslog", syscall(SYS_syslog, 3, zero, 8), EPERM);
	attempt_errno("pivot_root", syscall(SYS_pivot_root, ".", "."), EPERM);
	attempt_errno("open_by_handle_at", syscall(SYS_open_by_handle_at, 3, zero, 0), EPERM);
	attempt_errno("sethostname", syscall(SYS_sethostname, "x", 1), EPERM);
	attempt_errno("pidfd_getfd", syscall(SYS_pidfd_getfd, 0, 0, 0), EPERM);
	attempt_errno("fsopen", syscall(SYS_fsopen, "proc", 0), EPERM);
	attempt_errno("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1), EPERM);
	attempt_errno("clone3", syscall(SYS_clone3, zero, sizeof(zero)), ENOSYS);
	attempt_errno("no such call", syscall(1000), ENOSYS);
#if defined(__x86_64__)
	attempt_errno("a call of x32", syscall(0x40000000 + 39), ENOSYS);
#endif
}

static int child(void *arg)
{
	(void)arg;
	return 0;
}

static void namespaces(void)
{
	static const struct {
		const char *name;
		int flag;
	} kinds[] = {
		{"user", CLONE_NEWUSER},     {"mnt", CLONE_NEWNS},  {"pid", CLONE_NEWPID},
		{"net", CLONE_NEWNET},	     {"ipc", CLONE_NEWIPC}, {"uts", CLONE_NEWUTS},
		{"cgroup", CLONE_NEWCGROUP}, {"time", 0x80},
	};
	static char stack[65536] __attribute__((aligned(16)));
	char path[64];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "unshare %s", kinds[i].name);
		attempt_errno(path, unshare(kinds[i].flag), EPERM);
		if (kinds[i].flag != 0x80) {
			(void)snprintf(path, sizeof(path), "clone %s", kinds[i].name);
			attempt_errno(
				path,
				clone(child, stack + sizeof(stack), kinds[i].flag | SIGCHLD, NULL),
				EPERM);
		}
		(void)snprintf(path, sizeof(path), "/proc/1/ns/%s", kinds[i].name);
		fd = open(path, O_RDONLY);
		attempt("setns", fd < 0 ? -1 : syscall(SYS_setns, fd, 0));
	}
	attempt("unshare in the upper half", syscall(SYS_unshare, CLONE_NEWUSER | 1UL << 40));
}

static void mounts_and_devices(void)
{
	static const char *const devices[] = {
		"/dev/mem",   "/dev/kmem",   "/dev/port",	 "/dev/kmsg",		"/dev/sda",
		"/dev/vda",   "/dev/loop0",  "/dev/kvm",	 "/dev/net/tun",	"/dev/fuse",
		"/dev/vsock", "/proc/kcore", "/dev/vhost-vsock", "/proc/kallsyms-none",
	};
	char b[16];

	attempt_errno("mount a disk", mount("/dev/vda", "/mnt", "ext4", 0, NULL), EPERM);
	attempt_errno("mount proc", mount("proc", "/mnt", "proc", 0, NULL), EPERM);
	attempt_errno("mount cgroup", mount("cgroup", "/mnt", "cgroup", 0, "memory"), EPERM);
	attempt_errno("remount", mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM);
	attempt_errno("umount", umount2("/proc/sys", MNT_DETACH), EPERM);
	attempt("mknod of a disk", mknod("/tmp/disk", S_IFBLK | 0600, makedev(254, 0)));
	attempt("mknod of a loop", mknod("/tmp/loop", S_IFBLK | 0600, makedev(7, 0)));
	attempt("mknod of memory", mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)));
	attempt("mknod in /dev/shm", mknod("/dev/shm/mem", S_IFCHR | 0600, makedev(1, 1)));
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		int fd = open(devices[i], O_RDONLY | O_NONBLOCK);

		/* What is hidden behind /dev/null is there, and empty. */
		attempt(devices[i], fd >= 0 && read(fd, b, sizeof(b)) == 0 ? -1 : fd);
	}
}

static void sockets_and_terminals(void)
{
	int pty = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	char c = 'x';

	attempt_errno("AF_VSOCK", socket(AF_VSOCK, SOCK_STREAM, 0), EPERM);
	attempt_errno("AF_VSOCK in the upper half",
		      syscall(SYS_socket, AF_VSOCK | 1UL << 32, SOCK_STREAM, 0), EPERM);
	attempt_errno("AF_ALG", socket(AF_ALG, SOCK_SEQPACKET, 0), EPERM);
	attempt("AF_PACKET", socket(AF_PACKET, SOCK_RAW, 0));
	attempt("raw socket", socket(AF_INET, SOCK_RAW, 1));
#if defined(__x86_64__)
	{
		/* The other door of 32-bit programs, which 64-bit ones can use as well. */
		uint32_t *args = (uint32_t *)0x10000;
		long r = -1;

		(void)syscall(SYS_mmap, args, 4096, 3, 0x32, -1, 0);
		args[0] = AF_VSOCK;
		args[1] = SOCK_STREAM;
		args[2] = 0;
		__asm__ volatile("int $0x80" : "=a"(r) : "a"(102L), "b"(1L), "c"(args) : "memory");
		tried++;
		if ((int)r != -EPERM)
			(void)printf("OPEN socketcall: %d\n", (int)r);
	}
#endif
	attempt_errno("TIOCSTI", ioctl(pty, TIOCSTI, &c), EPERM);
	attempt_errno("TIOCSTI in the upper half", syscall(SYS_ioctl, pty, TIOCSTI | 1UL << 32, &c),
		      EPERM);
	attempt_errno("TIOCLINUX", ioctl(pty, TIOCLINUX, &c), EPERM);
	/* Where the caller has a terminal, it must not be ours. */
	for (int fd = 0; fd < 64; fd++)
		if (fd != pty && isatty(fd))
			attempt("a terminal from outside", 0);
	(void)close(pty);
}

/* Nothing in a kernel's file system may be written. */
static void walk_writable(const char *dir, int depth)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[4096];
		int fd;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			continue;
		if (e->d_type == DT_DIR && depth > 0) {
			walk_writable(path, depth - 1);
		} else if (e->d_type == DT_REG) {
			fd = open(path, O_WRONLY | O_NONBLOCK);
			attempt(path, fd);
			if (fd >= 0)
				(void)close(fd);
		}
	}
	if (d)
		(void)closedir(d);
}

static void kernel_files(void)
{
	static const char *const files[] = {
		"/proc/sysrq-trigger",
		"/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/modprobe",
		"/proc/sys/vm/overcommit_memory",
		"/proc/sys/net/ipv4/ip_forward",
		"/proc/irq/default_smp_affinity",
		"/sys/kernel/uevent_helper",
		"/sys/fs/cgroup/release_agent",
		"/sys/fs/cgroup/memory/release_agent",
		"/proc/acpi/wakeup",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		attempt(files[i], open(files[i], O_WRONLY | O_NONBLOCK));
	walk_writable("/proc/sys", DEPTH_MAX);
	walk_writable("/sys", DEPTH_MAX);
}

/* Every process in sight: none is of the host, and what it has open leads nowhere. */
static void processes(pid_t host_pid)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;

	attempt("signal a process of the host", kill(host_pid, 0));
	attempt("ptrace one", ptrace(PTRACE_ATTACH, host_pid, NULL, NULL));
	while (proc && (e = readdir(proc))) {
		char path[512], b[512] = "";
		struct dirent *f;
		DIR *fds;
		int fd;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%.16s/cmdline", e->d_name);
		fd = open(path, O_RDONLY);
		if (fd >= 0 && read(fd, b, sizeof(b) - 1) > 0 && strstr(b, "98765"))
			attempt("a process of the host in /proc", 0);
		if (fd >= 0)
			(void)close(fd);
		(void)snprintf(path, sizeof(path), "/proc/%.16s/fd", e->d_name);
		fds = opendir(path);
		while (fds && (f = readdir(fds))) {
			struct stat st, root;
			char link[1024];

			if (f->d_name[0] == '.')
				continue;
			(void)snprintf(link, sizeof(link), "%s/%.16s/../boxes", path, f->d_name);
			attempt("the store by an open directory", open(link, O_RDONLY));
			(void)snprintf(link, sizeof(link), "%s/%.16s", path, f->d_name);
			/* A file of the store is on the file system of no directory here, or
			 * has no business to be open. */
			if (strcmp(e->d_name, "1") == 0 && stat(link, &st) == 0 &&
			    S_ISREG(st.st_mode) && stat("/", &root) == 0)
				attempt("a file that the first process has open",
					open(link, O_RDONLY));
		}
		if (fds)
			(void)closedir(fds);
		(void)snprintf(path, sizeof(path), "/proc/%.16s/root/proc/1/root/store", e->d_name);
		attempt("the store by a root", open(path, O_RDONLY));
		(void)snprintf(path, sizeof(path), "/proc/%.16s/cwd/boxes", e->d_name);
		attempt("the store by a cwd", open(path, O_RDONLY));
	}
	if (proc)
		(void)closedir(proc);
}

static char state_of_first(void)
{
	char b[512] = "";
	int fd = open("/proc/1/stat", O_RDONLY);
	const char *p;

	if (fd < 0 || read(fd, b, sizeof(b) - 1) <= 0)
		return 0;
	(void)close(fd);
	p = strrchr(b, ')');
	return p && p[1] ? p[2] : 0;
}

/* The one that ends the box at its expiry: it cannot be looked into, stopped or killed. */
static void first_process(void)
{
	static const char *const files[] = {"mem",   "maps",	"environ",   "auxv",	"syscall",
					    "stack", "pagemap", "map_files", "fdinfo/0"};
	static const char *const links[] = {"exe", "root", "cwd", "fd/0", "fd/1", "ns/user"};
	char path[64], b[512];
	struct iovec here = {b, sizeof(b)}, there = {(void *)0x400000, 16};

	attempt("PTRACE_SEIZE of the first process", ptrace(PTRACE_SEIZE, 1, NULL, NULL));
	attempt("PTRACE_ATTACH to it", ptrace(PTRACE_ATTACH, 1, NULL, NULL));
	attempt_errno("process_vm_readv", process_vm_readv(1, &here, 1, &there, 1, 0), EPERM);
	attempt_errno("process_vm_writev", process_vm_writev(1, &here, 1, &there, 1, 0), EPERM);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
		fd = open(path, O_RDONLY);
		/* Some are checked when they are read. */
		attempt(path, fd < 0 ? -1 : read(fd, b, sizeof(b)));
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s", links[i]);
		attempt(path, readlink(path, b, sizeof(b)));
		attempt(path, open(path, O_PATH));
	}
	attempt("another name for it", open("/proc/1/comm", O_WRONLY) < 0
					       ? -1
					       : write(open("/proc/1/comm", O_WRONLY), "x", 1));
	(void)kill(1, SIGSTOP);
	(void)kill(1, SIGKILL);
	attempt("stop it", strchr("Tt", state_of_first()) ? 0 : -1);
}

/* The old way out of a chroot ends at the box's own root. */
static void leave_by_chroot(void)
{
	struct stat before, after;
	int fd = open("/", O_RDONLY | O_DIRECTORY);

	if (stat("/", &before) < 0 || (mkdir("/tmp/in", 0755) < 0 && errno != EEXIST) ||
	    chroot("/tmp/in") < 0 || fchdir(fd) < 0)
		return;
	for (int i = 0; i < 64; i++)
		(void)!chdir("..");
	if (chroot(".") == 0 && stat("/", &after) == 0)
		attempt("leave by chroot",
			before.st_ino == after.st_ino && before.st_dev == after.st_dev ? -1 : 0);
}

int main(int argc, char **argv)
{
	refused_calls();
	namespaces();
	mounts_and_devices();
	sockets_and_terminals();
	kernel_files();
	processes(argc > 1 ? (pid_t)strtol(argv[1], NULL, 10) : 0);
	first_process();
	for (int i = 2; i < argc; i++)
		attempt(argv[i], open(argv[i], O_RDONLY));
	leave_by_chroot();
	(void)printf("tried %d\n", tried);
	return fflush(stdout) == 0 ? 0 : 1;
}
