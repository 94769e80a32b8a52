/* SPDX-License-Identifier: MIT */
/* The operations of a cloud that look at sandboxes, and at what surrounds them. */
#include <string.h>

#include "core/host/cloud-results.h"
#include "core/host/exec-ctl.h"
#include "core/host/run.h"
#include "core/util/redact.h"

#define INVOKE_SANDBOX(op)                                                                   \
	static int32_t invoke_##op(const struct abx_cloud_backend *t, struct abx_session *s, \
				   struct abx_call *call)                                    \
	{                                                                                    \
		return t->op(s, call, call->sandbox.record);                                 \
	}

#define INVOKE_REQUEST(op)                                                                   \
	static int32_t invoke_##op(const struct abx_cloud_backend *t, struct abx_session *s, \
				   struct abx_call *call)                                    \
	{                                                                                    \
		return t->op(s, call, call->request.record);                                 \
	}

INVOKE_SANDBOX(stats)
INVOKE_SANDBOX(rates)
INVOKE_SANDBOX(usage)
INVOKE_SANDBOX(ssh)
INVOKE_REQUEST(watch)
INVOKE_REQUEST(resource_list)

static int32_t invoke_logs(const struct abx_cloud_backend *t, struct abx_session *s,
			   struct abx_call *call)
{
	return t->logs(s, call, call->sandbox.record, call->request.record);
}

static int32_t invoke_url(const struct abx_cloud_backend *t, struct abx_session *s,
			  struct abx_call *call)
{
	return t->url(s, call, call->sandbox.record, call->request.record);
}

static int32_t invoke_list_files(const struct abx_cloud_backend *t, struct abx_session *s,
				 struct abx_call *call)
{
	const struct abx_plain_args *plain = call->plain.record;

	return t->list_files(s, call, call->sandbox.record, plain->text);
}

static int32_t invoke_choices(const struct abx_cloud_backend *t, struct abx_session *s,
			      struct abx_call *call)
{
	const struct abx_plain_args *plain = call->plain.record;

	return t->choices(s, call, plain->text);
}

static const struct abx_op op_watch = {"watch", invoke_watch, true, true, false};
static const struct abx_op op_stats = {"stats", invoke_stats, true, false, false};
static const struct abx_op op_logs = {"logs", invoke_logs, true, false, false};
static const struct abx_op op_rates = {"rates", invoke_rates, true, true, false};
static const struct abx_op op_usage = {"usage", invoke_usage, true, false, false};
static const struct abx_op op_url = {"url", invoke_url, true, false, false};
static const struct abx_op op_ssh = {"ssh", invoke_ssh, true, false, false};
static const struct abx_op op_list_files = {"list_files", invoke_list_files, true, true, false};
static const struct abx_op op_choices = {"choices", invoke_choices, true, true, false};
static const struct abx_op op_resource_list = {"resource_list", invoke_resource_list, true, true,
					       false};

int abx_cloud_watch(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_kv *labels,
		    uint32_t n_labels, const struct abx_watcher *to, struct abx_err *err)
{
	const struct abx_list_req req = {ABX_INIT(struct abx_list_req), n_labels, labels};
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.watch)
		return abx_run_cannot(c, "watch boxes", err);
	args.type = &abx_record_list_req;
	args.request = &req;
	args.watcher = to;
	return abx_run_plain(c, o, &op_watch, &args, err);
}

/* An operation whose results are rows. */
static int run_for_rows(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_op *op,
			const struct abx_op_args *args, struct abx_row_list *ret,
			struct abx_err *err)
{
	struct abx_call *call;
	int r = abx_run(c, o, op, args, &call, err);

	if (r < 0)
		return r;
	abx_results_take_rows(call, ret);
	abx_call_unref(call);
	return 0;
}

int abx_cloud_stats(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    struct abx_row_list *ret, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.stats)
		return abx_run_cannot(c, "say what a box uses", err);
	args.sandbox = s;
	return run_for_rows(c, o, &op_stats, &args, ret, err);
}

int abx_cloud_choices(struct abx_cloud *c, const struct abx_call_opts *o, const char *option,
		      struct abx_row_list *ret, struct abx_err *err)
{
	const struct abx_plain_args plain = {ABX_INIT(struct abx_plain_args), .text = option};
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.choices)
		return abx_run_cannot(c, "say what may be chosen", err);
	args.plain = &plain;
	return run_for_rows(c, o, &op_choices, &args, ret, err);
}

int abx_cloud_logs(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		   const struct abx_logs_req *req, const struct abx_log_sink *to,
		   struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;

	if (!c->plugin->table.logs)
		return abx_run_cannot(c, "give out the logs of a box", err);
	args.sandbox = s;
	args.type = &abx_record_logs_req;
	args.request = req;
	args.log = to;
	return abx_run_plain(c, o, &op_logs, &args, err);
}

int abx_cloud_rates(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    struct abx_rate_list *ret, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_call *call;
	int r;

	if (!c->plugin->table.rates)
		return abx_run_cannot(c, "say what a box costs", err);
	args.sandbox = s;
	r = abx_run(c, o, &op_rates, &args, &call, err);
	if (r < 0)
		return r;
	ret->items = abx_results_take_all(call, &abx_record_rate, NULL, NULL, &ret->len);
	abx_call_unref(call);
	return 0;
}

