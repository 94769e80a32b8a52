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

void abx_snapshot_copy_release(struct abx_snapshot_copy *c)
{
	free(c->memory);
	memset(c, 0, sizeof(*c));
}

void abx_resource_copy_release(struct abx_resource_copy *c)
{
	free(c->memory);
	memset(c, 0, sizeof(*c));
}

void abx_url_copy_release(struct abx_url_copy *c)
{
	free(c->memory);
	memset(c, 0, sizeof(*c));
}

void abx_ssh_copy_release(struct abx_ssh_copy *c)
{
	free(c->memory);
	memset(c, 0, sizeof(*c));
}

void abx_snapshot_list_release(struct abx_snapshot_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->items[i].memory);
	free(l->items);
	l->items = NULL;
	l->len = 0;
}

void abx_resource_list_release(struct abx_resource_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->items[i].memory);
	free(l->items);
	l->items = NULL;
	l->len = 0;
}

void abx_file_list_release(struct abx_file_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->items[i].memory);
	free(l->items);
	l->items = NULL;
	l->len = 0;
}

void abx_rate_list_release(struct abx_rate_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->items[i].memory);
	free(l->items);
	l->items = NULL;
	l->len = 0;
}

#define IS_COPY(name, member)                                                   \
	_Static_assert(offsetof(struct abx_##name##_copy, memory) ==            \
			       sizeof(((struct abx_##name##_copy *)0)->member), \
		       "cloud-results.c's move_result")
IS_COPY(snapshot, s);
IS_COPY(resource, r);
IS_COPY(file, f);
IS_COPY(rate, r);
IS_COPY(url, u);
IS_COPY(ssh, s);

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

bool abx_results_has_labels(const struct abx_kv *have, uint32_t n_have,
			    const struct abx_list_req *wanted)
{
	for (uint32_t i = 0; wanted && i < wanted->n_labels; i++) {
		uint32_t k = 0;

		while (k < n_have && (strcmp(have[k].key, wanted->labels[i].key) != 0 ||
				      strcmp(have[k].value, wanted->labels[i].value) != 0))
			k++;
		if (k == n_have)
			return false;
	}
	return true;
}

bool abx_sandbox_has_labels(const struct abx_sandbox *s, const struct abx_kv *labels, uint32_t n)
{
	const struct abx_list_req wanted = {ABX_INIT(struct abx_list_req), n, labels};

	return abx_results_has_labels(s->labels, s->n_labels, &wanted);
}

/* The record's own size is a multiple of a pointer's, so `memory` follows it directly. */
static void move_result(struct abx_result *result, char *to)
{
	memcpy(to, result->record, result->type->size);
	memcpy(to + result->type->size, &result->memory, sizeof(result->memory));
	result->memory = NULL;
	abx_result_release(result);
}

bool abx_results_take_last(struct abx_call *call, const struct abx_record_type *type, void *ret)
{
	struct abx_result result;

	if (!abx_call_take_last(call, type, &result))
		return false;
	move_result(&result, ret);
	return true;
}

void *abx_results_take_all(struct abx_call *call, const struct abx_record_type *type,
			   bool (*fits)(const void *record, const struct abx_list_req *wanted),
			   const struct abx_list_req *wanted, size_t *ret_len)
{
	const size_t stride = type->size + sizeof(void *);
	char *items = abx_xcalloc(call->n_results + 1, stride);
	size_t n = 0;

	for (size_t i = 0; i < call->n_results; i++) {
		struct abx_result *result = &call->results[i];

		/* A service that cannot filter returns everybody's. */
		if (result->type == type && (!fits || fits(result->record, wanted)))
			move_result(result, items + stride * n++);
	}
	*ret_len = n;
	return items;
}

int abx_results_list(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_listing *what, const struct abx_kv *labels, uint32_t n_labels,
		     void **ret_items, size_t *ret_len, struct abx_err *err)
{
	const struct abx_list_req req = {ABX_INIT(struct abx_list_req), n_labels, labels};
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_call *call;
	int r;

	args.type = &abx_record_list_req;
	args.request = &req;
	r = abx_run(c, o, what->op, &args, &call, err);
	if (r < 0)
		return r;
	*ret_items = abx_results_take_all(call, what->type, what->fits, &req, ret_len);
	abx_call_unref(call);
	return 0;
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
