/* SPDX-License-Identifier: MIT */
/*
 * Built and run when agentbox is built: prints the system call filters of boxes as C.
 *
 * It is a program of its own so that what runs in a box needs no library.  The library knows
 * the numbers that names have on each architecture; the filter is put together here, as a
 * tree over ranges of numbers.  Each exec installs it, the kernel compiles it each time, and
 * the library's own filter is three times as long, and as slow to install.
 *
 * The lists follow the default profiles of Docker and Podman: what
 * works in their containers works in a box.  What is on neither list does not exist here
 * (ENOSYS), so that programs which try a newer call first find their way to the older one.
 *
 * usage: seccomp-gen x86_64|aarch64
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define NEW_NAMESPACES                                                                            \
	((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
		    CLONE_NEWPID | CLONE_NEWNET))

/* No call has a number beyond this, but those that only 32-bit ARM has: breakpoint,
 * cacheflush, set_tls and two that switch modes of long ago. */
#define NUMBERS 1024
#define ARM_FIRST UINT32_C(0xf0001)
#define ARM_END UINT32_C(0xf0006)
#define PROGRAM_MAX 2048
#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

enum action {
	NO_SUCH_CALL,
	ALLOW,
	NOT_PERMITTED,
	BY_ARGUMENT, /* and the index of a rule beyond */
};

static const char *const allowed[] = {
	/* files */
	"open openat openat2 creat close close_range read readv pread64 preadv preadv2 write "
	"writev pwrite64 pwritev pwritev2 lseek _llseek readahead fadvise64 fadvise64_64 "
	"arm_fadvise64_64 sync_file_range arm_sync_file_range sync_file_range2 fallocate "
	"truncate truncate64 ftruncate ftruncate64 sendfile sendfile64 copy_file_range splice "
	"tee vmsplice fsync fdatasync sync syncfs dup dup2 dup3 fcntl fcntl64 flock",
	/* names */
	"stat stat64 lstat lstat64 fstat fstat64 fstatat64 newfstatat statx statfs statfs64 "
	"fstatfs fstatfs64 access faccessat faccessat2 chmod fchmod fchmodat chown chown32 "
	"fchown fchown32 fchownat lchown lchown32 utime utimes futimesat utimensat "
	"utimensat_time64 umask link linkat symlink symlinkat readlink readlinkat unlink "
	"unlinkat rename renameat renameat2 mkdir mkdirat rmdir mknod mknodat getdents "
	"getdents64 getcwd chdir fchdir chroot getxattr lgetxattr fgetxattr listxattr "
	"llistxattr flistxattr setxattr lsetxattr fsetxattr removexattr lremovexattr "
	"fremovexattr inotify_init inotify_init1 inotify_add_watch inotify_rm_watch "
	"fanotify_mark name_to_handle_at",
	/* waiting */
	"poll ppoll ppoll_time64 select _newselect pselect6 pselect6_time64 epoll_create "
	"epoll_create1 epoll_ctl epoll_ctl_old epoll_wait epoll_wait_old epoll_pwait "
	"epoll_pwait2 eventfd eventfd2 pipe pipe2 signalfd signalfd4 io_setup io_destroy "
	"io_submit io_cancel io_getevents io_pgetevents io_pgetevents_time64",
	/* memory */
	"brk mmap mmap2 munmap mremap mprotect madvise mincore msync mlock mlock2 mlockall "
	"munlock munlockall remap_file_pages membarrier memfd_create memfd_secret pkey_alloc "
	"pkey_free pkey_mprotect",
	/* processes and threads */
	"fork vfork execve execveat exit exit_group wait4 waitid waitpid kill tkill tgkill "
	"pidfd_open pidfd_send_signal process_mrelease getpid getppid gettid getpgid getpgrp "
	"getsid setpgid setsid set_tid_address set_robust_list get_robust_list rseq futex "
	"futex_time64 futex_waitv restart_syscall arch_prctl set_thread_area get_thread_area "
	"modify_ldt prctl seccomp landlock_create_ruleset "
	"landlock_add_rule landlock_restrict_self uname sysinfo getcpu getrusage times",
	/* Looking into one's own processes: the kernel asks for the same user, and for no
	 * capability that was lost, and no process outside of the box has a number in it. */
	"ptrace process_vm_readv process_vm_writev",
	/* signals */
	"rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend "
	"rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaction sigaltstack "
	"sigpending sigprocmask sigreturn sigsuspend signal pause alarm",
	/* identity; the kernel decides by capabilities */
	"getuid getuid32 geteuid geteuid32 getgid getgid32 getegid getegid32 getresuid "
	"getresuid32 getresgid getresgid32 getgroups getgroups32 setuid setuid32 setgid "
	"setgid32 setreuid setreuid32 setregid setregid32 setresuid setresuid32 setresgid "
	"setresgid32 setfsuid setfsuid32 setfsgid setfsgid32 setgroups setgroups32 capget "
	"capset",
	/* limits and scheduling */
	"getrlimit ugetrlimit setrlimit prlimit64 getpriority setpriority nice ioprio_get "
	"ioprio_set sched_getaffinity sched_setaffinity sched_getattr sched_setattr "
	"sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_yield "
	"sched_get_priority_max sched_get_priority_min sched_rr_get_interval "
	"sched_rr_get_interval_time64",
	/* time; setting it needs a capability that a box has not */
	"time gettimeofday clock_gettime clock_gettime64 clock_getres clock_getres_time64 "
	"clock_nanosleep clock_nanosleep_time64 nanosleep adjtimex clock_adjtime "
	"clock_adjtime64 getitimer setitimer timer_create timer_delete timer_getoverrun "
	"timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create "
	"timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64",
	/* sockets and System V */
	"socketpair bind listen accept accept4 connect shutdown getsockname getpeername "
	"getsockopt setsockopt send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg "
	"recvmmsg_time64 ipc msgctl msgget msgrcv msgsnd semctl semget semop semtimedop "
	"semtimedop_time64 shmat shmctl shmdt shmget mq_getsetattr mq_notify mq_open "
	"mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink "
	"getrandom",
};

