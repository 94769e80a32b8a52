/* SPDX-License-Identifier: MIT */
/* Trees in and out of a box, as tar streams, by its own tar. */
#include "providers/docker/docker.h"

int32_t docker_put_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_transfer *t)
{
	struct docker_mover by = {s, sb};
	struct abx_move m = {.call = call, .exec = docker_move_exec, .ctx = &by};

	return abx_move_put_tar(&m, t);
}

int32_t docker_get_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_transfer *t)
{
	struct docker_mover by = {s, sb};
	struct abx_move m = {.call = call, .mark_end = true, .exec = docker_move_exec, .ctx = &by};

	return abx_move_get_tar(&m, t);
}
