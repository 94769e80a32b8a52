/* SPDX-License-Identifier: MIT */
/* Where a box may connect to. */
#include <string.h>

#include "providers/e2b/e2b.h"

static bool is_address(const char *text)
{
	return text[strspn(text, "0123456789abcdefABCDEF:./")] == '\0' && strpbrk(text, ".:");
}

int32_t e2b_egress_check(struct abx_call *call, const char *const *allow, const char *const *deny)
{
	for (size_t i = 0; deny && deny[i]; i++)
		if (!is_address(deny[i]))
			return abx_fail(call, ABX_ENOTSUP, "an address or a prefix",
					"egress: %.200s cannot be denied by its name", deny[i]);
	for (size_t i = 0; allow && allow[i]; i++)
		if (strcmp(allow[i], "host") == 0)
			return abx_fail(call, ABX_ENOTSUP, "all, none or a list",
					"egress host: a sandbox is not on this machine");
	return ABX_OK;
}

static void add_strings(cJSON *obj, const char *key, const char *const *list)
{
	cJSON *array = cJSON_AddArrayToObject(obj, key);

	for (size_t i = 0; list[i]; i++)
		(void)cJSON_AddItemToArray(array, cJSON_CreateString(list[i]));
}

/* What is allowed is so although it is denied. */
void e2b_egress_add(cJSON *lists, cJSON *whole, const char *const *allow, const char *const *deny)
{
	static const char *const everything[] = {"0.0.0.0/0", NULL};

	if (allow && !*allow) {
		(void)abx_json_add_bool(whole, "allow_internet_access", false);
	} else if (allow) {
		add_strings(lists, "allowOut", allow);
		add_strings(lists, "denyOut", everything);
	} else if (deny && *deny) {
		add_strings(lists, "denyOut", deny);
	}
}

/* All of it is replaced, so what is not said is allowed again. */
int32_t e2b_set_egress(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_policy *policy)
{
	struct e2b_request q = {.method = "PUT", .idempotent = true};
	struct e2b_answer a = {.status = 0};
	cJSON *body;
	int32_t r = e2b_egress_check(call, policy->allow, policy->deny);

	if (r == ABX_OK && !e2b_is_id(sb->id))
		r = abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	if (r != ABX_OK)
		return r;
	body = cJSON_CreateObject();
	e2b_egress_add(body, body, policy->allow, policy->deny);
	if (!cJSON_HasObjectItem(body, "allow_internet_access"))
		(void)abx_json_add_bool(body, "allow_internet_access", true);
	q.body = body;
	r = e2b_ask(s, call, &q, &a, "/sandboxes/%s/network", sb->id);
	if (r == ABX_OK)
		r = e2b_expect(call, &a, "egress of box %s", sb->id);
	e2b_answer_release(&a);
	cJSON_Delete(body);
	return r;
}
