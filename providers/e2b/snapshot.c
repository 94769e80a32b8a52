/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: memory and disk of a running sandbox, as a template of their own.
 *
 * The service takes one of a sandbox that runs, and the sandbox stands still meanwhile.  One that
 * is paused is resumed for it and paused again.  Without memory: the sandbox is paused without
 * its memory first, which ends its processes, and resumed.
 */
#include <string.h>

#include "providers/e2b/e2b.h"
#include "providers/e2b/names.h"

#define NAME_BYTES 132

struct taking {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_sandbox *sb;
	struct e2b_data data;
	char name[NAME_BYTES]; /* that it gets */
	char ref[E2B_NAME_BYTES];
};

static int32_t emit(struct abx_call *call, const char *ref, const struct e2b_name *n,
		    const char *sandbox_id, uint32_t flags)
{
	const struct abx_snapshot snap = {ABX_INIT(struct abx_snapshot),
					  .flags = flags,
					  .ref = ref,
					  .name = n->name,
					  .sandbox_id = sandbox_id,
					  .labels = n->labels,
					  .n_labels = n->n_labels};

	return abx_plugin_host->emit_snapshot(call, &snap);
}

struct visit {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_list_req *req; /* emit what has these labels, or */
	const char *name;		/* find the one of this name */
	char ref[E2B_NAME_BYTES];
};

/* Is it "namespace/name", or just the name? */
static bool is_named(const char *ref, const char *name)
{
	const char *slash = strrchr(ref, '/');

	return strcmp(ref, name) == 0 || (slash && strcmp(slash + 1, name) == 0);
}

static int32_t visit_page(void *ctx, const cJSON *list)
{
	struct visit *v = ctx;
	const cJSON *item;

	cJSON_ArrayForEach(item, list) {
		const char *ref = abx_json_get_text(item, "snapshotID");
		struct e2b_name n;
		int32_t r = ABX_OK;

		if (!*ref || strlen(ref) >= sizeof(v->ref) || e2b_removed_is(v->s, ref))
			continue;
		if (v->name && is_named(ref, v->name))
			(void)snprintf(v->ref, sizeof(v->ref), "%s", ref);
		else if (!v->name && e2b_name_parse(E2B_SNAPSHOT, ref, &n) &&
			 e2b_name_has(&n, v->req))
			r = emit(v->call, ref, &n, NULL, ABX_SNAP_WITH_MEMORY);
		if (r != ABX_OK)
			return r;
	}
	return ABX_OK;
}

/* "" in v->ref: there is none of that name. */
static int32_t visit_all(struct visit *v)
{
	v->ref[0] = '\0';
	return e2b_pages(v->s, v->call, "/snapshots?limit=100", "list of snapshots", visit_page, v);
}

/* The answer was lost, or is a failure after which it may be there all the same. */
static int32_t find_made(struct taking *t)
{
	struct visit v = {.s = t->s, .call = t->call, .name = t->name};
	int32_t r = visit_all(&v);

	if (r == ABX_OK)
		(void)snprintf(t->ref, sizeof(t->ref), "%s", v.ref);
	return r;
}

/* When it goes wrong on the way, the service may have lost the sandbox with it. */
static int32_t explain(struct taking *t, const struct e2b_answer *a)
{
	struct abx_failure f = {ABX_INIT(struct abx_failure), .retry_after_ms = a->retry_after_ms};
	cJSON *doc = NULL;
	char text[700];
	int32_t r = a->status >= 500 ? e2b_inspect(t->s, t->call, t->sb->id, &doc) : ABX_OK;

	cJSON_Delete(doc);
	if (r != ABX_ENOTFOUND)
		return e2b_expect(t->call, a, "snapshot of box %s", t->sb->id);
	(void)snprintf(text, sizeof(text), "snapshot of box %s: it failed, and the box is lost: %s",
		       t->sb->id, a->message);
	f.code = ABX_ENOTFOUND;
	f.http_status = a->status;
	f.text = text;
	f.request_id = *a->request_id ? a->request_id : NULL;
	(void)abx_plugin_host->fail(t->call, &f);
	return f.code;
}

