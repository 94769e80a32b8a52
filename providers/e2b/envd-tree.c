/* SPDX-License-Identifier: MIT */
/*
 * Trees out of a sandbox, as tar streams, by its own tar.  Into one they go by the host, which
 * compresses them where the sandbox can read that, and by exec.
 */
#include "providers/e2b/envd.h"

int32_t e2b_get_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_transfer *t)
{
	struct e2b_mover by = {s, sb};
	struct abx_move m = {.call = call, .exec = e2b_move_exec, .ctx = &by};

	return abx_move_get_tar(&m, t);
}
