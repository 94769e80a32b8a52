/* SPDX-License-Identifier: MIT */
/* Making a box. */
#include "providers/e2b/e2b.h"

int32_t e2b_provision(struct abx_session *s ABX_UNUSED, struct abx_call *call,
		      const struct abx_provision *p ABX_UNUSED)
{
	return abx_fail(call, ABX_ENOTSUP, NULL, "not supported");
}
