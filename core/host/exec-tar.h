/* SPDX-License-Identifier: MIT */
/*
 * core/host/exec-tar.h: put_tar and get_tar for providers that have neither.
 *
 * `tar` runs in the box; the stream is its stdin or stdout.  Both need an exec that moves
 * bytes unchanged (ABX_CAP_EXEC_STDIN; _BINARY and _SPLIT), else ABX_ENOTSUP.  Only options
 * that GNU tar and busybox share are used.
 *
 * Where it has to be uploaded and then unpacked, whether the box has zstd is asked beforehand: by
 * the caller, if it has something to ask the box anyway, or in a round trip of its own.
 */
#ifndef ABX_EXEC_TAR_H
#define ABX_EXEC_TAR_H

#include "core/host/shrink.h"

int abx_exec_put_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err);
int abx_exec_get_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err);

/* Would it have to be known? */
bool abx_exec_put_asks(const struct abx_cloud *c);
/* A line of shell that asks; its exit code is 0, or this one. */
#define ABX_ASK_ZSTD_SH ABX_HAS_ZSTD_SH " || exit 3"
#define ABX_ASK_ZSTD_NO 3

#endif
