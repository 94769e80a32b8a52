/* SPDX-License-Identifier: MIT */
/* Results from a provider: checked, copied, and made durable where that is promised. */
#include <string.h>

#include "core/host/hostapi.h"
#include "core/state/journal.h"
#include "core/util/log.h"
#include "core/util/mem.h"

/* Of one call; a provider that passes it is in a loop. */
#define MAX_RESULTS 100000

static void keep(struct abx_call *call, const struct abx_result *result)
{
	/* Outside of lists only the last one counts. */
	if (!call->sink.is_list && result->type != &abx_record_row) {
		for (size_t i = 0; i < call->n_results; i++) {
			if (call->results[i].type == result->type) {
				abx_result_release(&call->results[i]);
				call->results[i] = *result;
				return;
			}
		}
	}
	if (call->n_results == call->results_cap) {
		call->results_cap = call->results_cap ? call->results_cap * 2 : 4;
		call->results =
			abx_xreallocarray(call->results, call->results_cap, sizeof(*call->results));
	}
	call->results[call->n_results++] = *result;
}

/* Does the record name this very sandbox already?  Then only its state is new. */
static bool is_known(struct abx_db *db, const char *box_id, const struct abx_sandbox *s)
{
	struct abx_box box = {0};
	bool same = false;

	if (abx_boxes_load(db, box_id, &box, NULL) == 0)
		same = box.sandbox_id && s->id && strcmp(box.sandbox_id, s->id) == 0 &&
		       (!s->provider_data ||
			(box.provider_data && strcmp(box.provider_data, s->provider_data) == 0));
	abx_box_release(&box);
	return same;
}

static int store_sandbox(struct abx_db *db, const char *box_id, const struct abx_sandbox *s,
			 struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	int r = abx_boxes_set_sandbox(db, box_id, s, &why);

	/* No room on the disk is no reason to fail what has been done: whoever asks for the
	 * state of the box next is told anew. */
	if (r == ABX_EIO && is_known(db, box_id, s)) {
		abx_log(ABX_LOG_INFO, "host", "%s", why.text);
		return 0;
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int store(struct abx_call *call, const struct abx_result *result, struct abx_err *err)
{
	const struct abx_call_sink *to = &call->sink;

	if (!to->ctx || !to->ctx->db || to->is_list)
		return 0;
	if (result->type == &abx_record_sandbox && to->box_id)
		return store_sandbox(to->ctx->db, to->box_id, result->record, err);
	if (result->type == &abx_record_resource)
		return abx_resources_note_of(to->ctx->db, to->provider, to->box_id, to->attempt,
					     result->record, result->phase, err);
	if (result->type == &abx_record_snapshot && to->attempt)
		return abx_resources_made(to->ctx->db, to->attempt,
					  ((const struct abx_snapshot *)result->record)->ref, err);
	return 0;
}

/* A change that somebody waits for; whoever watches for some labels wants no other. */
static int show(struct abx_call *call, const struct abx_sandbox *s)
{
	const struct abx_watcher *to = call->sink.watcher;
	const struct abx_list_req *wanted = call->request.record;

	if (!abx_sandbox_has_labels(s, wanted->labels, wanted->n_labels))
		return 0;
	call->delivered = true;
	return to->changed(to->ctx, s) ? ABX_ECANCELED : 0;
}

static int accept(struct abx_call *call, const struct abx_record_type *type, const void *src,
		  uint32_t phase, struct abx_err *err)
{
	struct abx_result result = {.type = type, .phase = phase};
	int r;

	if (call->n_results >= MAX_RESULTS)
		return abx_err_set(err, ABX_EPROTO, "more than %d results", MAX_RESULTS);
	result.record = abx_xcalloc(1, type->size);
	r = abx_record_copy(type, src, result.record, &result.memory, err);
	if (r < 0)
		(void)abx_err_wrap(err, "broken result");
	if (r == 0 && call->sink.watcher && type == &abx_record_sandbox) {
		r = show(call, result.record);
		abx_result_release(&result);
		return r;
	}
	if (r == 0)
		r = store(call, &result, err);
	if (r < 0) {
		abx_result_release(&result);
		return r;
	}
	keep(call, &result);
	return 0;
}

static int32_t emit(struct abx_call *call, const struct abx_record_type *type, const void *src,
		    uint32_t phase)
{
	struct abx_err err = ABX_ERR_INIT;
	int r;

	if (!abx_call_enter(call))
		return ABX_ECANCELED;
	r = accept(call, type, src, phase, &err);
	if (err.code && !call->broken.code)
		call->broken = err;
	abx_call_leave(call);
	return r < ABX_EBROKEN ? ABX_EIO : r;
}

int32_t abx_emit_sandbox(struct abx_call *call, const struct abx_sandbox *s)
{
	return emit(call, &abx_record_sandbox, s, 0);
}

int32_t abx_emit_resource(struct abx_call *call, const struct abx_resource *res, uint32_t phase)
{
	return emit(call, &abx_record_resource, res, phase);
}

int32_t abx_emit_snapshot(struct abx_call *call, const struct abx_snapshot *s)
{
	return emit(call, &abx_record_snapshot, s, 0);
}

int32_t abx_emit_url(struct abx_call *call, const struct abx_url *u)
{
	return emit(call, &abx_record_url, u, 0);
}

int32_t abx_emit_ssh(struct abx_call *call, const struct abx_ssh *s)
{
	return emit(call, &abx_record_ssh, s, 0);
}

int32_t abx_emit_file(struct abx_call *call, const struct abx_file *f)
{
	return emit(call, &abx_record_file, f, 0);
}

int32_t abx_emit_rate(struct abx_call *call, const struct abx_rate *r)
{
	return emit(call, &abx_record_rate, r, 0);
}

int32_t abx_emit_usage(struct abx_call *call, const struct abx_usage *u)
{
	return emit(call, &abx_record_usage, u, 0);
}

int32_t abx_emit_row(struct abx_call *call, const struct abx_kv *cells, uint32_t n)
{
	const struct abx_row_record row = {ABX_INIT(struct abx_row_record), n, cells};

	return emit(call, &abx_record_row, &row, 0);
}

int32_t abx_emit_log(struct abx_call *call, int32_t stream, const void *data, size_t len)
{
	const struct abx_log_sink *to;
	const struct abx_host_ctx *ctx;
	int32_t r = ABX_OK;

	if (stream != ABX_STREAM_STDOUT && stream != ABX_STREAM_STDERR)
		return ABX_EPROTO;
	if (!abx_call_enter(call))
		return ABX_ECANCELED;
	to = call->sink.log;
	ctx = call->sink.ctx;
	if (len)
		call->delivered = true;
	if (to && len)
		r = to->output(to->ctx, stream, data, len) ? ABX_ECANCELED : ABX_OK;
	else if (ctx && ctx->log_output && len)
		ctx->log_output(ctx->log_ctx, stream, data, len);
	abx_call_leave(call);
	return r;
}
