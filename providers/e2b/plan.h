/* SPDX-License-Identifier: MIT */
/*
 * plan.h: a Dockerfile as the steps of a template build.
 *
 * What agentbox's own context consists of, and what such files mostly do: ARG, FROM, USER, COPY,
 * RUN, ENV, WORKDIR; LABEL, CMD and EXPOSE say nothing to a template.  Anything else is refused.
 * Arguments are given to commands as variables of theirs, and are not in the template.
 */
#ifndef E2B_PLAN_H
#define E2B_PLAN_H

#include <cjson/cJSON.h>

#include "abxsdk/buf.h"
#include "agentbox/cloud_backend.h"

#define E2B_STEPS_MAX 200

struct e2b_plan {
	cJSON *steps; /* as POST /v2/templates/.../builds/... takes them, without filesHash */
	/* Of each step: what is copied, a path below the context; NULL: nothing.  Its text. */
	char *sources[E2B_STEPS_MAX], *texts[E2B_STEPS_MAX];
	int n;
	char what[200]; /* when it failed: why */
};

/* 0, -EINVAL with plan->what, -ENOMEM. */
int e2b_plan_make(struct e2b_plan *plan, const char *dockerfile, const struct abx_kv *args,
		  uint32_t n_args);
void e2b_plan_release(struct e2b_plan *plan);

#endif
