/* SPDX-License-Identifier: MIT */
/*
 * A complete provider in one file: boxes are directories, commands are processes of this
 * machine.  Nothing is isolated: it shows the shape, and is no place for work.
 *
 * A sandbox with the id ID is the directory STATE/ID: `labels` has a line `key=value` for
 * each label, `stopped` is there while it is stopped, `root` is what commands see as their
 * world, with root/workspace as the project.
 */
#define _GNU_SOURCE

#include <agentbox/cloud_backend.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_LABELS 64

extern char **environ;

static const struct abx_host *host; /* valid for ever once init() was called */

struct abx_session {
	char dir[3072]; /* the state directory: private to us, made by the host */
};

/* Every failure says why, once, where it is known; the code is what the operation returns. */
__attribute__((format(printf, 3, 4))) static int32_t fail(struct abx_call *call, int32_t code,
							  const char *fmt, ...)
{
	char text[512];
	struct abx_failure f = {ABX_INIT(struct abx_failure), .code = code, .retry_after_ms = -1,
				.text = text};
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return host->fail(call, &f);
}

static int32_t fail_errno(struct abx_call *call, const char *what)
{
	return fail(call, errno == ENOENT ? ABX_ENOTFOUND : ABX_EIO, "%s: %s", what,
		    strerror(errno));
}

/* Ids come from us, but also from whoever types them: never a path of its own. */
static int path_of(const struct abx_session *s, const char *id, const char *rest, char path[4096])
{
	if (!id || strncmp(id, "ex-", 3) != 0 || strchr(id, '/') || strlen(id) > 64)
		return -1;
	return snprintf(path, 4096, "%s/%s%s", s->dir, id, rest) < 4096 ? 0 : -1;
}

static int exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

static int32_t find(struct abx_session *s, struct abx_call *call, const char *id, char path[4096])
{
	if (path_of(s, id, "/labels", path) < 0 || !exists(path))
		return fail(call, ABX_ENOTFOUND, "no such sandbox: %s", id ? id : "");
	return ABX_OK;
}

/* Emitting a result hands it to the host, which copies it before it returns. */
static int32_t emit(struct abx_session *s, struct abx_call *call, const char *id,
		    const struct abx_list_req *wanted)
{
	char path[4096], text[16384], *at = text, *line;
	struct abx_kv labels[MAX_LABELS];
	struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id, .labels = labels,
				 .account = "this machine"};
	int32_t r = find(s, call, id, path);
	FILE *f = r == ABX_OK ? fopen(path, "re") : NULL;
	size_t len;

	if (!f)
		return r == ABX_OK ? fail_errno(call, "read the labels") : r;
	len = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[len] = '\0';
	while ((line = strsep(&at, "\n")) && sb.n_labels < MAX_LABELS) {
		char *value = strchr(line, '=');

		if (!value)
			continue;
		*value++ = '\0';
		labels[sb.n_labels].key = line;
		labels[sb.n_labels++].value = value;
	}
	for (uint32_t i = 0; wanted && i < wanted->n_labels; i++) {
		uint32_t k = 0;

		while (k < sb.n_labels && (strcmp(labels[k].key, wanted->labels[i].key) != 0 ||
					   strcmp(labels[k].value, wanted->labels[i].value) != 0))
			k++;
		if (k == sb.n_labels)
			return ABX_OK;
	}
	if (path_of(s, id, "/stopped", path) < 0)
		return ABX_EINTERNAL;
	sb.state = exists(path) ? ABX_STATE_STOPPED : ABX_STATE_RUNNING;
	return host->emit_sandbox(call, &sb);
}

static int write_labels(const char *path, const struct abx_provision *req)
{
	FILE *f = fopen(path, "wxe");
	int bad;

	if (!f)
		return -1;
	for (uint32_t i = 0; i < req->n_labels; i++)
		(void)fprintf(f, "%s=%s\n", req->labels[i].key, req->labels[i].value);
	bad = ferror(f);
	return fclose(f) != 0 || bad ? -1 : 0;
}

/*
 * The labels make it findable, so they are written last here and would be part of the
 * request in a cloud.  What a cloud makes beside the sandbox (a key, a volume) is announced
 * with host->emit_resource() before it exists and confirmed afterwards.
 */
