/* SPDX-License-Identifier: MIT */
/* core/host/cloud-results.h: what a call collected, handed to whoever asked. */
#ifndef ABX_CLOUD_RESULTS_H
#define ABX_CLOUD_RESULTS_H

#include "core/host/run.h"

/* The last of a type, as a copy struct: the record, then `void *memory`. */
bool abx_results_take_last(struct abx_call *call, const struct abx_record_type *type, void *ret);
/* All of a type that fit, as an array of such; *ret_len of them, free() it. */
void *abx_results_take_all(struct abx_call *call, const struct abx_record_type *type,
			   bool (*fits)(const void *record, const struct abx_list_req *wanted),
			   const struct abx_list_req *wanted, size_t *ret_len);
/* An operation that lists records of a type; of those that come, the ones that fit: a service
 * that cannot filter returns everybody's. */
struct abx_listing {
	const struct abx_op *op;
	const struct abx_record_type *type;
	bool (*fits)(const void *record, const struct abx_list_req *wanted);
};
int abx_results_list(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_listing *what, const struct abx_kv *labels, uint32_t n_labels,
		     void **ret_items, size_t *ret_len, struct abx_err *err);
bool abx_results_has_labels(const struct abx_kv *have, uint32_t n_have,
			    const struct abx_list_req *wanted);
void abx_results_take_rows(struct abx_call *call, struct abx_row_list *ret);

#endif
