/* SPDX-License-Identifier: MIT */
/* The mock provider: commands. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "abxsdk/proc-stat.h"
#include "abxsdk/spawn.h"
#include "abxsdk/user.h"
#include "mock.h"

#define WORKSPACE "/workspace"
/* Does giving up end more than the one process? */
#ifdef MOCK_BARE
#define ENDS_ALL 0
#define MOCK_CWD(cwd) NULL
#else
#define ENDS_ALL 1
#define MOCK_CWD(cwd) (cwd)
#endif
#define ROOT_VARIABLE "AGENTBOX_MOCK_ROOT="

static int is_of_box(const char *pid, const char *marker)
{
	abx_auto(abx_buf) struct abx_buf env = ABX_BUF_INIT(4 << 20);
	char path[300];
	size_t len = strlen(marker) + 1;

	(void)snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	if (abx_fs_read(AT_FDCWD, path, &env) < 0 || !env.len)
		return 0;
	for (size_t at = 0; at < env.len; at += strlen(env.data + at) + 1)
		if (env.len - at >= len && memcmp(env.data + at, marker, len) == 0)
			return 1;
	return 0;
}

static int signal_marked(const char *marker, int signo)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	int reached = 0;

	while (proc && (e = readdir(proc))) {
		pid_t pid = abx_parse_pid(e->d_name);

		if (pid > 1 && is_of_box(e->d_name, marker) && kill(pid, signo) == 0)
			reached++;
	}
	if (proc)
		(void)closedir(proc);
	return reached;
}

char *mock_marker(const struct abx_session *s, const char *id)
{
	abx_autofree char *root = mock_path(s, "sandboxes/%s/root", id);
	struct abx_buf b = ABX_BUF_INIT(65536);

	abx_buf_addf(&b, ROOT_VARIABLE "%s", root);
	return abx_buf_steal(&b);
}

void mock_kill_all(const struct abx_session *s, const char *id)
{
	abx_autofree char *marker = mock_marker(s, id);

	/* A process that forks while it is looked for has children that carry the mark. */
	for (int round = 0; round < 100 && signal_marked(marker, SIGKILL); round++) {
		const struct timespec pause = {0, 2000000};

		(void)nanosleep(&pause, NULL);
	}
}

int mock_signal_all(const struct abx_session *s, const char *id, int signo)
{
	abx_autofree char *marker = mock_marker(s, id);

	return signal_marked(marker, signo);
}

#ifndef MOCK_BARE
static int is_path_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_-./", c));
}

/* An argument with each path below /workspace mapped to where it really is. */
static char *map_arg(const char *root, const char *arg)
{
	const size_t len = sizeof(WORKSPACE) - 1;
	struct abx_buf b = ABX_BUF_INIT(8 << 20);
	const char *at = arg;

	abx_buf_adds(&b, "");
	while (*at) {
		const int starts = at == arg || !is_path_byte(at[-1]);

		if (starts && strncmp(at, WORKSPACE, len) == 0 &&
		    (at[len] == '/' || !is_path_byte(at[len]))) {
			abx_buf_addf(&b, "%s" WORKSPACE, root);
			at += len;
		} else {
			abx_buf_addc(&b, *at++);
		}
	}
	return abx_buf_steal(&b);
}

#endif

static void strings_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

#ifdef MOCK_BARE
/* In a root of its own the words stay as they are. */
static char **make_argv(const struct abx_exec *req, const char *root)
{
	const char *const before[] = {MOCK_ENTER, root, req->cwd ? req->cwd : WORKSPACE};
	size_t n = 0;
	char **argv;

	while (req->argv[n])
		n++;
	argv = calloc(n + ABX_N_ELEMENTS(before) + 1, sizeof(*argv));
	for (size_t i = 0; argv && i < ABX_N_ELEMENTS(before); i++)
		argv[i] = strdup(before[i]);
	for (size_t i = 0; argv && i < n; i++)
		argv[i + ABX_N_ELEMENTS(before)] = strdup(req->argv[i]);
	return argv;
}
#else
static char **make_argv(const struct abx_exec *req, const char *root)
{
	size_t n = 0;
	char **argv;

	while (req->argv[n])
		n++;
	argv = calloc(n + 1, sizeof(*argv));
	for (size_t i = 0; argv && i < n; i++)
		argv[i] = map_arg(root, req->argv[i]);
	return argv;
}
#endif

static char *pair(const char *key, const char *value)
{
	struct abx_buf b = ABX_BUF_INIT(8 << 20);

	abx_buf_addf(&b, "%s=%s", key, value);
	return abx_buf_steal(&b);
}

