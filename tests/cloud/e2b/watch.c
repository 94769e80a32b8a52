/* SPDX-License-Identifier: MIT */
/* envd of the emulated E2B: watching a directory. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/json.h"
#include "core/util/mem.h"
#include "tests/cloud/agent/frames.h"
#include "tests/cloud/e2b/connect.h"
#include "tests/cloud/e2b/envd.h"

#define FEED_BYTES ((size_t)1 << 20)
#define FRAMES_MAX ((size_t)2 << 20)
#define PATH_MAX_BYTES 8192

struct watcher {
	struct e2b_box *box;
	struct connect_kind k;
	struct emu_feed *feed;
	char user[ENVD_USER_BYTES];
	char *path;
	bool recursive, include_entry, ended;
	int in[2]; /* the agent ends when it is closed */
	struct abx_buf frames;
};

static void say(struct watcher *w, const char *key, cJSON *value)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(FRAMES_MAX);
	cJSON *doc = cJSON_CreateObject();

	(void)cJSON_AddItemToObject(doc, key, value);
	connect_envelope(&w->k, &proto_watch_event, doc, &b);
	cJSON_Delete(doc);
	(void)emu_feed_push(w->feed, b.data, b.len);
}

static void say_end(struct watcher *w, const char *code, const char *text)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);

	connect_end(code, text, &b);
	emu_feed_push_now(w->feed, b.data, b.len);
	emu_feed_end(w->feed, false);
	w->ended = true;
}

static void on_event(struct watcher *w, const char *data, size_t len)
{
	const char *end = data + len, *name = data + strnlen(data, len) + 1, *rest;
	cJSON *o = cJSON_CreateObject(), *entry;
	char type[64];

	if (name >= end)
		name = "";
	rest = name + strlen(name) + 1;
	(void)snprintf(type, sizeof(type), "EVENT_TYPE_%s", data);
	(void)abx_json_add_str(o, "name", name);
	(void)abx_json_add_str(o, "type", type);
	entry = w->include_entry && rest < end ? envd_entry(&rest, end) : NULL;
	if (entry)
		(void)cJSON_AddItemToObject(o, "entry", entry);
	say(w, "filesystem", o);
}

static int32_t on_output(void *ctx, const void *data, size_t len)
{
	struct watcher *w = ctx;
	size_t at = 0;

	abx_buf_add(&w->frames, data, len);
	if (w->frames.failed)
		return ABX_EPROTO;
	while (w->frames.len - at >= AGENT_HEAD_BYTES) {
		const unsigned char *head = (const unsigned char *)w->frames.data + at;
		const char *body = w->frames.data + at + AGENT_HEAD_BYTES;
		size_t n = agent_head_len(head);

		if (n > AGENT_FRAME_MAX)
			return ABX_EPROTO;
		if (w->frames.len - at - AGENT_HEAD_BYTES < n)
			break;
		if (head[0] == AGENT_WATCHING)
			say(w, "start", cJSON_CreateObject());
		else if (head[0] == AGENT_EVENT)
			on_event(w, body, n);
		else if (head[0] == AGENT_FAIL)
			say_end(w, "not_found", "path not found");
		at += AGENT_HEAD_BYTES + n;
	}
	memmove(w->frames.data, w->frames.data + at, w->frames.len - at);
	w->frames.len -= at;
	return emu_feed_left(w->feed) ? ABX_ECANCELED : 0;
}

static void watcher_free(struct watcher *w)
{
	e2b_box_put(w->box);
	emu_feed_put(w->feed);
	abx_cleanup_close(&w->in[0]);
	abx_cleanup_close(&w->in[1]);
	abx_buf_release(&w->frames);
	free(w->path);
	free(w);
}

static void *run(void *arg)
{
	struct watcher *w = arg;
	struct e2b *e = w->box->e;
	const char *const args[] = {"watch", w->user, w->path, w->recursive ? "recursive" : "flat",
				    NULL};
	const struct emu_exec x = {.args = args, .in_fd = w->in[0], .output = on_output, .ctx = w};
	struct abx_err err = ABX_ERR_INIT;
	int code = 0;

	(void)emu_exec(e->engine, w->box->id, &x, &code, &err);
	if (!w->ended)
		emu_feed_end(w->feed, true);
	watcher_free(w);
	e2b_thread_over(e);
	return NULL;
}

