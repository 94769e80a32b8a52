/* SPDX-License-Identifier: MIT */
/* What a call collected, handed to whoever asked. */
#include "core/host/cloud-results.h"

#include <string.h>

#include "core/util/mem.h"

void abx_sandbox_copy_release(struct abx_sandbox_copy *c)
{
	free(c->memory);
	memset(c, 0, sizeof(*c));
}

void abx_sandbox_list_release(struct abx_sandbox_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		abx_sandbox_copy_release(&l->items[i]);
	free(l->items);
	l->items = NULL;
	l->len = 0;
}

const char *abx_sandbox_label(const struct abx_sandbox *s, const char *key)
{
	for (uint32_t i = 0; i < s->n_labels; i++)
		if (strcmp(s->labels[i].key, key) == 0)
			return s->labels[i].value;
	return NULL;
}

void abx_row_list_release(struct abx_row_list *l)
{
	for (size_t i = 0; i < l->len; i++) {
		for (size_t k = 0; k < l->items[i].len; k++) {
			free(l->items[i].cells[k].key);
			free(l->items[i].cells[k].value);
		}
		free(l->items[i].cells);
	}
	free(l->items);
	l->items = NULL;
	l->len = 0;
}

const char *abx_row_get(const struct abx_row *r, const char *key)
{
	for (size_t i = 0; i < r->len; i++)
		if (strcmp(r->cells[i].key, key) == 0)
			return r->cells[i].value;
	return NULL;
}

static void take_sandbox(struct abx_result *result, struct abx_sandbox_copy *ret)
{
	memcpy(&ret->s, result->record, sizeof(ret->s));
	ret->memory = result->memory;
	result->memory = NULL;
	abx_result_release(result);
}

bool abx_results_take_sandbox(struct abx_call *call, struct abx_sandbox_copy *ret)
{
	struct abx_result result;

	if (!abx_call_take_last(call, &abx_record_sandbox, &result))
		return false;
	take_sandbox(&result, ret);
	return true;
}

static bool has_labels(const struct abx_sandbox *s, const struct abx_kv *labels, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *value = abx_sandbox_label(s, labels[i].key);

		if (!value || strcmp(value, labels[i].value) != 0)
			return false;
	}
	return true;
}

void abx_results_take_sandboxes(struct abx_call *call, const struct abx_kv *labels,
				uint32_t n_labels, struct abx_sandbox_list *ret)
{
	struct abx_sandbox_list list = {abx_xcalloc(call->n_results + 1, sizeof(*list.items)), 0};

	for (size_t i = 0; i < call->n_results; i++) {
		struct abx_result *result = &call->results[i];

		/* A service that cannot filter returns everybody's. */
		if (result->type == &abx_record_sandbox &&
		    has_labels(result->record, labels, n_labels))
			take_sandbox(result, &list.items[list.len++]);
	}
	*ret = list;
}

static void copy_row(const struct abx_row_record *from, struct abx_row *to)
{
	to->cells = abx_xcalloc(from->n_cells + 1, sizeof(*to->cells));
	to->len = from->n_cells;
	for (uint32_t i = 0; i < from->n_cells; i++) {
		to->cells[i].key = abx_xstrdup(from->cells[i].key);
		to->cells[i].value = abx_xstrdup(from->cells[i].value);
	}
}

void abx_results_take_rows(struct abx_call *call, struct abx_row_list *ret)
{
	struct abx_row_list list = {abx_xcalloc(call->n_results + 1, sizeof(*list.items)), 0};

	for (size_t i = 0; i < call->n_results; i++)
		if (call->results[i].type == &abx_record_row)
			copy_row(call->results[i].record, &list.items[list.len++]);
	*ret = list;
}
