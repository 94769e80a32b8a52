/* SPDX-License-Identifier: MIT */
/* Failures to order, and what was asked of the server. */
#include "tests/cloud/faults.h"

#include <fnmatch.h>
#include <pthread.h>
#include <string.h>

#include "abxsdk/json.h"
#include "core/util/clock.h"
#include "core/util/mem.h"

#define TEXT_MAX ((size_t)1 << 20)
#define LOG_MAX 200000

struct rule {
	struct rule *next;
	char *method, *path;
	int64_t skip, count;
	struct emu_fault fault;
};

struct emu_faults {
	pthread_mutex_t lock;
	struct rule *first;
};

static const char *const kinds[] = {
	[EMU_FAULT_STATUS] = "status",	   [EMU_FAULT_RESET] = "reset", [EMU_FAULT_HANG] = "hang",
	[EMU_FAULT_TRUNCATE] = "truncate", [EMU_FAULT_LOSE] = "lose",	[EMU_FAULT_DENY] = "deny",
	[EMU_FAULT_SLOW] = "slow",
};

struct emu_faults *emu_faults_new(void)
{
	struct emu_faults *f = abx_xcalloc(1, sizeof(*f));

	(void)pthread_mutex_init(&f->lock, NULL);
	return f;
}

void emu_fault_release(struct emu_fault *f)
{
	free(f->body);
	cJSON_Delete(f->headers);
	*f = (struct emu_fault){.kind = EMU_FAULT_NONE};
}

static void rule_free(struct rule *r)
{
	emu_fault_release(&r->fault);
	free(r->method);
	free(r->path);
	free(r);
}

void emu_faults_clear(struct emu_faults *f)
{
	(void)pthread_mutex_lock(&f->lock);
	while (f->first) {
		struct rule *r = f->first;

		f->first = r->next;
		rule_free(r);
	}
	(void)pthread_mutex_unlock(&f->lock);
}

void emu_faults_free(struct emu_faults *f)
{
	emu_faults_clear(f);
	(void)pthread_mutex_destroy(&f->lock);
	free(f);
}

static bool number(const cJSON *doc, const char *key, int64_t dflt, int64_t *ret)
{
	int r = abx_json_i64(doc, key, ret);

	if (r == -ENOENT)
		*ret = dflt;
	return r == 0 || r == -ENOENT;
}

const char *emu_faults_add(struct emu_faults *f, const cJSON *doc)
{
	const char *kind = NULL, *method = NULL, *path = NULL, *body = NULL;
	const cJSON *headers = NULL;
	struct rule *rule, **end = &f->first;
	int64_t status, delay, skip, count;
	enum emu_fault_kind k = EMU_FAULT_NONE;

	if (abx_json_str(doc, "kind", 32, &kind) < 0 ||
	    abx_json_str(doc, "method", 16, &method) < 0 ||
	    abx_json_str(doc, "path", 4096, &path) < 0 ||
	    abx_json_str(doc, "body", TEXT_MAX, &body) < 0 ||
	    abx_json_obj(doc, "headers", &headers) < 0 || !number(doc, "status", 500, &status) ||
	    !number(doc, "delay_ms", 0, &delay) || !number(doc, "skip", 0, &skip) ||
	    !number(doc, "count", 1, &count) || status < 100 || status > 599)
		return "a member of the wrong type";
	for (size_t i = EMU_FAULT_STATUS; kind && i < ABX_N_ELEMENTS(kinds); i++)
		if (strcmp(kind, kinds[i]) == 0)
			k = (enum emu_fault_kind)i;
	if (k == EMU_FAULT_NONE)
		return "kind is none of status, reset, hang, truncate, lose, deny, slow";
	rule = abx_xcalloc(1, sizeof(*rule));
	rule->method = abx_xstrdup(method ? method : "*");
	rule->path = abx_xstrdup(path ? path : "*");
	rule->skip = skip;
	rule->count = count;
	rule->fault.kind = k;
	rule->fault.status = (int)status;
	rule->fault.delay_ms = delay;
	rule->fault.body = abx_xstrdup_null(body);
	rule->fault.headers = headers ? cJSON_Duplicate(headers, true) : NULL;
	(void)pthread_mutex_lock(&f->lock);
	while (*end)
		end = &(*end)->next;
	*end = rule;
	(void)pthread_mutex_unlock(&f->lock);
	return NULL;
}

