/* SPDX-License-Identifier: MIT */
/* One command, its streams in frames. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "abxsdk/launch.h"
#include "abxsdk/pty.h"
#include "tests/cloud/agent/agent.h"
#include "tests/cloud/agent/frames.h"

#define WORDS_MAX 4096
#define READ_BYTES 32768
#define ENV_OWN 8 /* PATH, HOME, USER, LOGNAME and the end */

struct run {
	struct agent_user user;
	char *argv[WORDS_MAX + 5], *env[WORDS_MAX + ENV_OWN];
	size_t argc, n_env;
	char *user_name, *cwd;
	bool no_stdin, pty, in_over;
	unsigned int rows, cols;
	struct abx_buf in; /* what came and is no whole frame yet */
	struct abx_buf to_cmd;
	size_t to_cmd_at;
	bool end_input;
	int cmd_in, cmd_out, cmd_err; /* the terminal is both of the first two */
	int pidfd;
	pid_t pid;
	int status;
	bool ended;
};

void agent_say(char kind, const void *data, size_t len)
{
	unsigned char head[AGENT_HEAD_BYTES];

	agent_head(head, kind, len);
	if (abx_fs_write_all(STDOUT_FILENO, head, sizeof(head)) < 0 ||
	    abx_fs_write_all(STDOUT_FILENO, data, len) < 0)
		_exit(1);
}

static int say_failure(const char *kind, const char *text)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);

	abx_buf_add(&b, kind, strlen(kind) + 1);
	abx_buf_adds(&b, text);
	agent_say(AGENT_FAIL, b.data, b.len);
	return 0;
}

static void set_size(const struct run *x)
{
	struct winsize w = {.ws_row = (unsigned short)x->rows, .ws_col = (unsigned short)x->cols};

	(void)ioctl(x->cmd_out, TIOCSWINSZ, &w);
}

static char *word(const char *data, size_t len)
{
	char *s = strndup(data, len);

	if (!s)
		_exit(1);
	return s;
}

/* True: go. */
static bool take(struct run *x, char kind, const char *data, size_t len)
{
	const unsigned char *u = (const unsigned char *)data;

	switch (kind) {
	case AGENT_USER:
		x->user_name = word(data, len);
		break;
	case AGENT_CWD:
		x->cwd = word(data, len);
		break;
	case AGENT_ARG:
		if (x->argc < WORDS_MAX)
			x->argv[4 + x->argc++] = word(data, len);
		break;
	case AGENT_ENV:
		if (x->n_env < WORDS_MAX)
			abx_env_put(x->env, &x->n_env, word(data, len));
		break;
	case AGENT_PTY:
	case AGENT_RESIZE:
		x->pty = true;
		if (len == 4) {
			x->rows = (unsigned int)(u[0] << 8 | u[1]);
			x->cols = (unsigned int)(u[2] << 8 | u[3]);
		}
		if (kind == AGENT_RESIZE)
			set_size(x);
		break;
	case AGENT_NO_STDIN:
		x->no_stdin = true;
		break;
	case AGENT_INPUT:
		abx_buf_add(&x->to_cmd, data, len);
		break;
	case AGENT_END_INPUT:
		x->end_input = true;
		break;
	default:
		break;
	}
	return kind == AGENT_GO;
}

/* Take whole frames; true once there was AGENT_GO. */
static bool take_frames(struct run *x)
{
	size_t at = 0;
	bool go = false;

	while (!go && x->in.len - at >= AGENT_HEAD_BYTES) {
		const unsigned char *head = (const unsigned char *)x->in.data + at;
		size_t len = agent_head_len(head);

		if (len > AGENT_FRAME_MAX)
			_exit(1);
		if (x->in.len - at - AGENT_HEAD_BYTES < len)
			break;
		go = take(x, (char)head[0], x->in.data + at + AGENT_HEAD_BYTES, len);
		at += AGENT_HEAD_BYTES + len;
	}
	if (at) {
		memmove(x->in.data, x->in.data + at, x->in.len - at);
		x->in.len -= at;
	}
	return go;
}

