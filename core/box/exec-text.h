/* SPDX-License-Identifier: MIT */
/* core/box/exec-text.h: a script in a box whose output is data for us. */
#ifndef ABX_EXEC_TEXT_H
#define ABX_EXEC_TEXT_H

#include "abxsdk/buf.h"
#include "core/host/cloud.h"

/* As `user` (NULL: the box user).  stdout goes into `ret`, ABX_EPROTO past its bound; stderr
 * nowhere.  *ret_code is 0 to 255. */
int abx_exec_text(struct abx_cloud *cloud, const struct abx_call_opts *o,
		  const struct abx_sandbox *s, const char *const *argv, const char *user,
		  int64_t timeout_ms, struct abx_buf *ret, int *ret_code, struct abx_err *err);

#endif
