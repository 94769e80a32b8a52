/* SPDX-License-Identifier: MIT */
/*
 * names.h: labels in the names of what E2B keeps no metadata of: snapshots and templates.
 *
 *	agentbox-<kind>-<install>-<attempt>:<box>.<name>
 *
 * The install without its dashes; of a template, box and dot are missing; of what has no name, dot
 * and name.  What is in a name can be looked for by whoever knows the labels, also after an answer
 * was lost.  The service puts its namespace in front ("team/").
 */
#ifndef E2B_NAMES_H
#define E2B_NAMES_H

#include <stdbool.h>

#include "agentbox/cloud_backend.h"

#define E2B_NAME_PART 64

enum e2b_kind { E2B_SNAPSHOT = 's', E2B_TEMPLATE = 't' };

struct e2b_name {
	char install[40], attempt[40], box[40], name[E2B_NAME_PART];
	struct abx_kv labels[5]; /* into this struct */
	uint32_t n_labels;
};

/* "name:tag" of these labels, without a namespace.  False: they do not fit. */
bool e2b_name_make(enum e2b_kind kind, const struct abx_kv *labels, uint32_t n, char out[132]);
/* Of a name as the service has it; false: it is none of ours. */
bool e2b_name_parse(enum e2b_kind kind, const char *text, struct e2b_name *ret);
bool e2b_name_has(const struct e2b_name *n, const struct abx_list_req *req);

#endif