/* False at the end. */
static bool read_more(struct run *x)
{
	char *to = abx_buf_reserve(&x->in, READ_BYTES);
	ssize_t n = to ? read(STDIN_FILENO, to, READ_BYTES) : 0;

	if (n > 0)
		abx_buf_commit(&x->in, (size_t)n);
	return n > 0 || (n < 0 && errno == EINTR);
}

static void own_env(struct run *x, const char *key, const char *value)
{
	char *pair = NULL;

	if (abx_env_value(x->env, key))
		return;
	if (asprintf(&pair, "%s=%s", key, value) < 0)
		_exit(1);
	abx_env_put(x->env, &x->n_env, pair);
}

/* NULL, or the kind of what is wrong. */
static const char *prepare(struct run *x, char *text, size_t size)
{
	static char shell[] = "/bin/sh", option[] = "-c", script[] = "exec \"${@}\"", name[] = "--";
	char *const wrapper[] = {shell, option, script, name};
	struct stat st;
	char *path;

	if (!agent_user_find(x->user_name ? x->user_name : "root", &x->user)) {
		(void)snprintf(text, size, "invalid username: '%s'", x->user_name);
		return "unauthenticated";
	}
	path = agent_path(&x->user, x->cwd ? x->cwd : "");
	if (!path || stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
		(void)snprintf(text, size, "cwd '%s' does not exist", path ? path : x->cwd);
		return "invalid_argument";
	}
	x->cwd = path;
	memcpy(x->argv, wrapper, sizeof(wrapper));
	own_env(x, "PATH", ABX_DEFAULT_PATH);
	own_env(x, "HOME", x->user.user.home);
	own_env(x, "USER", x->user.user.name);
	own_env(x, "LOGNAME", x->user.user.name);
	return NULL;
}

static int make_pipe(int p[2])
{
	return pipe2(p, O_CLOEXEC) < 0 ? -errno : 0;
}

static int start(struct run *x)
{
	struct abx_launch *l = abx_child_shared(sizeof(*l));
	struct abx_pty pty = {.slave = -1};
	int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};

	if (!l || abx_launch_prepare(l, x->argv, x->env) < 0)
		return -ENOMEM;
	l->cwd = x->cwd;
	l->user = &x->user.user;
	l->tty = l->fds[0] = l->fds[1] = l->fds[2] = -1;
	if (x->pty) {
		int r = abx_pty_open(&pty, -1, STDOUT_FILENO, x->rows, x->cols);

		if (r < 0)
			return r;
		/* The frames must not get lost. */
		(void)fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) & ~O_NONBLOCK);
		l->tty = pty.slave;
		x->cmd_in = x->cmd_out = pty.master;
	} else {
		if ((!x->no_stdin && make_pipe(in) < 0) || make_pipe(out) < 0 || make_pipe(err) < 0)
			return -errno;
		if (x->no_stdin)
			in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		l->fds[0] = in[0];
		l->fds[1] = out[1];
		l->fds[2] = err[1];
		x->cmd_in = in[1];
		x->cmd_out = out[0];
		x->cmd_err = err[0];
		if (in[1] >= 0)
			(void)fcntl(in[1], F_SETFL, O_NONBLOCK);
	}
	x->pid = abx_child_start(abx_launch_child, l, 0);
	abx_cleanup_close(&pty.slave);
	abx_cleanup_close(&in[0]);
	abx_cleanup_close(&out[1]);
	abx_cleanup_close(&err[1]);
	if (x->pid < 0)
		return -errno;
	if (l->failed_step) {
		(void)waitpid(x->pid, NULL, 0);
		return -l->failed_errno;
	}
	x->pidfd = (int)syscall(SYS_pidfd_open, x->pid, 0);
	return x->pidfd < 0 ? -errno : 0;
}

/* False at its end. */
static bool pass_output(int *fd, char kind)
{
	char b[READ_BYTES];
	ssize_t n = read(*fd, b, sizeof(b));

	if (n > 0)
		agent_say(kind, b, (size_t)n);
	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return n > 0;
	(void)close(*fd);
	*fd = -1;
	return false;
}