/* *ret_stands_still: the sandbox does not run, and nothing was done. */
static int32_t post(struct taking *t, bool *ret_stands_still)
{
	cJSON *body = cJSON_CreateObject();
	const struct e2b_request q = {.method = "POST",
				      .body = body,
				      .outcome_matters = true,
				      .quiet_ms = E2B_QUIET_LONG_MS};
	struct e2b_answer a;
	int32_t r;

	(void)abx_json_add_str(body, "name", t->name);
	r = e2b_ask(t->s, t->call, &q, &a, "/sandboxes/%s/snapshots", t->sb->id);
	*ret_stands_still = r == ABX_OK && a.status == 409;
	if (r == ABX_OK && a.status < 300)
		(void)snprintf(t->ref, sizeof(t->ref), "%.319s",
			       abx_json_get_text(a.doc, "snapshotID"));
	else if (e2b_may_have_happened(r, &a) && find_made(t) == ABX_OK && *t->ref)
		r = ABX_OK;
	else if (r == ABX_OK)
		r = explain(t, &a);
	else if (e2b_may_have_happened(r, &a))
		(void)abx_fail_unknown(t->call, r, E2B_REMEDY_LATER, "snapshot of box %s: %s",
				       t->sb->id, a.message);
	if (r == ABX_OK && !*t->ref)
		r = abx_fail(t->call, ABX_EPROTO, NULL,
			     "snapshot of box %s: E2B answers without its id", t->sb->id);
	e2b_answer_release(&a);
	cJSON_Delete(body);
	return r;
}

static int32_t resume(struct taking *t)
{
	const struct abx_start_req req = {ABX_INIT(struct abx_start_req)};

	return e2b_start(t->s, t->call, t->sb, &req);
}

/* What began paused ends paused, whatever came in between. */
static int32_t take_paused(struct taking *t)
{
	const struct abx_stop_req stop = {ABX_INIT(struct abx_stop_req)};
	bool stands_still;
	int32_t r = resume(t), back;

	if (r != ABX_OK)
		return r;
	r = post(t, &stands_still);
	back = r == ABX_ENOTFOUND ? ABX_OK : e2b_stop(t->s, t->call, t->sb, &stop);
	return r == ABX_OK ? back : r;
}

static int32_t take_without_memory(struct taking *t)
{
	bool stands_still;
	int32_t r = e2b_pause(t->s, t->call, t->sb->id, /* memory= */ false);

	if (r == ABX_OK)
		r = resume(t);
	return r == ABX_OK ? post(t, &stands_still) : r;
}

int32_t e2b_snapshot_create(struct abx_session *s, struct abx_call *call,
			    const struct abx_sandbox *sb, const struct abx_snapshot_req *req)
{
	const bool no_memory = req->flags & (ABX_SNAPREQ_DISK_ONLY | ABX_SNAPREQ_STOP);
	struct taking t = {.s = s, .call = call, .sb = sb};
	bool stands_still = false;
	struct e2b_name n;
	int32_t r;

	e2b_data_read(call, sb, &t.data);
	if (!e2b_is_id(sb->id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	if (!e2b_name_make(E2B_SNAPSHOT, req->labels, req->n_labels, t.name))
		return abx_fail(call, ABX_EINVAL, "choose a name of a-z, 0-9, '-', '_' and '.'",
				"snapshot: its name cannot be one at E2B");
	if (no_memory && t.data.foreign)
		return abx_fail(call, ABX_ENOTSUP, "leave it out",
				"snapshot without memory: agentbox did not make this sandbox and "
				"does not pause it");
	if (no_memory) {
		r = take_without_memory(&t);
	} else {
		r = post(&t, &stands_still);
		if (stands_still)
			r = take_paused(&t);
	}
	if (r != ABX_OK)
		return r;
	if (!e2b_name_parse(E2B_SNAPSHOT, t.name, &n))
		return abx_fail(call, ABX_EINTERNAL, NULL, "snapshot: its name is not understood");
	return emit(call, t.ref, &n, sb->id, no_memory ? 0 : ABX_SNAP_WITH_MEMORY);
}

int32_t e2b_snapshot_list(struct abx_session *s, struct abx_call *call,
			  const struct abx_list_req *req)
{
	struct visit v = {.s = s, .call = call, .req = req};

	return visit_all(&v);
}

int32_t e2b_snapshot_exists(struct abx_session *s, struct abx_call *call, const char *ref)
{
	struct visit v = {.s = s, .call = call, .name = ref};
	int32_t r = visit_all(&v);

	if (r == ABX_OK && !*v.ref)
		r = abx_fail(call, ABX_ENOTFOUND, NULL, "snapshot %.200s: there is none", ref);
	return r;
}

/* A snapshot is deleted with all that has another tag of the same name: of ours there is none. */
int32_t e2b_snapshot_delete(struct abx_session *s, struct abx_call *call, const char *ref)
{
	struct e2b_name n;

	if (!e2b_name_parse(E2B_SNAPSHOT, ref, &n))
		return abx_fail(call, ABX_EPERM, "delete it with E2B's own means",
				"snapshot %.200s: agentbox did not make it, and its deletion could "
				"take others along",
				ref);
	return e2b_remove(s, call, ref);
}
