/* SPDX-License-Identifier: MIT */
/* The operations of a cloud that move bytes: exec and transfers. */
#include <string.h>

#include "core/host/exec-ctl.h"
#include "core/host/exec-tar.h"
#include "core/host/hostapi.h"
#include "core/host/run.h"
#include "core/host/shrink.h"

#define MAX_EXEC_ID_BYTES 512

/* The provider gets these; `io` is the call, which outlives the caller's request. */
static int32_t on_started(void *io, const char *exec_id)
{
	struct abx_call *call = io;
	const struct abx_exec *exec;
	int32_t r = ABX_OK;

	if (!exec_id || strnlen(exec_id, MAX_EXEC_ID_BYTES) == MAX_EXEC_ID_BYTES)
		return ABX_EPROTO;
	if (!abx_call_enter(call))
		return ABX_ECANCELED;
	exec = call->sink.exec;
	if (exec->started)
		r = exec->started(exec->io, exec_id);
	abx_call_leave(call);
	return r;
}

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct abx_call *call = io;
	const struct abx_exec *exec;
	int32_t r = ABX_OK;

	if (stream != ABX_STREAM_STDOUT && stream != ABX_STREAM_STDERR)
		return ABX_EPROTO;
	if (!abx_call_enter(call))
		return ABX_ECANCELED;
	exec = call->sink.exec;
	if (exec->output && len)
		r = exec->output(exec->io, stream, data, len);
	abx_call_leave(call);
	return r;
}

static int32_t on_gap(void *io, int32_t stream, uint64_t lost)
{
	struct abx_call *call = io;
	const struct abx_exec *exec;
	int32_t r = ABX_ENETWORK;

	if (!abx_call_enter(call))
		return ABX_ECANCELED;
	exec = call->sink.exec;
	/* Who does not ask about what is lost takes it for all there is. */
	if (exec->gap)
		r = exec->gap(exec->io, stream, lost);
	abx_call_leave(call);
	return r;
}

static int32_t invoke_exec(const struct abx_cloud_backend *t, struct abx_session *s,
			   struct abx_call *call)
{
	struct abx_exec *exec = call->request.record;

	exec->stdin_fd = call->fds[0];
	exec->control_fd = call->fds[1];
	exec->io = call;
	exec->started = on_started;
	exec->output = on_output;
	exec->gap = on_gap;
	return t->exec(s, call, call->sandbox.record, exec, &call->exit);
}

#define INVOKE_TRANSFER(op)                                                                  \
	static int32_t invoke_##op(const struct abx_cloud_backend *t, struct abx_session *s, \
				   struct abx_call *call)                                    \
	{                                                                                    \
		struct abx_transfer *transfer = call->request.record;                        \
                                                                                             \
		transfer->fd = call->fds[0];                                                 \
		return t->op(s, call, call->sandbox.record, transfer);                       \
	}

INVOKE_TRANSFER(upload)
INVOKE_TRANSFER(download)
INVOKE_TRANSFER(put_tar)
INVOKE_TRANSFER(get_tar)

static const struct abx_op op_exec = {"exec", invoke_exec, false, false, false};
static const struct abx_op op_upload = {"upload", invoke_upload, false, false, false};
static const struct abx_op op_download = {"download", invoke_download, false, false, false};
static const struct abx_op op_put_tar = {"put_tar", invoke_put_tar, false, false, false};
static const struct abx_op op_get_tar = {"get_tar", invoke_get_tar, false, false, false};

static bool exit_makes_sense(const struct abx_exit *e)
{
	if (e->flags & (ABX_EXIT_DETACHED | ABX_EXIT_LOST))
		return true;
	if (e->signo)
		return e->signo > 0 && e->signo < 65;
	return e->code >= 0 && e->code <= 255;
}

static int exec_directly(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_sandbox *s, const struct abx_exec *req,
			 struct abx_exit *ret, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_call *call;
	struct abx_exit e;
	int r;

	args.sandbox = s;
	args.type = &abx_record_exec;
	args.request = args.exec = req;
	args.fds[0] = req->stdin_fd;
	args.fds[1] = req->control_fd;
	r = abx_run(c, o, &op_exec, &args, &call, err);
	if (r < 0)
		return r;
	e = call->exit;
	if (e.flags & ABX_EXIT_NOT_STARTED && call->failure.text[0])
		(void)abx_err_set(err, ABX_ENOTFOUND, "%s", call->failure.text);
	abx_call_unref(call);
	if (!exit_makes_sense(&e))
		return abx_run_fail(c, "exec", ABX_EPROTO, err,
				    "impossible result (code %d, signal %d)", e.code, e.signo);
	*ret = e;
	return 0;
}

int abx_cloud_exec(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		   const struct abx_exec *req, struct abx_exit *ret, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	int r;

	if (o && o->plain_exec)
		return exec_directly(c, o, s, req, ret, err);
	if (abx_exec_needs_ctl(c, req))
		return abx_exec_ctl(c, o, s, req, ret, err);
	r = exec_directly(c, o, s, req, ret, &why);
	/* Which flags a provider knows is only told by what it refuses. */
	if (r == ABX_ENOTSUP && req->flags & (ABX_EXEC_DETACHED | ABX_EXEC_LEAVE_RUNNING))
		return abx_exec_ctl(c, o, s, req, ret, err);
	if (why.code && err)
		*err = why;
	return r;
}

static int run_transfer(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
			const struct abx_sandbox *s, const struct abx_transfer *req,
			struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_call *call;
	int r;

	args.sandbox = s;
	args.type = &abx_record_transfer;
	args.request = req;
	args.fds[0] = req->fd;
	r = abx_run(c, o, op, &args, &call, err);
	if (r == 0)
		abx_call_unref(call);
	return r;
}

int abx_cloud_upload(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err)
{
	return run_transfer(c, o, &op_upload, s, req, err);
}

int abx_cloud_download(struct abx_cloud *c, const struct abx_call_opts *o,
		       const struct abx_sandbox *s, const struct abx_transfer *req,
		       struct abx_err *err)
{
	return run_transfer(c, o, &op_download, s, req, err);
}

struct put {
	struct abx_cloud *c;
	const struct abx_call_opts *o;
	const struct abx_sandbox *s;
	struct abx_transfer req;
};

static int put_stream(void *ctx, int fd, struct abx_err *err)
{
	struct put *p = ctx;

	p->req.fd = fd;
	p->req.size_bytes = -1;
	return run_transfer(p->c, p->o, &op_put_tar, p->s, &p->req, err);
}

int abx_cloud_put_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const struct abx_transfer *req,
		      struct abx_err *err)
{
	struct put put = {c, o, s, *req};

	if (!c->plugin->table.put_tar)
		return abx_exec_put_tar(c, o, s, req, err);
	if (abx_cloud_caps(c) & ABX_CAP_PUT_ZSTD && abx_shrink_wanted(c))
		return abx_shrink_run(req->fd, put_stream, &put, err);
	return run_transfer(c, o, &op_put_tar, s, req, err);
}

int abx_cloud_get_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const struct abx_transfer *req,
		      struct abx_err *err)
{
	if (!c->plugin->table.get_tar)
		return abx_exec_get_tar(c, o, s, req, err);
	return run_transfer(c, o, &op_get_tar, s, req, err);
}
