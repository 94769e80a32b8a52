/* SPDX-License-Identifier: MIT */
/* The mock provider: sandboxes and what lies beside them. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "mock.h"

static int32_t make_dirs(struct abx_session *s, struct abx_call *call, const char *id)
{
	static const char *const dirs[] = {"root/workspace", "root/tmp", "root/home"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(dirs); i++) {
		abx_autofree char *path = mock_path(s, "sandboxes/%s/%s", id, dirs[i]);
		int r = abx_fs_mkdir_p(AT_FDCWD, path, 0700);

		if (r < 0)
			return mock_fail_errno(call, r, "make the sandbox's directories");
	}
	return ABX_OK;
}

static int32_t make_resource(struct abx_session *s, struct abx_call *call, const struct mock_box *b,
			     const struct abx_provision *req)
{
	abx_autofree char *dir = mock_path(s, "resources"), *path = NULL;
	char id[96];
	struct abx_resource res = {
		ABX_INIT(struct abx_resource), .kind = "disk",	      .name = b->attempt,
		.sandbox_id = b->id,	       .labels = req->labels, .n_labels = req->n_labels};
	int32_t r = mock_host->emit_resource(call, &res, ABX_PHASE_INTENT);

	if (r < 0)
		return r;
	(void)snprintf(id, sizeof(id), "disk-%s", b->attempt);
	path = mock_path(s, "resources/%s", id);
	(void)abx_fs_mkdir_p(AT_FDCWD, dir, 0700);
	if (abx_fs_write_atomic(AT_FDCWD, path, b->id, strlen(b->id), 0600, false) < 0)
		return mock_fail(call, ABX_EIO, "cannot make a disk");
	res.id = id;
	return mock_host->emit_resource(call, &res, ABX_PHASE_EXISTS);
}

void mock_now(char text[32])
{
	time_t now = time(NULL);
	struct tm tm;

	text[0] = '\0';
	if (gmtime_r(&now, &tm))
		(void)strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

int32_t mock_new_id(struct abx_call *call, const char *prefix, char *id, size_t size)
{
	uint64_t nonce;

	if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return mock_fail(call, ABX_EIO, "no random numbers");
	(void)snprintf(id, size, "%s%016llx", prefix, (unsigned long long)nonce);
	return ABX_OK;
}

/* What it was asked for, for whoever wants to know. */
static cJSON *describe(const struct abx_provision *req)
{
	cJSON *doc = cJSON_CreateObject(), *list;

	(void)abx_json_add_str(doc, "image", req->image);
	(void)abx_json_add_str(doc, "snapshot", req->snapshot);
	(void)abx_json_add_str(doc, "size", req->size);
	(void)abx_json_add_str(doc, "location", req->location);
	(void)abx_json_add_i64(doc, "cpu_milli", req->cpu_milli);
	(void)abx_json_add_i64(doc, "max_pids", req->max_pids);
	(void)abx_json_add_i64(doc, "mem_bytes", (int64_t)req->mem_bytes);
	(void)abx_json_add_i64(doc, "disk_bytes", (int64_t)req->disk_bytes);
	(void)abx_json_add_i64(doc, "timeout_ms", req->timeout_ms);
	(void)abx_json_add_i64(doc, "flags", req->flags);
	list = cJSON_AddArrayToObject(doc, "ports");
	for (uint32_t i = 0; i < req->n_ports; i++)
		(void)cJSON_AddItemToArray(list, cJSON_CreateNumber(req->ports[i]));
	list = cJSON_AddObjectToObject(doc, "mounts");
	for (uint32_t i = 0; i < req->n_mounts; i++)
		(void)abx_json_add_str(list, req->mounts[i]->target, req->mounts[i]->source);
	list = cJSON_AddObjectToObject(doc, "volumes");
	for (uint32_t i = 0; i < req->n_volumes; i++)
		(void)abx_json_add_str(list, req->volumes[i].key, req->volumes[i].value);
	return doc;
}

static int32_t fill(struct mock_box *b, struct abx_call *call, const struct abx_provision *req)
{
	int32_t r;

	memset(b, 0, sizeof(*b));
	mock_now(b->created_at);
	r = mock_new_id(call, "mock-", b->id, sizeof(b->id));
	if (r != ABX_OK)
		return r;
	mock_egress_text(req->egress_allow, req->egress_deny, b->egress, sizeof(b->egress));
	b->request = describe(req);
	(void)snprintf(b->name, sizeof(b->name), "%s", req->name ? req->name : "");
	(void)snprintf(b->attempt, sizeof(b->attempt), "%s",
		       req->idempotency_key ? req->idempotency_key : b->id);
	b->state = ABX_STATE_RUNNING;
	b->n_labels = req->n_labels;
	b->labels = calloc(req->n_labels + 1, sizeof(*b->labels));
	if (!b->labels)
		return mock_fail(call, ABX_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < req->n_labels; i++)
		b->labels[i] = req->labels[i];
	return ABX_OK;
}

