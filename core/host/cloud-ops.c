/* SPDX-License-Identifier: MIT */
/* The operations of a cloud that concern sandboxes. */
#include <string.h>

#include "core/host/cloud-results.h"
#include "core/host/run.h"
#include "core/util/mem.h"

/* An operation whose request is one struct beside the sandbox. */
#define INVOKE(op)                                                                           \
	static int32_t invoke_##op(const struct abx_cloud_backend *t, struct abx_session *s, \
				   struct abx_call *call)                                    \
	{                                                                                    \
		return t->op(s, call, call->sandbox.record, call->request.record);           \
	}

INVOKE(start)
INVOKE(stop)
INVOKE(destroy)

static int32_t invoke_verify(const struct abx_cloud_backend *t, struct abx_session *s,
			     struct abx_call *call)
{
	return t->verify(s, call);
}

static int32_t invoke_doctor(const struct abx_cloud_backend *t, struct abx_session *s,
			     struct abx_call *call)
{
	return t->doctor(s, call);
}

static int32_t invoke_provision(const struct abx_cloud_backend *t, struct abx_session *s,
				struct abx_call *call)
{
	return t->provision(s, call, call->request.record);
}

static int32_t invoke_get(const struct abx_cloud_backend *t, struct abx_session *s,
			  struct abx_call *call)
{
	return t->get(s, call, call->sandbox.record);
}

static int32_t invoke_list(const struct abx_cloud_backend *t, struct abx_session *s,
			   struct abx_call *call)
{
	return t->list(s, call, call->request.record);
}

static int32_t invoke_resource_delete(const struct abx_cloud_backend *t, struct abx_session *s,
				      struct abx_call *call)
{
	return t->resource_delete(s, call, call->request.record);
}

static const struct abx_op op_verify = {"verify", invoke_verify, true, true, false};
static const struct abx_op op_doctor = {"doctor", invoke_doctor, true, true, false};
static const struct abx_op op_provision = {"provision", invoke_provision, false, false, false};
static const struct abx_op op_get = {"get", invoke_get, true, false, false};
static const struct abx_op op_list = {"list", invoke_list, true, true, false};
static const struct abx_op op_start = {"start", invoke_start, true, false, false};
static const struct abx_op op_stop = {"stop", invoke_stop, true, false, false};
static const struct abx_op op_destroy = {"destroy", invoke_destroy, true, false, false};
static const struct abx_op op_resource_delete = {"resource_delete", invoke_resource_delete, true,
						 false, false};

int abx_cloud_verify(struct abx_cloud *c, const struct abx_call_opts *o, char **ret_account,
		     struct abx_err *err)
{
	const struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_row_list rows;
	struct abx_call *call;
	char *account = NULL;
	int r;

	if (!c->plugin->table.verify) {
		*ret_account = NULL;
		return 0;
	}
	r = abx_run(c, o, &op_verify, &args, &call, err);
	if (r < 0)
		return r;
	abx_results_take_rows(call, &rows);
	abx_call_unref(call);
	for (size_t i = 0; i < rows.len && !account; i++)
		account = abx_xstrdup_null(abx_row_get(&rows.items[i], "account"));
	abx_row_list_release(&rows);
	*ret_account = account;
	return 0;
}

int abx_cloud_doctor(struct abx_cloud *c, const struct abx_call_opts *o, struct abx_row_list *ret,
		     struct abx_err *err)
{
	static const struct abx_row_list no_rows = {NULL, 0};
	const struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_call *call;
	int r;

	if (!c->plugin->table.doctor) {
		*ret = no_rows;
		return 0;
	}
	r = abx_run(c, o, &op_doctor, &args, &call, err);
	if (r < 0)
		return r;
	abx_results_take_rows(call, ret);
	abx_call_unref(call);
	return 0;
}

/* An operation whose result is a sandbox. */
static int run_for_sandbox(struct abx_cloud *c, const struct abx_call_opts *o,
			   const struct abx_op *op, const struct abx_op_args *args,
			   struct abx_sandbox_copy *ret, struct abx_err *err)
{
	struct abx_sandbox_copy found;
	struct abx_call *call;
	bool any;
	int r = abx_run(c, o, op, args, &call, err);

	if (r < 0)
		return r;
	any = abx_results_take_last(call, &abx_record_sandbox, &found);
	abx_call_unref(call);
	if (!any)
		return abx_run_fail(c, op->name, ABX_EPROTO, err, "succeeded without a sandbox");
	if (args->sandbox && args->sandbox->id && strcmp(args->sandbox->id, found.s.id) != 0) {
		abx_sandbox_copy_release(&found);
		return abx_run_fail(c, op->name, ABX_EPROTO, err, "answered with another sandbox");
	}
	*ret = found;
	return 0;
}

int abx_cloud_provision(struct abx_cloud *c, const struct abx_call_opts *o,
			const struct abx_provision *req, struct abx_sandbox_copy *ret,
			struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	args.type = &abx_record_provision;
	args.request = req;
	return run_for_sandbox(c, o, &op_provision, &args, ret, err);
}

int abx_cloud_get(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		  struct abx_sandbox_copy *ret, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	args.sandbox = s;
	return run_for_sandbox(c, o, &op_get, &args, ret, err);
}

static bool sandbox_fits(const void *record, const struct abx_list_req *wanted)
{
	const struct abx_sandbox *s = record;

	return abx_results_has_labels(s->labels, s->n_labels, wanted);
}

int abx_cloud_list(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_kv *labels,
		   uint32_t n_labels, struct abx_sandbox_list *ret, struct abx_err *err)
{
	const struct abx_listing what = {&op_list, &abx_record_sandbox, sandbox_fits};
	void *items;
	int r = abx_results_list(c, o, &what, labels, n_labels, &items, &ret->len, err);

	if (r == 0)
		ret->items = items;
	return r;
}

int abx_cloud_start(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const struct abx_start_req *req, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	args.sandbox = s;
	args.type = &abx_record_start_req;
	args.request = req;
	return abx_run_plain(c, o, &op_start, &args, err);
}

static int run_stop(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		    const struct abx_sandbox *s, const struct abx_stop_req *req,
		    struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	args.sandbox = s;
	args.type = &abx_record_stop_req;
	args.request = req;
	return abx_run_plain(c, o, op, &args, err);
}

int abx_cloud_stop(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		   const struct abx_stop_req *req, struct abx_err *err)
{
	return run_stop(c, o, &op_stop, s, req, err);
}

int abx_cloud_destroy(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const struct abx_stop_req *req,
		      struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	int r = run_stop(c, o, &op_destroy, s, req, &why);

	/* What is gone is destroyed, whatever a provider calls it. */
	if (r == 0 || r == ABX_ENOTFOUND)
		return 0;
	if (err)
		*err = why;
	return r;
}

int abx_cloud_resource_delete(struct abx_cloud *c, const struct abx_call_opts *o,
			      const struct abx_resource *res, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.resource_delete)
		return abx_run_cannot(c, "delete what it made beside a box", err);
	args.type = &abx_record_resource;
	args.request = res;
	return abx_run_delete(c, o, &op_resource_delete, &args, err);
}