static void pass_input(struct run *x)
{
	while (x->cmd_in >= 0 && x->to_cmd_at < x->to_cmd.len) {
		ssize_t n = write(x->cmd_in, x->to_cmd.data + x->to_cmd_at,
				  x->to_cmd.len - x->to_cmd_at);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			x->end_input = true;
			break;
		}
		x->to_cmd_at += (size_t)n;
	}
	abx_buf_reset(&x->to_cmd);
	x->to_cmd_at = 0;
	if (x->end_input && x->cmd_in >= 0 && !x->pty) {
		(void)close(x->cmd_in);
		x->cmd_in = -1;
	}
}

static bool over(const struct run *x)
{
	if (!x->ended)
		return false;
	if (x->cmd_out < 0 && x->cmd_err < 0)
		return true;
	/* Who was sent a signal is not waited for: its children may hold the streams. */
	return WIFSIGNALED(x->status) &&
	       (WTERMSIG(x->status) == SIGKILL || WTERMSIG(x->status) == SIGTERM);
}

static void serve(struct run *x)
{
	while (!over(x)) {
		bool waiting = x->to_cmd.len > 0;
		struct pollfd p[] = {
			{.fd = x->cmd_out, .events = POLLIN},
			{.fd = x->cmd_err, .events = POLLIN},
			{.fd = x->ended ? -1 : x->pidfd, .events = POLLIN},
			{.fd = x->in_over || waiting ? -1 : STDIN_FILENO, .events = POLLIN},
			{.fd = waiting ? x->cmd_in : -1, .events = POLLOUT},
		};

		if (poll(p, ABX_N_ELEMENTS(p), -1) < 0)
			continue;
		if (p[0].revents)
			(void)pass_output(&x->cmd_out, x->pty ? AGENT_SCREEN : AGENT_STDOUT);
		if (p[1].revents)
			(void)pass_output(&x->cmd_err, AGENT_STDERR);
		if (p[3].revents) {
			x->in_over = !read_more(x);
			(void)take_frames(x);
		}
		if (p[4].revents || p[3].revents)
			pass_input(x);
		if (p[2].revents)
			x->ended = waitpid(x->pid, &x->status, WNOHANG) == x->pid;
	}
}

/* What was written before the command was killed. */
static void drain(int *fd, char kind)
{
	if (*fd < 0)
		return;
	(void)fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) | O_NONBLOCK);
	for (int i = 0; i < 64 && *fd >= 0 && pass_output(fd, kind); i++)
		;
}

int agent_run(void)
{
	struct run *x = agent_alloc(1, sizeof(*x));
	char text[512];
	const char *kind;
	int r, n;

	x->in = (struct abx_buf)ABX_BUF_INIT(2 * AGENT_FRAME_MAX);
	x->to_cmd = (struct abx_buf)ABX_BUF_INIT(2 * AGENT_FRAME_MAX);
	x->cmd_in = x->cmd_out = x->cmd_err = -1;
	while (!take_frames(x))
		if (!read_more(x))
			return 1;
	kind = prepare(x, text, sizeof(text));
	if (kind)
		return say_failure(kind, text);
	r = start(x);
	if (r < 0)
		return say_failure("internal", strerror(-r));
	n = snprintf(text, sizeof(text), "%d", (int)x->pid);
	agent_say(AGENT_PID, text, (size_t)n);
	(void)take_frames(x);
	pass_input(x);
	serve(x);
	drain(&x->cmd_out, x->pty ? AGENT_SCREEN : AGENT_STDOUT);
	drain(&x->cmd_err, AGENT_STDERR);
	n = snprintf(text, sizeof(text), "%d %d %d",
		     WIFEXITED(x->status) ? WEXITSTATUS(x->status) : -1,
		     WIFSIGNALED(x->status) ? WTERMSIG(x->status) : 0,
		     WIFSIGNALED(x->status) && WCOREDUMP(x->status));
	agent_say(AGENT_EXIT, text, (size_t)n);
	return 0;
}