static int32_t op_provision(struct abx_session *s, struct abx_call *call,
			    const struct abx_provision *req)
{
	static const char *const dirs[] = {"", "/root", "/root/workspace", "/root/tmp"};
	char id[64], path[4096];

	if (!req->idempotency_key)
		return fail(call, ABX_EINVAL, "no idempotency key");
	(void)snprintf(id, sizeof(id), "ex-%.32s", req->idempotency_key);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (path_of(s, id, dirs[i], path) < 0 || mkdir(path, 0700) < 0)
			return fail_errno(call, "make the sandbox");
	if (path_of(s, id, "/labels", path) < 0 || write_labels(path, req) < 0)
		return fail_errno(call, "write the labels");
	return emit(s, call, id, NULL);
}

static int32_t op_get(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	return emit(s, call, sb->id, NULL);
}

static int32_t op_list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	DIR *dir = opendir(s->dir);
	struct dirent *e;
	int32_t r = ABX_OK;

	if (!dir)
		return fail_errno(call, "read the state directory");
	while (r == ABX_OK && (e = readdir(dir))) {
		char path[4096];

		/* One without labels is being made or removed. */
		if (path_of(s, e->d_name, "/labels", path) == 0 && exists(path))
			r = emit(s, call, e->d_name, req);
	}
	closedir(dir);
	return r;
}

static int32_t op_start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const struct abx_start_req *req)
{
	char path[4096];
	int32_t r = find(s, call, sb->id, path);

	(void)req;
	if (r != ABX_OK)
		return r;
	path_of(s, sb->id, "/stopped", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return fail_errno(call, "start it");
	return emit(s, call, sb->id, NULL);
}

static int32_t op_stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_stop_req *req)
{
	char path[4096];
	int32_t r = find(s, call, sb->id, path);
	int fd;

	(void)req;
	if (r != ABX_OK)
		return r;
	path_of(s, sb->id, "/stopped", path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || close(fd) < 0)
		return fail_errno(call, "stop it");
	return emit(s, call, sb->id, NULL);
}

/* A command under way: pipes to read, and what ends it early. */
struct running {
	struct abx_call *call;
	const struct abx_exec *req;
	pid_t pid;
	int fds[2];
	int64_t end_ms; /* of its own timeout; 0 = none */
	int timed_out;
};

static int32_t read_some(struct running *r, int i)
{
	char chunk[65536];
	ssize_t n = read(r->fds[i], chunk, sizeof(chunk));

	if (n > 0)
		return r->req->output(r->req->io, i ? ABX_STREAM_STDERR : ABX_STREAM_STDOUT, chunk,
				      (size_t)n)
			       ? ABX_ECANCELED
			       : ABX_OK;
	if (n < 0 && errno == EINTR)
		return ABX_OK;
	close(r->fds[i]);
	r->fds[i] = -1;
	return ABX_OK;
}

/* The host's cancel descriptor is in every poll(), its deadline bounds every wait. */
static int32_t pump(struct running *r)
{
	int32_t code = ABX_OK;

	while (code == ABX_OK && !r->timed_out && (r->fds[0] >= 0 || r->fds[1] >= 0)) {
		struct pollfd p[3] = {{r->fds[0], POLLIN, 0},
				      {r->fds[1], POLLIN, 0},
				      {host->cancel_fd(r->call), POLLIN, 0}};
		int64_t wait = host->time_left_ms(r->call), now = host->now_ms(host->ctx);

		if (wait == 0)
			return ABX_ETIMEDOUT;
		if (r->end_ms && r->end_ms - now < wait)
			wait = r->end_ms > now ? r->end_ms - now : 0;
		if (poll(p, 3, wait > 60000 ? 60000 : (int)wait) < 0 && errno != EINTR)
			return ABX_EIO;
		if (p[2].revents)
			return ABX_ECANCELED;
		if (r->end_ms && host->now_ms(host->ctx) >= r->end_ms)
			r->timed_out = 1;
		for (int i = 0; i < 2 && code == ABX_OK; i++)
			if (r->fds[i] >= 0 && p[i].revents)
				code = read_some(r, i);
	}
	return code;
}

static void free_env(char **env)
{
	for (size_t i = 0; env && env[i]; i++)
		free(env[i]);
	free(env);
}