/* What exists and is refused: it would need rights over this machine, or has often been a
 * way to them. */
static const char *const denied[] = {
	/* keys are not in any namespace; the rest reaches into the kernel */
	"add_key keyctl request_key bpf perf_event_open userfaultfd lookup_dcookie kcmp "
	"pidfd_getfd process_madvise syslog fanotify_init",
	"io_uring_setup io_uring_enter io_uring_register",
	"init_module finit_module delete_module create_module get_kernel_syms query_module "
	"kexec_load kexec_file_load reboot swapon swapoff acct quotactl quotactl_fd nfsservctl",
	"mount umount umount2 pivot_root fsopen fsconfig fsmount fspick move_mount open_tree "
	"mount_setattr open_by_handle_at setns",
	"settimeofday stime clock_settime clock_settime64 sethostname setdomainname",
	"iopl ioperm vm86 vm86old vhangup uselib ustat sysfs _sysctl",
	"get_mempolicy set_mempolicy set_mempolicy_home_node mbind migrate_pages move_pages",
	/* The family of its socket lies in memory, which a filter cannot read: it would lead
	 * around the rules for socket(). */
	"socketcall",
};

/* Younger than the library may be.  What it does not know does not exist in the box either,
 * and programs do without. */
static const char *const newer_allowed[] = {
	"cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue mseal "
	"setxattrat getxattrat listxattrat removexattrat file_getattr file_setattr",
};

/* Calls that are good or bad by what they are called with.  The kernel looks at the lower
 * half of these arguments, and so do we. */
static const struct argument {
	const char *name;
	unsigned int index;
	bool values_allowed;   /* else they are what is refused */
	uint32_t bits_refused; /* any of them */
	uint32_t only_with;    /* where the argument before has one of these bits */
	uint32_t values[8];
	size_t n;
} arguments[] = {
	/* clone() has no room for CLONE_NEWTIME: the bit is part of the signal there. */
	{.name = "clone", .bits_refused = NEW_NAMESPACES},
	{.name = "unshare", .bits_refused = NEW_NAMESPACES | CLONE_NEWTIME},
	/* Sockets that no network namespace confines, and one that is only attack surface. */
	{.name = "socket", .values = {AF_VSOCK, AF_ALG}, .n = 2},
	/* What is put into a terminal as if somebody had typed it. */
	{.name = "ioctl", .index = 1, .values = {TIOCSTI, TIOCLINUX}, .n = 2},
	/* Turning address randomisation off concerns the process alone; debuggers and
	 * sanitizers ask for it.  UINT32_MAX only asks. */
	{.name = "personality",
	 .values_allowed = true,
	 .values = {PER_LINUX, PER_LINUX32, UNAME26, PER_LINUX32 | UNAME26, ADDR_NO_RANDOMIZE,
		    PER_LINUX32 | ADDR_NO_RANDOMIZE, UINT32_MAX},
	 .n = 7},
};

