/* SPDX-License-Identifier: MIT */
/* The emulated E2B: where a sandbox may connect to. */
#include <string.h>

#include "core/util/mem.h"
#include "tests/cloud/e2b/e2b.h"

static bool is_zero_cidr(const cJSON *list)
{
	const cJSON *i;

	cJSON_ArrayForEach(i, list)
		if (cJSON_IsString(i) && strcmp(i->valuestring, "0.0.0.0/0") == 0)
			return true;
	return false;
}

static bool is_domain(const char *s)
{
	return strpbrk(s, "ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ*") != NULL;
}

const char *e2b_check_network(const cJSON *network)
{
	const cJSON *allow = cJSON_GetObjectItemCaseSensitive(network, "allowOut");
	const cJSON *deny = cJSON_GetObjectItemCaseSensitive(network, "denyOut"), *i;

	cJSON_ArrayForEach(i, deny) {
		if (!cJSON_IsString(i) || is_domain(i->valuestring))
			return "denyOut entries must be IP addresses or CIDR blocks";
	}
	cJSON_ArrayForEach(i, allow) {
		if (!cJSON_IsString(i))
			return "allowOut entries must be strings";
		if (is_domain(i->valuestring) && !is_zero_cidr(deny))
			return "When specifying allowed domains in allow out, you must include "
			       "'ALL_TRAFFIC' in deny out to block all other traffic.";
	}
	return NULL;
}

/* The texts of a list, NULL at the end. */
static const char **texts(const cJSON *list)
{
	const char **all = abx_xcalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(char *));
	const cJSON *i;
	size_t n = 0;

	cJSON_ArrayForEach(i, list)
		if (cJSON_IsString(i))
			all[n++] = i->valuestring;
	return all;
}

static bool denies_all(const char *const *deny)
{
	for (; *deny; deny++)
		if (strcmp(*deny, "0.0.0.0/0") == 0)
			return true;
	return false;
}

/*
 * What is allowed beats what is denied.  Without a denial of everything an allowance in a denied
 * network is more than a box of the engine can have: it stays denied.
 */
void e2b_egress_of(const struct e2b_box *b, struct e2b_egress *ret, struct emu_box_options *o)
{
	ret->allow = texts(cJSON_GetObjectItemCaseSensitive(b->network, "allowOut"));
	ret->deny = texts(cJSON_GetObjectItemCaseSensitive(b->network, "denyOut"));
	if (!b->internet || denies_all(ret->deny))
		o->allow = ret->allow;
	else if (*ret->deny)
		o->deny = ret->deny;
}

void e2b_egress_release(struct e2b_egress *g)
{
	free(g->allow);
	free(g->deny);
}