/* What every command in a box finds, then what this one was given, which wins. */
static char **make_env(const struct abx_exec *req, const char *home)
{
	const char *path = getenv("PATH");
	const struct abx_kv own[] = {{"PATH", path ? path : "/usr/bin:/bin"}, {"HOME", home}};
	const uint32_t n_own = (uint32_t)(sizeof(own) / sizeof(own[0]));
	char **env = calloc(req->n_env + n_own + 1, sizeof(*env));

	for (uint32_t i = 0; env && i < req->n_env + n_own; i++) {
		const struct abx_kv *kv = i < req->n_env ? &req->env[i] : &own[i - req->n_env];
		const char *key = kv->key, *value = kv->value;

		if (asprintf(&env[i], "%s=%s", key, value) >= 0)
			continue;
		env[i] = NULL;
		free_env(env);
		return NULL;
	}
	return env;
}

/* posix_spawn, a session of its own so that its tree can be ended, no shell anywhere. */
static int spawn(const struct abx_exec *req, const char *cwd, const char *home, const int out[2],
		 const int err[2], pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none, all;
	char **env = make_env(req, home);
	int e;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	if (req->stdin_fd >= 0)
		posix_spawn_file_actions_adddup2(&fa, req->stdin_fd, 0);
	else
		posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, out[1], 1);
	posix_spawn_file_actions_adddup2(&fa, err[1], 2);
	posix_spawn_file_actions_addchdir_np(&fa, cwd);
	e = env ? posix_spawnp(pid, req->argv[0], &fa, &attr, (char *const *)req->argv, env)
		: ENOMEM;
	free_env(env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&fa);
	return e;
}

static int32_t finish(struct running *r, struct abx_exit *ret)
{
	int32_t code = pump(r);
	int status = 0;

	if (code != ABX_OK || r->timed_out)
		kill(-r->pid, SIGKILL);
	while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
		;
	for (int i = 0; i < 2; i++)
		if (r->fds[i] >= 0)
			close(r->fds[i]);
	ret->timed_out = r->timed_out;
	if (WIFSIGNALED(status))
		ret->signo = WTERMSIG(status);
	else
		ret->code = WEXITSTATUS(status);
	return code;
}

static int32_t run(struct abx_call *call, const struct abx_exec *req, const char *cwd,
		   const char *home, struct abx_exit *ret)
{
	struct running r = {.call = call, .req = req};
	int out[2], err[2], e;

	if (pipe2(out, O_CLOEXEC) < 0)
		return fail_errno(call, "make a pipe");
	if (pipe2(err, O_CLOEXEC) < 0) {
		close(out[0]);
		close(out[1]);
		return fail_errno(call, "make a pipe");
	}
	if (req->timeout_ms > 0)
		r.end_ms = host->now_ms(host->ctx) + req->timeout_ms;
	e = spawn(req, cwd, home, out, err, &r.pid);
	close(out[1]);
	close(err[1]);
	r.fds[0] = out[0];
	r.fds[1] = err[0];
	if (e == 0)
		return finish(&r, ret);
	close(out[0]);
	close(err[0]);
	if (e != ENOENT && e != EACCES)
		return fail(call, ABX_EIO, "start the command: %s", strerror(e));
	/* As a shell would say it. */
	ret->flags = ABX_EXIT_NOT_STARTED;
	ret->code = e == ENOENT ? 127 : 126;
	return ABX_OK;
}

/* Where a path of the box is on this machine. */
static int32_t map(struct abx_session *s, struct abx_call *call, const char *id, const char *path,
		   char to[4096])
{
	char rest[3500], stopped[4096];
	int32_t r = find(s, call, id, to);

	if (r != ABX_OK)
		return r;
	if (path_of(s, id, "/stopped", stopped) < 0 || exists(stopped))
		return fail(call, ABX_ESTATE, "the sandbox is stopped");
	if (snprintf(rest, sizeof(rest), "/root%s%s", path[0] == '/' ? "" : "/workspace/", path) >=
		    (int)sizeof(rest) ||
	    path_of(s, id, rest, to) < 0)
		return fail(call, ABX_EINVAL, "the path is too long");
	return ABX_OK;
}

