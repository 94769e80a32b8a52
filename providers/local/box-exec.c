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
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/detached.h"
#include "abxsdk/launch.h"
#include "abxsdk/pty.h"
#include "abxsdk/supervise.h"

struct command {
	const struct box_req *rq;
	struct abx_user user;
	struct abx_launch *launch;
	struct abx_pty *pty; /* NULL: standard streams are the caller's pipes */
	struct abx_supervisor sup;
	int lifeline;
};

static char **make_env(const struct box_req *rq, const struct abx_user *u)
{
	char **env = box_alloc((rq->h.n_env + 8) * sizeof(*env));
	bool pty = rq->h.flags & LB_F_PTY;
	const char *term;
	size_t n = 0;

	abx_env_put(env, &n, box_strdup("PATH=" ABX_DEFAULT_PATH));
	abx_env_put(env, &n, box_printf("HOME=%s", u->home));
	abx_env_put(env, &n, box_printf("USER=%s", u->name));
	abx_env_put(env, &n, box_printf("LOGNAME=%s", u->name));
	abx_env_put(env, &n, box_printf("SHELL=%s", u->shell));
	abx_env_put(env, &n, box_strdup("LANG=C.UTF-8"));
	abx_env_put(env, &n, box_strdup("TERM=" ABX_DEFAULT_TERM));
	if (!pty)
		abx_env_put(env, &n, box_strdup("TERM=dumb"));
	for (uint32_t i = 0; i < rq->h.n_env; i++)
		abx_env_put(env, &n, rq->env[i]);
	term = abx_env_value(env, "TERM");
	/* A terminal that the box has never heard of would be worse than a plain one. */
	if (pty && term && !abx_term_is_known(term, u->home))
		abx_env_put(env, &n, box_strdup("TERM=" ABX_DEFAULT_TERM));
	return env;
}

/* The supervisor. */

static _Noreturn void report_not_started(const struct command *c)
{
	const struct abx_launch *l = c->launch;
	struct lb_msg m = {.kind = LB_MSG_NOT_STARTED};
	const char *what = strcmp(l->failed_step, "cwd") == 0	? l->cwd
			   : strcmp(l->failed_step, "log") == 0 ? l->log
								: c->user.name;

	if (strcmp(l->failed_step, "exec") != 0)
		/* Not "not found", which would say that the box is gone. */
		box_fail(ABX_EINVAL, NULL, "%s: %.512s: %s", l->failed_step, what,
			 strerror(l->failed_errno));
	m.code = abx_launch_code(l, m.text, sizeof(m.text));
	box_send(&m);
	_exit(1);
}

static _Noreturn void report_exit(const struct command *c)
{
	struct lb_msg m = {.kind = LB_MSG_EXIT, .timed_out = c->sup.timed_out};

	if (c->pty)
		abx_pty_finish(c->pty);
	if (c->launch->log)
		abx_detached_end(c->launch->log, &c->sup);
	if (WIFSIGNALED(c->sup.status))
		m.signo = WTERMSIG(c->sup.status);
	else
		m.code = WEXITSTATUS(c->sup.status);
	box_send(&m);
	_exit(0);
}

static void on_record(struct command *c, const struct lb_ctrl *r)
{
	if (r->kind == LB_CTRL_CANCEL)
		abx_supervise_end(&c->sup);
	else if (r->kind == ABX_CTRL_SIGNAL && r->a > 0 && r->a < 65)
		abx_supervise_signal(&c->sup, r->a);
	else if (r->kind == ABX_CTRL_RESIZE && c->pty)
		abx_pty_resize(c->pty, r->a, r->b);
}

static void on_lifeline(struct command *c)
{
	struct lb_ctrl r;
	ssize_t n = read(c->lifeline, &r, sizeof(r));

	if (n == (ssize_t)sizeof(r)) {
		on_record(c, &r);
	} else if (n >= 0 || errno != EINTR) {
		c->lifeline = -1;
		if (!(c->rq->h.flags & LB_F_LEAVE_RUNNING))
			abx_supervise_end(&c->sup);
	}
}

