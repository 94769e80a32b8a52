/* SPDX-License-Identifier: MIT */
/* Running a command in a sandbox. */
#include "providers/e2b/e2b.h"

int32_t e2b_exec(struct abx_session *s ABX_UNUSED, struct abx_call *call,
		 const struct abx_sandbox *sb ABX_UNUSED, const struct abx_exec *req ABX_UNUSED,
		 struct abx_exit *ret ABX_UNUSED)
{
	return abx_fail(call, ABX_ENOTSUP, NULL, "not supported");
}
