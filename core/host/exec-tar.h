/* SPDX-License-Identifier: MIT */
/*
 * core/host/exec-tar.h: put_tar and get_tar for providers that have neither.
 *
 * `tar` runs in the box; the stream is its stdin or stdout.  Both need an exec that moves
 * bytes unchanged (ABX_CAP_EXEC_STDIN; _BINARY and _SPLIT), else ABX_ENOTSUP.  Only options
 * that GNU tar and busybox share are used.
 */
#ifndef ABX_EXEC_TAR_H
#define ABX_EXEC_TAR_H

#include "core/host/cloud.h"

int abx_exec_put_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err);
int abx_exec_get_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err);

#endif
