/* SPDX-License-Identifier: MIT */
/*
 * Running one command in a box.
 *
 * Three processes: the helper stays outside the pid namespace and only waits; its child, the
 * supervisor, is in the box as box root; the supervisor's child becomes the command.  The
 * supervisor is the subreaper of all that the command starts, so a grandchild that called
 * setsid() is still found when the tree has to end.
 */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define KILL_AGAIN_MS 5
#define GRACE_MAX_MS 60000

struct command {
	const struct box_req *rq;
	struct box_user user;
	const char *cwd;
	char **env;
	char **candidates; /* paths to try in turn, NULL-terminated */
	char **sh_argv;	   /* for a script without an interpreter line, as a shell does it */
	bool single_id;
	struct box_pty *pty; /* NULL: standard streams are the caller's pipes */

	/* Written by the child before it ends without exec. */
	const char *failed_step;
	int failed_errno;
};

struct supervisor {
	struct command *cmd;
	pid_t pid;
	int status;
	bool ended, ending, killing, timed_out;
	int64_t timeout_at, kill_at; /* 0: never */
	int lifeline;
};

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Environment. */

static void env_set(char **env, size_t *n, char *pair)
{
	size_t key = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < *n; i++)
		if (strncmp(env[i], pair, key) == 0) {
			env[i] = pair;
			return;
		}
	env[(*n)++] = pair;
}

