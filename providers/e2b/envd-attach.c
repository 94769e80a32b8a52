/* SPDX-License-Identifier: MIT */
/* Finding a command of a sandbox again. */
#include "providers/e2b/e2b.h"

int32_t e2b_exec_attach(struct abx_session *s ABX_UNUSED, struct abx_call *call,
			const struct abx_sandbox *sb ABX_UNUSED, const char *exec_id ABX_UNUSED,
			uint64_t offset ABX_UNUSED, const struct abx_exec *req ABX_UNUSED,
			struct abx_exit *ret ABX_UNUSED)
{
	return abx_fail(call, ABX_ENOTSUP, NULL, "not supported");
}

int32_t e2b_exec_signal(struct abx_session *s ABX_UNUSED, struct abx_call *call,
			const struct abx_sandbox *sb ABX_UNUSED, const char *exec_id ABX_UNUSED,
			int32_t signo ABX_UNUSED)
{
	return abx_fail(call, ABX_ENOTSUP, NULL, "not supported");
}
