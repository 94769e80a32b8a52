/* SPDX-License-Identifier: MIT */
/* The mock provider: volumes and mounts. */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "mock.h"

#define VOLUME "volume"

static int32_t emit_as(struct abx_call *call, const struct mock_object *o, uint32_t phase)
{
	const struct abx_resource res = {
		ABX_INIT(struct abx_resource), .kind = VOLUME,	       .id = o->id, .name = o->name,
		.labels = o->labels,	       .n_labels = o->n_labels};

	return mock_host->emit_resource(call, &res, phase);
}

static int32_t emit(struct abx_call *call, const struct mock_object *o)
{
	return emit_as(call, o, ABX_PHASE_EXISTS);
}

int32_t mock_volume_ensure(struct abx_session *s, struct abx_call *call,
			   const struct abx_volume_req *req)
{
	abx_autofree char *dir = NULL;
	struct mock_object o = {.doc = NULL};
	char id[80];
	int32_t r = mock_fault_before(s, call, "volume_ensure");

	if (r != ABX_OK)
		return r;
	(void)snprintf(id, sizeof(id), "vol-%s", req->name);
	r = mock_object_load(s, call, VOLUME, id, &o);
	if (r == ABX_ENOTFOUND) {
		(void)snprintf(o.id, sizeof(o.id), "%s", id);
		(void)snprintf(o.name, sizeof(o.name), "%s", req->name);
		mock_now(o.created_at);
		o.n_labels = req->n_labels;
		/* Only read. */
		memcpy(&o.labels, &req->labels, sizeof(o.labels));
		r = mock_object_save(s, call, VOLUME, &o);
		dir = mock_path(s, VOLUME "s/%s", id);
		(void)abx_fs_mkdir_p(AT_FDCWD, dir, 0700);
	}
	if (r == ABX_OK)
		r = mock_fault_after(s, call, "volume_ensure");
	if (r == ABX_OK)
		r = emit(call, &o);
	mock_object_release(&o);
	return r;
}

int32_t mock_volume_list(struct abx_session *s, struct abx_call *call,
			 const struct abx_list_req *req)
{
	int32_t r = mock_fault_before(s, call, "volume_list");

	return r == ABX_OK ? mock_objects_each(s, call, VOLUME, req, emit) : r;
}

int32_t mock_volume_delete(struct abx_session *s, struct abx_call *call, const char *id)
{
	int32_t r = mock_fault_before(s, call, "volume_delete");

	return r == ABX_OK ? mock_object_delete(s, call, VOLUME, id) : r;
}

static int32_t link_at(struct abx_session *s, struct abx_call *call, const char *id,
		       const char *source, const char *target)
{
	abx_autofree char *path = mock_path(s, "sandboxes/%s/root%s", id, target);
	char *slash = strrchr(path, '/');

	*slash = '\0';
	(void)abx_fs_mkdir_p(AT_FDCWD, path, 0755);
	*slash = '/';
	/* A fork of a box that had it has the link already. */
	if (symlink(source, path) < 0 && errno != EEXIST)
		return mock_fail_errno(call, errno, "mount it");
	return ABX_OK;
}

int32_t mock_volumes_use(struct abx_session *s, struct abx_call *call, const char *id,
			 const struct abx_provision *req)
{
	int32_t r = ABX_OK;

	for (uint32_t i = 0; i < req->n_mounts && r == ABX_OK; i++)
		r = link_at(s, call, id, req->mounts[i]->source, req->mounts[i]->target);
	for (uint32_t i = 0; i < req->n_volumes && r == ABX_OK; i++) {
		abx_autofree char *source = mock_path(s, VOLUME "s/%s", req->volumes[i].key);
		struct mock_object o;

		r = mock_object_load(s, call, VOLUME, req->volumes[i].key, &o);
		if (r != ABX_OK)
			return r;
		mock_object_release(&o);
		r = link_at(s, call, id, source, req->volumes[i].value);
	}
	return r;
}
