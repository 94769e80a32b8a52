/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: images of containers.
 *
 * One has the label of the container's name, which it inherited; a base image never has it.
 * What the commands of a box have as environment was never in the container's configuration,
 * so it is in no image.
 */
#include <string.h>
#include <time.h>

#include "providers/docker/docker.h"

#define REPOSITORY "agentbox/snapshot"
#define LABELS_MAX 64
#define LOST_WAIT_MS 100
#define STOP_GRACE_MS 10000

struct labels {
	struct abx_kv kv[LABELS_MAX];
	uint32_t n;
	const char *name, *box_name;
};

static int take_label(void *ctx, const char *key, const char *value)
{
	struct labels *l = ctx;

	if (strcmp(key, "agentbox.name") == 0)
		l->name = value;
	if (strcmp(key, DOCKER_LABEL_NAME) == 0)
		l->box_name = value;
	else if (l->n < LABELS_MAX)
		l->kv[l->n++] = (struct abx_kv){key, value};
	return 0;
}

static int32_t emit(struct abx_call *call, const char *ref, const struct labels *l,
		    const char *created, const char *sandbox_id, int64_t size)
{
	const struct abx_snapshot snap = {
		ABX_INIT(struct abx_snapshot),
		.ref = ref,
		.name = l->name,
		.created_at = created,
		.sandbox_id = sandbox_id,
		.labels = l->kv,
		.n_labels = l->n,
		.size_bytes = size > 0 ? (uint64_t)size : 0,
	};

	return abx_plugin_host->emit_snapshot(call, &snap);
}

/* An image without a tag would go with the next `docker image prune`. */
static const char *attempt_of(const struct abx_snapshot_req *req)
{
	for (uint32_t i = 0; i < req->n_labels; i++)
		if (strcmp(req->labels[i].key, "agentbox.attempt") == 0 &&
		    docker_is_word(req->labels[i].value) && !strpbrk(req->labels[i].value, "/:@"))
			return req->labels[i].value;
	return NULL;
}

/* What is made is described anew: an answer says no more than its id. */
static int32_t emit_made(struct abx_session *s, struct abx_call *call, const char *id,
			 const char *sandbox_id)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	struct labels l = {.n = 0};
	char created[40];
	int64_t size = 0;
	int32_t r = docker_ask(s, call, &q, &a, "/images/%s/json", id);

	if (r == ABX_OK)
		r = docker_expect(call, &a, "snapshot");
	if (r == ABX_OK) {
		(void)abx_json_each_str(
			abx_json_get_part(abx_json_get_part(a.doc, "Config"), "Labels"), take_label,
			&l);
		(void)abx_json_i64(a.doc, "Size", &size);
		abx_rfc3339(abx_rfc3339_ms(abx_json_get_text(a.doc, "Created")) / 1000, created);
		r = emit(call, id, &l, created, sandbox_id, size);
	} else if (r != ABX_ECANCELED) {
		/* There is one all the same, and by its labels it is found. */
		(void)abx_fail_unknown(call, r, DOCKER_REMEDY_LOST, "snapshot: look at it: %s",
				       a.message);
	}
	docker_answer_release(&a);
	return r;
}

/* Was the attempt's image made?  Its id, or "". */
static int32_t find_made(struct abx_session *s, struct abx_call *call, const char *attempt,
			 char id[80])
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_ask(s, call, &q, &a, "/images/%s:%s/json", REPOSITORY, attempt);

	id[0] = '\0';
	if (r == ABX_OK && a.status != 404)
		r = docker_expect(call, &a, "snapshot");
	if (r == ABX_OK && docker_is_word(abx_json_get_text(a.doc, "Id")))
		(void)snprintf(id, 80, "%.79s", abx_json_get_text(a.doc, "Id"));
	docker_answer_release(&a);
	return r;
}

/* The answer was lost.  The engine goes on all the same, and as long as it does the box is frozen:
 * afterwards there is an image or there will be none. */
static int32_t await_made(struct abx_session *s, struct abx_call *call, const char *box_id,
			  const char *attempt, char id[80])
{
	for (;;) {
		cJSON *box = NULL;
		bool frozen;
		int32_t r = abx_plugin_host->wait_ms(call, LOST_WAIT_MS);

		if (r != ABX_OK)
			return r;
		r = docker_inspect(s, call, box_id, &box);
		frozen = r == ABX_OK && docker_state(box) == ABX_STATE_PAUSED;
		cJSON_Delete(box);
		if (r == ABX_OK)
			r = find_made(s, call, attempt, id);
		if (r != ABX_OK || *id || !frozen)
			return r;
	}
}

