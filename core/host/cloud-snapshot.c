/* SPDX-License-Identifier: MIT */
/* The operations of a cloud that concern snapshots and images. */
#include <string.h>

#include "core/host/cloud-results.h"
#include "core/host/run.h"

static int32_t invoke_snapshot_create(const struct abx_cloud_backend *t, struct abx_session *s,
				      struct abx_call *call)
{
	return t->snapshot_create(s, call, call->sandbox.record, call->request.record);
}

static int32_t invoke_prepare(const struct abx_cloud_backend *t, struct abx_session *s,
			      struct abx_call *call)
{
	struct abx_prepare *req = call->request.record;

	req->context_fd = call->fds[0];
	req->from_fd = call->fds[1];
	return t->prepare(s, call, req);
}

#define INVOKE_LIST(op)                                                                      \
	static int32_t invoke_##op(const struct abx_cloud_backend *t, struct abx_session *s, \
				   struct abx_call *call)                                    \
	{                                                                                    \
		return t->op(s, call, call->request.record);                                 \
	}
#define INVOKE_REF(op)                                                                       \
	static int32_t invoke_##op(const struct abx_cloud_backend *t, struct abx_session *s, \
				   struct abx_call *call)                                    \
	{                                                                                    \
		const struct abx_plain_args *plain = call->plain.record;                     \
                                                                                             \
		return t->op(s, call, plain->text);                                          \
	}

INVOKE_LIST(snapshot_list)
INVOKE_LIST(image_list)
INVOKE_REF(snapshot_exists)
INVOKE_REF(snapshot_delete)
INVOKE_REF(image_delete)

static const struct abx_op op_snapshot_create = {"snapshot_create", invoke_snapshot_create, false,
						 false, false};
static const struct abx_op op_prepare = {"prepare", invoke_prepare, false, false, false};
static const struct abx_op op_snapshot_list = {"snapshot_list", invoke_snapshot_list, true, true,
					       false};
static const struct abx_op op_image_list = {"image_list", invoke_image_list, true, true, false};
static const struct abx_op op_snapshot_exists = {"snapshot_exists", invoke_snapshot_exists, true,
						 false, false};
static const struct abx_op op_snapshot_delete = {"snapshot_delete", invoke_snapshot_delete, true,
						 false, false};
static const struct abx_op op_image_delete = {"image_delete", invoke_image_delete, true, false,
					      false};

typedef int (*list_fn)(struct abx_cloud *c, const struct abx_call_opts *o,
		       const struct abx_kv *labels, uint32_t n_labels,
		       struct abx_snapshot_list *ret, struct abx_err *err);

/* The answer was lost, what was made perhaps not. */
static bool find_lost(struct abx_cloud *c, list_fn list, const struct abx_kv *labels,
		      uint32_t n_labels, struct abx_snapshot_copy *ret)
{
	const struct abx_call_opts o = {.timeout_ms = ABX_FIND_LOST_MS};
	struct abx_snapshot_list found = {NULL, 0};
	bool one;

	if (!n_labels || list(c, &o, labels, n_labels, &found, NULL) < 0)
		return false;
	one = found.len == 1;
	if (one) {
		*ret = found.items[0];
		found.len = 0;
	}
	abx_snapshot_list_release(&found);
	return one;
}

static int run_for_snapshot(struct abx_cloud *c, const struct abx_call_opts *o,
			    const struct abx_op *op, const struct abx_op_args *args,
			    struct abx_snapshot_copy *ret, struct abx_err *err)
{
	struct abx_call *call;
	bool any;
	int r = abx_run(c, o, op, args, &call, err);

	if (r < 0)
		return r;
	any = abx_results_take_last(call, &abx_record_snapshot, ret);
	abx_call_unref(call);
	return any ? 0 : abx_run_fail(c, op->name, ABX_EPROTO, err, "succeeded without a result");
}

static int finish(struct abx_cloud *c, int r, list_fn list, const struct abx_kv *labels,
		  uint32_t n_labels, const struct abx_err *why, struct abx_snapshot_copy *ret,
		  struct abx_err *err)
{
	if (r == 0)
		return 0;
	if (r != ABX_ECANCELED && why->outcome_unknown && find_lost(c, list, labels, n_labels, ret))
		return 0;
	if (err)
		*err = *why;
	return r;
}

