/* SPDX-License-Identifier: MIT */
/* The mock provider: snapshots and images. */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "mock.h"

#define SNAPSHOT "snapshot"
#define IMAGE "image"

static int32_t emit(struct abx_call *call, const struct mock_object *o)
{
	const struct abx_snapshot snap = {ABX_INIT(struct abx_snapshot),
					  .ref = o->id,
					  .name = o->name,
					  .state = "ready",
					  .created_at = o->created_at,
					  .sandbox_id = o->sandbox_id,
					  .account = "mock-account",
					  .labels = o->labels,
					  .size_bytes = 4096,
					  .n_labels = o->n_labels};

	return mock_host->emit_snapshot(call, &snap);
}

static int32_t make(struct abx_session *s, struct abx_call *call, const char *kind,
		    const char *prefix, const char *name, const struct abx_kv *labels,
		    uint32_t n_labels, struct mock_object *o)
{
	int32_t r = mock_new_id(call, prefix, o->id, sizeof(o->id));

	if (r != ABX_OK)
		return r;
	(void)snprintf(o->name, sizeof(o->name), "%s", name ? name : "");
	mock_now(o->created_at);
	o->n_labels = n_labels;
	/* Only read. */
	memcpy(&o->labels, &labels, sizeof(o->labels));
	return mock_object_save(s, call, kind, o);
}

static int32_t copy_tree(struct abx_session *s, struct abx_call *call, const char *id,
			 const char *from, const char *to)
{
	const char *const argv[] = {"cp", "-a", from, to, NULL};

	return mock_run(s, call, id, argv, -1, -1);
}

int32_t mock_snapshot_create(struct abx_session *s, struct abx_call *call,
			     const struct abx_sandbox *sb, const struct abx_snapshot_req *req)
{
	abx_autofree char *from = NULL, *dir = NULL, *to = NULL;
	struct mock_object o = {.doc = NULL};
	struct mock_box b;
	int32_t r = mock_fault_before(s, call, "snapshot_create");

	mock_host->trace(call, "POST", "/sandboxes/:id/snapshots", 201, 100);
	if (r == ABX_OK)
		r = mock_box_load(s, call, sb->id, &b);
	if (r != ABX_OK)
		return r;
	mock_box_release(&b);
	(void)snprintf(o.sandbox_id, sizeof(o.sandbox_id), "%s", sb->id);
	r = make(s, call, SNAPSHOT, "snap-", req->name, req->labels, req->n_labels, &o);
	if (r != ABX_OK)
		return r;
	from = mock_path(s, "sandboxes/%s/root", sb->id);
	dir = mock_path(s, SNAPSHOT "s/%s", o.id);
	to = mock_path(s, SNAPSHOT "s/%s/root", o.id);
	(void)abx_fs_mkdir_p(AT_FDCWD, dir, 0700);
	r = copy_tree(s, call, sb->id, from, to);
	if (r == ABX_OK)
		r = mock_fault_after(s, call, "snapshot_create");
	return r == ABX_OK ? emit(call, &o) : r;
}

int32_t mock_snapshot_use(struct abx_session *s, struct abx_call *call, const char *ref,
			  const char *id)
{
	abx_autofree char *from = mock_path(s, SNAPSHOT "s/%s/root", ref);
	abx_autofree char *dir = mock_path(s, "sandboxes/%s", id);
	struct mock_object o;
	int32_t r = mock_object_load(s, call, SNAPSHOT, ref, &o);

	if (r != ABX_OK)
		return r;
	mock_object_release(&o);
	(void)abx_fs_mkdir_p(AT_FDCWD, dir, 0700);
	return copy_tree(s, call, id, from, dir);
}

int32_t mock_snapshot_list(struct abx_session *s, struct abx_call *call,
			   const struct abx_list_req *req)
{
	int32_t r = mock_fault_before(s, call, "snapshot_list");

	return r == ABX_OK ? mock_objects_each(s, call, SNAPSHOT, req, emit) : r;
}

int32_t mock_snapshot_exists(struct abx_session *s, struct abx_call *call, const char *ref)
{
	struct mock_object o;
	int32_t r = mock_fault_before(s, call, "snapshot_exists");

	if (r == ABX_OK)
		r = mock_object_load(s, call, SNAPSHOT, ref, &o);
	if (r == ABX_OK)
		mock_object_release(&o);
	return r;
}

int32_t mock_snapshot_delete(struct abx_session *s, struct abx_call *call, const char *ref)
{
	int32_t r = mock_fault_before(s, call, "snapshot_delete");

	return r == ABX_OK ? mock_object_delete(s, call, SNAPSHOT, ref) : r;
}

static int32_t say(struct abx_call *call, int32_t stream, const char *fmt, ...) ABX_PRINTF(3, 4);

static int32_t say(struct abx_call *call, int32_t stream, const char *fmt, ...)
{
	abx_auto(abx_buf) struct abx_buf line = ABX_BUF_INIT(65536);
	va_list ap;

	va_start(ap, fmt);
	abx_buf_addv(&line, fmt, ap);
	va_end(ap);
	return mock_host->emit_log(call, stream, abx_buf_str(&line), line.len);
}

static int32_t build(struct abx_session *s, struct abx_call *call, const struct abx_prepare *req)
{
	static const char fault[] = "prepare-build";
	int32_t r = say(call, ABX_STREAM_STDOUT, "step 1: from %s\n", req->from ? req->from : "-");

	if (r == ABX_OK && req->from_fd >= 0) {
		char first[512];
		ssize_t n = pread(req->from_fd, first, sizeof(first), 0);

		r = say(call, ABX_STREAM_STDOUT, "step 2: a file of at least %zd bytes\n", n);
	}
	if (r == ABX_OK)
		r = mock_host->progress(call, 1, 2, "building");
	if (r == ABX_OK)
		r = mock_fault_before(s, call, fault);
	if (r != ABX_OK)
		(void)say(call, ABX_STREAM_STDERR, "the build broke off\n");
	return r;
}

int32_t mock_prepare(struct abx_session *s, struct abx_call *call, const struct abx_prepare *req)
{
	struct mock_object o = {.doc = NULL};
	int32_t r = mock_fault_before(s, call, "prepare");

	mock_host->trace(call, "POST", "/images", 201, 100);
	if (r == ABX_OK)
		r = build(s, call, req);
	if (r == ABX_OK)
		r = make(s, call, IMAGE, "image-", req->name, req->labels, req->n_labels, &o);
	if (r == ABX_OK)
		r = mock_fault_after(s, call, "prepare");
	return r == ABX_OK ? emit(call, &o) : r;
}

int32_t mock_image_list(struct abx_session *s, struct abx_call *call,
			const struct abx_list_req *req)
{
	int32_t r = mock_fault_before(s, call, "image_list");

	return r == ABX_OK ? mock_objects_each(s, call, IMAGE, req, emit) : r;
}

int32_t mock_image_delete(struct abx_session *s, struct abx_call *call, const char *ref)
{
	int32_t r = mock_fault_before(s, call, "image_delete");

	return r == ABX_OK ? mock_object_delete(s, call, IMAGE, ref) : r;
}
