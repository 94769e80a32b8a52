/* SPDX-License-Identifier: MIT */
/* Running this machine's git on a repository without touching it. */
#include "core/seed/git.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "abxsdk/fs.h"
#include "abxsdk/spawn.h"
#include "core/util/parse.h"

#define MAX_ARGS 80
#define STDERR_MAX (256 * 1024)
#define STDERR_RESERVED 4096

extern char **environ;

/* Settings that people pass by the environment; every other GIT_* is about one process. */
static bool is_kept(const char *assignment)
{
	static const char *const kept[] = {
		"GIT_CONFIG_GLOBAL=", "GIT_CONFIG_SYSTEM=", "GIT_CONFIG_NOSYSTEM=",
		"GIT_CONFIG_COUNT=",  "GIT_CONFIG_KEY_",    "GIT_CONFIG_VALUE_",
		"GIT_EXEC_PATH="};

	if (strncmp(assignment, "GIT_", 4) != 0)
		return strncmp(assignment, "LC_ALL=", 7) != 0;
	for (size_t i = 0; i < ABX_N_ELEMENTS(kept); i++)
		if (strncmp(assignment, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

void abx_git_init(struct abx_git *g, const char *dir, const char *spool)
{
	memset(g, 0, sizeof(*g));
	g->dir = dir;
	g->spool = spool;
	abx_quote_text(dir, g->shown, sizeof(g->shown));
	for (char **e = environ; *e; e++)
		if (is_kept(*e))
			abx_strv_add(&g->env, *e);
	abx_git_setenv(g, "LC_ALL=C");
	abx_git_setenv(g, "GIT_OPTIONAL_LOCKS=0");
	abx_git_setenv(g, "GIT_TERMINAL_PROMPT=0");
	abx_git_setenv(g, "GIT_NO_LAZY_FETCH=1");
	/* Older versions fetch missing objects all the same: no transport is allowed. */
	abx_git_setenv(g, "GIT_ALLOW_PROTOCOL=none");
}

void abx_git_release(struct abx_git *g)
{
	abx_strv_release(&g->env);
}

void abx_git_setenv(struct abx_git *g, const char *assignment)
{
	abx_strv_add(&g->env, assignment);
}

int abx_spool_bytes(const char *dir, const void *data, size_t len)
{
	int fd = abx_fs_open_scratch(dir), r;

	if (fd < 0)
		return fd;
	r = abx_fs_write_all(fd, data, len);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		return fd;
	(void)close(fd);
	return r;
}

void abx_last_line(const char *text, char *line, size_t size)
{
	static const char *const prefixes[] = {"fatal: ", "error: "};
	const char *end = text + strlen(text), *at;
	abx_autofree char *copy = NULL;

	while (end > text && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
		end--;
	for (at = end; at > text && at[-1] != '\n'; at--)
		;
	for (size_t i = 0; i < ABX_N_ELEMENTS(prefixes); i++)
		if (strncmp(at, prefixes[i], strlen(prefixes[i])) == 0)
			at += strlen(prefixes[i]);
	copy = abx_xstrndup(at, (size_t)(end - at));
	abx_show_text(*copy ? copy : "no reason given", line, size);
}

static int open_output(const struct abx_git *g, unsigned int flags, struct abx_git_job *job,
		       int *ret_theirs)
{
	int pair[2], r;

	job->err_fd = abx_fs_open_scratch(g->spool);
	if (job->err_fd < 0)
		return job->err_fd;
	/* Where git fills the disk, it can still say so. */
	r = posix_fallocate(job->err_fd, 0, STDERR_RESERVED);
	if (r)
		return -r;
	if (!(flags & ABX_GIT_PIPE)) {
		job->out_fd = *ret_theirs = abx_fs_open_scratch(g->spool);
		return job->out_fd < 0 ? job->out_fd : 0;
	}
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	job->out_fd = pair[0];
	*ret_theirs = pair[1];
	job->pipe = true;
	return 0;
}

static void close_job(struct abx_git_job *job)
{
	if (job->out_fd >= 0)
		(void)close(job->out_fd);
	if (job->err_fd >= 0)
		(void)close(job->err_fd);
	job->out_fd = job->err_fd = -1;
	job->pid = 0;
}

static int fail_start(const struct abx_git *g, const char *what, int r, struct abx_err *err)
{
	if (r != -ENOENT)
		return abx_err_errno(err, -r, "git %s: in '%s'", what, g->shown);
	(void)abx_err_set(err, ABX_ENOTFOUND, "git: not found: '%s' is a repository", g->shown);
	return abx_err_remedy(err, "install git on this machine");
}

/* The command, behind settings. */
static const char *command_of(const char *const *args)
{
	while (args[0] && args[1] && strcmp(args[0], "-c") == 0)
		args += 2;
	return args[0] ? args[0] : "";
}

int abx_git_start_fd(const struct abx_git *g, const char *const *args, int in_fd,
		     unsigned int flags, struct abx_git_job *ret, struct abx_err *err)
{
	/* The untracked cache is read when it is there and neither made nor dropped.  Git LFS
	 * keeps a copy of what it is asked about: not in the repository. */
	abx_autofree char *lfs = abx_xasprintf("lfs.storage=%s/lfs", g->spool);
	const char *argv[MAX_ARGS + 16] = {"git",
					   "-c",
					   "core.fsmonitor=false",
					   "-c",
					   "core.untrackedCache=keep",
					   "-c",
					   "gc.auto=0",
					   "-c",
					   lfs};
	struct abx_git_job job = ABX_GIT_JOB_INIT;
	int theirs = -1, r;
	size_t n = 9;

	for (size_t i = 0; args[i] && i < MAX_ARGS; i++)
		argv[n++] = args[i];
	(void)snprintf(job.what, sizeof(job.what), "%s", command_of(args));
	job.dir = g->shown;
	r = open_output(g, flags, &job, &theirs);
	if (r == 0) {
		const struct abx_spawn s = {.argv = argv,
					    .envp = (const char *const *)g->env.items,
					    .cwd = g->dir,
					    .fd_in = in_fd,
					    .fd_out = theirs,
					    .fd_err = job.err_fd,
					    /* Without a terminal nothing can ask, and a
					     * Ctrl-C is for us: we end it if need be. */
					    .new_session = 1};

		r = abx_spawn_start(&s, &job.pid);
	}
	if (job.pipe && theirs >= 0)
		(void)close(theirs);
	if (r < 0) {
		close_job(&job);
		return fail_start(g, job.what, r, err);
	}
	*ret = job;
	return 0;
}

int abx_git_start(const struct abx_git *g, const char *const *args, const struct abx_buf *in,
		  unsigned int flags, struct abx_git_job *ret, struct abx_err *err)
{
	abx_autoclose int in_fd = -1;

	if (in) {
		in_fd = abx_spool_bytes(g->spool, abx_buf_str(in), in->len);
		if (in_fd < 0)
			return fail_start(g, command_of(args), in_fd, err);
	}
	return abx_git_start_fd(g, args, in_fd, flags, ret, err);
}

/* The first level only compresses twice as fast as the usual one and costs a tenth of size;
 * deltas that exist are taken over, new ones are not looked for.  The pack lives for seconds:
 * it need not reach the disk. */
int abx_git_start_pack(const struct abx_git *g, const char *const *more, const struct abx_buf *in,
		       const char *base, struct abx_git_job *ret, struct abx_err *err)
{
	static const char *const first[] = {"-c",
					    "pack.compression=1",
					    "-c",
					    "pack.packSizeLimit=0",
					    "-c",
					    "pack.writeReverseIndex=false",
					    "-c",
					    "core.fsync=none",
					    "pack-objects",
					    "--revs",
					    "--delta-base-offset",
					    "--window=0",
					    "-q"};
	const char *args[MAX_ARGS + 1] = {NULL};
	size_t n = ABX_N_ELEMENTS(first);

	memcpy(args, first, sizeof(first));
	while (*more)
		args[n++] = *more++;
	args[n] = base;
	return abx_git_start(g, args, in, ABX_GIT_PIPE, ret, err);
}

static int read_back(const struct abx_git_job *job, int fd, struct abx_buf *b)
{
	const bool is_pipe = job->pipe && fd == job->out_fd;

	if (!is_pipe && lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return abx_buf_read_fd(b, fd);
}

static int refused_by_git(const struct abx_git_job *job, const char *text, struct abx_err *err)
{
	char line[300];

	if (strstr(text, "dubious ownership")) {
		(void)abx_err_set(err, ABX_EPERM,
				  "git: '%s' belongs to another user, and git does not trust it",
				  job->dir);
		return abx_err_remedy(err, "git config --global --add safe.directory '%s'",
				      job->dir);
	}
	if (strstr(text, "Out of diskspace") || strstr(text, "No space left on device")) {
		(void)abx_err_set(err, ABX_EIO, "git %s: in '%s': No space left on device",
				  job->what, job->dir);
		return abx_err_remedy(err, "make room on the disk of AGENTBOX_HOME");
	}
	abx_last_line(text, line, sizeof(line));
	return abx_err_set(err, ABX_EIO, "git %s: in '%s': %s", job->what, job->dir, line);
}

int abx_git_finish_warned(struct abx_git_job *job, struct abx_buf *out, struct abx_buf *warnings,
			  struct abx_err *err)
{
	int status = 0, r;

	/* A pipe must be emptied before its writer can end. */
	r = out && job->pipe ? read_back(job, job->out_fd, out) : 0;
	if (r == 0)
		r = abx_spawn_wait(job->pid, &status);
	else
		(void)kill(job->pid, SIGKILL), (void)abx_spawn_wait(job->pid, &status);
	if (r == 0)
		r = read_back(job, job->err_fd, warnings);
	if (r == 0 && out && !job->pipe && status == 0)
		r = read_back(job, job->out_fd, out);
	if (r < 0)
		r = abx_err_errno(err, -r, "git %s: in '%s'", job->what, job->dir);
	else if (WIFSIGNALED(status))
		r = abx_err_set(err, ABX_EIO, "git %s: in '%s': ended by signal %d", job->what,
				job->dir, WTERMSIG(status));
	else if (status)
		r = refused_by_git(job, abx_buf_str(warnings), err);
	close_job(job);
	return r;
}

int abx_git_finish(struct abx_git_job *job, struct abx_buf *out, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf warnings = ABX_BUF_INIT(STDERR_MAX);

	return abx_git_finish_warned(job, out, &warnings, err);
}

int abx_git_run(const struct abx_git *g, const char *const *args, const struct abx_buf *in,
		struct abx_buf *out, struct abx_err *err)
{
	struct abx_git_job job = ABX_GIT_JOB_INIT;
	const int r = abx_git_start(g, args, in, 0, &job, err);

	return r < 0 ? r : abx_git_finish(&job, out, err);
}

void abx_git_abandon(struct abx_git_job *job)
{
	int status;

	if (job->pid <= 0)
		return;
	(void)kill(job->pid, SIGKILL);
	(void)abx_spawn_wait(job->pid, &status);
	close_job(job);
}
