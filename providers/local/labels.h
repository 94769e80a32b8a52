/* SPDX-License-Identifier: MIT */
/* labels.h: the labels that a record of `local` keeps, as the ABI hands them over. */
#ifndef LOCAL_LABELS_H
#define LOCAL_LABELS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "agentbox/cloud_backend.h"

#define LOCAL_LABELS_MAX 64

/* Points into the document that it was taken from. */
struct local_labels {
	struct abx_kv kv[LOCAL_LABELS_MAX];
	uint32_t n;
};

/* The member "labels" of a record: 0 or -ENOMEM. */
int local_labels_put(cJSON *doc, const struct abx_kv *kv, uint32_t n);
/* `labels` may be NULL: a damaged record has none. */
void local_labels_get(const cJSON *labels, struct local_labels *ret);
bool local_labels_match(const cJSON *labels, const struct abx_list_req *req);

#endif