static _Noreturn void watch(struct command *c)
{
	for (;;) {
		struct pollfd p[2 + ABX_PTY_FDS] = {{.fd = c->sup.signal_fd, .events = POLLIN},
						    {.fd = c->lifeline, .events = POLLIN}};

		if (c->pty)
			abx_pty_poll(c->pty, p + 2);
		if (poll(p, c->pty ? 2 + ABX_PTY_FDS : 2, abx_supervise_wait_ms(&c->sup)) < 0)
			memset(p, 0, sizeof(p));
		if (c->pty)
			abx_pty_serve(c->pty, p + 2);
		if (p[1].revents)
			on_lifeline(c);
		if (abx_supervise_step(&c->sup))
			report_exit(c);
	}
}

/* Where a detached command's output goes: made by box root, for every user of the box. */
static void make_log_dir(struct command *c)
{
	if (!(c->rq->h.flags & LB_F_DETACHED) || !*c->rq->name)
		return;
	box_make_parents(LB_LOG_DIR, /* itself= */ false);
	if (mkdir(LB_LOG_DIR, 0755) == 0)
		(void)chmod(LB_LOG_DIR, 01777);
	c->launch->log = box_printf("%s/%s.log", LB_LOG_DIR, c->rq->name);
}

static int supervise(void *arg)
{
	struct command *c = arg;
	int r = abx_supervise_init(&c->sup, c->rq->h.grace_ms, c->rq->h.timeout_ms);

	if (r < 0)
		box_fail_errno(-r, "exec");
	c->lifeline = c->rq->h.flags & LB_F_DETACHED ? -1 : LB_FD_LIFELINE;
	c->sup.pid = abx_child_start(abx_launch_child, c->launch, 0);
	if (c->sup.pid < 0)
		box_fail_errno(errno, "exec: new process in the box");
	if (c->launch->failed_step) {
		(void)waitpid(c->sup.pid, NULL, 0);
		report_not_started(c);
	}
	/* From here on whoever pauses the box sees the command. */
	(void)close(LB_FD_GATE);
	/* The command's alone from here on: its end of file must not wait for us. */
	if (c->pty) {
		(void)close(c->pty->slave);
	} else {
		(void)close(STDIN_FILENO);
		(void)close(STDOUT_FILENO);
	}
	(void)close(STDERR_FILENO);
	if (c->launch->log)
		abx_detached_begin(c->launch->log);
	box_send_kind(LB_MSG_STARTED, c->sup.pid);
	watch(c);
}

static void open_pty(struct command *c)
{
	int r;

	c->pty = box_alloc(sizeof(*c->pty));
	r = abx_pty_open(c->pty, STDIN_FILENO, STDOUT_FILENO, c->rq->h.rows, c->rq->h.cols);
	if (r < 0)
		box_fail_errno(-r, "exec: terminal");
	c->launch->tty = c->pty->slave;
}

void box_exec(const struct box_req *rq)
{
	struct command c = {.rq = rq};
	struct abx_launch *l = box_shared(sizeof(*l));
	int status;

	if (!rq->argv[0])
		box_fail(ABX_EINVAL, NULL, "exec: no command given");
	box_enter(rq);
	c.launch = l;
	l->keep_groups = rq->h.flags & LB_F_SINGLE_ID;
	l->tty = l->fds[0] = l->fds[1] = l->fds[2] = -1;
	box_lookup_user(rq->user, l->keep_groups, &c.user);
	l->user = &c.user;
	l->cwd = *rq->path ? rq->path : LB_WORKSPACE;
	if (abx_launch_prepare(l, rq->argv, make_env(rq, &c.user)) < 0)
		box_fail(ABX_ENOMEM, NULL, "out of memory");
	if (rq->h.flags & LB_F_PTY)
		open_pty(&c);
	make_log_dir(&c);
	status = box_run_child(supervise, &c);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
