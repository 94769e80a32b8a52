/* SPDX-License-Identifier: MIT */
/* What a box is made of: the strings of a start request. */
#include "providers/local/box.h"

#include <string.h>

/* "key:value" with this key: its value, or NULL. */
static const char *value_of(const char *string, const char *key)
{
	size_t n = strlen(key);

	return strncmp(string, key, n) == 0 && string[n] == ':' && string[n + 1] ? string + n + 1
										 : NULL;
}

void box_plan_parse(const struct box_req *rq, struct box_plan *ret)
{
	struct box_plan plan = {
		.layers = box_alloc((rq->h.n_argv + 1) * sizeof(*plan.layers)),
	};

	for (char **s = rq->argv; *s; s++) {
		const char *v;

		if ((v = value_of(*s, LB_PLAN_IMAGE)))
			plan.image = v;
		else if ((v = value_of(*s, LB_PLAN_LAYER)))
			plan.layers[plan.n_layers++] = v;
		else if ((v = value_of(*s, LB_PLAN_SEAL)))
			plan.seal = v;
		else if (!value_of(*s, LB_PLAN_MOUNT) && !value_of(*s, LB_PLAN_VOLUME))
			box_fail(ABX_EPROTO, "install plugin and helpers of one version",
				 "helper: unknown part of a box: %.256s", *s);
	}
	*ret = plan;
}
