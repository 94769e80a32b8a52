/* SPDX-License-Identifier: MIT */
/* The command of agentbox-ctl exec: who it runs as, its streams, its end. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "abxsdk/fs.h"
#include "agentbox/cloud_backend.h"
#include "core/ctl/ctl.h"

#define PASSWD_MAX_BYTES ((size_t)4 << 20)
#define LOG_DIR "/var/log/agentbox"
#define WORKSPACE "/workspace"
/* What may still be in a terminal when its command has ended. */
#define REST_ROUNDS 256

extern char **environ;

static char *read_text(const char *path)
{
	struct abx_buf b = ABX_BUF_INIT(PASSWD_MAX_BYTES);

	if (abx_fs_read(AT_FDCWD, path, &b) < 0) {
		abx_buf_release(&b);
		return NULL;
	}
	return abx_buf_steal(&b);
}

static bool look_up(struct ctl_exec *x, const char *name)
{
	struct abx_user *u = &x->user;
	char *passwd = read_text("/etc/passwd");
	uint32_t id;

	if (!passwd || !abx_user_find(passwd, name, u)) {
		if (!abx_user_parse_id(name, &id))
			return false;
		*u = (struct abx_user){
			.uid = id, .gid = id, .name = name, .home = "/", .shell = "/bin/sh"};
	}
	abx_user_add_groups(read_text("/etc/group"), u);
	return true;
}

/* Who it is to be; true when that is somebody else than we are. */
static bool choose_user(struct ctl_exec *x)
{
	(void)snprintf(x->own_id, sizeof(x->own_id), "%u", geteuid());
	if (!look_up(x, x->request.user ? x->request.user : x->own_id)) {
		ctl_fail(x, ABX_EINVAL, "user: %.64s: not in the box's /etc/passwd",
			 x->request.user);
		return false;
	}
	return x->user.uid != geteuid();
}

static char *pair(const char *key, const char *value)
{
	char *p = NULL;

	return asprintf(&p, "%s=%s", key, value) < 0 ? NULL : p;
}

/* Ours, what the box has of its own, and the request's, the last one wins. */
static char **make_env(struct ctl_exec *x, bool other_user)
{
	const struct abx_user *u = &x->user;
	const bool pty = x->request.flags & ABX_WIRE_REQ_PTY;
	size_t own = 0, n = 0;
	const char *term;
	char **env;

	while (environ[own])
		own++;
	env = calloc(own + x->request.n_env + 8, sizeof(*env));
	if (!env)
		return NULL;
	abx_env_put(env, &n, strdup("PATH=" ABX_DEFAULT_PATH));
	abx_env_put(env, &n, strdup("LANG=C.UTF-8"));
	abx_env_put(env, &n, pair("HOME", u->home));
	abx_env_put(env, &n, pair("SHELL", u->shell));
	for (size_t i = 0; i < own; i++)
		if (strchr(environ[i], '=') && strncmp(environ[i], "TERM=", 5) != 0 &&
		    strncmp(environ[i], "_=", 2) != 0)
			abx_env_put(env, &n, environ[i]);
	if (other_user)
		abx_env_put(env, &n, pair("HOME", u->home));
	abx_env_put(env, &n, pair("USER", u->name));
	abx_env_put(env, &n, pair("LOGNAME", u->name));
	abx_env_put(env, &n, strdup(pty ? "TERM=" ABX_DEFAULT_TERM : "TERM=dumb"));
	for (size_t i = 0; i < x->request.n_env; i++)
		abx_env_put(env, &n, x->request.env[i]);
	term = abx_env_value(env, "TERM");
	/* A terminal that the box has never heard of would be worse than a plain one. */
	if (pty && term && !abx_term_is_known(term, u->home))
		abx_env_put(env, &n, strdup("TERM=" ABX_DEFAULT_TERM));
	return env;
}

