/* SPDX-License-Identifier: MIT */
/* What a box costs, how long it has run, and what it uses. */
#include <string.h>

#include "abxsdk/clock.h"
#include "providers/e2b/e2b.h"

#define NUMBER 32

/* Of the public price list; a cluster of one's own costs what it costs. */
int32_t e2b_rates(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	const struct abx_rate running = {ABX_INIT(struct abx_rate),
					 .state = ABX_STATE_RUNNING,
					 .nano_per_cpu_s = 14000,
					 .nano_per_gib_s = 4500,
					 .quantum_s = 1,
					 .currency = "USD",
					 .as_of = "2026-08-01"};
	const struct abx_rate paused = {ABX_INIT(struct abx_rate), .state = ABX_STATE_PAUSED,
					.quantum_s = 1, .currency = "USD", .as_of = "2026-08-01"};
	int32_t r;

	(void)sb;
	if (strcmp(s->domain, E2B_DOMAIN) != 0)
		return abx_fail(call, ABX_ENOTSUP, NULL,
				"what a sandbox costs at %.200s is not known", s->domain);
	r = abx_plugin_host->emit_rate(call, &running);
	return r == ABX_OK ? abx_plugin_host->emit_rate(call, &paused) : r;
}

/* By the clock, of the run under way: the service has no meter that can be asked. */
int32_t e2b_usage(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	struct abx_usage u = {ABX_INIT(struct abx_usage)};
	cJSON *doc = NULL;
	int32_t r = e2b_inspect(s, call, sb->id, &doc);

	if (r == ABX_OK) {
		bool paused = strcmp(abx_json_get_text(doc, "state"), "paused") == 0;

		u.started_ms = abx_rfc3339_ms(abx_json_get_text(doc, "startedAt"));
		u.ended_ms = paused ? abx_rfc3339_ms(abx_json_get_text(doc, "endAt")) : 0;
		u.billed_ms = (paused ? u.ended_ms : abx_realtime_ms()) - u.started_ms;
		if (u.billed_ms < 0 || !u.started_ms)
			u.billed_ms = 0;
		r = abx_plugin_host->emit_usage(call, &u);
	}
	cJSON_Delete(doc);
	return r;
}

static const char *number(char text[NUMBER], const cJSON *obj, const char *key, int64_t factor)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(obj, key);

	(void)snprintf(text, NUMBER, "%lld",
		       cJSON_IsNumber(n) && n->valuedouble > 0 && n->valuedouble < 1e15
			       ? (long long)(n->valuedouble * (double)factor)
			       : 0);
	return text;
}

static int32_t emit_figures(struct abx_call *call, const cJSON *last)
{
	char text[4][NUMBER];
	const struct abx_kv row[] = {
		{"kind", "box"},
		{"cpu_limit_milli", number(text[0], last, "cpuCount", 1000)},
		{"mem_bytes", number(text[1], last, "memUsed", 1)},
		{"mem_limit_bytes", number(text[2], last, "memTotal", 1)},
		{"disk_bytes", number(text[3], last, "diskUsed", 1)},
	};

	return abx_plugin_host->emit_row(call, row, ABX_N_ELEMENTS(row));
}

/* The last figures; a sandbox has none in its first seconds. */
int32_t e2b_stats(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	const struct e2b_request q = {.method = "GET", .idempotent = true};
	struct e2b_answer a;
	int32_t r;

	if (!e2b_is_id(sb->id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	r = e2b_ask(s, call, &q, &a, "/sandboxes/%s/metrics", sb->id);
	if (r == ABX_OK)
		r = e2b_expect(call, &a, "figures of box %s", sb->id);
	if (r == ABX_OK)
		r = emit_figures(call, cJSON_GetArrayItem(a.doc, cJSON_GetArraySize(a.doc) - 1));
	e2b_answer_release(&a);
	return r;
}
