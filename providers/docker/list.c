/* SPDX-License-Identifier: MIT */
/*
 * Lists of what has labels of ours.
 *
 * The engine is asked for one label only, and the others are looked at here: Podman finds no image
 * that has two.
 */
#include <string.h>

#include "providers/docker/docker.h"

void docker_filters(struct abx_buf *b, const struct abx_list_req *req, const char *own)
{
	const uint32_t n = req ? req->n_labels : 0;
	cJSON *doc = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(doc, "label");
	abx_auto(abx_buf) struct abx_buf label = ABX_BUF_INIT(65536);
	char *text;

	/* The last one says most. */
	if (n)
		abx_buf_addf(&label, "%s=%s", req->labels[n - 1].key, req->labels[n - 1].value);
	else
		abx_buf_adds(&label, own);
	(void)cJSON_AddItemToArray(list, cJSON_CreateString(abx_buf_str(&label)));
	text = cJSON_PrintUnformatted(doc);
	abx_buf_adds(b, "filters=");
	abx_http_escape(b, text ? text : "");
	cJSON_free(text);
	cJSON_Delete(doc);
}

bool docker_has_labels(const cJSON *labels, const struct abx_list_req *req, const char *own)
{
	const char *value;

	if (!cJSON_GetObjectItemCaseSensitive(labels, own))
		return false;
	for (uint32_t i = 0; req && i < req->n_labels; i++) {
		value = cJSON_GetStringValue(
			cJSON_GetObjectItemCaseSensitive(labels, req->labels[i].key));
		if (!value || strcmp(value, req->labels[i].value) != 0)
			return false;
	}
	return true;
}

int32_t docker_each(struct abx_session *s, struct abx_call *call, const struct docker_list *l)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	abx_auto(abx_buf) struct abx_buf filters = ABX_BUF_INIT(1 << 20);
	struct docker_answer a = {.status = 0};
	const cJSON *item, *items;
	int32_t r;

	docker_filters(&filters, l->req, l->own);
	if (filters.failed)
		return abx_fail_no_memory(call);
	r = docker_ask(s, call, &q, &a, "%s%s", l->path, filters.data);
	if (r == ABX_OK && !l->quiet)
		r = docker_expect(call, &a, "list of %s", l->what);
	items = l->member ? cJSON_GetObjectItemCaseSensitive(a.doc, l->member) : a.doc;
	cJSON_ArrayForEach(item, items)
		if (r == ABX_OK &&
		    docker_has_labels(abx_json_get_part(item, "Labels"), l->req, l->own))
			r = l->each(s, call, item);
	docker_answer_release(&a);
	return r;
}