#ifdef MOCK_BARE
static int32_t refuse(struct abx_call *call, const struct abx_provision *req)
{
	if (req->snapshot || req->egress_allow || req->egress_deny || req->n_mounts ||
	    req->n_volumes || req->n_ports || req->cpu_milli || req->max_pids || req->mem_bytes ||
	    req->disk_bytes || req->size || req->location || req->flags)
		return mock_fail(call, ABX_ENOTSUP, "boxes are all alike here");
	return ABX_OK;
}
#endif

/* "K=V" and a NUL each: what every command of the box finds in its environment. */
static int32_t save_env(struct abx_session *s, struct abx_call *call, const char *id,
			const struct abx_provision *req)
{
	abx_autofree char *path = mock_path(s, "sandboxes/%s/env", id);
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(8 << 20);
	int r;

	for (uint32_t i = 0; i < req->n_env; i++) {
		abx_buf_addf(&b, "%s=%s", req->env[i].key, req->env[i].value);
		abx_buf_add(&b, "", 1);
	}
	r = abx_fs_write_atomic(AT_FDCWD, path, abx_buf_str(&b), b.len, 0600, false);
	return r < 0 ? mock_fail_errno(call, r, "keep the environment") : ABX_OK;
}

int32_t mock_provision(struct abx_session *s, struct abx_call *call,
		       const struct abx_provision *req)
{
	struct mock_box b = {.doc = NULL};
	int32_t r = mock_fault_before(s, call, "provision");

#ifdef MOCK_BARE
	if (r == ABX_OK)
		r = refuse(call, req);
#endif
	if (r == ABX_OK)
		r = fill(&b, call, req);
	mock_host->trace(call, "POST", "/sandboxes", 201, 100);
	if (r == ABX_OK && mock_fault_is(s, "provision", "resource"))
		r = make_resource(s, call, &b, req);
	if (r == ABX_OK)
		r = mock_box_save(s, call, &b);
	if (r == ABX_OK && req->snapshot)
		r = mock_snapshot_use(s, call, req->snapshot, b.id);
	if (r == ABX_OK)
		r = make_dirs(s, call, b.id);
	if (r == ABX_OK)
		r = save_env(s, call, b.id, req);
	if (r == ABX_OK)
		r = mock_volumes_use(s, call, b.id, req);
	if (r == ABX_OK)
		r = mock_fault_after(s, call, "provision");
	if (r == ABX_OK)
		r = mock_box_emit(s, call, &b);
	mock_box_release(&b);
	return r;
}

int32_t mock_get(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	struct mock_box b;
	int32_t r = mock_fault_before(s, call, "get");

	mock_host->trace(call, "GET", "/sandboxes/:id", 200, 10);
	if (r == ABX_OK)
		r = mock_box_load(s, call, sb->id, &b);
	if (r != ABX_OK)
		return r;
	r = mock_box_emit(s, call, &b);
	mock_box_release(&b);
	return r;
}

int32_t mock_list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	abx_autofree char *path = mock_path(s, "sandboxes");
	int32_t r = mock_fault_before(s, call, "list");
	struct dirent *e;
	DIR *dir;

	mock_host->trace(call, "GET", "/sandboxes", 200, 10);
	if (r != ABX_OK)
		return r;
	dir = opendir(path);
	while (dir && r == ABX_OK && (e = readdir(dir))) {
		char *suffix = strrchr(e->d_name, '.');
		struct mock_box b;

		if (!suffix || strcmp(suffix, ".json") != 0)
			continue;
		*suffix = '\0';
		/* One that is being removed is not there. */
		if (mock_box_load(s, call, e->d_name, &b) != ABX_OK)
			continue;
		if (mock_labels_match(b.labels, b.n_labels, req))
			r = mock_box_emit(s, call, &b);
		mock_box_release(&b);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

static int32_t set_state(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			 uint32_t state, int64_t start_flags)
{
	struct mock_box b;
	int32_t r = mock_box_load(s, call, sb->id, &b);

	if (r != ABX_OK)
		return r;
	if (state != ABX_STATE_RUNNING)
		mock_kill_all(s, b.id);
	if (b.state == ABX_STATE_PAUSED && state == ABX_STATE_RUNNING) {
		mock_box_release(&b);
		return mock_fail(call, ABX_ESTATE, "the sandbox is paused");
	}
	b.state = state;
	if (start_flags >= 0)
		b.start_flags = start_flags;
	mock_note(s, b.id, state == ABX_STATE_RUNNING ? "started" : "stopped");
	r = mock_box_save(s, call, &b);
	if (r == ABX_OK)
		r = mock_box_emit(s, call, &b);
	mock_box_release(&b);
	return r;
}

int32_t mock_start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_start_req *req)
{
	int32_t r = mock_fault_before(s, call, "start");

	if (r == ABX_OK)
		r = set_state(s, call, sb, ABX_STATE_RUNNING, req->flags);
	return r == ABX_OK ? mock_fault_after(s, call, "start") : r;
}