static int32_t commit(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const cJSON *body, const char *attempt, bool was_frozen, char id[80])
{
	const struct docker_request q = {
		.method = "POST", .body = body, .outcome_matters = true, .slow = true};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_ask(s, call, &q, &a, "/commit?container=%s&pause=1&repo=%s&tag=%s",
			       sb->id, REPOSITORY, attempt);

	id[0] = '\0';
	if (docker_may_have_happened(r, &a)) {
		int32_t found = was_frozen ? find_made(s, call, attempt, id)
					   : await_made(s, call, sb->id, attempt, id);

		if (found == ABX_OK && *id)
			r = ABX_OK;
		else if (r != ABX_OK)
			(void)abx_fail_unknown(call, r, DOCKER_REMEDY_LOST,
					       "snapshot of box %.*s: %s", DOCKER_ID_SHOWN, sb->id,
					       a.message);
	}
	if (r == ABX_OK && !*id)
		r = docker_expect(call, &a, "snapshot of box %.*s", DOCKER_ID_SHOWN, sb->id);
	if (r == ABX_OK && !*id && !docker_is_word(abx_json_get_text(a.doc, "Id")))
		r = abx_fail(call, ABX_EPROTO, NULL, "Docker engine: an image without id");
	if (r == ABX_OK && !*id)
		(void)snprintf(id, 80, "%.79s", abx_json_get_text(a.doc, "Id"));
	docker_answer_release(&a);
	return r;
}

/* A layer on what the box was made of. */
static int32_t add_layer(struct abx_session *s, struct abx_call *call, const cJSON *box,
			 const struct abx_sandbox *sb, const struct abx_snapshot_req *req,
			 const char *attempt, char id[80])
{
	cJSON *body = cJSON_CreateObject(), *labels = cJSON_AddObjectToObject(body, "Labels");
	int32_t r;

	for (uint32_t i = 0; i < req->n_labels; i++)
		(void)abx_json_add_str(labels, req->labels[i].key, req->labels[i].value);
	r = commit(s, call, sb, body, attempt, docker_state(box) != ABX_STATE_RUNNING, id);
	cJSON_Delete(body);
	return r;
}

int32_t docker_snapshot_create(struct abx_session *s, struct abx_call *call,
			       const struct abx_sandbox *sb, const struct abx_snapshot_req *req)
{
	const char *attempt = attempt_of(req);
	struct abx_stop_req stop = {ABX_INIT(struct abx_stop_req), .grace_ms = STOP_GRACE_MS};
	char id[80] = "", ref[160];
	cJSON *box = NULL;
	int32_t r = docker_inspect(s, call, sb->id, &box);

	if (r == ABX_OK && !attempt)
		r = abx_fail(call, ABX_EINVAL, NULL, "snapshot: without an attempt's label");
	if (r == ABX_OK && req->flags & ABX_SNAPREQ_STOP) {
		cJSON_Delete(abx_steal_ptr(&box));
		r = docker_stop(s, call, sb, &stop);
		if (r == ABX_OK)
			r = docker_inspect(s, call, sb->id, &box);
	}
	if (r == ABX_OK) {
		(void)snprintf(ref, sizeof(ref), REPOSITORY ":%.100s", attempt);
		r = docker_flatten_wanted(s, call, box)
			    ? docker_flatten(s, call, box, req, ref, id)
			    : add_layer(s, call, box, sb, req, attempt, id);
	}
	if (r == ABX_OK)
		r = emit_made(s, call, id, sb->id);
	cJSON_Delete(box);
	return r;
}

static int32_t emit_listed(struct abx_session *s ABX_UNUSED, struct abx_call *call,
			   const cJSON *item)
{
	struct labels l = {.n = 0};
	int64_t size = 0, created = 0;
	char text[40];

	if (docker_removed_is(item))
		return ABX_OK;
	(void)abx_json_each_str(abx_json_get_part(item, "Labels"), take_label, &l);
	(void)abx_json_i64(item, "Size", &size);
	(void)abx_json_i64(item, "Created", &created);
	abx_rfc3339(created, text);
	return emit(call, abx_json_get_text(item, "Id"), &l, text, NULL, size);
}

int32_t docker_snapshot_list(struct abx_session *s, struct abx_call *call,
			     const struct abx_list_req *req)
{
	const struct docker_list l = {.path = "/images/json?",
				      .what = "snapshots",
				      .req = req,
				      .own = DOCKER_LABEL_NAME,
				      .each = emit_listed};

	return docker_each(s, call, &l);
}

int32_t docker_snapshot_exists(struct abx_session *s, struct abx_call *call, const char *ref)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	int32_t r;

	if (!docker_is_word(ref))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "snapshot: there is none");
	r = docker_ask(s, call, &q, &a, "/images/%s/json", ref);
	if (r == ABX_OK)
		r = docker_expect(call, &a, "snapshot %.40s", ref);
	if (r == ABX_OK && docker_removed_is(a.doc))
		r = abx_fail(call, ABX_ENOTFOUND, NULL, "snapshot %.40s: it was removed", ref);
	docker_answer_release(&a);
	return r;
}

int32_t docker_snapshot_delete(struct abx_session *s, struct abx_call *call, const char *ref)
{
	int32_t r = docker_is_word(ref)
			    ? docker_removed_mark(s, call, ref)
			    : abx_fail(call, ABX_EINVAL, NULL, "snapshot: not a reference");

	if (r == ABX_OK)
		r = docker_removed_sweep(s, call);
	return r == ABX_ENOTFOUND ? ABX_OK : r;
}
