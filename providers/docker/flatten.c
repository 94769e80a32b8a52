/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of one layer.
 *
 * Each snapshot of a box that was made of a snapshot is a layer more, and the engine has an end
 * to that (125).  Before it comes, the file system is exported and imported again; what a
 * commit would have kept of the configuration is said anew.
 */
#include <string.h>

#include "abxsdk/fs.h"
#include "providers/docker/docker.h"

#define LAYERS_MAX 60
#define LABELS_MAX 128

bool docker_flatten_wanted(struct abx_session *s, struct abx_call *call, const cJSON *box)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	const char *image = abx_json_get_text(box, "Image");
	int n = 0;

	if (docker_is_word(image) &&
	    docker_ask(s, call, &q, &a, "/images/%s/json", image) == ABX_OK && a.status == 200)
		n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(
			abx_json_get_part(a.doc, "RootFS"), "Layers"));
	docker_answer_release(&a);
	return n >= LAYERS_MAX;
}

struct export
{
	struct abx_call *call;
	int fd;
};

static int32_t on_data(void *ctx, const void *data, size_t len)
{
	const struct export *x = ctx;
	int r = abx_fs_write_all(x->fd, data, len);

	return r < 0 ? abx_fail_errno(x->call, -r, "snapshot: a file for it") : ABX_OK;
}

static int32_t export(struct abx_session *s, struct abx_call *call, const char *id, int fd)
{
	struct export x = {call, fd};
	const struct docker_request q = {
		.method = "GET", .sink = on_data, .sink_ctx = &x, .slow = true};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_ask(s, call, &q, &a, "/containers/%s/export", id);

	if (r == ABX_OK)
		r = docker_expect(call, &a, "snapshot of box %.*s", DOCKER_ID_SHOWN, id);
	if (r == ABX_OK && lseek(fd, 0, SEEK_SET) < 0)
		r = abx_fail_errno(call, errno, "snapshot");
	docker_answer_release(&a);
	return r;
}

struct labels {
	struct abx_kv kv[LABELS_MAX];
	uint32_t n;
};

static int set_label(void *ctx, const char *key, const char *value)
{
	struct labels *l = ctx;

	for (uint32_t i = 0; i < l->n; i++)
		if (strcmp(l->kv[i].key, key) == 0) {
			l->kv[i].value = value;
			return 0;
		}
	if (l->n < LABELS_MAX)
		l->kv[l->n++] = (struct abx_kv){key, value};
	return 0;
}

/* As a Dockerfile has it: what is not plain is quoted. */
static void quote(struct abx_buf *b, const char *text)
{
	char one[3] = {'\\', '\0', '\0'};

	abx_buf_adds(b, "\"");
	for (; *text; text++) {
		one[1] = *text;
		abx_buf_adds(b, strchr("\"\\$", *text) ? one : one + 1);
	}
	abx_buf_adds(b, "\"");
}

static void add_change(struct abx_buf *query, const struct abx_buf *line)
{
	abx_buf_adds(query, "&changes=");
	abx_http_escape(query, abx_buf_str(line));
}

/* What the image gave to its commands: a variable's value may be anything but lines. */
static int32_t add_config(struct abx_call *call, const cJSON *box, struct abx_buf *query)
{
	abx_auto(abx_buf) struct abx_buf line = ABX_BUF_INIT(64 << 10);
	const cJSON *config = abx_json_get_part(box, "Config"), *item;
	const char *user = abx_json_get_text(config, "User");

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(config, "Env")) {
		const char *pair = cJSON_GetStringValue(item),
			   *eq = pair ? strchr(pair, '=') : NULL;

		if (!eq)
			continue;
		if (strpbrk(pair, "\r\n"))
			return abx_fail(call, ABX_ENOTSUP, "make the box of another image",
					"snapshot: the image's variable %.*s has lines, which "
					"an image of one layer cannot keep",
					(int)(eq - pair > 100 ? 100 : eq - pair), pair);
		abx_buf_reset(&line);
		abx_buf_addf(&line, "ENV %.*s=", (int)(eq - pair), pair);
		quote(&line, eq + 1);
		add_change(query, &line);
	}
	if (*user && !strpbrk(user, "\r\n")) {
		abx_buf_reset(&line);
		abx_buf_addf(&line, "USER %s", user);
		add_change(query, &line);
	}
	return line.failed ? abx_fail_no_memory(call) : ABX_OK;
}

int32_t docker_flatten(struct abx_session *s, struct abx_call *call, const cJSON *box,
		       const struct abx_snapshot_req *req, const char *ref, char id[80])
{
	abx_auto(abx_buf) struct abx_buf changes = ABX_BUF_INIT(128 << 10);
	const char *container = abx_json_get_text(box, "Id");
	const bool freeze = docker_state(box) == ABX_STATE_RUNNING;
	struct labels l = {.n = 0};
	abx_autoclose int fd = -1;
	int32_t r = docker_scratch(s, call, &fd);

	(void)abx_json_each_str(abx_json_get_part(abx_json_get_part(box, "Config"), "Labels"),
				set_label, &l);
	for (uint32_t i = 0; i < req->n_labels; i++)
		(void)set_label(&l, req->labels[i].key, req->labels[i].value);
	if (r == ABX_OK)
		r = add_config(call, box, &changes);
	if (r == ABX_OK && freeze)
		r = docker_do(s, call, "POST", "snapshot", "/containers/%s/pause", container);
	if (r != ABX_OK)
		return r;
	r = export(s, call, container, fd);
	/* Also when the other failed. */
	if (freeze) {
		int32_t e =
			docker_do(s, call, "POST", "snapshot", "/containers/%s/unpause", container);

		r = r == ABX_OK ? e : r;
	}
	return r == ABX_OK ? docker_import(s, call, fd, ref, l.kv, l.n, abx_buf_str(&changes), id)
			   : r;
}
