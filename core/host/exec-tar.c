/* SPDX-License-Identifier: MIT */
/* put_tar and get_tar for providers that have neither: `tar` in the box, over exec. */
#include "core/host/exec-tar.h"

#include <string.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "core/host/exec-ctl.h"
#include "core/host/run.h"
#include "core/host/text.h"
#include "core/util/mem.h"
#include "core/util/rand.h"

#define MAX_COMPLAINT_BYTES 4096
#define FORGET_MS 10000

struct tar_io {
	int out_fd;			  /* -1: what comes on stdout is a complaint like any */
	struct abx_shrink_answer *answer; /* gets stdout; or NULL */
	int write_error;
	char complaint[MAX_COMPLAINT_BYTES];
	size_t complaint_len;
};

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct tar_io *t = io;

	if (stream == ABX_STREAM_STDOUT && t->out_fd >= 0) {
		t->write_error = abx_fs_write_all(t->out_fd, data, len);
		return t->write_error ? ABX_EIO : ABX_OK;
	}
	if (stream == ABX_STREAM_STDOUT && t->answer) {
		abx_shrink_answer_feed(t->answer, data, len);
		return ABX_OK;
	}
	if (len > sizeof(t->complaint) - t->complaint_len)
		len = sizeof(t->complaint) - t->complaint_len;
	memcpy(t->complaint + t->complaint_len, data, len);
	t->complaint_len += len;
	return ABX_OK;
}

struct job {
	struct abx_cloud *c;
	const struct abx_call_opts *o;
	const struct abx_sandbox *s;
	const char *op, *cwd, *user;
	int stdin_fd, out_fd;
};

/* The exit code, or a negative one. */
static int run(const struct job *j, const char *const *argv, struct tar_io *io, struct abx_err *err)
{
	const struct abx_exec req = {
		ABX_INIT(struct abx_exec),
		.flags = ABX_EXEC_OFFLINE | (j->stdin_fd >= 0 ? ABX_EXEC_BULK : 0),
		.argv = argv,
		.cwd = j->cwd,
		.user = j->user,
		.stdin_fd = j->stdin_fd,
		.control_fd = -1,
		.io = io,
		.output = on_output,
	};
	struct abx_exit e;
	int r;

	io->out_fd = j->out_fd;
	r = abx_cloud_exec(j->c, j->o, j->s, &req, &e, err);
	if (io->write_error)
		return abx_err_errno(err, io->write_error, "write what %s sends", argv[0]);
	if (r < 0)
		return r;
	return e.signo || (e.flags & ABX_EXIT_LOST) ? 128 + e.signo : e.code;
}

static int judge(const struct job *j, const char *name, const struct tar_io *io, int r,
		 struct abx_err *err)
{
	char text[512];

	if (r <= 0)
		return r;
	abx_text_line(io->complaint, io->complaint_len, text, sizeof(text));
	if (r == 127)
		return abx_run_fail(j->c, j->op, ABX_ENOTSUP, err, "there is no %s in the box",
				    name);
	return abx_run_fail(j->c, j->op, ABX_EIO, err, "%s in the box ended with %d: %s", name, r,
			    *text ? text : "no message");
}

static int run_or_fail(const struct job *j, const char *const *argv, struct abx_err *err)
{
	struct tar_io io = {0};
	const int r = run(j, argv, &io, err);

	return judge(j, argv[0], &io, r, err);
}

/* The script for which argv[0] is only the shell. */
static int unpack_or_fail(const struct job *j, const char *const *argv, struct abx_err *err)
{
	struct tar_io io = {0};
	const int r = run(j, argv, &io, err);

	return judge(j, "tar", &io, r, err);
}

/* -o: files become the user's who unpacks, which is what the caller asked for. */
static const char *owner_flag(const struct abx_transfer *req)
{
	return req->flags & ABX_XFER_NO_OWNER ? "-p" : "-o";
}

/* The archive is out of sight before anything of it is there. */
#define FROM_FILE "{ exec <\"$1\" && rm -f \"$1\"; } || exit\n"
static const char unpack_script[] = FROM_FILE ABX_UNPACK_SH;
static const char unpack_zstd_script[] = FROM_FILE ABX_UNPACK_ZSTD_SH;

/* Nobody misses it when that fails: the directory is about to be removed, or to be tried again. */
static void forget(const struct job *j, const char *name)
{
	const struct abx_call_opts last = {.timeout_ms = FORGET_MS,
					   .cleanup = true,
					   .plain_exec = true,
					   .box_id = j->o->box_id};
	const char *const argv[] = {"rm", "-f", name, NULL};
	struct tar_io nothing = {0};
	struct job rm = *j;

	rm.o = &last;
	(void)run(&rm, argv, &nothing, NULL);
}

/* A stream is carried by the provider's own exec, if it can: what is to be unpacked may have
 * agentbox-ctl among it. */
static bool carries_streams(const struct abx_cloud *c)
{
	const uint64_t needed = ABX_CAP_EXEC_STDIN | ABX_CAP_EXEC_SPLIT | ABX_CAP_EXEC_BINARY;

	return (abx_cloud_caps(c) & needed) == needed;
}

bool abx_exec_put_asks(const struct abx_cloud *c)
{
	return !c->plugin->table.put_tar && !carries_streams(c) && abx_shrink_wanted(c);
}