static const char *env_get(char **env, const char *key)
{
	size_t len = strlen(key);

	for (; *env; env++)
		if (strncmp(*env, key, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

static char **make_env(const struct box_req *rq, const struct box_user *u)
{
	char **env = box_alloc((rq->h.n_env + 8) * sizeof(*env));
	bool pty = rq->h.flags & LB_F_PTY;
	size_t n = 0;

	env_set(env, &n, box_strdup("PATH=" DEFAULT_PATH));
	env_set(env, &n, box_printf("HOME=%s", u->home));
	env_set(env, &n, box_printf("USER=%s", u->name));
	env_set(env, &n, box_printf("LOGNAME=%s", u->name));
	env_set(env, &n, box_printf("SHELL=%s", u->shell));
	env_set(env, &n, box_strdup("LANG=C.UTF-8"));
	env_set(env, &n, box_strdup(pty ? "TERM=xterm-256color" : "TERM=dumb"));
	for (uint32_t i = 0; i < rq->h.n_env; i++)
		env_set(env, &n, rq->env[i]);
	return env;
}

/* argv[0] as a shell finds it. */
static char **make_candidates(const char *program, const char *path)
{
	size_t n = 1;
	char **v;

	for (const char *p = path; *p; p++)
		n += *p == ':';
	v = box_alloc((n + 2) * sizeof(*v));
	if (strchr(program, '/')) {
		v[0] = box_strdup(program);
		return v;
	}
	for (n = 0; *path; path += path[strcspn(path, ":")] == ':' ? strcspn(path, ":") + 1
								   : strcspn(path, ":")) {
		int len = (int)strcspn(path, ":");

		if (len)
			v[n++] = box_printf("%.*s/%s", len, path, program);
	}
	return v;
}

/* The command's own process, until it execs.  It shares memory with the supervisor. */

static _Noreturn void give_up(struct command *c, const char *step)
{
	c->failed_errno = errno;
	c->failed_step = step;
	_exit(127);
}

static void try_exec(struct command *c)
{
	int worst = ENOENT;

	for (char **p = c->candidates; *p; p++) {
		(void)execve(*p, c->rq->argv, c->env);
		if (errno == ENOEXEC) {
			c->sh_argv[1] = *p;
			(void)execve("/bin/sh", c->sh_argv, c->env);
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

static int become_command(void *arg)
{
	struct command *c = arg;
	sigset_t none;

	(void)setsid();
	if (c->pty &&
	    (dup2(c->pty->slave, STDIN_FILENO) < 0 || dup2(c->pty->slave, STDOUT_FILENO) < 0 ||
	     dup2(c->pty->slave, STDERR_FILENO) < 0 || ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0))
		give_up(c, "terminal");
	if ((!c->single_id && setgroups(c->user.n_groups, c->user.groups) < 0) ||
	    setresgid(c->user.gid, c->user.gid, c->user.gid) < 0 ||
	    setresuid(c->user.uid, c->user.uid, c->user.uid) < 0)
		give_up(c, "user");
	if (chdir(c->cwd) < 0)
		give_up(c, "cwd");
	(void)umask(022);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	try_exec(c);
	give_up(c, "exec");
}

/* The supervisor. */

static _Noreturn void report_not_started(const struct command *c)
{
	struct lb_msg m = {.kind = LB_MSG_NOT_STARTED, .code = 126};
	const char *why = strerror(c->failed_errno);

	if (strcmp(c->failed_step, "exec") != 0)
		/* Not "not found", which would say that the box is gone. */
		box_fail(ABX_EINVAL, NULL, "%s: %.512s: %s", c->failed_step,
			 strcmp(c->failed_step, "cwd") == 0 ? c->cwd : c->user.name, why);
	if (c->failed_errno == ENOENT) {
		m.code = 127;
		why = strchr(c->rq->argv[0], '/') ? why : "not found in PATH";
	} else if (c->failed_errno == ELIBBAD) {
		why = "its interpreter or loader is missing";
	}
	(void)snprintf(m.text, sizeof(m.text), "exec: %.512s: %s", c->rq->argv[0], why);
	box_send(&m);
	_exit(1);
}

static _Noreturn void report_exit(const struct supervisor *s)
{
	struct lb_msg m = {.kind = LB_MSG_EXIT, .timed_out = s->timed_out};

	if (s->cmd->pty)
		box_pty_finish(s->cmd->pty);
	if (WIFSIGNALED(s->status))
		m.signo = WTERMSIG(s->status);
	else
		m.code = WEXITSTATUS(s->status);
	box_send(&m);
	_exit(0);
}

/* Collect who ended; end ourselves once nothing is left to wait for. */
static void on_child(struct supervisor *s)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == s->pid) {
			s->status = status;
			s->ended = true;
		}
	/* What the command left running lives on below the first process of the box;
	 * when the tree has to end, all of it has to. */
	if (s->ended && (!s->ending || (pid < 0 && errno == ECHILD)))
		report_exit(s);
}

static void end_tree(struct supervisor *s)
{
	int64_t grace = s->cmd->rq->h.grace_ms;

	if (s->ending)
		return;
	s->ending = true;
	if (grace > GRACE_MAX_MS)
		grace = GRACE_MAX_MS;
	s->kill_at = now_ms() + (grace > 0 ? grace : 0);
	if (grace > 0) {
		(void)box_tree_signal(SIGTERM);
		(void)box_tree_signal(SIGCONT);
	}
}

/* Stop all first, so that nobody starts a process between the look and the kill. */
static void kill_tree(struct supervisor *s)
{
	size_t before, now = 0;

	do {
		before = now;
		now = box_tree_signal(SIGSTOP);
	} while (now > before);
	(void)box_tree_signal(SIGKILL);
	s->killing = true;
}

static void on_record(struct supervisor *s, const struct lb_ctrl *c)
{
	if (c->kind == LB_CTRL_CANCEL) {
		end_tree(s);
	} else if (c->kind == ABX_CTRL_SIGNAL && c->a > 0 && c->a < 65) {
		(void)kill(-s->pid, c->a);
	} else if (c->kind == ABX_CTRL_RESIZE && s->cmd->pty) {
		box_pty_resize(s->cmd->pty, c->a, c->b);
	}
}

static void on_lifeline(struct supervisor *s)
{
	struct lb_ctrl c;
	ssize_t n = read(s->lifeline, &c, sizeof(c));

	if (n == (ssize_t)sizeof(c)) {
		on_record(s, &c);
	} else if (n >= 0 || errno != EINTR) {
		s->lifeline = -1;
		if (!(s->cmd->rq->h.flags & LB_F_LEAVE_RUNNING))
			end_tree(s);
	}
}

static int wait_time(const struct supervisor *s)
{
	int64_t at = s->ending ? s->kill_at : s->timeout_at, left;

	if (s->killing)
		return KILL_AGAIN_MS;
	if (!at)
		return -1;
	left = at - now_ms();
	return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

static void on_time(struct supervisor *s)
{
	if (!s->ending && s->timeout_at && now_ms() >= s->timeout_at) {
		s->timed_out = true;
		end_tree(s);
	}
	if (s->ending && now_ms() >= s->kill_at)
		kill_tree(s);
}

static _Noreturn void watch(struct supervisor *s, int sigfd)
{
	for (;;) {
		struct pollfd p[2 + BOX_PTY_FDS] = {{.fd = sigfd, .events = POLLIN},
						    {.fd = s->lifeline, .events = POLLIN}};
		struct box_pty *pty = s->cmd->pty;
		struct signalfd_siginfo si[8];

		if (pty)
			box_pty_poll(pty, p + 2);
		if (poll(p, pty ? 2 + BOX_PTY_FDS : 2, wait_time(s)) < 0)
			memset(p, 0, sizeof(p));
		if (pty)
			box_pty_serve(pty, p + 2);
		if (p[0].revents) {
			(void)read(sigfd, si, sizeof(si));
			on_child(s);
		}
		if (p[1].revents)
			on_lifeline(s);
		on_time(s);
		if (s->ending)
			on_child(s);
	}
}

static int supervise(void *arg)
{
	struct supervisor s = {.cmd = arg, .lifeline = LB_FD_LIFELINE};
	const struct box_req *rq = s.cmd->rq;
	sigset_t all, chld;
	int sigfd;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	sigfd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigfd < 0)
		box_fail_errno(errno, "exec");
	s.pid = box_spawn(become_command, s.cmd, 0);
	if (s.pid < 0)
		box_fail_errno(errno, "exec: new process in the box");
	if (s.cmd->failed_step) {
		(void)waitpid(s.pid, NULL, 0);
		report_not_started(s.cmd);
	}
	/* The command's alone from here on: its end of file must not wait for us. */
	if (s.cmd->pty) {
		(void)close(s.cmd->pty->slave);
	} else {
		(void)close(STDIN_FILENO);
		(void)close(STDOUT_FILENO);
	}
	(void)close(STDERR_FILENO);
	if (rq->h.timeout_ms > 0)
		s.timeout_at = now_ms() + rq->h.timeout_ms;
	if (rq->h.flags & LB_F_DETACHED)
		s.lifeline = -1;
	box_send_kind(LB_MSG_STARTED, s.pid);
	watch(&s, sigfd);
}

void box_exec(const struct box_req *rq)
{
	struct command *c = box_shared(sizeof(*c));
	const char *path;
	int status;

	if (!rq->argv[0] || !*rq->argv[0])
		box_fail(ABX_EINVAL, NULL, "exec: no command given");
	box_enter(rq);
	c->rq = rq;
	c->single_id = rq->h.flags & LB_F_SINGLE_ID;
	box_lookup_user(rq->user, c->single_id, &c->user);
	c->cwd = *rq->path ? rq->path : LB_WORKSPACE;
	c->env = make_env(rq, &c->user);
	path = env_get(c->env, "PATH");
	c->candidates = make_candidates(rq->argv[0], path && *path ? path : DEFAULT_PATH);
	c->sh_argv = box_alloc((rq->h.n_argv + 2) * sizeof(char *));
	c->sh_argv[0] = box_strdup("sh");
	for (uint32_t i = 1; i < rq->h.n_argv; i++)
		c->sh_argv[i + 1] = rq->argv[i];
	if (rq->h.flags & LB_F_PTY) {
		c->pty = box_alloc(sizeof(*c->pty));
		box_pty_open(c->pty, rq, &c->user);
	}
	status = box_run_child(supervise, c);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
