/* SPDX-License-Identifier: MIT */
/* A script in a box whose output is data for us. */
#include "core/box/exec-text.h"

static int32_t collect(void *io, int32_t stream, const void *data, size_t len)
{
	struct abx_buf *text = io;

	if (stream == ABX_STREAM_STDOUT)
		abx_buf_add(text, data, len);
	return text->failed ? ABX_EPROTO : ABX_OK;
}

int abx_exec_text(struct abx_cloud *cloud, const struct abx_call_opts *o,
		  const struct abx_sandbox *s, const char *const *argv, const char *user,
		  int64_t timeout_ms, struct abx_buf *ret, int *ret_code, struct abx_err *err)
{
	struct abx_exec x = {ABX_INIT(struct abx_exec)};
	struct abx_exit e = {ABX_INIT(struct abx_exit)};
	struct abx_err why = ABX_ERR_INIT;
	int r;

	x.flags = ABX_EXEC_OFFLINE;
	x.argv = argv;
	x.user = user;
	x.cwd = "/";
	x.stdin_fd = x.control_fd = -1;
	x.timeout_ms = timeout_ms;
	x.io = ret;
	x.output = collect;
	r = abx_cloud_exec(cloud, o, s, &x, &e, &why);
	if (ret->failed)
		return abx_err_set(err, ABX_EPROTO, "box '%s': its answer is too long", s->name);
	if (r < 0 && err)
		*err = why;
	if (r < 0)
		return r;
	if (e.timed_out || e.signo || (e.flags & ABX_EXIT_LOST))
		return abx_err_set(err, ABX_ETIMEDOUT, "box '%s': it gave no answer", s->name);
	*ret_code = e.code;
	return 0;
}
