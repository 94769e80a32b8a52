/* SPDX-License-Identifier: MIT */
/* A process that becomes a command, as a shell would do it. */
#include "abxsdk/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "abxsdk/base.h"

#define CHILD_STACK_BYTES ((size_t)1 << 20)
#define TTY_GROUP 5

/* The address sanitizer does not know stacks that it did not see made. */
#if defined(__SANITIZE_ADDRESS__)
#define SEPARATE_MEMORY
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEPARATE_MEMORY
#endif
#endif

void abx_env_put(char **env, size_t *n, char *pair)
{
	size_t key = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < *n; i++)
		if (strncmp(env[i], pair, key) == 0) {
			env[i] = pair;
			return;
		}
	env[(*n)++] = pair;
}

const char *abx_env_value(char *const *env, const char *key)
{
	size_t len = strlen(key);

	for (; *env; env++)
		if (strncmp(*env, key, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

/* argv[0] as a shell finds it. */
static char **make_candidates(const char *program, const char *path)
{
	size_t n = 1;
	char **v;

	for (const char *p = path; *p; p++)
		n += *p == ':';
	v = calloc(n + 2, sizeof(*v));
	if (!v)
		return NULL;
	/* No name is no file, and no directory of PATH either. */
	if (!*program || strchr(program, '/')) {
		v[0] = strdup(program);
		return v[0] ? v : NULL;
	}
	n = 0;
	while (*path) {
		int len = (int)strcspn(path, ":");

		if (len && asprintf(&v[n++], "%.*s/%s", len, path, program) < 0)
			return NULL;
		path += len + (path[len] == ':');
	}
	return v;
}

int abx_launch_prepare(struct abx_launch *l, char *const *argv, char **env)
{
	const char *path = abx_env_value(env, "PATH");
	size_t argc = 0;

	while (argv[argc])
		argc++;
	l->argv = argv;
	l->env = env;
	l->candidates = make_candidates(argv[0], path && *path ? path : ABX_DEFAULT_PATH);
	l->sh_argv = calloc(argc + 2, sizeof(*l->sh_argv));
	if (!l->candidates || !l->sh_argv)
		return -ENOMEM;
	l->sh_argv[0] = strdup("sh");
	for (size_t i = 1; i < argc; i++)
		l->sh_argv[i + 1] = argv[i];
	return l->sh_argv[0] ? 0 : -ENOMEM;
}

static _Noreturn void give_up(struct abx_launch *l, const char *step)
{
	l->failed_errno = errno;
	l->failed_step = step;
	_exit(127);
}

static void try_exec(struct abx_launch *l)
{
	int worst = ENOENT;

	for (char **p = l->candidates; *p; p++) {
		(void)execve(*p, l->argv, l->env);
		if (errno == ENOEXEC) {
			l->sh_argv[1] = *p;
			(void)execve("/bin/sh", l->sh_argv, l->env);
			errno = ENOEXEC;
		}
		if (errno == EACCES || errno == ENOENT || errno == ENOTDIR) {
			/* A file that may not be run is remembered; the search goes on. */
			if (errno == EACCES && access(*p, F_OK) == 0)
				worst = EACCES;
			else if (errno == ENOENT && access(*p, F_OK) == 0)
				worst = ELIBBAD; /* it is there, its interpreter is not */
			continue;
		}
		return;
	}
	errno = worst;
}

static void take_streams(struct abx_launch *l)
{
	for (int i = 0; i < 3; i++) {
		int fd = l->tty >= 0 ? l->tty : l->fds[i];

		if (fd >= 0 && dup2(fd, i) < 0)
			give_up(l, l->tty >= 0 ? "terminal" : "streams");
	}
	if (l->tty >= 0 && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		give_up(l, "terminal");
}

static void take_user(struct abx_launch *l)
{
	const struct abx_user *u = l->user;

	if (!u)
		return;
	if (l->tty >= 0 && !l->keep_groups && fchown(l->tty, u->uid, TTY_GROUP) < 0)
		give_up(l, "terminal");
	if ((!l->keep_groups && setgroups(u->n_groups, u->groups) < 0) ||
	    setresgid(u->gid, u->gid, u->gid) < 0 || setresuid(u->uid, u->uid, u->uid) < 0)
		give_up(l, "user");
}

/* As the user, so that a name which somebody put there leads nowhere it could not lead anyway. */
static void open_log(struct abx_launch *l)
{
	int fd;

	if (!l->log)
		return;
	fd = open(l->log, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		give_up(l, "log");
}

int abx_launch_child(void *launch)
{
	struct abx_launch *l = launch;
	const struct sigaction dflt = {.sa_handler = SIG_DFL};
	sigset_t none;

	(void)setsid();
	take_streams(l);
	take_user(l);
	/* A supervisor that was killed itself ends nothing any more. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	open_log(l);
	if (l->cwd && chdir(l->cwd) < 0)
		give_up(l, "cwd");
	(void)umask(022);
	/* The one that supervisors ignore. */
	(void)sigaction(SIGPIPE, &dflt, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	try_exec(l);
	give_up(l, "exec");
}

static size_t total_bytes(char *const *v)
{
	size_t n = 0;

	for (; *v; v++)
		n += strlen(*v) + 1;
	return n;
}

int abx_launch_code(const struct abx_launch *l, char *text, size_t text_size)
{
	const char *why = strerror(l->failed_errno), *name = *l->argv[0] ? l->argv[0] : "''";
	int code = 126;

	if (l->failed_errno == E2BIG) {
		(void)snprintf(text, text_size,
			       "exec: %.256s: %s (%zu bytes of arguments, %zu of environment)",
			       name, why, total_bytes(l->argv), total_bytes(l->env));
		return code;
	}
	if (l->failed_errno == ENOENT) {
		code = 127;
		why = strchr(name, '/') ? why : "not found in PATH";
	} else if (l->failed_errno == ELIBBAD) {
		why = "its interpreter or loader is missing";
	}
	(void)snprintf(text, text_size, "exec: %.512s: %s", name, why);
	return code;
}

pid_t abx_child_start(int (*fn)(void *), void *arg, unsigned long clone_flags)
{
#ifdef SEPARATE_MEMORY
	long pid = syscall(SYS_clone, clone_flags | CLONE_VFORK | SIGCHLD, 0L, 0L, 0L, 0L);

	if (pid == 0)
		_exit(fn(arg));
	return (pid_t)pid;
#else
	char *stack = mmap(NULL, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);

	if (stack == MAP_FAILED)
		return -1;
	return clone(fn, stack + CHILD_STACK_BYTES,
		     (int)(clone_flags | CLONE_VM | CLONE_VFORK | SIGCHLD), arg);
#endif
}

void *abx_child_shared(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}
