/* SPDX-License-Identifier: MIT */
/* Files into and out of a sandbox. */
#include "providers/e2b/e2b.h"

int32_t e2b_upload(struct abx_session *s ABX_UNUSED, struct abx_call *call,
		   const struct abx_sandbox *sb ABX_UNUSED, const struct abx_transfer *t ABX_UNUSED)
{
	return abx_fail(call, ABX_ENOTSUP, NULL, "not supported");
}

int32_t e2b_download(struct abx_session *s ABX_UNUSED, struct abx_call *call,
		     const struct abx_sandbox *sb ABX_UNUSED,
		     const struct abx_transfer *t ABX_UNUSED)
{
	return abx_fail(call, ABX_ENOTSUP, NULL, "not supported");
}

int32_t e2b_list_files(struct abx_session *s ABX_UNUSED, struct abx_call *call,
		       const struct abx_sandbox *sb ABX_UNUSED, const char *dir ABX_UNUSED)
{
	return abx_fail(call, ABX_ENOTSUP, NULL, "not supported");
}