static int32_t op_exec(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_exec *req, struct abx_exit *ret)
{
	char cwd[4096], home[4096];
	int32_t r = map(s, call, sb->id, req->cwd ? req->cwd : "/workspace", cwd);

	if (r == ABX_OK)
		r = map(s, call, sb->id, "/", home);
	if (r != ABX_OK)
		return r;
	if (req->flags & (ABX_EXEC_PTY | ABX_EXEC_DETACHED))
		return fail(call, ABX_ENOTSUP, "neither terminals nor detached commands");
	if (!exists(cwd))
		return fail(call, ABX_ENOTFOUND, "no such directory in the box: %s",
			    req->cwd ? req->cwd : "/workspace");
	return run(call, req, cwd, home, ret);
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* size -1: to the end.  A pipe may never give anything, so cancel is watched here too. */
static int32_t copy(struct abx_call *call, int from, int to, int64_t size)
{
	char chunk[65536];

	while (size != 0) {
		struct pollfd p[2] = {{from, POLLIN, 0}, {host->cancel_fd(call), POLLIN, 0}};
		size_t want =
			size > 0 && size < (int64_t)sizeof(chunk) ? (size_t)size : sizeof(chunk);
		ssize_t n;

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents)
			return ABX_ECANCELED;
		n = read(from, chunk, want);
		if (n < 0 || (n > 0 && write_all(to, chunk, (size_t)n) < 0))
			return fail_errno(call, "copy");
		if (n == 0)
			return size > 0 ? fail(call, ABX_EINVAL, "the stream ended early") : ABX_OK;
		size -= size > 0 ? n : 0;
	}
	return ABX_OK;
}