int abx_cloud_snapshot_create(struct abx_cloud *c, const struct abx_call_opts *o,
			      const struct abx_sandbox *s, const struct abx_snapshot_req *req,
			      struct abx_snapshot_copy *ret, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_err why = ABX_ERR_INIT;

	if (!c->plugin->table.snapshot_create)
		return abx_run_cannot(c, "make snapshots", err);
	args.sandbox = s;
	args.type = &abx_record_snapshot_req;
	args.request = req;
	return finish(c, run_for_snapshot(c, o, &op_snapshot_create, &args, ret, &why),
		      abx_cloud_snapshot_list, req->labels, req->n_labels, &why, ret, err);
}

int abx_cloud_prepare(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_prepare *req, const struct abx_log_sink *log,
		      struct abx_snapshot_copy *ret, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_err why = ABX_ERR_INIT;

	if (!c->plugin->table.prepare)
		return abx_run_cannot(c, "prepare images", err);
	args.type = &abx_record_prepare;
	args.request = req;
	args.fds[0] = req->context_fd;
	args.fds[1] = req->from_fd;
	args.log = log;
	return finish(c, run_for_snapshot(c, o, &op_prepare, &args, ret, &why),
		      abx_cloud_image_list, req->labels, req->n_labels, &why, ret, err);
}

static bool snapshot_fits(const void *record, const struct abx_list_req *wanted)
{
	const struct abx_snapshot *s = record;

	return abx_results_has_labels(s->labels, s->n_labels, wanted);
}

static int run_list(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		    const struct abx_kv *labels, uint32_t n_labels, struct abx_snapshot_list *ret,
		    struct abx_err *err)
{
	const struct abx_listing what = {op, &abx_record_snapshot, snapshot_fits};
	void *items;
	int r = abx_results_list(c, o, &what, labels, n_labels, &items, &ret->len, err);

	if (r == 0)
		ret->items = items;
	return r;
}

int abx_cloud_snapshot_list(struct abx_cloud *c, const struct abx_call_opts *o,
			    const struct abx_kv *labels, uint32_t n_labels,
			    struct abx_snapshot_list *ret, struct abx_err *err)
{
	if (!c->plugin->table.snapshot_list)
		return abx_run_cannot(c, "list snapshots", err);
	return run_list(c, o, &op_snapshot_list, labels, n_labels, ret, err);
}

int abx_cloud_image_list(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_kv *labels, uint32_t n_labels,
			 struct abx_snapshot_list *ret, struct abx_err *err)
{
	if (!c->plugin->table.image_list)
		return abx_run_cannot(c, "list images", err);
	return run_list(c, o, &op_image_list, labels, n_labels, ret, err);
}

static bool listed(const struct abx_snapshot_list *list, const char *ref)
{
	for (size_t i = 0; i < list->len; i++)
		if (strcmp(list->items[i].s.ref, ref) == 0)
			return true;
	return false;
}

int abx_cloud_snapshot_exists(struct abx_cloud *c, const struct abx_call_opts *o, const char *ref,
			      bool *ret, struct abx_err *err)
{
	const struct abx_plain_args plain = {ABX_INIT(struct abx_plain_args), .text = ref};
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_snapshot_list list = {NULL, 0};
	struct abx_err why = ABX_ERR_INIT;
	int r;

	if (!c->plugin->table.snapshot_exists) {
		r = abx_cloud_snapshot_list(c, o, NULL, 0, &list, err);
		if (r == 0)
			*ret = listed(&list, ref);
		abx_snapshot_list_release(&list);
		return r;
	}
	args.plain = &plain;
	r = abx_run_plain(c, o, &op_snapshot_exists, &args, &why);
	if (r == 0 || r == ABX_ENOTFOUND) {
		*ret = r == 0;
		return 0;
	}
	if (err)
		*err = why;
	return r;
}

static int delete_ref(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		      const char *ref, struct abx_err *err)
{
	const struct abx_plain_args plain = {ABX_INIT(struct abx_plain_args), .text = ref};
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	args.plain = &plain;
	return abx_run_delete(c, o, op, &args, err);
}

int abx_cloud_snapshot_delete(struct abx_cloud *c, const struct abx_call_opts *o, const char *ref,
			      struct abx_err *err)
{
	if (!c->plugin->table.snapshot_delete)
		return abx_run_cannot(c, "delete snapshots", err);
	return delete_ref(c, o, &op_snapshot_delete, ref, err);
}

int abx_cloud_image_delete(struct abx_cloud *c, const struct abx_call_opts *o, const char *ref,
			   struct abx_err *err)
{
	if (!c->plugin->table.image_delete)
		return abx_run_cannot(c, "delete images", err);
	return delete_ref(c, o, &op_image_delete, ref, err);
}