/* The reader has gone: the agent ends as well. */
static void on_left(void *ctx)
{
	int fd = (int)(intptr_t)ctx;

	(void)close(fd);
}

static struct watcher *watcher_new(struct emu_request *req, const struct connect_kind *k,
				   const cJSON *doc)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1024);
	struct watcher *w = abx_xcalloc(1, sizeof(*w));
	cJSON *idle = cJSON_CreateObject();
	const char *path = NULL;

	w->box = e2b_box_get(envd_box(req));
	w->k = *k;
	w->feed = emu_feed_new(FEED_BYTES);
	w->frames = (struct abx_buf)ABX_BUF_INIT(FRAMES_MAX);
	w->in[0] = w->in[1] = -1;
	if (pipe2(w->in, O_CLOEXEC) < 0)
		w->in[0] = w->in[1] = -1;
	(void)abx_json_str(doc, "path", PATH_MAX_BYTES, &path);
	w->path = abx_xstrdup(path ? path : "");
	(void)abx_json_bool(doc, "recursive", false, &w->recursive);
	(void)abx_json_bool(doc, "includeEntry", false, &w->include_entry);
	(void)cJSON_AddItemToObject(idle, "keepalive", cJSON_CreateObject());
	connect_envelope(k, &proto_watch_event, idle, &b);
	cJSON_Delete(idle);
	emu_feed_idle(w->feed, connect_keepalive_ms(req), b.data, b.len);
	if (connect_timeout_ms(req)) {
		abx_buf_reset(&b);
		connect_end("deadline_exceeded", "context deadline exceeded", &b);
		emu_feed_until(w->feed, connect_timeout_ms(req), b.data, b.len);
	}
	return w;
}

/* Is there a directory to watch?  Else the error is said. */
static bool check(struct emu_request *req, const struct watcher *w)
{
	const char *const args[] = {"stat", w->user, w->path, NULL};
	abx_auto(abx_buf) struct abx_buf answer = ABX_BUF_INIT(65536);
	struct abx_err err = ABX_ERR_INIT;
	const char *rest, *kind, *type;
	cJSON *entry;
	bool ok;

	if (emu_ask(w->box->e->engine, w->box->id, args, &answer, &err) < 0) {
		connect_error(req, &w->k, "internal", "%s", err.text);
		return false;
	}
	kind = envd_answer(&answer, &rest);
	if (strcmp(kind, "ok") != 0) {
		connect_error(req, &w->k, kind, "path %s not found", w->path);
		return false;
	}
	entry = envd_entry(&rest, abx_buf_str(&answer) + answer.len);
	type = NULL;
	(void)abx_json_str(entry, "type", 64, &type);
	ok = type && strcmp(type, "FILE_TYPE_DIRECTORY") == 0;
	cJSON_Delete(entry);
	if (!ok)
		connect_error(req, &w->k, "invalid_argument", "path %s not a directory", w->path);
	return ok;
}

void envd_watch_dir(struct emu_request *req)
{
	struct connect_kind k;
	struct emu_feed *feed;
	struct watcher *w;
	cJSON *doc;

	if (!connect_kind(req, true, &k))
		return;
	doc = connect_message(req, &k, &proto_watch);
	if (!doc)
		return;
	w = watcher_new(req, &k, doc);
	cJSON_Delete(doc);
	if (!envd_user(req, w->user)) {
		connect_error(req, &k, "unauthenticated", "invalid username");
		watcher_free(w);
		return;
	}
	if (!check(req, w)) {
		watcher_free(w);
		return;
	}
	feed = emu_feed_get(w->feed);
	emu_feed_on_left(feed, on_left, (void *)(intptr_t)abx_steal_fd(&w->in[1]));
	if (!e2b_thread(w->box->e, run, w)) {
		emu_feed_end(feed, true);
		watcher_free(w);
	}
	emu_reply_feed(req, 200, connect_stream_type(&k), UINT64_MAX, feed, NULL);
}
