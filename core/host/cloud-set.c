/* SPDX-License-Identifier: MIT */
/* The operations of a cloud that change a sandbox which is there. */
#include "core/host/cloud-results.h"
#include "core/host/run.h"

#define INVOKE(op)                                                                           \
	static int32_t invoke_##op(const struct abx_cloud_backend *t, struct abx_session *s, \
				   struct abx_call *call)                                    \
	{                                                                                    \
		return t->op(s, call, call->sandbox.record, call->request.record);           \
	}

INVOKE(pause)
INVOKE(resume)
INVOKE(set_egress)
INVOKE(set_inbound)

static int32_t invoke_renew(const struct abx_cloud_backend *t, struct abx_session *s,
			    struct abx_call *call)
{
	const struct abx_plain_args *plain = call->plain.record;

	return t->renew(s, call, call->sandbox.record, plain->a, plain->b);
}

static int32_t invoke_repair(const struct abx_cloud_backend *t, struct abx_session *s,
			     struct abx_call *call)
{
	return t->repair(s, call, call->sandbox.record);
}

static int32_t invoke_exec_signal(const struct abx_cloud_backend *t, struct abx_session *s,
				  struct abx_call *call)
{
	const struct abx_plain_args *plain = call->plain.record;

	return t->exec_signal(s, call, call->sandbox.record, plain->text, (int32_t)plain->a);
}

static int32_t invoke_command(const struct abx_cloud_backend *t, struct abx_session *s,
			      struct abx_call *call)
{
	const struct abx_plain_args *plain = call->plain.record;

	return t->command(s, call, call->sandbox.record, plain->argv);
}

static const struct abx_op op_pause = {"pause", invoke_pause, true, false, false};
static const struct abx_op op_resume = {"resume", invoke_resume, true, false, false};
static const struct abx_op op_set_egress = {"set_egress", invoke_set_egress, true, false, false};
static const struct abx_op op_set_inbound = {"set_inbound", invoke_set_inbound, true, false, false};
static const struct abx_op op_renew = {"renew", invoke_renew, true, false, false};
static const struct abx_op op_renew_once = {"renew", invoke_renew, false, false, false};
static const struct abx_op op_repair = {"repair", invoke_repair, true, false, false};
static const struct abx_op op_exec_signal = {"exec_signal", invoke_exec_signal, false, false, true};
static const struct abx_op op_command = {"command", invoke_command, false, false, false};

int abx_cloud_pause(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const struct abx_stop_req *req, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.pause)
		return abx_run_cannot(c, "pause boxes", err);
	args.sandbox = s;
	args.type = &abx_record_stop_req;
	args.request = req;
	return abx_run_plain(c, o, &op_pause, &args, err);
}

int abx_cloud_resume(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_start_req *req,
		     struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.resume)
		return abx_run_cannot(c, "resume boxes", err);
	args.sandbox = s;
	args.type = &abx_record_start_req;
	args.request = req;
	return abx_run_plain(c, o, &op_resume, &args, err);
}

int abx_cloud_renew(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    int64_t target_ms, int64_t current_ms, struct abx_err *err)
{
	const struct abx_plain_args plain = {ABX_INIT(struct abx_plain_args), .a = target_ms,
					     .b = current_ms};
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.renew)
		return abx_run_cannot(c, "extend the life of boxes", err);
	args.sandbox = s;
	args.plain = &plain;
	return abx_run_plain(c, o,
			     abx_cloud_caps(c) & ABX_CAP_TIMEOUT_ADDS ? &op_renew_once : &op_renew,
			     &args, err);
}

static int set_policy(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
		      const struct abx_sandbox *s, const struct abx_policy *req,
		      struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	args.sandbox = s;
	args.type = &abx_record_policy;
	args.request = req;
	return abx_run_plain(c, o, op, &args, err);
}

int abx_cloud_set_egress(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_sandbox *s, const struct abx_policy *req,
			 struct abx_err *err)
{
	if (!c->plugin->table.set_egress)
		return abx_run_cannot(c, "change the egress of a box that exists", err);
	return set_policy(c, o, &op_set_egress, s, req, err);
}

int abx_cloud_set_inbound(struct abx_cloud *c, const struct abx_call_opts *o,
			  const struct abx_sandbox *s, const struct abx_policy *req,
			  struct abx_err *err)
{
	if (!c->plugin->table.set_inbound)
		return abx_run_cannot(c, "change who reaches a box", err);
	return set_policy(c, o, &op_set_inbound, s, req, err);
}

int abx_cloud_repair(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.repair)
		return abx_run_cannot(c, "repair the way to a box", err);
	args.sandbox = s;
	return abx_run_plain(c, o, &op_repair, &args, err);
}

int abx_cloud_exec_signal(struct abx_cloud *c, const struct abx_call_opts *o,
			  const struct abx_sandbox *s, const char *exec_id, int signo,
			  struct abx_err *err)
{
	const struct abx_plain_args plain = {ABX_INIT(struct abx_plain_args), .text = exec_id,
					     .a = signo};
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.exec_signal)
		return abx_run_cannot(c, "send signals to commands", err);
	args.sandbox = s;
	args.plain = &plain;
	return abx_run_plain(c, o, &op_exec_signal, &args, err);
}

int abx_cloud_command(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const char *const *argv,
		      const struct abx_log_sink *log, struct abx_row_list *ret, struct abx_err *err)
{
	const struct abx_plain_args plain = {ABX_INIT(struct abx_plain_args), .argv = argv};
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_call *call;
	int r;

	if (!c->plugin->table.command)
		return abx_run_cannot(c, "run subcommands of its own", err);
	args.sandbox = s;
	args.plain = &plain;
	args.log = log;
	r = abx_run(c, o, &op_command, &args, &call, err);
	if (r < 0)
		return r;
	abx_results_take_rows(call, ret);
	abx_call_unref(call);
	return 0;
}