/* The later one wins, so the box's own come first and the request's last. */
static void put(char **env, size_t *n, char *text)
{
	size_t key = strcspn(text, "=") + 1;

	for (size_t i = 0; i < *n; i++)
		if (strncmp(env[i], text, key) == 0) {
			free(env[i]);
			env[i] = text;
			return;
		}
	env[(*n)++] = text;
}

static char **make_env(const struct abx_exec *req, const char *root)
{
	const char *path = getenv("PATH");
	const struct abx_kv own[] = {{"AGENTBOX_MOCK_ROOT", root},
				     {"PATH", path ? path : "/usr/bin:/bin"},
				     {"LANG", "C.UTF-8"},
#ifdef MOCK_BARE
				     {"HOME", "/root"}};
#else
				     {"HOME", root}};
#endif
	abx_auto(abx_buf) struct abx_buf kept = ABX_BUF_INIT(8 << 20), at = ABX_BUF_INIT(65536);
	size_t n = 0, n_kept = 0;
	char **env;

	abx_buf_addf(&at, "%s/../env", root);
	(void)abx_fs_read(AT_FDCWD, abx_buf_str(&at), &kept);
	for (size_t i = 0; i < kept.len; i++)
		n_kept += !kept.data[i];
	env = calloc(n_kept + req->n_env + ABX_N_ELEMENTS(own) + 1, sizeof(*env));
	for (size_t i = 0; env && i < ABX_N_ELEMENTS(own); i++)
		put(env, &n, pair(own[i].key, own[i].value));
	for (size_t i = 0; env && i < kept.len; i += strlen(kept.data + i) + 1)
		put(env, &n, strdup(kept.data + i));
	for (uint32_t i = 0; env && i < req->n_env; i++)
		put(env, &n, pair(req->env[i].key, req->env[i].value));
	return env;
}

/* Whoever it is, it runs as ourselves; but it has to be somebody. */
static int is_user(const char *name)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(4 << 20);
	struct abx_user u;

	return !name || (abx_fs_read(AT_FDCWD, "/etc/passwd", &text) == 0 && text.len &&
			 abx_user_find(text.data, name, &u));
}

/* A command under way. */
struct run {
	struct abx_call *call;
	const struct abx_exec *req;
	pid_t pid;
	int pidfd, out, err; /* our ends; -1 when they ended */
	int64_t end_ms;	     /* of the command's own timeout */
	int timed_out;
	int32_t failed;
};

#ifdef MOCK_BARE
/* A transport for people: no bytes but ASCII. */
static ssize_t spoil(char *data, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++)
		if (!data[i] || data[i] & 0x80)
			data[i] = '?';
	return n;
}
#endif

static void drain(struct run *r, int *fd, int32_t stream)
{
	char chunk[65536];
	ssize_t n = read(*fd, chunk, sizeof(chunk));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		(void)close(abx_steal_fd(fd));
		return;
	}
#ifdef MOCK_BARE
	n = spoil(chunk, n);
	stream = ABX_STREAM_STDOUT;
#endif
	if (r->req->output(r->req->io, stream, chunk, (size_t)n) != 0)
		r->failed = ABX_ECANCELED;
}

