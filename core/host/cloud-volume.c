/* SPDX-License-Identifier: MIT */
/* The operations of a cloud that concern volumes. */
#include <string.h>

#include "core/host/cloud-results.h"
#include "core/host/run.h"

#define KIND "volume"

static int32_t invoke_ensure(const struct abx_cloud_backend *t, struct abx_session *s,
			     struct abx_call *call)
{
	return t->volume_ensure(s, call, call->request.record);
}

static int32_t invoke_list(const struct abx_cloud_backend *t, struct abx_session *s,
			   struct abx_call *call)
{
	return t->volume_list(s, call, call->request.record);
}

static int32_t invoke_delete(const struct abx_cloud_backend *t, struct abx_session *s,
			     struct abx_call *call)
{
	const struct abx_plain_args *plain = call->plain.record;

	return t->volume_delete(s, call, plain->text);
}

static const struct abx_op op_ensure = {"volume_ensure", invoke_ensure, false, false, false};
static const struct abx_op op_list = {"volume_list", invoke_list, true, true, false};
static const struct abx_op op_delete = {"volume_delete", invoke_delete, true, false, false};

static bool is_volume(const void *record, const struct abx_list_req *wanted)
{
	const struct abx_resource *res = record;

	return strcmp(res->kind, KIND) == 0 && res->id && *res->id &&
	       abx_results_has_labels(res->labels, res->n_labels, wanted);
}

int abx_cloud_volume_list(struct abx_cloud *c, const struct abx_call_opts *o,
			  const struct abx_kv *labels, uint32_t n_labels,
			  struct abx_resource_list *ret, struct abx_err *err)
{
	const struct abx_listing what = {&op_list, &abx_record_resource, is_volume};
	void *items;
	int r;

	if (!c->plugin->table.volume_list)
		return abx_run_cannot(c, "list volumes", err);
	r = abx_results_list(c, o, &what, labels, n_labels, &items, &ret->len, err);
	if (r == 0)
		ret->items = items;
	return r;
}

/* A volume is known by its name, whoever made it. */
static bool find_lost(struct abx_cloud *c, const char *name, struct abx_resource_copy *ret)
{
	const struct abx_call_opts o = {.timeout_ms = ABX_FIND_LOST_MS};
	struct abx_resource_list found = {NULL, 0};
	bool any = false;

	if (abx_cloud_volume_list(c, &o, NULL, 0, &found, NULL) < 0)
		return false;
	for (size_t i = 0; i < found.len && !any; i++) {
		struct abx_resource_copy *one = &found.items[i];

		any = one->r.name && strcmp(one->r.name, name) == 0;
		if (any) {
			*ret = *one;
			one->memory = NULL;
		}
	}
	abx_resource_list_release(&found);
	return any;
}

static int ensure(struct abx_cloud *c, const struct abx_call_opts *o,
		  const struct abx_volume_req *req, struct abx_resource_copy *ret,
		  struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_call *call;
	bool any;
	int r;

	args.type = &abx_record_volume_req;
	args.request = req;
	r = abx_run(c, o, &op_ensure, &args, &call, err);
	if (r < 0)
		return r;
	any = abx_results_take_last(call, &abx_record_resource, ret);
	abx_call_unref(call);
	if (any && is_volume(&ret->r, NULL))
		return 0;
	if (any)
		abx_resource_copy_release(ret);
	return abx_run_fail(c, op_ensure.name, ABX_EPROTO, err, "succeeded without a volume");
}

int abx_cloud_volume_ensure(struct abx_cloud *c, const struct abx_call_opts *o,
			    const struct abx_volume_req *req, struct abx_resource_copy *ret,
			    struct abx_err *err)
{
	struct abx_resource_copy got;
	struct abx_err why = ABX_ERR_INIT;
	int r;

	if (!c->plugin->table.volume_ensure)
		return abx_run_cannot(c, "keep volumes", err);
	r = ensure(c, o, req, &got, &why);
	if (r < 0 && r != ABX_ECANCELED && why.outcome_unknown && find_lost(c, req->name, &got))
		r = 0;
	if (r == 0)
		*ret = got;
	else if (err)
		*err = why;
	return r;
}

int abx_cloud_volume_delete(struct abx_cloud *c, const struct abx_call_opts *o, const char *id,
			    struct abx_err *err)
{
	const struct abx_plain_args plain = {ABX_INIT(struct abx_plain_args), .text = id};
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.volume_delete)
		return abx_run_cannot(c, "delete volumes", err);
	args.plain = &plain;
	return abx_run_delete(c, o, &op_delete, &args, err);
}
