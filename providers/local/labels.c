/* SPDX-License-Identifier: MIT */
/* Labels of boxes, snapshots, images and volumes. */
#include "providers/local/labels.h"

#include <errno.h>
#include <string.h>

#include "abxsdk/json.h"

#define LABEL_MAX_BYTES 4096

int local_labels_put(cJSON *doc, const struct abx_kv *kv, uint32_t n)
{
	cJSON *o = cJSON_AddObjectToObject(doc, "labels");
	int r = o ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = abx_json_add_str(o, kv[i].key, kv[i].value);
	return r;
}

static int add(void *ctx, const char *key, const char *value)
{
	struct local_labels *l = ctx;

	if (l->n < LOCAL_LABELS_MAX)
		l->kv[l->n++] = (struct abx_kv){key, value};
	return 0;
}

void local_labels_get(const cJSON *labels, struct local_labels *ret)
{
	ret->n = 0;
	(void)abx_json_each_str(labels, add, ret);
}

bool local_labels_match(const cJSON *labels, const struct abx_list_req *req)
{
	for (uint32_t i = 0; req && i < req->n_labels; i++) {
		const char *v = NULL;

		if (abx_json_str(labels, req->labels[i].key, LABEL_MAX_BYTES, &v) < 0 || !v ||
		    strcmp(v, req->labels[i].value) != 0)
			return false;
	}
	return true;
}