struct part {
	uint32_t token, audit;
};

static const struct target {
	const char *name;
	struct part native, compat;
} targets[] = {
	{"x86_64", {SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64}, {SCMP_ARCH_X86, AUDIT_ARCH_I386}},
	{"aarch64", {SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64}, {SCMP_ARCH_ARM, AUDIT_ARCH_ARM}},
};

/* What would leave a program on this machine that runs as whoever owns it: in a box that writes
 * to a directory which others can enter.  A file system that is mounted without setuid in the box
 * does not keep such a bit from being written to it. */
#define SET_ID ((uint32_t)(S_ISUID | S_ISGID))
#define MAKES_FILE ((uint32_t)(O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
static const struct argument no_set_id[] = {
	{.name = "chmod", .index = 1, .bits_refused = SET_ID},
	{.name = "fchmod", .index = 1, .bits_refused = SET_ID},
	{.name = "fchmodat", .index = 2, .bits_refused = SET_ID},
	{.name = "fchmodat2", .index = 2, .bits_refused = SET_ID},
	{.name = "creat", .index = 1, .bits_refused = SET_ID},
	/* Anything may be in the place of a mode that is not asked for. */
	{.name = "open", .index = 2, .bits_refused = SET_ID, .only_with = MAKES_FILE},
	{.name = "openat", .index = 3, .bits_refused = SET_ID, .only_with = MAKES_FILE},
	{.name = "mknod", .index = 1, .bits_refused = SET_ID},
	{.name = "mknodat", .index = 2, .bits_refused = SET_ID},
};
/* Its mode lies in memory; programs do without. */
static const char no_set_id_hidden[] = "openat2";

static struct sock_filter program[PROGRAM_MAX];
static size_t length;
/* The rules that BY_ARGUMENT is about. */
static const struct argument *rules = arguments;

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "seccomp-gen: %s\n", what);
	exit(1);
}

static size_t emit(uint16_t code, uint32_t k, size_t jump_true, size_t jump_false)
{
	if (length == PROGRAM_MAX || jump_true > UINT8_MAX || jump_false > UINT8_MAX)
		die("the filter is too long");
	program[length] = (struct sock_filter){code, (uint8_t)jump_true, (uint8_t)jump_false, k};
	return length++;
}

static void emit_return(enum action a)
{
	static const uint32_t value[] = {
		[NO_SUCH_CALL] = SECCOMP_RET_ERRNO | ENOSYS,
		[ALLOW] = SECCOMP_RET_ALLOW,
		[NOT_PERMITTED] = SECCOMP_RET_ERRNO | EPERM,
	};

	(void)emit(BPF_RET | BPF_K, value[a], 0, 0);
}

static void emit_load(unsigned int index)
{
	(void)emit(BPF_LD | BPF_W | BPF_ABS,
		   (uint32_t)(offsetof(struct seccomp_data, args) + index * sizeof(uint64_t)), 0,
		   0);
}

static void emit_argument(const struct argument *a)
{
	enum action on_match = a->values_allowed ? ALLOW : NOT_PERMITTED;

	if (a->only_with) {
		emit_load(a->index - 1);
		(void)emit(BPF_JMP | BPF_JSET | BPF_K, a->only_with, 1, 0);
		emit_return(ALLOW);
	}
	emit_load(a->index);
	if (a->bits_refused)
		(void)emit(BPF_JMP | BPF_JSET | BPF_K, a->bits_refused, a->n + 1, 0);
	for (size_t i = 0; i < a->n; i++)
		(void)emit(BPF_JMP | BPF_JEQ | BPF_K, a->values[i], a->n - i, 0);
	emit_return(on_match == ALLOW ? NOT_PERMITTED : ALLOW);
	emit_return(on_match);
}

static void emit_action(unsigned int a)
{
	if (a >= BY_ARGUMENT)
		emit_argument(&rules[a - BY_ARGUMENT]);
	else
		emit_return((enum action)a);
}

/* Numbers from here on, until the next range, have one action. */
struct range {
	uint32_t start;
	unsigned int action;
};

static void emit_tree(const struct range *v, size_t n)
{
	size_t at, half = n / 2;

	if (n == 1) {
		emit_action(v->action);
		return;
	}
	at = emit(BPF_JMP | BPF_JGE | BPF_K, v[half].start, 0, 0);
	emit_tree(v, half);
	if (length - at - 1 > UINT8_MAX)
		die("a branch of the filter is too long");
	program[at].jt = (uint8_t)(length - at - 1);
	emit_tree(v + half, n - half);
}

