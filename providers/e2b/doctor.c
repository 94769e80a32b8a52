/* SPDX-License-Identifier: MIT */
/* Is the key one, and does the control plane answer? */
#include <string.h>

#include "providers/e2b/e2b.h"

/* The cheapest request that needs a key. */
static int32_t probe(struct abx_session *s, struct abx_call *call)
{
	const struct e2b_request q = {.method = "GET", .idempotent = true};
	struct e2b_answer a;
	int32_t r = e2b_ask(s, call, &q, &a, "/v2/sandboxes?limit=1&state=running");

	if (r == ABX_OK)
		r = e2b_expect(call, &a, "E2B at %s", s->api_url);
	e2b_answer_release(&a);
	return r;
}

/* A key belongs to a team that has no name here: the address and the end of the key, by which it
 * is shown on the dashboard, tell one from another. */
int32_t e2b_verify(struct abx_session *s, struct abx_call *call)
{
	const char *key = s->api_key ? s->api_key : s->access_token;
	const size_t len = key ? strlen(key) : 0;
	char text[400];
	const struct abx_kv row = {"account", text};
	int32_t r = probe(s, call);

	if (r != ABX_OK)
		return r;
	(void)snprintf(text, sizeof(text), "%s ...%s", s->api_url, len > 16 ? key + len - 4 : "");
	return abx_plugin_host->emit_row(call, &row, 1);
}

static int32_t row(struct abx_call *call, const char *check, const char *status, const char *detail,
		   const char *remedy)
{
	const struct abx_kv cells[] = {
		{"check", check}, {"status", status}, {"detail", detail}, {"remedy", remedy}};

	return abx_plugin_host->emit_row(call, cells, ABX_N_ELEMENTS(cells));
}

int32_t e2b_doctor(struct abx_session *s, struct abx_call *call)
{
	char text[500];
	int32_t r = probe(s, call);

	if (r != ABX_OK)
		return r;
	(void)snprintf(text, sizeof(text), "%s answers, and takes the key", s->api_url);
	return row(call, "service", "ok", text, "");
}
