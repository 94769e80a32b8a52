/* SPDX-License-Identifier: MIT */
/* Images: made of a root file system, fetched by their names, listed, removed. */
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/suite.h"
#include "providers/docker/docker.h"

#define REPOSITORY "agentbox"
#define LINE_MAX_BYTES ((size_t)1 << 20)

/* One JSON object a line, with HTTP 200 also when it fails half-way. */
struct lines {
	struct abx_call *call;
	struct abx_buf line;
	char id[80];	 /* of what was imported */
	char error[400]; /* "" */
	bool done;	 /* something was said */
};

static void take_line(struct lines *l)
{
	const cJSON *detail = NULL;
	const char *text = NULL, *progress = NULL;
	cJSON *doc = NULL;

	if (abx_json_parse(abx_buf_str(&l->line), l->line.len, LINE_MAX_BYTES, &doc) < 0)
		return;
	l->done = true;
	if (abx_json_obj(doc, "errorDetail", &detail) == 0 && detail)
		(void)abx_json_str(detail, "message", 65536, &text);
	if (!text)
		(void)abx_json_str(doc, "error", 65536, &text);
	if (text) {
		(void)snprintf(l->error, sizeof(l->error), "%.*s", (int)strcspn(text, "\r\n"),
			       text);
	} else if (abx_json_str(doc, "status", 65536, &text) == 0 && text) {
		(void)abx_json_str(doc, "id", 65536, &progress);
		if (strncmp(text, "sha256:", 7) == 0 && docker_is_word(text))
			(void)snprintf(l->id, sizeof(l->id), "%.79s", text);
		(void)docker_host->progress(l->call, 0, 0, text);
	}
	cJSON_Delete(doc);
}

static int32_t on_lines(void *ctx, const void *data, size_t len)
{
	struct lines *l = ctx;
	const char *at = data;

	while (len) {
		const char *end = memchr(at, '\n', len);
		size_t n = end ? (size_t)(end - at) : len;

		abx_buf_add(&l->line, at, n);
		if (l->line.failed)
			return ABX_EPROTO;
		if (end) {
			take_line(l);
			abx_buf_reset(&l->line);
			n++;
		}
		at += n;
		len -= n;
	}
	return ABX_OK;
}

static int32_t judge(struct abx_call *call, struct lines *l, const char *what)
{
	if (l->line.len)
		take_line(l);
	abx_buf_release(&l->line);
	if (*l->error)
		return docker_fail(call, ABX_EINVAL, NULL, "%s: %s", what, l->error);
	if (!l->done)
		return docker_fail(call, ABX_ENETWORK, NULL, "%s: the engine broke off", what);
	return ABX_OK;
}

/* Of NAME[:TAG], where the tag begins; NULL: it has none, or a digest. */
static const char *tag_of(const char *image)
{
	const char *slash = strrchr(image, '/'), *colon = strrchr(slash ? slash : image, ':');

	return strchr(image, '@') ? NULL : colon;
}

int32_t docker_pull(struct abx_session *s, struct abx_call *call, const char *image)
{
	struct lines l = {.call = call, .line = ABX_BUF_INIT(LINE_MAX_BYTES)};
	const struct docker_request q = {.method = "POST", .sink = on_lines, .sink_ctx = &l};
	abx_auto(abx_buf) struct abx_buf name = ABX_BUF_INIT(4096);
	const char *tag = tag_of(image);
	struct docker_answer a = {.status = 0};
	char what[320];
	int32_t r;

	(void)snprintf(what, sizeof(what), "image %.200s: not at the engine, and pulling it failed",
		       image);
	(void)docker_host->progress(call, 0, 0, "pulling the image");
	if (strncmp(image, "sha256:", 7) == 0)
		return docker_fail(call, ABX_EINVAL, NULL, "image %.200s: the engine has none such",
				   image);
	abx_buf_add(&name, image, tag ? (size_t)(tag - image) : strlen(image));
	/* Without a tag all of them would come. */
	if (tag || !strchr(image, '@'))
		abx_buf_addf(&name, "&tag=%s", tag ? tag + 1 : "latest");
	if (name.failed)
		return docker_no_memory(call);
	r = docker_ask(s, call, &q, &a, "/images/create?fromImage=%s", name.data);
	if (r == ABX_OK && a.status == 200)
		r = judge(call, &l, what);
	else if (r == ABX_OK)
		r = docker_fail(call, ABX_EINVAL,
				"agentbox prepare --from makes an image of a root file system",
				"%s: %.300s", what, a.message);
	abx_buf_release(&l.line);
	docker_answer_release(&a);
	return r;
}

