/* SPDX-License-Identifier: MIT */
/* The emulated E2B: all processes of a sandbox. */
#include <signal.h>
#include <stdlib.h>

#include "abxsdk/json.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/process.h"

#define REMEMBER_MS 30000

/* References to all of them; free() the list. */
static struct e2b_proc **all_procs(struct e2b_box *b, size_t *ret_n)
{
	struct e2b_proc **all;
	size_t n = 0;

	(void)pthread_mutex_lock(&b->e->lock);
	for (const struct e2b_proc *p = b->procs; p; p = p->next)
		n++;
	all = abx_xcalloc(n + 1, sizeof(struct e2b_proc *));
	n = 0;
	for (struct e2b_proc *p = b->procs; p; p = p->next) {
		p->refs++;
		all[n++] = p;
	}
	(void)pthread_mutex_unlock(&b->e->lock);
	*ret_n = n;
	return all;
}

void e2b_procs_cut(struct e2b_box *b)
{
	size_t n;
	struct e2b_proc **all = all_procs(b, &n);

	for (size_t i = 0; i < n; i++) {
		proc_cut(all[i]);
		proc_put(all[i]);
	}
	free(all);
}

static void forget(struct e2b_box *b, struct e2b_proc *p)
{
	bool found = false;

	(void)pthread_mutex_lock(&b->e->lock);
	for (struct e2b_proc **at = &b->procs; *at && !found; at = &(*at)->next) {
		if (*at == p) {
			*at = p->next;
			found = true;
			break;
		}
	}
	(void)pthread_mutex_unlock(&b->e->lock);
	if (found)
		proc_put(p);
}

void e2b_procs_reap(struct e2b_box *b, int64_t now_ms)
{
	size_t n;
	struct e2b_proc **all = all_procs(b, &n);

	for (size_t i = 0; i < n; i++) {
		if (proc_cut_late(all[i], now_ms))
			(void)proc_signal(all[i], SIGKILL);
		if (all[i]->state == PROC_ENDED && now_ms - all[i]->ended_ms > REMEMBER_MS)
			forget(b, all[i]);
		proc_put(all[i]);
	}
	free(all);
}

void e2b_procs_free(struct e2b_box *b)
{
	while (b->procs) {
		struct e2b_proc *p = b->procs;

		b->procs = p->next;
		proc_put(p);
	}
}

/* What its environment is in this sandbox becomes part of the request: a copy keeps it. */
static cJSON *with_env(const struct e2b_proc *p)
{
	cJSON *doc = cJSON_Duplicate(p->request, true);
	cJSON *config = cJSON_GetObjectItemCaseSensitive(doc, "process");
	cJSON *env = cJSON_DetachItemFromObjectCaseSensitive(config, "envs");
	cJSON *all = cJSON_Duplicate(p->box->envs, true), *i;

	if (!all)
		all = cJSON_CreateObject();
	cJSON_DeleteItemFromObjectCaseSensitive(all, "E2B_SANDBOX_ID");
	(void)abx_json_add_str(all, "E2B_SANDBOX_ID", p->box->id);
	cJSON_ArrayForEach(i, env) {
		cJSON_DeleteItemFromObjectCaseSensitive(all, i->string);
		(void)abx_json_add_str(all, i->string, cJSON_IsString(i) ? i->valuestring : "");
	}
	cJSON_Delete(env);
	(void)cJSON_AddItemToObject(config, "envs", all);
	return doc;
}

cJSON *e2b_procs_describe(struct e2b_box *b)
{
	cJSON *list = cJSON_CreateArray();
	size_t n;
	struct e2b_proc **all = all_procs(b, &n);

	/* The oldest first, as they were started. */
	while (n > 0) {
		struct e2b_proc *p = all[--n];
		cJSON *o;

		if (p->state != PROC_ENDED) {
			o = cJSON_CreateObject();
			(void)abx_json_add_str(o, "user", p->user);
			(void)cJSON_AddItemToObject(o, "request", with_env(p));
			(void)cJSON_AddItemToArray(list, o);
		}
		proc_put(p);
	}
	free(all);
	return list;
}

void e2b_procs_boot(struct e2b_box *b, const cJSON *procs)
{
	const cJSON *i;

	cJSON_ArrayForEach(i, procs) {
		const char *user = E2B_DEFAULT_USER;

		(void)abx_json_str(i, "user", 64, &user);
		proc_put(proc_start(b, user, cJSON_GetObjectItemCaseSensitive(i, "request"), NULL,
				    NULL, 0));
	}
}
