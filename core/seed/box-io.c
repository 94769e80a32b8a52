/* SPDX-License-Identifier: MIT */
/* What seeding needs of a box. */
#include "core/seed/box-io.h"

#include <string.h>

#include "core/seed/git.h"
#include "core/seed/seed-script.h"
#include "core/util/mem.h"

#define DIR_ARG 4 /* behind /bin/sh -c TEXT sh */
#define STDERR_KEPT ((size_t)256 * 1024)

static int cloud_put_stream(void *ctx, const char *path, abx_stream_fn produce, void *produce_ctx,
			    struct abx_err *err)
{
	const struct abx_box_of_cloud *b = ctx;

	return abx_cloud_put_stream(b->cloud, b->opts, b->sandbox, path, produce, produce_ctx, err);
}

static int cloud_exec(void *ctx, const struct abx_exec *req, struct abx_exit *ret,
		      struct abx_err *err)
{
	/* Looking for it takes as long as all else in a script of git's. */
	static const struct abx_kv look[] = {{"AGENTBOX_MOUNTS", "1"}};
	const struct abx_box_of_cloud *b = ctx;
	abx_autofree const char **argv = NULL;
	struct abx_exec in_dir = *req;
	size_t n = 0;

	while (req->argv[n])
		n++;
	argv = abx_xcalloc(n + 1, sizeof(*argv));
	memcpy(argv, req->argv, n * sizeof(*argv));
	/* The provider finds the directory; a box need not have it under that very path. */
	in_dir.cwd = argv[DIR_ARG];
	argv[DIR_ARG] = ".";
	in_dir.argv = argv;
	if (b->opts && b->opts->has_mounts) {
		in_dir.env = look;
		in_dir.n_env = ABX_N_ELEMENTS(look);
	}
	return abx_cloud_exec(b->cloud, b->opts, b->sandbox, &in_dir, ret, err);
}

struct abx_box_io abx_box_io_of_cloud(struct abx_box_of_cloud *box)
{
	const struct abx_box_io io = {
		.ctx = box, .put_stream = cloud_put_stream, .exec = cloud_exec};

	return io;
}

struct run {
	const struct abx_box_script *script;
	struct abx_buf *said;
	int stopped; /* what the script's reader returned */
};

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct run *run = io;

	if (stream != ABX_STREAM_STDOUT) {
		/* What is beyond the bound is the noise before the reason, or after it. */
		if (run->said->len + len <= STDERR_KEPT)
			abx_buf_add(run->said, data, len);
		return 0;
	}
	if (!run->stopped && run->script->output)
		run->stopped = run->script->output(run->script->ctx, data, len);
	return run->stopped;
}

static const char **script_argv(const struct abx_box_script *script)
{
	const char **argv;
	size_t n = 0;

	while (script->args[n])
		n++;
	argv = abx_xcalloc(DIR_ARG + n + 1, sizeof(*argv));
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = script->text;
	argv[3] = "sh";
	memcpy(argv + DIR_ARG, script->args, n * sizeof(*argv));
	return argv;
}

int abx_box_run(const struct abx_box_io *io, const struct abx_box_script *script, int *ret_code,
		struct abx_buf *ret_stderr, struct abx_err *err)
{
	abx_autofree const char **argv = script_argv(script);
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(STDERR_KEPT);
	struct run run = {script, &said, 0};
	struct abx_exec req = {
		ABX_INIT(struct abx_exec),    .flags = ABX_EXEC_OFFLINE, .argv = argv,
		.stdin_fd = script->stdin_fd, .control_fd = -1,		 .io = &run,
		.output = on_output};
	struct abx_exit end = {ABX_INIT(struct abx_exit)};
	struct abx_err exec_err = ABX_ERR_INIT;
	int r;

	r = io->exec(io->ctx, &req, &end, &exec_err);
	/* Whoever read the output has said why; that the exec was cut short follows from it. */
	if (run.stopped < 0)
		return run.stopped;
	if (r < 0) {
		if (err)
			*err = exec_err;
		return r;
	}
	if (end.flags & ABX_EXIT_NOT_STARTED) {
		(void)abx_err_set(err, ABX_ENOTSUP, "%s: %s", script->what,
				  exec_err.code ? exec_err.text
						: "/bin/sh does not run in the box");
		return abx_err_remedy(err, "a box needs a root file system with /bin/sh");
	}
	if (end.signo)
		return abx_err_set(err, ABX_EREMOTE, "%s: the script in the box ended by signal %d",
				   script->what, (int)end.signo);
	if (end.flags & ABX_EXIT_LOST)
		return abx_err_set(err, ABX_EREMOTE, "%s: the script in the box was lost",
				   script->what);
	*ret_code = end.code;
	if (ret_stderr)
		abx_buf_add(ret_stderr, abx_buf_str(&said), said.len);
	return 0;
}

int abx_box_script_error(const char *what, int code, const struct abx_buf *stderr_text,
			 struct abx_err *err)
{
	const char *text = stderr_text ? abx_buf_str(stderr_text) : "";
	const char *full = abx_text_of_full_disk(text);
	char line[300];

	switch (code) {
	case ABX_SCRIPT_NO_GIT:
		(void)abx_err_set(err, ABX_ENOTSUP, "%s: there is no git in the box", what);
		return abx_err_remedy(err, "use an image or base that has git");
	case ABX_SCRIPT_DIFFERS:
		(void)abx_err_set(err, ABX_ESTATE,
				  "%s: git status in the box is not that of the workspace", what);
		return abx_err_remedy(err, "try again when nothing writes to the workspace");
	case ABX_SCRIPT_NO_RECORD:
	case ABX_SCRIPT_BAD_RECORD:
		(void)abx_err_set(err, code == ABX_SCRIPT_NO_RECORD ? ABX_ENOTFOUND : ABX_ECORRUPT,
				  "%s: the box's record of what was put into it is %s", what,
				  code == ABX_SCRIPT_NO_RECORD ? "not there" : "damaged");
		return abx_err_remedy(err, "agentbox fetch brings its commits, agentbox cp its "
					   "files");
	default:
		abx_last_line(text, line, sizeof(line));
		(void)abx_err_set(err, ABX_EREMOTE, "%s: in the box: %s", what, line);
		if (!full)
			return ABX_EREMOTE;
		if (!strstr(line, full))
			(void)abx_err_set(err, ABX_EREMOTE, "%s: in the box: %s: %s", what, line,
					  full);
		return abx_err_remedy(err, "free some space in the box; for local, on the disk of "
					   "AGENTBOX_HOME");
	}
}