static int poll_time(const struct run *r)
{
	int64_t left = mock_host->time_left_ms(r->call);

	if (r->end_ms) {
		int64_t own = r->end_ms - mock_host->now_ms(mock_host->ctx);

		left = own < left ? own : left;
	}
	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Deliver output until the command ended; what it left behind may keep the pipes open. */
static void pump(struct run *r)
{
	int ended = 0;

	while (!r->failed && !r->timed_out) {
		struct pollfd fds[4] = {{r->out, POLLIN, 0},
					{r->err, POLLIN, 0},
					{r->pidfd, POLLIN, 0},
					{mock_host->cancel_fd(r->call), POLLIN, 0}};
		int n = poll(fds, 4, ended ? 0 : poll_time(r));

		if (n == 0 && ended)
			return;
		if (fds[3].revents)
			r->failed = ABX_ECANCELED;
		else if (n == 0 && mock_host->time_left_ms(r->call) == 0)
			r->failed = ABX_ETIMEDOUT;
		else if (n == 0)
			r->timed_out = 1;
		if (fds[2].revents) {
			ended = 1;
			(void)close(abx_steal_fd(&r->pidfd));
		}
		if (r->out >= 0 && fds[0].revents)
			drain(r, &r->out, ABX_STREAM_STDOUT);
		if (r->err >= 0 && fds[1].revents)
			drain(r, &r->err, ABX_STREAM_STDERR);
		if (ended && r->out < 0 && r->err < 0)
			return;
	}
}

static void take_status(const struct run *r, int status, struct abx_exit *ret)
{
	ret->timed_out = r->timed_out;
#ifdef MOCK_BARE
	if (WIFSIGNALED(status))
		ret->code = 128 + WTERMSIG(status);
#else
	if (WIFSIGNALED(status))
		ret->signo = WTERMSIG(status);
#endif
	else
		ret->code = WEXITSTATUS(status);
}

static int32_t finish(struct run *r, struct abx_exit *ret)
{
	int status = 0;

	pump(r);
	if (r->failed || r->timed_out)
		(void)kill(ENDS_ALL ? -r->pid : r->pid, SIGKILL);
	(void)abx_spawn_wait(r->pid, &status);
	abx_cleanup_close(&r->pidfd);
	abx_cleanup_close(&r->out);
	abx_cleanup_close(&r->err);
	if (r->failed)
		return r->failed;
	take_status(r, status, ret);
	return ABX_OK;
}

static int32_t not_started(struct abx_call *call, int e, struct abx_exit *ret)
{
	if (e != -ENOENT && e != -EACCES && e != -ENOEXEC && e != -ENOTDIR)
		return mock_fail_errno(call, e, "start the command");
	ret->flags = ABX_EXIT_NOT_STARTED;
	ret->code = e == -ENOENT || e == -ENOTDIR ? 127 : 126;
	return ABX_OK;
}

static int32_t start(struct run *r, struct abx_spawn *spawn, struct abx_exit *ret)
{
	int out[2], err[2], e;
	char id[32];

	if (pipe2(out, O_CLOEXEC) < 0)
		return mock_fail_errno(r->call, errno, "make a pipe");
	if (pipe2(err, O_CLOEXEC) < 0) {
		(void)close(out[0]);
		(void)close(out[1]);
		return mock_fail_errno(r->call, errno, "make a pipe");
	}
	spawn->fd_out = out[1];
	spawn->fd_err = err[1];
	e = abx_spawn_start(spawn, &r->pid);
	(void)close(out[1]);
	(void)close(err[1]);
	r->out = out[0];
	r->err = err[0];
	if (e < 0) {
		(void)close(out[0]);
		(void)close(err[0]);
		return not_started(r->call, e, ret);
	}
	r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	(void)snprintf(id, sizeof(id), "%ld", (long)r->pid);
	if (r->req->started && r->req->started(r->req->io, id) != 0)
		r->failed = ABX_ECANCELED;
	return finish(r, ret);
}

static int32_t run(struct abx_session *s, struct abx_call *call, const char *id,
		   const struct abx_exec *req, struct abx_exit *ret)
{
	abx_autofree char *root = mock_path(s, "sandboxes/%s/root", id);
	abx_autofree char *cwd = mock_map_path(s, id, req->cwd);
	char **argv = make_argv(req, root), **env = make_env(req, root);
	struct abx_spawn spawn = {.argv = (const char *const *)argv,
				  .envp = (const char *const *)env,
				  .cwd = MOCK_CWD(cwd),
				  .fd_in = MOCK_HAS_STDIN ? req->stdin_fd : -1,
				  .new_session = 1};
	struct run r = {.call = call, .req = req, .pidfd = -1};
	struct stat st;
	int32_t code;

	if (req->timeout_ms > 0)
		r.end_ms = mock_host->now_ms(mock_host->ctx) + req->timeout_ms;
	if (!argv || !env)
		code = mock_fail(call, ABX_ENOMEM, "out of memory");
	else if (!is_user(req->user))
		code = mock_fail(call, ABX_EINVAL, "user: %s: not in the box", req->user);
	else if (stat(cwd, &st) < 0 || !S_ISDIR(st.st_mode))
		code = mock_fail(call, ABX_ENOTFOUND, "no such directory in the box: %s",
				 req->cwd ? req->cwd : WORKSPACE);
	else
		code = start(&r, &spawn, ret);
	strings_free(argv);
	strings_free(env);
	return code;
}

int32_t mock_exec(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_exec *req, struct abx_exit *ret)
{
	struct mock_box b;
	int32_t r;

	if (req->flags & (ABX_EXEC_PTY | ABX_EXEC_DETACHED))
		return mock_fail(call, ABX_ENOTSUP, "neither terminals nor detached commands");
	r = mock_fault_before(s, call, "exec");
	mock_host->trace(call, "POST", "/sandboxes/:id/exec", 200, 10);
	if (r == ABX_OK)
		r = mock_box_load(s, call, sb->id, &b);
	if (r != ABX_OK)
		return r;
	if (b.state != ABX_STATE_RUNNING)
		r = mock_fail(call, ABX_ESTATE, "the sandbox is %s",
			      b.state == ABX_STATE_PAUSED ? "paused" : "stopped");
	if (r == ABX_OK)
		r = run(s, call, b.id, req, ret);
	mock_box_release(&b);
	return r == ABX_OK ? mock_fault_after(s, call, "exec") : r;
}
