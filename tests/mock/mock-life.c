/* SPDX-License-Identifier: MIT */
/* The mock provider: sandboxes and what lies beside them. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "abxsdk/fs.h"
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

static int32_t fill(struct mock_box *b, struct abx_call *call, const struct abx_provision *req)
{
	time_t now = time(NULL);
	uint64_t nonce;
	struct tm tm;

	memset(b, 0, sizeof(*b));
	if (gmtime_r(&now, &tm))
		(void)strftime(b->created_at, sizeof(b->created_at), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return mock_fail(call, ABX_EIO, "no random numbers");
	(void)snprintf(b->id, sizeof(b->id), "mock-%016llx", (unsigned long long)nonce);
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

int32_t mock_provision(struct abx_session *s, struct abx_call *call,
		       const struct abx_provision *req)
{
	struct mock_box b = {.doc = NULL};
	int32_t r = mock_fault_before(s, call, "provision");

	if (r == ABX_OK)
		r = fill(&b, call, req);
	mock_host->trace(call, "POST", "/sandboxes", 201, 100);
	if (r == ABX_OK && mock_fault_is(s, "provision", "resource"))
		r = make_resource(s, call, &b, req);
	if (r == ABX_OK)
		r = mock_box_save(s, call, &b);
	if (r == ABX_OK)
		r = make_dirs(s, call, b.id);
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

static int matches(const struct mock_box *b, const struct abx_list_req *req)
{
	for (uint32_t i = 0; i < req->n_labels; i++) {
		uint32_t k = 0;

		while (k < b->n_labels && (strcmp(b->labels[k].key, req->labels[i].key) != 0 ||
					   strcmp(b->labels[k].value, req->labels[i].value) != 0))
			k++;
		if (k == b->n_labels)
			return 0;
	}
	return 1;
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
		if (matches(&b, req))
			r = mock_box_emit(s, call, &b);
		mock_box_release(&b);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

static int32_t set_state(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			 uint32_t state)
{
	struct mock_box b;
	int32_t r = mock_box_load(s, call, sb->id, &b);

	if (r != ABX_OK)
		return r;
	if (state != ABX_STATE_RUNNING)
		mock_kill_all(s, b.id);
	b.state = state;
	r = mock_box_save(s, call, &b);
	if (r == ABX_OK)
		r = mock_box_emit(s, call, &b);
	mock_box_release(&b);
	return r;
}

int32_t mock_start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_start_req *req ABX_UNUSED)
{
	int32_t r = mock_fault_before(s, call, "start");

	if (r == ABX_OK)
		r = set_state(s, call, sb, ABX_STATE_RUNNING);
	return r == ABX_OK ? mock_fault_after(s, call, "start") : r;
}

int32_t mock_stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_stop_req *req ABX_UNUSED)
{
	int32_t r = mock_fault_before(s, call, "stop");

	if (r == ABX_OK)
		r = set_state(s, call, sb, ABX_STATE_STOPPED);
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