void emu_faults_take(struct emu_faults *f, const char *method, const char *path,
		     struct emu_fault *ret)
{
	struct rule *r;

	*ret = (struct emu_fault){.kind = EMU_FAULT_NONE};
	(void)pthread_mutex_lock(&f->lock);
	for (r = f->first; r; r = r->next) {
		if (r->count == 0 || fnmatch(r->method, method, 0) != 0 ||
		    fnmatch(r->path, path, 0) != 0)
			continue;
		if (r->skip > 0) {
			r->skip--;
			continue;
		}
		if (r->count > 0)
			r->count--;
		*ret = r->fault;
		ret->body = abx_xstrdup_null(r->fault.body);
		ret->headers = r->fault.headers ? cJSON_Duplicate(r->fault.headers, true) : NULL;
		break;
	}
	(void)pthread_mutex_unlock(&f->lock);
}

struct entry {
	char *method, *uri;
	int status;
	int64_t began, ended;
};

struct emu_log {
	pthread_mutex_t lock;
	struct entry *items;
	size_t len, cap;
	size_t first; /* number of items[0]: numbers stay what they are when the log is cleared */
};

struct emu_log *emu_log_new(void)
{
	struct emu_log *l = abx_xcalloc(1, sizeof(*l));

	(void)pthread_mutex_init(&l->lock, NULL);
	return l;
}

void emu_log_clear(struct emu_log *l)
{
	(void)pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->len; i++) {
		free(l->items[i].method);
		free(l->items[i].uri);
	}
	l->first += l->len;
	l->len = 0;
	(void)pthread_mutex_unlock(&l->lock);
}

void emu_log_free(struct emu_log *l)
{
	emu_log_clear(l);
	(void)pthread_mutex_destroy(&l->lock);
	free(l->items);
	free(l);
}

size_t emu_log_begin(struct emu_log *l, const char *method, const char *uri)
{
	size_t at;

	(void)pthread_mutex_lock(&l->lock);
	at = l->first + l->len;
	if (l->len < LOG_MAX) {
		if (l->len == l->cap) {
			l->cap = l->cap ? 2 * l->cap : 64;
			l->items = abx_xreallocarray(l->items, l->cap, sizeof(*l->items));
		}
		l->items[l->len++] = (struct entry){
			.method = abx_xstrdup(method),
			.uri = abx_xstrdup(uri),
			.began = abx_now_ms(),
		};
	}
	(void)pthread_mutex_unlock(&l->lock);
	return at;
}

static struct entry *entry_at(struct emu_log *l, size_t at)
{
	return at >= l->first && at - l->first < l->len ? &l->items[at - l->first] : NULL;
}

void emu_log_status(struct emu_log *l, size_t at, int status)
{
	struct entry *e;

	(void)pthread_mutex_lock(&l->lock);
	e = entry_at(l, at);
	if (e)
		e->status = status;
	(void)pthread_mutex_unlock(&l->lock);
}

void emu_log_end(struct emu_log *l, size_t at)
{
	struct entry *e;

	(void)pthread_mutex_lock(&l->lock);
	e = entry_at(l, at);
	if (e)
		e->ended = abx_now_ms();
	(void)pthread_mutex_unlock(&l->lock);
}

cJSON *emu_log_json(struct emu_log *l)
{
	cJSON *doc = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(doc, "requests");

	(void)pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->len; i++) {
		const struct entry *e = &l->items[i];
		cJSON *o = cJSON_CreateObject();

		(void)abx_json_add_str(o, "method", e->method);
		(void)abx_json_add_str(o, "path", e->uri);
		(void)abx_json_add_i64(o, "status", e->status);
		(void)abx_json_add_i64(o, "began_ms", e->began);
		(void)abx_json_add_i64(o, "ended_ms", e->ended);
		(void)cJSON_AddItemToArray(list, o);
	}
	(void)pthread_mutex_unlock(&l->lock);
	return doc;
}