/* Who does not say that it is there has none. */
static int ask_zstd(const struct job *j, bool *ret, struct abx_err *err)
{
	const char *const argv[] = {"/bin/sh", "-c", ABX_ASK_ZSTD_SH, NULL};
	struct tar_io nothing = {0};
	int r = 0;

	if (!abx_shrink_wanted(j->c))
		*ret = false;
	else if (j->o->zstd != ABX_BOX_ZSTD_UNKNOWN)
		*ret = j->o->zstd == ABX_BOX_ZSTD_YES;
	else if ((r = run(j, argv, &nothing, err)) >= 0)
		*ret = r == 0;
	return r < 0 ? r : 0;
}

struct upload {
	const struct job *job;
	struct abx_transfer t;
};

static int upload(void *ctx, int fd, struct abx_err *err)
{
	struct upload *u = ctx;

	u->t.fd = fd;
	return abx_cloud_upload(u->job->c, u->job->o, u->job->s, &u->t, err);
}

static int upload_and_unpack(const struct job *tar, const struct abx_transfer *req,
			     struct abx_err *err)
{
	struct upload u = {tar, {ABX_INIT(struct abx_transfer)}};
	struct abx_call_opts plain = *tar->o;
	struct job unpack = *tar;
	char name[64] = "./.agentbox-tar-";
	const char *argv[] = {"/bin/sh", "-c", unpack_script, "tar", name, owner_flag(req), NULL};
	abx_autofree char *path = NULL;
	bool zstd = false;
	int r;

	abx_rand_hex(name + strlen(name), 32);
	path = abx_xasprintf("%s/%s", req->path, name + 2);
	u.t.flags = req->flags & ABX_XFER_CREATE_PARENTS;
	u.t.mode = 0600;
	u.t.size_bytes = -1;
	u.t.path = path;
	u.t.owner = req->owner;
	unpack.stdin_fd = -1;
	plain.plain_exec = true;
	unpack.o = &plain;
	r = ask_zstd(&unpack, &zstd, err);
	if (r < 0)
		return r;
	unpack.cwd = req->path;
	if (zstd)
		argv[2] = unpack_zstd_script;
	r = zstd ? abx_shrink_run(req->fd, upload, &u, err) : upload(&u, req->fd, err);
	if (r == 0)
		return unpack_or_fail(&unpack, argv, err);
	if (r != ABX_ENOTFOUND && r != ABX_ESTATE)
		forget(&unpack, name);
	return r;
}

/* What a box elsewhere is told to unpack, compressed when it says that it can read that. */
struct unpacking {
	struct job job;
	const char *const *argv;
	struct abx_shrink_answer answer;
};

static int run_unpacking(void *ctx, int fd, struct abx_err *err)
{
	struct unpacking *u = ctx;
	struct tar_io io = {.answer = &u->answer};
	int r;

	u->job.stdin_fd = fd;
	r = run(&u->job, u->argv, &io, err);
	return judge(&u->job, "tar", &io, r, err);
}

static int unpack_elsewhere(const struct job *tar, const struct abx_transfer *req,
			    struct abx_err *err)
{
	const char *const argv[] = {"/bin/sh",
				    "-c",
				    abx_shrink_script,
				    "tar",
				    req->path,
				    owner_flag(req),
				    req->flags & ABX_XFER_CREATE_PARENTS ? "p" : "",
				    NULL};
	struct unpacking u = {.job = *tar, .argv = argv};
	int r = abx_shrink_answer_open(&u.answer, err);

	if (r < 0)
		return r;
	r = abx_shrink_as_answered(req->fd, &u.answer, run_unpacking, &u, err);
	abx_shrink_answer_close(&u.answer);
	return r;
}

int abx_exec_put_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err)
{
	const char *const mkdir_argv[] = {"mkdir", "-p", "--", req->path, NULL};
	const char *const tar_argv[] = {"tar", "-x", "-p", owner_flag(req), "-C", req->path,
					"-f",  "-",  NULL};
	struct abx_call_opts plain = o ? *o : (struct abx_call_opts){0};
	struct job tar = {.c = c,
			  .o = &plain,
			  .s = s,
			  .op = "put_tar",
			  .cwd = "/",
			  .user = req->owner,
			  .stdin_fd = req->fd,
			  .out_fd = -1};
	struct job mkdir = tar;
	int r = 0;

	if (!carries_streams(c))
		return upload_and_unpack(&tar, req, err);
	plain.plain_exec = true;
	if (abx_shrink_wanted(c))
		return unpack_elsewhere(&tar, req, err);
	mkdir.stdin_fd = -1;
	if (req->flags & ABX_XFER_CREATE_PARENTS)
		r = run_or_fail(&mkdir, mkdir_argv, err);
	return r < 0 ? r : run_or_fail(&tar, tar_argv, err);
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
	struct job tar = {.c = c, .o = o, .s = s, .op = "get_tar", .cwd = "/", .stdin_fd = -1};
	struct job test = tar;
	struct tar_io nothing = {0};
	abx_autofree char *dir = NULL, *base = NULL;
	int r;

	tar.out_fd = req->fd;
	test.out_fd = -1;
	r = run(&test, test_argv, &nothing, err);
	if (r < 0)
		return r;
	if (r == 0) {
		const char *const argv[] = {"tar", "-c", "-C", req->path, "-f", "-", ".", NULL};

		return run_or_fail(&tar, argv, err);
	}
	split_path(req->path, &dir, &base);
	{
		const char *const argv[] = {"tar", "-c", "-C", dir, "-f", "-", base, NULL};

		return run_or_fail(&tar, argv, err);
	}
}
