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
void abx_results_take_rows(struct abx_call *call, struct abx_row_list *ret);

#endif