int32_t mock_stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_stop_req *req ABX_UNUSED)
{
	int32_t r = mock_fault_before(s, call, "stop");

	if (r == ABX_OK)
		r = set_state(s, call, sb, ABX_STATE_STOPPED, -1);
	return r == ABX_OK ? mock_fault_after(s, call, "stop") : r;
}

static int32_t remove_disk(struct abx_session *s, struct abx_call *call, const char *attempt)
{
	abx_autofree char *path = mock_path(s, "resources/disk-%s", attempt);
	char id[96];
	const struct abx_resource res = {ABX_INIT(struct abx_resource), .kind = "disk", .id = id,
					 .name = attempt};

	(void)snprintf(id, sizeof(id), "disk-%s", attempt);
	if (unlink(path) < 0)
		return ABX_OK;
	return mock_host->emit_resource(call, &res, ABX_PHASE_GONE);
}

int32_t mock_destroy(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_stop_req *req ABX_UNUSED)
{
	abx_autofree char *path = NULL, *root = NULL;
	struct mock_box b;
	int32_t r = mock_fault_before(s, call, "destroy");
	int e;

	if (r == ABX_OK)
		r = mock_box_load(s, call, sb->id, &b);
	if (r == ABX_ENOTFOUND)
		return ABX_OK;
	if (r != ABX_OK)
		return r;
	mock_host->trace(call, "DELETE", "/sandboxes/:id", 204, 50);
	mock_kill_all(s, b.id);
	r = remove_disk(s, call, b.attempt);
	path = mock_path(s, "sandboxes/%s.log", b.id);
	(void)unlink(path);
	free(path);
	path = mock_path(s, "sandboxes/%s.json", b.id);
	root = mock_path(s, "sandboxes/%s", b.id);
	mock_box_release(&b);
	if (r != ABX_OK)
		return r;
	/* The files first: what is found by its labels must still be there after a crash. */
	e = abx_fs_remove_tree(AT_FDCWD, root);
	if (e == 0)
		e = abx_fs_remove_tree(AT_FDCWD, path);
	if (e < 0)
		r = mock_fail_errno(call, e, "remove the sandbox");
	return r == ABX_OK ? mock_fault_after(s, call, "destroy") : r;
}

int32_t mock_resource_list(struct abx_session *s, struct abx_call *call,
			   const struct abx_list_req *req ABX_UNUSED)
{
	abx_autofree char *path = mock_path(s, "resources");
	int32_t r = mock_fault_before(s, call, "resource_list");
	struct dirent *e;
	DIR *dir = r == ABX_OK ? opendir(path) : NULL;

	while (dir && r == ABX_OK && (e = readdir(dir))) {
		const struct abx_resource res = {ABX_INIT(struct abx_resource), .kind = "disk",
						 .id = e->d_name};

		if (e->d_name[0] != '.')
			r = mock_host->emit_resource(call, &res, ABX_PHASE_EXISTS);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

int32_t mock_resource_delete(struct abx_session *s, struct abx_call *call,
			     const struct abx_resource *res)
{
	abx_autofree char *path = NULL;
	int32_t r = mock_fault_before(s, call, "resource_delete");

	if (r != ABX_OK)
		return r;
	/* One whose id never became known goes by the name it was announced with. */
	if (!res->id && !res->name)
		return mock_fail(call, ABX_EINVAL, "neither id nor name");
	path = res->id ? mock_path(s, "resources/%s", res->id)
		       : mock_path(s, "resources/disk-%s", res->name);
	if (unlink(path) < 0)
		return mock_fail(call, ABX_ENOTFOUND, "no such disk");
	return ABX_OK;
}