/* An ordinary user becomes another one by sudo; names of variables may be in an argv. */
static char **by_sudo(struct ctl_exec *x, char *const *argv)
{
	struct abx_buf names = ABX_BUF_INIT(1 << 20);
	size_t argc = 0, n = 0;
	char **v;

	if (access("/usr/bin/sudo", X_OK) < 0) {
		ctl_fail(x, ABX_ENOTSUP,
			 "user: %.64s: this user is not root, and the box has no sudo",
			 x->user.name);
		return NULL;
	}
	abx_buf_adds(&names, "--preserve-env=");
	for (size_t i = 0; i < x->request.n_env; i++) {
		if (i)
			abx_buf_addc(&names, ',');
		abx_buf_add(&names, x->request.env[i], strcspn(x->request.env[i], "="));
	}
	while (argv[argc])
		argc++;
	v = calloc(argc + 9, sizeof(*v));
	if (!v || names.failed)
		return NULL;
	v[n++] = strdup("/usr/bin/sudo");
	v[n++] = strdup("-n");
	v[n++] = strdup("-H");
	v[n++] = strdup("-u");
	v[n++] = strdup(x->user.name);
	if (x->request.n_env)
		v[n++] = abx_buf_steal(&names);
	v[n++] = strdup("--");
	for (size_t i = 0; i < argc; i++)
		v[n++] = argv[i];
	return v;
}