static bool usage_makes_sense(const struct abx_usage *u)
{
	return u->started_ms >= 0 && u->billed_ms >= 0 && u->cpu_ms >= 0 &&
	       (u->ended_ms == 0 || u->ended_ms >= u->started_ms);
}

int abx_cloud_usage(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    struct abx_usage *ret, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct {
		struct abx_usage u;
		void *memory;
	} got;
	struct abx_call *call;
	bool any;
	int r;

	if (!c->plugin->table.usage)
		return abx_run_cannot(c, "say what a box has used", err);
	args.sandbox = s;
	r = abx_run(c, o, &op_usage, &args, &call, err);
	if (r < 0)
		return r;
	any = abx_results_take_last(call, &abx_record_usage, &got);
	abx_call_unref(call);
	if (!any)
		return abx_run_fail(c, "usage", ABX_EPROTO, err, "succeeded without a result");
	free(got.memory);
	if (!usage_makes_sense(&got.u))
		return abx_run_fail(c, "usage", ABX_EPROTO, err, "impossible times");
	*ret = got.u;
	return 0;
}

/* http and https only: what comes back is opened by browsers and shown to people. */
static bool is_web_url(const char *url)
{
	const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
			   : strncmp(url, "http://", 7) == 0 ? url + 7
							     : NULL;

	return host && *host && *host != '/' && !strpbrk(url, " \"'<>\\^`{|}");
}

int abx_cloud_url(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		  const struct abx_url_req *req, struct abx_url_copy *ret, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_url_copy got;
	struct abx_call *call;
	bool any;
	int r;

	if (!c->plugin->table.url)
		return abx_run_cannot(c, "make the ports of a box reachable", err);
	args.sandbox = s;
	args.type = &abx_record_url_req;
	args.request = req;
	r = abx_run(c, o, &op_url, &args, &call, err);
	if (r < 0)
		return r;
	any = abx_results_take_last(call, &abx_record_url, &got);
	abx_call_unref(call);
	if (!any)
		return abx_run_fail(c, "url", ABX_EPROTO, err, "succeeded without a url");
	if (got.u.token && *got.u.token)
		abx_redact_add(got.u.token);
	if (!is_web_url(got.u.url)) {
		abx_url_copy_release(&got);
		return abx_run_fail(c, "url", ABX_EPROTO, err, "the answer is no web address");
	}
	if (got.u.box_port > UINT16_MAX)
		r = abx_run_fail(c, "url", ABX_EPROTO, err, "the answer names no port of the box");
	else if (got.u.box_port)
		r = abx_ctl_forward(c, o, s, got.u.box_port, req->port, err);
	if (r < 0)
		abx_url_copy_release(&got);
	else
		*ret = got;
	return r;
}

int abx_cloud_ssh(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		  struct abx_ssh_copy *ret, struct abx_err *err)
{
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_ssh_copy got;
	struct abx_call *call;
	bool any;
	int r;

	if (!c->plugin->table.ssh)
		return abx_run_cannot(c, "be reached by ssh", err);
	args.sandbox = s;
	r = abx_run(c, o, &op_ssh, &args, &call, err);
	if (r < 0)
		return r;
	any = abx_results_take_last(call, &abx_record_ssh, &got);
	abx_call_unref(call);
	if (!any)
		return abx_run_fail(c, "ssh", ABX_EPROTO, err, "succeeded without an address");
	/* ssh would take it for an option. */
	if (got.s.host[0] == '-' || (got.s.user && got.s.user[0] == '-') || got.s.port > 65535) {
		abx_ssh_copy_release(&got);
		return abx_run_fail(c, "ssh", ABX_EPROTO, err, "an impossible address");
	}
	*ret = got;
	return 0;
}

static bool is_file_name(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/');
}

int abx_cloud_list_files(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_sandbox *s, const char *dir, struct abx_file_list *ret,
			 struct abx_err *err)
{
	const struct abx_plain_args plain = {ABX_INIT(struct abx_plain_args), .text = dir};
	struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_file_list list;
	struct abx_call *call;
	int r;

	if (!c->plugin->table.list_files)
		return abx_run_cannot(c, "list files", err);
	args.sandbox = s;
	args.plain = &plain;
	r = abx_run(c, o, &op_list_files, &args, &call, err);
	if (r < 0)
		return r;
	list.items = abx_results_take_all(call, &abx_record_file, NULL, NULL, &list.len);
	abx_call_unref(call);
	for (size_t i = 0; i < list.len; i++) {
		if (is_file_name(list.items[i].f.name))
			continue;
		abx_file_list_release(&list);
		return abx_run_fail(c, "list_files", ABX_EPROTO, err, "an impossible file name");
	}
	*ret = list;
	return 0;
}

static bool resource_fits(const void *record, const struct abx_list_req *wanted)
{
	const struct abx_resource *res = record;

	return abx_results_has_labels(res->labels, res->n_labels, wanted);
}

int abx_cloud_resource_list(struct abx_cloud *c, const struct abx_call_opts *o,
			    const struct abx_kv *labels, uint32_t n_labels,
			    struct abx_resource_list *ret, struct abx_err *err)
{
	const struct abx_listing what = {&op_resource_list, &abx_record_resource, resource_fits};
	void *items;
	int r;

	if (!c->plugin->table.resource_list)
		return abx_run_cannot(c, "list what it made beside boxes", err);
	r = abx_results_list(c, o, &what, labels, n_labels, &items, &ret->len, err);
	if (r == 0)
		ret->items = items;
	return r;
}
