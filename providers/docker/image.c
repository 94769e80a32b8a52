/* SPDX-License-Identifier: MIT */
/* Images: made of a root file system, fetched by their names, listed, removed. */
#include <string.h>

#include "providers/docker/docker.h"
#include "providers/docker/lines.h"

/* Of NAME[:TAG], where the tag begins; NULL: it has none, or a digest. */
static const char *tag_of(const char *image)
{
	const char *slash = strrchr(image, '/'), *colon = strrchr(slash ? slash : image, ':');

	return strchr(image, '@') ? NULL : colon;
}

int32_t docker_pull(struct abx_session *s, struct abx_call *call, const char *image)
{
	struct docker_lines l = DOCKER_LINES_INIT(call);
	const struct docker_request q = {
		.method = "POST", .sink = docker_lines_feed, .sink_ctx = &l, .slow = true};
	abx_auto(abx_buf) struct abx_buf name = ABX_BUF_INIT(4096);
	const char *tag = tag_of(image);
	struct docker_answer a = {.status = 0};
	char what[320];
	int32_t r;

	(void)snprintf(what, sizeof(what), "image %.200s: not at the engine, and pulling it failed",
		       image);
	(void)abx_plugin_host->progress(call, 0, 0, "pulling the image");
	if (strncmp(image, "sha256:", 7) == 0)
		return abx_fail(call, ABX_EINVAL, NULL, "image %.200s: the engine has none such",
				image);
	abx_buf_add(&name, image, tag ? (size_t)(tag - image) : strlen(image));
	/* Without a tag all of them would come. */
	if (tag || !strchr(image, '@'))
		abx_buf_addf(&name, "&tag=%s", tag ? tag + 1 : "latest");
	if (name.failed)
		return abx_fail_no_memory(call);
	r = docker_ask(s, call, &q, &a, "/images/create?fromImage=%s", name.data);
	if (r == ABX_OK && a.status == 200)
		r = docker_lines_judge(&l, what);
	else if (r == ABX_OK)
		r = abx_fail(call, ABX_EINVAL,
			     "agentbox prepare --from makes an image of a root file system",
			     "%s: %.300s", what, a.message);
	docker_lines_release(&l);
	docker_answer_release(&a);
	return r;
}

int32_t docker_import(struct abx_session *s, struct abx_call *call, int fd, const char *ref,
		      const struct abx_kv *labels, uint32_t n_labels, const char *changes,
		      char id[80])
{
	struct docker_lines l = DOCKER_LINES_INIT(call);
	const struct docker_request q = {.method = "POST",
					 .sink = docker_lines_feed,
					 .sink_ctx = &l,
					 .body_fd = fd,
					 .slow = true,
					 .outcome_matters = true,
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
	abx_buf_adds(&query, changes);
	if (query.failed)
		return abx_fail_no_memory(call);
	(void)abx_plugin_host->progress(call, 0, 0, "importing the image");
	r = docker_ask(s, call, &q, &a, "/images/create?%s", query.data);
	if (r == ABX_OK)
		r = docker_expect(call, &a, "import of image %.200s", ref);
	if (r == ABX_OK)
		r = docker_lines_judge(&l, "import of the image");
	if (r == ABX_OK && !*l.id)
		r = abx_fail_unknown(call, ABX_EPROTO, DOCKER_REMEDY_LOST,
				     "Docker engine: an image without id");
	if (r == ABX_OK)
		(void)snprintf(id, 80, "%s", l.id);
	docker_lines_release(&l);
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
static int32_t emit_image(struct abx_session *s ABX_UNUSED, struct abx_call *call,
			  const cJSON *item)
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
	abx_rfc3339(created, text);
	snap.ref = id;
	snap.labels = l.kv;
	snap.n_labels = l.n;
	snap.size_bytes = size > 0 ? (uint64_t)size : 0;
	return id ? abx_plugin_host->emit_snapshot(call, &snap) : ABX_OK;
}

int32_t docker_image_list(struct abx_session *s, struct abx_call *call,
			  const struct abx_list_req *req)
{
	const struct docker_list l = {.path = "/images/json?",
				      .what = "images",
				      .req = req,
				      .own = "agentbox",
				      .each = emit_image};

	return docker_each(s, call, &l);
}

/* What an engine that died has left of a build: containers of ours that are no boxes. */
static int32_t remove_builders(struct abx_session *s, struct abx_call *call, const char *ref)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	const cJSON *item;
	int32_t r = docker_ask(s, call, &q, &a,
			       "/containers/json?all=1&filters=%%7B%%22ancestor%%22%%3A%%5B%%22%s"
			       "%%22%%5D%%2C%%22label%%22%%3A%%5B%%22agentbox%%22%%5D%%7D",
			       ref);

	if (r == ABX_OK && a.status == 200)
		cJSON_ArrayForEach(item, a.doc) {
			const char *id = abx_json_get_text(item, "Id");

			if (r != ABX_OK || !docker_is_word(id) ||
			    *abx_json_get_text(abx_json_get_part(item, "Labels"),
					       DOCKER_LABEL_NAME))
				continue;
			(void)docker_do(s, call, "DELETE", "what is left of a build",
					"/containers/%s?force=1&v=1", id);
		}
	docker_answer_release(&a);
	return r;
}

static int32_t delete_it(struct abx_session *s, struct abx_call *call, const char *ref, bool force,
			 struct docker_answer *a)
{
	const struct docker_request q = {.method = "DELETE", .idempotent = true, .slow = true};

	docker_answer_release(a);
	return docker_ask(s, call, &q, a, "/images/%s?force=%d", ref, force);
}

/* What others are made of goes with the last of them, once it has no name. */
static int32_t take_names(struct abx_session *s, struct abx_call *call, const char *ref)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer image = {.status = 0}, a = {.status = 0};
	const cJSON *name;
	int32_t r = docker_ask(s, call, &q, &image, "/images/%s/json", ref);

	cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(image.doc, "RepoTags"))
		if (r == ABX_OK && cJSON_IsString(name) && docker_is_word(name->valuestring))
			r = delete_it(s, call, name->valuestring, false, &a);
	docker_answer_release(&a);
	docker_answer_release(&image);
	return r;
}

int32_t docker_image_delete(struct abx_session *s, struct abx_call *call, const char *ref)
{
	struct docker_answer a = {.status = 0};
	int32_t r;

	if (!docker_is_word(ref))
		return abx_fail(call, ABX_EINVAL, NULL, "image: not a reference");
	r = remove_builders(s, call, ref);
	if (r == ABX_OK)
		r = delete_it(s, call, ref, false, &a);
	/* With force also what a stopped box was made of goes, which no snapshot can be made of
	 * then: that is for images with several names only. */
	if (r == ABX_OK && a.status == 409 && strstr(a.message, "multiple repositories"))
		r = delete_it(s, call, ref, true, &a);
	if (r == ABX_OK && a.status == 409 && strstr(a.message, "dependent child images"))
		r = take_names(s, call, ref);
	else if (r == ABX_OK && a.status == 409)
		r = abx_fail(call, ABX_ESTATE, "destroy the boxes that were made of it first",
			     "remove image %.200s: %.300s", ref, a.message);
	else if (r == ABX_OK && a.status != 404)
		r = docker_expect(call, &a, "remove image %.200s", ref);
	docker_answer_release(&a);
	return r;
}
