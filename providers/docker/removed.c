/* SPDX-License-Identifier: MIT */
/*
 * Snapshots that were removed while boxes stand on them.
 *
 * The engine keeps an image for as long as containers are made of it.  One that was removed
 * meanwhile has no other name than agentbox/removed:<id>, is none of our snapshots any more,
 * and goes with the last of these containers.
 */
#include <string.h>

#include "providers/docker/docker.h"

static bool is_removed(const char *ref)
{
	return strncmp(ref, DOCKER_REMOVED ":", sizeof(DOCKER_REMOVED)) == 0;
}

/* It may have got the new name and kept the old one, when somebody was killed between. */
bool docker_removed_is(const cJSON *item)
{
	const cJSON *ref;
	bool removed = false;

	cJSON_ArrayForEach(ref, cJSON_GetObjectItemCaseSensitive(item, "RepoTags")) {
		if (!cJSON_IsString(ref))
			continue;
		if (!is_removed(ref->valuestring))
			return false;
		removed = true;
	}
	return removed;
}

/* Without force: what containers use stays.  So does what others give another name. */
static int32_t drop_name(struct abx_session *s, struct abx_call *call, const char *ref)
{
	const struct docker_request q = {.method = "DELETE", .idempotent = true, .slow = true};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_is_word(ref) ? docker_ask(s, call, &q, &a, "/images/%s", ref) : ABX_OK;

	if (r == ABX_OK && a.status && a.status != 404 && a.status != 409)
		r = docker_expect(call, &a, "remove image %.200s", ref);
	docker_answer_release(&a);
	return r;
}

/* Every name that it had before. */
static int32_t drop_names(struct abx_session *s, struct abx_call *call, const char *id)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	const cJSON *ref;
	int32_t r = docker_ask(s, call, &q, &a, "/images/%s/json", id);

	if (r == ABX_OK)
		r = docker_expect(call, &a, "image %.200s", id);
	if (r == ABX_OK)
		cJSON_ArrayForEach(ref, cJSON_GetObjectItemCaseSensitive(a.doc, "RepoTags")) {
			if (r == ABX_OK && cJSON_IsString(ref) && !is_removed(ref->valuestring))
				r = drop_name(s, call, ref->valuestring);
		}
	docker_answer_release(&a);
	return r;
}

int32_t docker_removed_mark(struct abx_session *s, struct abx_call *call, const char *id)
{
	const char *hex = strncmp(id, "sha256:", 7) == 0 ? id + 7 : id;
	int32_t r = docker_do(s, call, "POST", "remove image",
			      "/images/%s/tag?repo=" DOCKER_REMOVED "&tag=%.*s", id,
			      DOCKER_TAG_BYTES, hex);

	return r == ABX_OK ? drop_names(s, call, id) : r;
}

int32_t docker_removed_sweep(struct abx_session *s, struct abx_call *call)
{
	/* filters={"reference":["agentbox/removed"]} */
	static const char filters[] =
		"filters=%7B%22reference%22%3A%5B%22agentbox%2Fremoved%22%5D%7D";
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	const cJSON *item;
	int32_t r = docker_ask(s, call, &q, &a, "/images/json?%s", filters);

	if (r == ABX_OK)
		r = docker_expect(call, &a, "images that were removed");
	if (r == ABX_OK)
		cJSON_ArrayForEach(item, a.doc) {
			const cJSON *tags = cJSON_GetObjectItemCaseSensitive(item, "RepoTags");
			const char *ref = cJSON_GetStringValue(cJSON_GetArrayItem(tags, 0));
			int32_t e =
				ref && docker_removed_is(item) ? drop_name(s, call, ref) : ABX_OK;

			r = r == ABX_OK ? e : r;
		}
	docker_answer_release(&a);
	return r;
}