static void make_parents(char *path)
{
	for (char *at = strstr(path, "/root/") + 6; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
}

static int32_t op_upload(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			 const struct abx_transfer *req)
{
	char path[4096];
	int32_t r = map(s, call, sb->id, req->path, path);
	int fd;

	if (r != ABX_OK)
		return r;
	if (req->flags & ABX_XFER_CREATE_PARENTS)
		make_parents(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(call, "open the file");
	r = copy(call, req->fd, fd, req->size_bytes);
	if (r == ABX_OK && fchmod(fd, req->mode ? req->mode & 07777 : 0644) < 0)
		r = fail_errno(call, "set the mode");
	if (close(fd) < 0 && r == ABX_OK)
		r = fail_errno(call, "write the file");
	return r;
}

static int32_t op_download(struct abx_session *s, struct abx_call *call,
			   const struct abx_sandbox *sb, const struct abx_transfer *req)
{
	char path[4096];
	int32_t r = map(s, call, sb->id, req->path, path);
	int fd;

	if (r != ABX_OK)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(call, "open the file");
	r = copy(call, fd, req->fd, -1);
	close(fd);
	return r;
}

/* Quiet output for commands of our own. */
static int32_t ignore(void *io, int32_t stream, const void *data, size_t len)
{
	(void)io;
	(void)stream;
	(void)data;
	(void)len;
	return 0;
}

/* `tar` writes a tree to the descriptor that the host gave. */
static int32_t to_fd(void *io, int32_t stream, const void *data, size_t len)
{
	return stream == ABX_STREAM_STDOUT && write_all(*(int *)io, data, len) < 0;
}

static int32_t run_tar(struct abx_call *call, const struct abx_exec *req)
{
	struct abx_exit e = {.struct_size = sizeof(e)};
	int32_t r = run(call, req, "/", "/", &e);

	if (r == ABX_OK && (e.code || e.signo))
		r = fail(call, ABX_EIO, "tar ended with %d", e.signo ? 128 + e.signo : e.code);
	return r;
}

/*
 * Optional operations are there or they are not.  Without these two the host runs `tar` in
 * the box, which sees other paths than we do here.
 */
static int32_t op_put_tar(struct abx_session *s, struct abx_call *call,
			  const struct abx_sandbox *sb, const struct abx_transfer *req)
{
	char path[4096];
	const char *const argv[] = {"tar", "-x", "-p", "-o", "-C", path, "-f", "-", NULL};
	const struct abx_exec tar = {ABX_INIT(struct abx_exec), .argv = argv, .stdin_fd = req->fd,
				     .control_fd = -1, .output = ignore};
	int32_t r = map(s, call, sb->id, req->path, path);

	if (r != ABX_OK)
		return r;
	if (req->flags & ABX_XFER_CREATE_PARENTS) {
		make_parents(path);
		mkdir(path, 0755);
	}
	return run_tar(call, &tar);
}

static int32_t op_get_tar(struct abx_session *s, struct abx_call *call,
			  const struct abx_sandbox *sb, const struct abx_transfer *req)
{
	char path[4096], *name = NULL;
	int fd = req->fd;
	const char *argv[] = {"tar", "-c", "-f", "-", "-C", path, "--", ".", NULL};
	const struct abx_exec tar = {ABX_INIT(struct abx_exec), .argv = argv, .stdin_fd = -1,
				     .control_fd = -1,		.io = &fd,    .output = to_fd};
	struct stat st;
	int32_t r = map(s, call, sb->id, req->path, path);

	if (r != ABX_OK)
		return r;
	if (lstat(path, &st) < 0)
		return fail_errno(call, "find the path");
	/* A directory means its contents, anything else itself. */
	if (!S_ISDIR(st.st_mode)) {
		name = strrchr(path, '/');
		*name++ = '\0';
		argv[7] = name;
	}
	return run_tar(call, &tar);
}

/* The labels go last: while anything is left, the sandbox can be found and destroyed again.
 * That a sandbox is not there is success. */
static int32_t op_destroy(struct abx_session *s, struct abx_call *call,
			  const struct abx_sandbox *sb, const struct abx_stop_req *req)
{
	char root[4096], path[4096];
	const char *const argv[] = {"rm", "-rf", "--", root, NULL};
	const struct abx_exec rm = {ABX_INIT(struct abx_exec), .argv = argv, .stdin_fd = -1,
				    .control_fd = -1, .output = ignore};
	struct abx_exit e = {.struct_size = sizeof(e)};
	int32_t r;

	(void)req;
	if (path_of(s, sb->id, "/root", root) < 0 || path_of(s, sb->id, "/labels", path) < 0 ||
	    !exists(path))
		return ABX_OK;
	r = run(call, &rm, "/", "/", &e);
	if (r == ABX_OK && e.code != 0)
		r = fail(call, ABX_EIO, "rm ended with %d", e.code);
	if (r != ABX_OK)
		return r;
	path_of(s, sb->id, "/stopped", path);
	unlink(path);
	path_of(s, sb->id, "/labels", path);
	unlink(path);
	path_of(s, sb->id, "", path);
	return rmdir(path) < 0 ? fail_errno(call, "remove the sandbox") : ABX_OK;
}

static int32_t op_init(const struct abx_host *h)
{
	host = h;
	return ABX_OK;
}

static int32_t op_session_open(struct abx_call *call, const struct abx_session_args *args,
			       struct abx_session **ret)
{
	struct abx_session *s = calloc(1, sizeof(*s));

	if (!s)
		return fail(call, ABX_ENOMEM, "out of memory");
	if (snprintf(s->dir, sizeof(s->dir), "%s", args->state_dir) >= (int)sizeof(s->dir)) {
		free(s);
		return fail(call, ABX_EINVAL, "the state directory's path is too long");
	}
	*ret = s;
	return ABX_OK;
}

static void op_session_close(struct abx_session *s)
{
	free(s);
}

static const struct abx_cloud_backend backend = {
	ABX_BACKEND_PREFIX("example", "1.0.0"),
	.summary = "Directories and processes of this machine, without isolation",
	.caps = ABX_CAP_EXEC_STDIN | ABX_CAP_EXEC_SPLIT | ABX_CAP_EXEC_BINARY |
		ABX_CAP_EXEC_SIGNAL | ABX_CAP_EXEC_TREE_KILL | ABX_CAP_LOCAL,
	.thread_model = ABX_THREADS_PARALLEL,
	.init = op_init,
	.session_open = op_session_open,
	.session_close = op_session_close,
	.provision = op_provision,
	.get = op_get,
	.list = op_list,
	.start = op_start,
	.stop = op_stop,
	.destroy = op_destroy,
	.exec = op_exec,
	.upload = op_upload,
	.download = op_download,
	.put_tar = op_put_tar,
	.get_tar = op_get_tar,
};

ABX_PROVIDER_NOTE("example", "1.0.0");

const struct abx_cloud_backend *agentbox_cloud_backend(void)
{
	return &backend;
}
