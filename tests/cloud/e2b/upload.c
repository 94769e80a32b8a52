/* SPDX-License-Identifier: MIT */
/* envd of the emulated E2B: POST /files. */
#include <fcntl.h>
#include <microhttpd.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "core/util/mem.h"
#include "core/util/thread.h"
#include "tests/cloud/e2b/envd.h"

#define ANSWER_MAX 65536
#define FORM_BYTES 65536
#define FILES_MAX 4096

/* One file on its way in. */
struct put {
	struct e2b_box *box;
	const char *user;
	char *path;
	int fds[2];
	bool begun; /* there was a byte of it */
	pthread_t thread;
	struct abx_buf answer;
	struct abx_err err;
};

/* A request's files. */
struct upload {
	struct e2b_box *box;
	char user[ENVD_USER_BYTES];
	const char *fixed_path; /* of the query; NULL */
	struct MHD_PostProcessor *form;
	struct put *now;
	struct abx_strv paths;
	cJSON *done;
	int status; /* 0: all is well so far */
	char text[1024];
};

static int32_t collect(void *ctx, const void *data, size_t len)
{
	abx_buf_add(ctx, data, len);
	return 0;
}

static void *run(void *arg)
{
	struct put *p = arg;
	const char *const args[] = {"put", p->user, p->path, NULL};
	const struct emu_exec x = {
		.args = args, .in_fd = p->fds[0], .output = collect, .ctx = &p->answer};
	int code = 0;

	(void)emu_exec(p->box->e->engine, p->box->id, &x, &code, &p->err);
	/* Whoever writes to it sees that nobody reads. */
	abx_cleanup_close(&p->fds[0]);
	p->fds[0] = -1;
	return NULL;
}

static void refuse(struct upload *u, int status, const char *text)
{
	if (u->status)
		return;
	u->status = status;
	(void)snprintf(u->text, sizeof(u->text), "%s", text);
}

static void put_begin(struct upload *u, const char *path)
{
	struct put *p;

	for (size_t i = 0; i < u->paths.len; i++)
		if (strcmp(u->paths.items[i], path) == 0)
			refuse(u, 400, "you cannot upload multiple files to the same path");
	if (u->status || u->paths.len >= FILES_MAX) {
		refuse(u, 400, "too many files");
		return;
	}
	abx_strv_add(&u->paths, path);
	p = abx_xcalloc(1, sizeof(*p));
	p->box = u->box;
	p->user = u->user;
	p->path = abx_xstrdup(path);
	p->answer = (struct abx_buf)ABX_BUF_INIT(ANSWER_MAX);
	p->fds[0] = p->fds[1] = -1;
	if (pipe2(p->fds, O_CLOEXEC) == 0 && abx_thread_start(&p->thread, run, p) == 0) {
		(void)fcntl(p->fds[1], F_SETPIPE_SZ, 1 << 20);
		u->now = p;
		return;
	}
	refuse(u, 500, "no thread or pipe is left");
	abx_cleanup_close(&p->fds[0]);
	abx_cleanup_close(&p->fds[1]);
	free(p->path);
	free(p);
}

static void put_data(struct upload *u, const void *data, size_t len)
{
	if (u->now && len)
		u->now->begun = true;
	/* Why it ends early is in its answer. */
	if (u->now && u->now->fds[1] >= 0 && abx_fs_write_all(u->now->fds[1], data, len) < 0) {
		abx_cleanup_close(&u->now->fds[1]);
		u->now->fds[1] = -1;
	}
}

/* What the service says about a file that it took. */
static cJSON *result(const char *rest, const char *end)
{
	cJSON *entry = envd_entry(&rest, end), *o;
	const char *path = NULL, *name = NULL;

	if (!entry)
		return NULL;
	o = cJSON_CreateObject();
	(void)abx_json_str(entry, "path", ANSWER_MAX, &path);
	(void)abx_json_str(entry, "name", ANSWER_MAX, &name);
	(void)abx_json_add_str(o, "path", path);
	(void)abx_json_add_str(o, "name", name);
	(void)abx_json_add_str(o, "type", "file");
	cJSON_Delete(entry);
	return o;
}

