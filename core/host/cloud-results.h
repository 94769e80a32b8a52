/* SPDX-License-Identifier: MIT */
/* core/host/cloud-results.h: what a call collected, handed to whoever asked. */
#ifndef ABX_CLOUD_RESULTS_H
#define ABX_CLOUD_RESULTS_H

#include "core/host/call.h"

/* The last sandbox; false when there was none. */
bool abx_results_take_sandbox(struct abx_call *call, struct abx_sandbox_copy *ret);
/* All of them that carry these labels. */
void abx_results_take_sandboxes(struct abx_call *call, const struct abx_kv *labels,
				uint32_t n_labels, struct abx_sandbox_list *ret);
/* The last of a type, as a copy struct: the record, then `void *memory`. */
bool abx_results_take_last(struct abx_call *call, const struct abx_record_type *type, void *ret);
/* All of a type that fit, as an array of such; *ret_len of them, free() it. */
void *abx_results_take_all(struct abx_call *call, const struct abx_record_type *type,
			   bool (*fits)(const void *record, const struct abx_list_req *wanted),
			   const struct abx_list_req *wanted, size_t *ret_len);
bool abx_results_has_labels(const struct abx_kv *have, uint32_t n_have,
			    const struct abx_list_req *wanted);
void abx_results_take_rows(struct abx_call *call, struct abx_row_list *ret);

#endif