int32_t docker_import(struct abx_session *s, struct abx_call *call, int fd, const char *ref,
		      const struct abx_kv *labels, uint32_t n_labels, char id[80])
{
	struct lines l = {.call = call, .line = ABX_BUF_INIT(LINE_MAX_BYTES)};
	const struct docker_request q = {.method = "POST",
					 .sink = on_lines,
					 .sink_ctx = &l,
					 .body_fd = fd,
					 .content_type = "application/x-tar"};
	abx_auto(abx_buf) struct abx_buf query = ABX_BUF_INIT(256 << 10);
	const char *tag = tag_of(ref);
	struct docker_answer a = {.status = 0};
	int32_t r;

	abx_buf_addf(&query, "fromSrc=-&repo=%.*s&tag=%s", (int)(tag - ref), ref, tag + 1);
	for (uint32_t i = 0; i < n_labels; i++) {
		abx_buf_adds(&query, "&changes=LABEL%20");
		abx_http_escape(&query, labels[i].key);
		abx_buf_adds(&query, "%3D%22");
		abx_http_escape(&query, labels[i].value);
		abx_buf_adds(&query, "%22");
	}
	if (query.failed)
		return docker_no_memory(call);
	(void)docker_host->progress(call, 0, 0, "importing the image");
	r = docker_ask(s, call, &q, &a, "/images/create?%s", query.data);
	if (r == ABX_OK)
		r = docker_expect(call, &a, "import of image %.200s", ref);
	if (r == ABX_OK)
		r = judge(call, &l, "import of the image");
	if (r == ABX_OK && !*l.id)
		r = docker_fail(call, ABX_EPROTO, NULL, "Docker engine: an image without id");
	if (r == ABX_OK)
		(void)snprintf(id, 80, "%s", l.id);
	abx_buf_release(&l.line);
	docker_answer_release(&a);
	return r;
}

bool docker_image_there(struct abx_session *s, struct abx_call *call, const char *ref)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_ask(s, call, &q, &a, "/images/%s/json", ref);

	docker_answer_release(&a);
	return r == ABX_OK && a.status == 200;
}

/* Labels by which it is found again, quoted in a way that values cannot leave. */
static int32_t check_labels(struct abx_call *call, const struct abx_kv *labels, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strpbrk(labels[i].key, "\"\\$= \r\n") || strpbrk(labels[i].value, "\"\\$\r\n"))
			return docker_fail(call, ABX_EINVAL, NULL, "label %.100s: not plain text",
					   labels[i].key);
	return ABX_OK;
}

static int32_t refuse(struct abx_call *call, const struct abx_prepare *p)
{
	const char *what = p->dockerfile && *p->dockerfile ? "Dockerfiles"
			   : p->n_steps			   ? "build steps"
			   : p->script && *p->script	   ? "scripts"
			   : p->n_args			   ? "build arguments"
			   : p->size && *p->size	   ? "sizes"
			   : p->location && *p->location   ? "locations"
							   : NULL;

	if (what)
		return docker_fail(
			call, ABX_ENOTSUP,
			"docker build, and create --image NAME; or a root file system as "
			"tar",
			"prepare: %s: not supported", what);
	if (p->from_fd < 0 && !(p->from && abx_suite_is(p->from)))
		return docker_fail(call, ABX_EINVAL,
				   "debian:SUITE, ubuntu:SUITE or a tar file; what the engine has "
				   "or can pull needs no preparing: create --image NAME",
				   "prepare: %.200s: not something to prepare from",
				   p->from ? p->from : "(nothing)");
	return ABX_OK;
}

/* Any name, as one that the engine takes; tags distinguish names, not images. */
static void tag_for(const char *name, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, REPOSITORY "/prepared:");

	for (; *name && n + 1 < size; name++)
		out[n++] = strchr("abcdefghijklmnopqrstuvwxyz0123456789._-", *name) ? *name : '-';
	out[n] = '\0';
}