static int make_pipe(int *ret_read, int *ret_write, bool ours_is_read)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = p[0];
	*ret_write = p[1];
	return fcntl(p[ours_is_read ? 0 : 1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_streams(struct ctl_exec *x, int *in_r, int *out_w, int *err_w)
{
	const bool pty = x->request.flags & ABX_WIRE_REQ_PTY;
	int r = make_pipe(in_r, &x->to_cmd, false);

	if (r == 0)
		r = make_pipe(&x->from_cmd[0], out_w, true);
	if (r == 0 && !pty)
		r = make_pipe(&x->from_cmd[1], err_w, true);
	if (r < 0 || !pty)
		return r;
	x->pty = calloc(1, sizeof(*x->pty));
	if (!x->pty)
		return -ENOMEM;
	r = abx_pty_open(x->pty, *in_r, *out_w, x->request.rows, x->request.cols);
	/* No memory of a terminal that does not exist. */
	if (r < 0)
		free(abx_steal_ptr(&x->pty));
	return r;
}

/* Where a detached command's output goes; the user's own place when it may not write there. */
static void choose_log(struct ctl_exec *x)
{
	char dir[4200], *log;

	if (mkdir(LOG_DIR, 0755) == 0)
		(void)chmod(LOG_DIR, 01777);
	(void)snprintf(dir, sizeof(dir), "%s", LOG_DIR);
	if (access(dir, W_OK) < 0 && x->user.uid == geteuid()) {
		(void)snprintf(dir, sizeof(dir), "%s/.agentbox/log", x->user.home);
		(void)abx_fs_mkdir_p(AT_FDCWD, dir, 0700);
	}
	if (asprintf(&log, "%s/%s.log", dir, x->request.id) >= 0)
		x->launch->log = log;
}

static int prepare(struct ctl_exec *x)
{
	const bool other = choose_user(x);
	char *const *argv = x->request.argv;
	char **env;

	if (x->finishing)
		return -EINVAL;
	env = make_env(x, other);
	if (other && geteuid() != 0)
		argv = by_sudo(x, argv);
	if (x->finishing)
		return -EINVAL;
	x->launch->keep_groups = true;
	if (other && geteuid() == 0) {
		x->launch->user = &x->user;
		x->launch->keep_groups = false;
	}
	x->launch->cwd = x->request.cwd ? x->request.cwd : WORKSPACE;
	x->launch->tty = -1;
	if (!env || !argv || abx_launch_prepare(x->launch, argv, env) < 0)
		return -ENOMEM;
	return 0;
}

static void report_not_started(struct ctl_exec *x)
{
	const struct abx_launch *l = x->launch;
	char text[700];
	int code;

	if (strcmp(l->failed_step, "exec") == 0) {
		code = abx_launch_code(l, text, sizeof(text));
		abx_wire_put_exit(&x->out, &x->queue, code, 0, ABX_WIRE_EXIT_NOT_STARTED, text);
		x->said_bye = x->finishing = true;
		return;
	}
	ctl_fail(x, ABX_EINVAL, "%s: %.512s: %s", l->failed_step,
		 strcmp(l->failed_step, "cwd") == 0   ? l->cwd
		 : strcmp(l->failed_step, "log") == 0 ? l->log
						      : x->user.name,
		 strerror(l->failed_errno));
}

void ctl_launch(struct ctl_exec *x)
{
	int r = abx_supervise_init(&x->sup, x->request.grace_ms, x->request.timeout_ms);

	if (r == 0) {
		x->sup.pid = abx_child_start(abx_launch_child, x->launch, 0);
		r = x->sup.pid < 0 ? -errno : 0;
	}
	if (r < 0) {
		ctl_fail(x, ABX_EIO, "exec: new process in the box: %s", strerror(-r));
		return;
	}
	if (x->launch->failed_step) {
		(void)waitpid(x->sup.pid, NULL, 0);
		report_not_started(x);
		return;
	}
	abx_wire_put(&x->out, &x->queue, ABX_WIRE_STARTED, x->request.id, strlen(x->request.id));
	x->running = true;
}

void ctl_command_start(struct ctl_exec *x)
{
	const bool detached = x->request.flags & ABX_WIRE_REQ_DETACHED;
	int in_r = -1, out_w = -1, err_w = -1, r;

	x->launch = abx_child_shared(sizeof(*x->launch));
	r = x->launch ? prepare(x) : -ENOMEM;
	if (r == 0 && detached) {
		in_r = open("/dev/null", O_RDWR | O_CLOEXEC);
		out_w = err_w = in_r;
		choose_log(x);
	} else if (r == 0) {
		r = open_streams(x, &in_r, &out_w, &err_w);
	}
	if (r < 0) {
		ctl_fail(x, ABX_EIO, "exec: %s",
			 r == -ENOMEM ? "out of memory in the box" : strerror(-r));
		return;
	}
	x->launch->fds[0] = in_r;
	x->launch->fds[1] = out_w;
	x->launch->fds[2] = err_w;
	if (x->pty)
		x->launch->tty = x->pty->slave;
	if (detached)
		ctl_detach(x);
	ctl_launch(x);
	/* The command's alone from here on. */
	if (x->pty) {
		(void)close(x->pty->slave);
	} else {
		(void)close(in_r);
		(void)close(out_w);
		(void)close(err_w);
	}
}

size_t ctl_command_output(struct ctl_exec *x, int i, size_t max)
{
	char data[32768];
	ssize_t n;

	if (x->from_cmd[i] < 0)
		return 0;
	n = read(x->from_cmd[i], data, max < sizeof(data) ? max : sizeof(data));
	if (n > 0) {
		abx_wire_put(&x->out, &x->queue, i ? ABX_WIRE_STDERR : ABX_WIRE_STDOUT, data,
			     (size_t)n);
		return (size_t)n;
	}
	if (n == 0 || (errno != EINTR && errno != EAGAIN))
		(void)close(abx_steal_fd(&x->from_cmd[i]));
	return 0;
}

static void take_terminal(struct ctl_exec *x)
{
	for (int i = 0; i < REST_ROUNDS; i++) {
		struct pollfd p[ABX_PTY_FDS];
		size_t before = x->pty->out_len, n;

		x->pty->input_open = false;
		abx_pty_poll(x->pty, p);
		(void)poll(p, ABX_PTY_FDS, 0);
		abx_pty_serve(x->pty, p);
		n = ctl_command_output(x, 0, SIZE_MAX);
		if (!n && !before && !x->pty->out_len)
			return;
	}
}

/* What was written before the command ended, and no more: a process that it left behind may
 * write for ever. */
void ctl_command_ended(struct ctl_exec *x)
{
	const int status = x->sup.status;

	if (x->pty)
		take_terminal(x);
	for (int i = 0; i < 2; i++) {
		int left = x->from_cmd[i] < 0 ? 0 : fcntl(x->from_cmd[i], F_GETPIPE_SZ);

		while (left > 0) {
			size_t n = ctl_command_output(x, i, (size_t)left);

			if (!n)
				break;
			left -= (int)n;
		}
		abx_cleanup_close(&x->from_cmd[i]);
		x->from_cmd[i] = -1;
	}
	abx_cleanup_close(&x->to_cmd);
	x->to_cmd = -1;
	if (!x->said_bye)
		abx_wire_put_exit(&x->out, &x->queue, WIFSIGNALED(status) ? 0 : WEXITSTATUS(status),
				  WIFSIGNALED(status) ? WTERMSIG(status) : 0,
				  x->sup.timed_out ? ABX_WIRE_EXIT_TIMED_OUT : 0, "");
	x->said_bye = x->finishing = true;
}
