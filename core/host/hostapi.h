/* SPDX-License-Identifier: MIT */
/*
 * core/host/hostapi.h: the table of functions that a provider gets from us.
 *
 * hostapi.c answers questions and takes words; emit.c takes results.  All of it runs on the
 * thread of the operation, and does nothing for a call that was abandoned.
 */
#ifndef ABX_HOSTAPI_H
#define ABX_HOSTAPI_H

#include "core/host/call.h"

const struct abx_host *abx_hostapi(void);

/* A provider's return value as a code of ours: unknown negative ones are ABX_EINTERNAL,
 * positive ones ABX_EPROTO. */
int abx_hostapi_code(int32_t code);
/* What a code means, for a provider that says nothing. */
const char *abx_hostapi_code_text(int32_t code);

/* Lock the call for a callback; false (and not locked) when it was abandoned. */
bool abx_call_enter(struct abx_call *call);
void abx_call_leave(struct abx_call *call);

/* emit.c */
int32_t abx_emit_sandbox(struct abx_call *call, const struct abx_sandbox *s);
int32_t abx_emit_resource(struct abx_call *call, const struct abx_resource *res, uint32_t phase);
int32_t abx_emit_snapshot(struct abx_call *call, const struct abx_snapshot *s);
int32_t abx_emit_url(struct abx_call *call, const struct abx_url *u);
int32_t abx_emit_ssh(struct abx_call *call, const struct abx_ssh *s);
int32_t abx_emit_file(struct abx_call *call, const struct abx_file *f);
int32_t abx_emit_rate(struct abx_call *call, const struct abx_rate *r);
int32_t abx_emit_usage(struct abx_call *call, const struct abx_usage *u);
int32_t abx_emit_row(struct abx_call *call, const struct abx_kv *cells, uint32_t n);
int32_t abx_emit_log(struct abx_call *call, int32_t stream, const void *data, size_t len);

#endif
