/* SPDX-License-Identifier: MIT */
/* What a box uses. */
#include <string.h>

#include "providers/docker/docker.h"

#define NUMBER 32

static const char *number(char text[NUMBER], int64_t n)
{
	(void)snprintf(text, NUMBER, "%lld", (long long)n);
	return text;
}

static int64_t count(const cJSON *obj, const char *key)
{
	int64_t n = 0;

	(void)abx_json_i64(obj, key, &n);
	return n;
}

/* The cache that goes when it is wanted is no use of memory; its name differs by version of
 * control groups. */
static int64_t memory(const cJSON *stats)
{
	const cJSON *mem = abx_json_get_part(stats, "memory_stats"),
		    *more = abx_json_get_part(mem, "stats");
	int64_t used = count(mem, "usage"), cache = count(more, "total_inactive_file");

	if (!cache)
		cache = count(more, "inactive_file");
	return used > cache ? used - cache : used;
}

static int32_t ask(struct abx_session *s, struct abx_call *call, const char *id, const char *rest,
		   cJSON **ret)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_ask(s, call, &q, &a, "/containers/%s/%s", id, rest);

	if (r == ABX_OK)
		r = docker_expect(call, &a, "box %.*s", DOCKER_ID_SHOWN, id);
	if (r == ABX_OK)
		*ret = abx_steal_ptr(&a.doc);
	docker_answer_release(&a);
	return r;
}

int32_t docker_stats(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	char text[7][NUMBER];
	cJSON *box = NULL, *stats = NULL, *sized = NULL;
	const cJSON *host;
	int32_t r = docker_inspect(s, call, sb->id, &box);

	if (r == ABX_OK)
		r = ask(s, call, sb->id, "stats?stream=0&one-shot=1", &stats);
	if (r == ABX_OK)
		r = ask(s, call, sb->id, "json?size=1", &sized);
	host = abx_json_get_part(box, "HostConfig");
	if (r == ABX_OK) {
		const cJSON *cpu =
			abx_json_get_part(abx_json_get_part(stats, "cpu_stats"), "cpu_usage");
		const struct abx_kv row[] = {
			{"kind", "box"},
			{"cpu_ms", number(text[0], count(cpu, "total_usage") / 1000000)},
			{"mem_bytes", number(text[1], memory(stats))},
			{"mem_limit_bytes", number(text[2], count(host, "Memory"))},
			{"pids",
			 number(text[3], count(abx_json_get_part(stats, "pids_stats"), "current"))},
			{"pids_limit", number(text[4], count(host, "PidsLimit"))},
			{"cpu_limit_milli", number(text[5], count(host, "NanoCpus") / 1000000)},
			{"disk_bytes", number(text[6], count(sized, "SizeRw"))},
		};

		r = abx_plugin_host->emit_row(call, row, ABX_N_ELEMENTS(row));
	}
	cJSON_Delete(box);
	cJSON_Delete(stats);
	cJSON_Delete(sized);
	return r;
}