static void set_one(unsigned int *action, uint32_t arch, const char *name, unsigned int a,
		    bool must_exist)
{
	int number = seccomp_syscall_resolve_name_arch(arch, name);

	if (number == __NR_SCMP_ERROR && must_exist)
		die(name);
	/* Below zero: no call of this architecture. */
	if (number >= NUMBERS)
		die(name);
	if (number >= 0)
		action[number] = a;
}

static void set_list(unsigned int *action, uint32_t arch, const char *list, unsigned int a,
		     bool must_exist)
{
	char name[64];

	for (size_t len; *list; list += len + (list[len] == ' ')) {
		len = strcspn(list, " ");
		if (len >= sizeof(name))
			die(list);
		memcpy(name, list, len);
		name[len] = '\0';
		set_one(action, arch, name, a, must_exist);
	}
}

static unsigned int action[NUMBERS];

/* The last range goes on for ever: x32 numbers are in it. */
static void emit_actions(const struct part *p, enum action last)
{
	static struct range v[NUMBERS + 2];
	size_t n = 0;

	for (uint32_t i = 0; i < NUMBERS; i++)
		if (i == 0 || action[i] != action[i - 1])
			v[n++] = (struct range){i, action[i]};
	if (v[n - 1].action != last)
		die("a call has the last number");
	if (p->audit == AUDIT_ARCH_ARM && last != ALLOW) {
		v[n++] = (struct range){ARM_FIRST, ALLOW};
		v[n++] = (struct range){ARM_END, last};
	}
	(void)emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	emit_tree(v, n);
}

static void emit_calls(const struct part *p)
{
	rules = arguments;
	memset(action, 0, sizeof(action));
	for (size_t i = 0; i < N_ELEMENTS(allowed); i++)
		set_list(action, p->token, allowed[i], ALLOW, true);
	for (size_t i = 0; i < N_ELEMENTS(newer_allowed); i++)
		set_list(action, p->token, newer_allowed[i], ALLOW, false);
	for (size_t i = 0; i < N_ELEMENTS(denied); i++)
		set_list(action, p->token, denied[i], NOT_PERMITTED, true);
	for (unsigned int i = 0; i < N_ELEMENTS(arguments); i++)
		set_one(action, p->token, arguments[i].name, BY_ARGUMENT + i, true);
	emit_actions(p, NO_SUCH_CALL);
}

static void emit_no_set_id(const struct part *p)
{
	rules = no_set_id;
	for (size_t i = 0; i < NUMBERS; i++)
		action[i] = ALLOW;
	for (unsigned int i = 0; i < N_ELEMENTS(no_set_id); i++)
		set_one(action, p->token, no_set_id[i].name, BY_ARGUMENT + i, false);
	set_one(action, p->token, no_set_id_hidden, NO_SUCH_CALL, true);
	emit_actions(p, ALLOW);
}

static void make_filter(const struct target *t, void (*emit_part)(const struct part *))
{
	size_t compat, native;

	length = 0;
	(void)emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	(void)emit(BPF_JMP | BPF_JEQ | BPF_K, t->native.audit, 3, 0);
	(void)emit(BPF_JMP | BPF_JEQ | BPF_K, t->compat.audit, 1, 0);
	emit_return(NO_SUCH_CALL);
	compat = emit(BPF_JMP | BPF_JA, 0, 0, 0);
	native = length;
	emit_part(&t->native);
	program[compat].k = (uint32_t)(length - native);
	emit_part(&t->compat);
}

static void print_filter(const char *name)
{
	(void)printf("static const struct sock_filter %s[] = {\n", name);
	for (size_t i = 0; i < length; i++)
		(void)printf("\t{0x%02x, %u, %u, 0x%08x},\n", program[i].code, program[i].jt,
			     program[i].jf, program[i].k);
	(void)printf("};\n");
}

int main(int argc, char **argv)
{
	const struct target *t = NULL;

	for (size_t i = 0; argc == 2 && i < N_ELEMENTS(targets); i++)
		if (strcmp(argv[1], targets[i].name) == 0)
			t = &targets[i];
	if (!t) {
		(void)fprintf(stderr, "usage: seccomp-gen x86_64|aarch64\n");
		return 1;
	}
	(void)printf("/* Made by seccomp-gen for %s. */\n", argv[1]);
	make_filter(t, emit_calls);
	print_filter("box_filter");
	make_filter(t, emit_no_set_id);
	print_filter("box_no_set_id");
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
