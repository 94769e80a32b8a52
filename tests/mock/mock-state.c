/* SPDX-License-Identifier: MIT */
/* The mock provider: the records of sandboxes. */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "mock.h"

char *mock_path(const struct abx_session *s, const char *fmt, ...)
{
	struct abx_buf b = ABX_BUF_INIT(65536);
	va_list ap;

	abx_buf_addf(&b, "%s/", s->state_dir);
	va_start(ap, fmt);
	abx_buf_addv(&b, fmt, ap);
	va_end(ap);
	return abx_buf_steal(&b);
}

void mock_box_release(struct mock_box *b)
{
	free(b->labels);
	if (!b->doc)
		cJSON_Delete(b->request);
	cJSON_Delete(b->doc);
	memset(b, 0, sizeof(*b));
}

static int add_label(void *ctx, const char *key, const char *value)
{
	struct mock_box *b = ctx;
	struct abx_kv *more = realloc(b->labels, (b->n_labels + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	more[b->n_labels++] = (struct abx_kv){key, value};
	b->labels = more;
	return 0;
}

static int parse(struct mock_box *b, const char *id, const struct abx_buf *text)
{
	const cJSON *labels = NULL;
	const char *name = NULL, *attempt = NULL, *created = NULL, *egress = NULL;
	const cJSON *request = NULL;
	int64_t state = 0;
	cJSON *doc = NULL;
	int r = abx_json_parse(text->data, text->len, text->max, &doc);

	memset(b, 0, sizeof(*b));
	b->doc = doc;
	if (r == 0)
		r = abx_json_str(doc, "name", sizeof(b->name) - 1, &name);
	if (r == 0)
		r = abx_json_str(doc, "attempt", sizeof(b->attempt) - 1, &attempt);
	if (r == 0)
		r = abx_json_str(doc, "created_at", sizeof(b->created_at) - 1, &created);
	if (r == 0)
		r = abx_json_i64(doc, "state", &state);
	if (r == 0)
		r = abx_json_i64(doc, "expires_at_ms", &b->expires_at_ms);
	if (r == 0)
		r = abx_json_i64(doc, "start_flags", &b->start_flags);
	if (r == 0)
		r = abx_json_str(doc, "egress", sizeof(b->egress) - 1, &egress);
	if (r == 0)
		r = abx_json_obj(doc, "request", &request);
	if (r == 0)
		r = abx_json_obj(doc, "labels", &labels);
	if (r == 0)
		r = abx_json_each_str(labels, add_label, b);
	if (r < 0) {
		mock_box_release(b);
		return r;
	}
	(void)snprintf(b->id, sizeof(b->id), "%s", id);
	(void)snprintf(b->name, sizeof(b->name), "%s", name ? name : "");
	(void)snprintf(b->attempt, sizeof(b->attempt), "%s", attempt ? attempt : "");
	(void)snprintf(b->created_at, sizeof(b->created_at), "%s", created ? created : "");
	(void)snprintf(b->egress, sizeof(b->egress), "%s", egress ? egress : "");
	b->state = (uint32_t)state;
	b->request = cJSON_GetObjectItemCaseSensitive(doc, "request");
	return 0;
}

int32_t mock_box_load(struct abx_session *s, struct abx_call *call, const char *id,
		      struct mock_box *ret)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(1 << 20);
	abx_autofree char *path = NULL;
	int r;

	if (!id || strncmp(id, "mock-", 5) != 0 || strlen(id) >= sizeof(ret->id) || strchr(id, '/'))
		return mock_fail(call, ABX_ENOTFOUND, "no such sandbox");
	path = mock_path(s, "sandboxes/%s.json", id);
	r = abx_fs_read(AT_FDCWD, path, &text);
	if (r == 0)
		r = parse(ret, id, &text);
	if (r == -ENOENT || r == -ENOTDIR)
		return mock_fail(call, ABX_ENOTFOUND, "no such sandbox: %s", id);
	return r < 0 ? mock_fail_errno(call, r, "read sandbox.json") : ABX_OK;
}

/* A new record comes into being whole, and leaves nothing when it does not. */
static int link_new(const char *path, const struct abx_buf *text)
{
	abx_autofree char *dir = strndup(path, (size_t)(strrchr(path, '/') - path));
	abx_autoclose int fd = -1;
	int r = abx_fs_mkdir_p(AT_FDCWD, dir, 0700);

	if (r < 0)
		return r;
	fd = abx_fs_open_unnamed(AT_FDCWD, dir, 0600);
	if (fd < 0)
		return abx_steal_fd(&fd);
	r = abx_fs_write_all(fd, text->data, text->len);
	return r < 0 ? r : abx_fs_name_it(fd, AT_FDCWD, path);
}

int32_t mock_box_save(struct abx_session *s, struct abx_call *call, const struct mock_box *b)
{
	abx_autofree char *path = mock_path(s, "sandboxes/%s.json", b->id);
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(1 << 20);
	cJSON *doc = cJSON_CreateObject(), *labels = cJSON_AddObjectToObject(doc, "labels");
	int r;

	(void)abx_json_add_str(doc, "name", b->name);
	(void)abx_json_add_str(doc, "attempt", b->attempt);
	(void)abx_json_add_str(doc, "created_at", b->created_at);
	(void)abx_json_add_i64(doc, "state", b->state);
	(void)abx_json_add_i64(doc, "expires_at_ms", b->expires_at_ms);
	(void)abx_json_add_i64(doc, "start_flags", b->start_flags);
	(void)abx_json_add_str(doc, "egress", b->egress);
	if (b->request)
		(void)cJSON_AddItemReferenceToObject(doc, "request", b->request);
	for (uint32_t i = 0; i < b->n_labels; i++)
		(void)abx_json_add_str(labels, b->labels[i].key, b->labels[i].value);
	r = abx_json_print(doc, &text);
	cJSON_Delete(doc);
	if (r == 0)
		r = link_new(path, &text);
	if (r == -EEXIST)
		r = abx_fs_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, false);
	return r < 0 ? mock_fail_errno(call, r, "write the sandbox's record") : ABX_OK;
}

int32_t mock_box_emit(struct abx_session *s, struct abx_call *call, const struct mock_box *b)
{
	const struct abx_sandbox sb = {
		ABX_INIT(struct abx_sandbox),
		.state = b->state,
		.id = b->id,
		.name = b->name,
		.provider_data = "{\"mock\":true}",
		.account = "mock-account",
		.created_at = b->created_at,
		.expires_at_ms = b->expires_at_ms,
		.labels = b->labels,
		.n_labels = b->n_labels,
	};
	struct abx_sandbox bad = sb;

	if (!mock_fault_is(s, "get", "garbage"))
		return mock_host->emit_sandbox(call, &sb);
	bad.struct_size = 8;
	return mock_host->emit_sandbox(call, &bad);
}

char *mock_map_path(const struct abx_session *s, const char *id, const char *path)
{
#ifdef MOCK_BARE
	/* See enter.c. */
	if (path && strncmp(path, "/usr/local/", 11) == 0)
		return mock_path(s, "sandboxes/%s/root/.local/%s", id, path + 11);
#endif
	const char *slash = !path || path[0] == '/' ? "" : "/workspace/";

	return mock_path(s, "sandboxes/%s/root%s%s", id, slash, path ? path : "/workspace");
}