int32_t docker_prepare(struct abx_session *s, struct abx_call *call, const struct abx_prepare *p)
{
	abx_autoclose int made = -1;
	char ref[160], id[80];
	struct abx_snapshot snap = {ABX_INIT(struct abx_snapshot), .ref = id, .name = p->name,
				    .labels = p->labels, .n_labels = p->n_labels};
	int fd = p->from_fd;
	int32_t r = refuse(call, p);

	if (r == ABX_OK)
		r = check_labels(call, p->labels, p->n_labels);
	if (r == ABX_OK && fd < 0) {
		r = docker_bootstrap(s, call, p->from, &made);
		fd = made;
	}
	if (r != ABX_OK)
		return r;
	tag_for(p->name ? p->name : "default", ref, sizeof(ref));
	r = docker_import(s, call, fd, ref, p->labels, p->n_labels, id);
	return r == ABX_OK ? docker_host->emit_snapshot(call, &snap) : r;
}

struct labels {
	struct abx_kv kv[64];
	uint32_t n;
};

static int take_label(void *ctx, const char *key, const char *value)
{
	struct labels *l = ctx;

	if (l->n < ABX_N_ELEMENTS(l->kv))
		l->kv[l->n++] = (struct abx_kv){key, value};
	return 0;
}

/* Of all images with our labels those are base images that were never a box. */
static int32_t emit_image(struct abx_call *call, const cJSON *item)
{
	struct labels l = {.n = 0};
	const cJSON *labels = NULL;
	const char *id = NULL;
	int64_t size = 0, created = 0;
	char text[40] = "";
	struct abx_snapshot snap = {ABX_INIT(struct abx_snapshot), .created_at = text};

	if (abx_json_obj(item, "Labels", &labels) == 0)
		(void)abx_json_each_str(labels, take_label, &l);
	for (uint32_t i = 0; i < l.n; i++)
		if (strcmp(l.kv[i].key, DOCKER_LABEL_NAME) == 0)
			return ABX_OK;
		else if (strcmp(l.kv[i].key, "agentbox.name") == 0)
			snap.name = l.kv[i].value;
	(void)abx_json_str(item, "Id", 200, &id);
	(void)abx_json_i64(item, "Size", &size);
	(void)abx_json_i64(item, "Created", &created);
	docker_rfc3339(created, text);
	snap.ref = id;
	snap.labels = l.kv;
	snap.n_labels = l.n;
	snap.size_bytes = size > 0 ? (uint64_t)size : 0;
	return id ? docker_host->emit_snapshot(call, &snap) : ABX_OK;
}

int32_t docker_images(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req,
		      const char *label, int32_t (*emit)(struct abx_call *call, const cJSON *item))
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	abx_auto(abx_buf) struct abx_buf filters = ABX_BUF_INIT(1 << 20);
	struct docker_answer a = {.status = 0};
	const cJSON *item;
	int32_t r;

	docker_filters(&filters, req, label);
	if (filters.failed)
		return docker_no_memory(call);
	r = docker_ask(s, call, &q, &a, "/images/json?%s", filters.data);
	if (r == ABX_OK)
		r = docker_expect(call, &a, "list of images");
	if (r == ABX_OK)
		cJSON_ArrayForEach(item, a.doc) {
			r = emit(call, item);
			if (r != ABX_OK)
				break;
		}
	docker_answer_release(&a);
	return r;
}

int32_t docker_image_list(struct abx_session *s, struct abx_call *call,
			  const struct abx_list_req *req)
{
	return docker_images(s, call, req, "agentbox", emit_image);
}

int32_t docker_image_delete(struct abx_session *s, struct abx_call *call, const char *ref)
{
	const struct docker_request q = {.method = "DELETE"};
	struct docker_answer a = {.status = 0};
	int32_t r;

	if (!docker_is_word(ref))
		return docker_fail(call, ABX_EINVAL, NULL, "image: not a reference");
	r = docker_ask(s, call, &q, &a, "/images/%s?force=1", ref);
	if (r == ABX_OK && a.status == 409)
		r = docker_fail(call, ABX_ESTATE, "destroy the boxes that were made of it first",
				"remove image %.200s: %.300s", ref, a.message);
	else if (r == ABX_OK && a.status != 404)
		r = docker_expect(call, &a, "remove image %.200s", ref);
	docker_answer_release(&a);
	return r;
}
