/* SPDX-License-Identifier: MIT */
/* The mock provider: records of what is there beside sandboxes. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "mock.h"

int mock_labels_match(const struct abx_kv *have, uint32_t n, const struct abx_list_req *req)
{
	for (uint32_t i = 0; i < req->n_labels; i++) {
		uint32_t k = 0;

		while (k < n && (strcmp(have[k].key, req->labels[i].key) != 0 ||
				 strcmp(have[k].value, req->labels[i].value) != 0))
			k++;
		if (k == n)
			return 0;
	}
	return 1;
}

void mock_object_release(struct mock_object *o)
{
	if (o->doc)
		free(o->labels);
	cJSON_Delete(o->doc);
	memset(o, 0, sizeof(*o));
}

static int add_label(void *ctx, const char *key, const char *value)
{
	struct mock_object *o = ctx;
	struct abx_kv *more = realloc(o->labels, (o->n_labels + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	more[o->n_labels++] = (struct abx_kv){key, value};
	o->labels = more;
	return 0;
}

static int take_text(const cJSON *doc, const char *key, char *text, size_t size)
{
	const char *value = NULL;
	int r = abx_json_str(doc, key, size - 1, &value);

	if (r == 0)
		(void)snprintf(text, size, "%s", value ? value : "");
	return r;
}

static int parse(const struct abx_buf *text, struct mock_object *o)
{
	const cJSON *labels = NULL;
	cJSON *doc = NULL;
	int r = abx_json_parse(text->data, text->len, text->max, &doc);

	o->doc = doc;
	if (r == 0)
		r = take_text(doc, "name", o->name, sizeof(o->name));
	if (r == 0)
		r = take_text(doc, "created_at", o->created_at, sizeof(o->created_at));
	if (r == 0)
		r = take_text(doc, "sandbox_id", o->sandbox_id, sizeof(o->sandbox_id));
	if (r == 0)
		r = abx_json_obj(doc, "labels", &labels);
	return r < 0 ? r : abx_json_each_str(labels, add_label, o);
}

int32_t mock_object_load(struct abx_session *s, struct abx_call *call, const char *kind,
			 const char *id, struct mock_object *ret)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(1 << 20);
	abx_autofree char *path = NULL;
	struct mock_object o = {.doc = NULL};
	int r;

	if (!*id || strchr(id, '/') || id[0] == '.' || strlen(id) >= sizeof(o.id))
		return mock_fail(call, ABX_ENOTFOUND, "no such %s", kind);
	path = mock_path(s, "%ss/%s.json", kind, id);
	r = abx_fs_read(AT_FDCWD, path, &text);
	if (r == 0)
		r = parse(&text, &o);
	if (r < 0) {
		mock_object_release(&o);
		if (r == -ENOENT)
			return mock_fail(call, ABX_ENOTFOUND, "no such %s: %s", kind, id);
		return mock_fail_errno(call, r, "read a record");
	}
	(void)snprintf(o.id, sizeof(o.id), "%s", id);
	*ret = o;
	return ABX_OK;
}

int32_t mock_object_save(struct abx_session *s, struct abx_call *call, const char *kind,
			 const struct mock_object *o)
{
	abx_autofree char *dir = mock_path(s, "%ss", kind);
	abx_autofree char *path = mock_path(s, "%ss/%s.json", kind, o->id);
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(1 << 20);
	cJSON *doc = cJSON_CreateObject(), *labels = cJSON_AddObjectToObject(doc, "labels");
	int r;

	(void)abx_json_add_str(doc, "name", o->name);
	(void)abx_json_add_str(doc, "created_at", o->created_at);
	(void)abx_json_add_str(doc, "sandbox_id", o->sandbox_id);
	for (uint32_t i = 0; i < o->n_labels; i++)
		(void)abx_json_add_str(labels, o->labels[i].key, o->labels[i].value);
	r = abx_json_print(doc, &text);
	cJSON_Delete(doc);
	if (r == 0)
		r = abx_fs_mkdir_p(AT_FDCWD, dir, 0700);
	if (r == 0)
		r = abx_fs_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, false);
	return r < 0 ? mock_fail_errno(call, r, "write a record") : ABX_OK;
}

int32_t mock_objects_each(struct abx_session *s, struct abx_call *call, const char *kind,
			  const struct abx_list_req *req,
			  int32_t (*emit)(struct abx_call *call, const struct mock_object *o))
{
	abx_autofree char *path = mock_path(s, "%ss", kind);
	DIR *dir = opendir(path);
	struct dirent *e;
	int32_t r = ABX_OK;

	while (dir && r == ABX_OK && (e = readdir(dir))) {
		char *suffix = strrchr(e->d_name, '.');
		struct mock_object o;

		if (!suffix || strcmp(suffix, ".json") != 0)
			continue;
		*suffix = '\0';
		/* One that is being removed is not there. */
		if (mock_object_load(s, call, kind, e->d_name, &o) != ABX_OK)
			continue;
		if (mock_labels_match(o.labels, o.n_labels, req))
			r = emit(call, &o);
		mock_object_release(&o);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

int32_t mock_object_delete(struct abx_session *s, struct abx_call *call, const char *kind,
			   const char *id)
{
	abx_autofree char *path = mock_path(s, "%ss/%s.json", kind, id);
	abx_autofree char *files = mock_path(s, "%ss/%s", kind, id);
	struct mock_object o;
	int32_t r = mock_object_load(s, call, kind, id, &o);
	int e;

	if (r != ABX_OK)
		return r;
	mock_object_release(&o);
	/* The record goes last: it is what finds the files. */
	e = abx_fs_remove_tree(AT_FDCWD, files);
	if (e == 0)
		e = abx_fs_remove_tree(AT_FDCWD, path);
	return e < 0 ? mock_fail_errno(call, e, "remove it") : ABX_OK;
}