static void put_end(struct upload *u)
{
	struct put *p = u->now;
	const char *kind, *rest;
	cJSON *o = NULL;

	if (!p)
		return;
	u->now = NULL;
	abx_cleanup_close(&p->fds[1]);
	(void)pthread_join(p->thread, NULL);
	kind = envd_answer(&p->answer, &rest);
	if (strcmp(kind, "ok") == 0)
		o = result(rest, p->answer.data + p->answer.len);
	if (o)
		(void)cJSON_AddItemToArray(u->done, o);
	else
		refuse(u, envd_status(kind), *rest ? rest : p->err.text);
	abx_buf_release(&p->answer);
	free(p->path);
	free(p);
}

static enum MHD_Result on_part(void *ctx, enum MHD_ValueKind kind, const char *key,
			       const char *filename, const char *type, const char *encoding,
			       const char *data, uint64_t off, size_t size)
{
	struct upload *u = ctx;
	const char *path;

	(void)kind;
	(void)type;
	(void)encoding;
	if (!key || strcmp(key, "file") != 0)
		return MHD_YES;
	path = u->fixed_path ? u->fixed_path : filename ? filename : "";
	/* A part may begin with nothing of it. */
	if (off == 0 && !(u->now && !u->now->begun && strcmp(u->now->path, path) == 0)) {
		put_end(u);
		put_begin(u, path);
	}
	put_data(u, data, size);
	return MHD_YES;
}

static int form_sink(struct emu_request *req, const void *data, size_t len)
{
	struct upload *u = req->data;

	if (MHD_post_process(u->form, data, len) != MHD_YES)
		refuse(u, 400, "error parsing multipart form");
	return u->status;
}

static int raw_sink(struct emu_request *req, const void *data, size_t len)
{
	struct upload *u = req->data;

	put_data(u, data, len);
	return u->status;
}

static void upload_free(void *data)
{
	struct upload *u = data;

	if (u->form)
		(void)MHD_destroy_post_processor(u->form);
	put_end(u);
	abx_strv_release(&u->paths);
	cJSON_Delete(u->done);
	free(u);
}

void envd_post_file_begin(struct emu_request *req)
{
	const char *type = emu_header(req, "Content-Type"), *user = emu_query(req, "username");
	const char *encoding = emu_header(req, "Content-Encoding");
	struct upload *u = abx_xcalloc(1, sizeof(*u));

	u->box = envd_box(req);
	(void)snprintf(u->user, sizeof(u->user), "%s", user && *user ? user : u->box->user);
	u->fixed_path = emu_query(req, "path");
	u->done = cJSON_CreateArray();
	req->data = u;
	req->data_free = upload_free;
	req->sink = raw_sink;
	if (encoding && strcmp(encoding, "identity") != 0 && !req->gunzip) {
		refuse(u, 400, "unsupported content encoding");
	} else if (type && strncmp(type, "multipart/form-data", 19) == 0) {
		u->form = MHD_create_post_processor(req->conn, FORM_BYTES, on_part, u);
		req->sink = form_sink;
		if (!u->form)
			refuse(u, 400, "error parsing multipart form");
	} else if (type && strncmp(type, "application/octet-stream", 24) == 0) {
		if (u->fixed_path)
			put_begin(u, u->fixed_path);
		else
			refuse(u, 400, "path is required for an octet-stream");
	} else {
		refuse(u, 400, "unsupported content type");
	}
}

void envd_post_file(struct emu_request *req)
{
	struct upload *u = req->data;
	char *text;

	if (u->form) {
		(void)MHD_destroy_post_processor(u->form);
		u->form = NULL;
	}
	put_end(u);
	if (req->refused && req->gunzip)
		refuse(u, 400, "error decompressing the body");
	if (u->status) {
		envd_error(req, u->status, "%s", u->text);
		return;
	}
	text = cJSON_PrintUnformatted(u->done);
	emu_reply(req, 200, "text/plain; charset=utf-8", text ? text : "[]",
		  text ? strlen(text) : 2, NULL);
	cJSON_free(text);
}
