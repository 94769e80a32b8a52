/* SPDX-License-Identifier: MIT */
/* put_tar and get_tar for providers that have neither: `tar` in the box, over exec. */
#include "core/host/exec-tar.h"

#include <string.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "core/host/run.h"
#include "core/host/text.h"
#include "core/util/mem.h"

#define MAX_COMPLAINT_BYTES 4096

struct tar_io {
	int out_fd; /* -1: stdout is of no interest */
	int write_error;
	char complaint[MAX_COMPLAINT_BYTES];
	size_t complaint_len;
};

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct tar_io *t = io;

	if (stream == ABX_STREAM_STDOUT) {
		if (t->out_fd >= 0)
			t->write_error = abx_fs_write_all(t->out_fd, data, len);
		return t->write_error ? ABX_EIO : ABX_OK;
	}
	if (len > sizeof(t->complaint) - t->complaint_len)
		len = sizeof(t->complaint) - t->complaint_len;
	memcpy(t->complaint + t->complaint_len, data, len);
	t->complaint_len += len;
	return ABX_OK;
}

/* The exit code, or a negative one. */
static int run(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
	       const char *const *argv, const char *user, int stdin_fd, struct tar_io *io,
	       struct abx_err *err)
{
	const struct abx_exec req = {
		ABX_INIT(struct abx_exec),
		.flags = ABX_EXEC_OFFLINE,
		.argv = argv,
		.cwd = "/",
		.user = user,
		.stdin_fd = stdin_fd,
		.control_fd = -1,
		.io = io,
		.output = on_output,
	};
	struct abx_exit e;
	int r = abx_cloud_exec(c, o, s, &req, &e, err);

	if (io->write_error)
		return abx_err_errno(err, io->write_error, "write what %s sends", argv[0]);
	if (r < 0)
		return r;
	return e.signo || (e.flags & ABX_EXIT_LOST) ? 128 + e.signo : e.code;
}

static int run_or_fail(struct abx_cloud *c, const struct abx_call_opts *o, const char *op,
		       const struct abx_sandbox *s, const char *const *argv, const char *user,
		       int stdin_fd, int out_fd, struct abx_err *err)
{
	struct tar_io io = {.out_fd = out_fd};
	char text[512];
	int r = run(c, o, s, argv, user, stdin_fd, &io, err);

	if (r <= 0)
		return r;
	abx_text_line(io.complaint, io.complaint_len, text, sizeof(text));
	if (r == 127)
		return abx_run_fail(c, op, ABX_ENOTSUP, err, "there is no %s in the box", argv[0]);
	return abx_run_fail(c, op, ABX_EIO, err, "%s in the box ended with %d: %s", argv[0], r,
			    *text ? text : "no message");
}

int abx_exec_put_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err)
{
	/* -o: files become the user's who unpacks, which is what the caller asked for. */
	const char *owner = req->flags & ABX_XFER_NO_OWNER ? "-p" : "-o";
	const char *const mkdir_argv[] = {"mkdir", "-p", "--", req->path, NULL};
	const char *const tar_argv[] = {"tar", "-x", "-p", owner, "-C", req->path, "-f", "-", NULL};
	int r = 0;

	if (req->flags & ABX_XFER_CREATE_PARENTS)
		r = run_or_fail(c, o, "put_tar", s, mkdir_argv, req->owner, -1, -1, err);
	if (r == 0)
		r = run_or_fail(c, o, "put_tar", s, tar_argv, req->owner, req->fd, -1, err);
	return r;
}

/* `path` split into the directory to start from and the member to send. */
static void split_path(const char *path, char **ret_dir, char **ret_base)
{
	abx_autofree char *copy = abx_xstrdup(path);
	size_t len = strlen(copy);
	char *slash;

	while (len > 1 && copy[len - 1] == '/')
		copy[--len] = '\0';
	slash = strrchr(copy, '/');
	*ret_base = abx_xasprintf("./%s", slash ? slash + 1 : copy);
	if (!slash)
		*ret_dir = abx_xstrdup(".");
	else
		*ret_dir = abx_xstrndup(copy, slash == copy ? 1 : (size_t)(slash - copy));
}

int abx_exec_get_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err)
{
	const char *const test_argv[] = {"test", "-d", req->path, NULL};
	struct tar_io nothing = {.out_fd = -1};
	abx_autofree char *dir = NULL, *base = NULL;
	int r;

	r = run(c, o, s, test_argv, NULL, -1, &nothing, err);
	if (r < 0)
		return r;
	if (r == 0) {
		const char *const argv[] = {"tar", "-c", "-C", req->path, "-f", "-", ".", NULL};

		return run_or_fail(c, o, "get_tar", s, argv, NULL, -1, req->fd, err);
	}
	split_path(req->path, &dir, &base);
	{
		const char *const argv[] = {"tar", "-c", "-C", dir, "-f", "-", base, NULL};

		return run_or_fail(c, o, "get_tar", s, argv, NULL, -1, req->fd, err);
	}
}
