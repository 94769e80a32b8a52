/* SPDX-License-Identifier: MIT */
/* envd of the emulated E2B: process.Process. */
#include <signal.h>
#include <string.h>

#include "abxsdk/json.h"
#include "tests/cloud/agent/frames.h"
#include "tests/cloud/e2b/envd.h"
#include "tests/cloud/e2b/process.h"

#define FEED_BYTES ((size_t)2 << 20)

/* A feed that says something when it is silent. */
static struct emu_feed *new_feed(const struct emu_request *req, const struct connect_kind *k)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(256);
	struct emu_feed *feed = emu_feed_new(FEED_BYTES);
	cJSON *doc = cJSON_CreateObject(), *o = cJSON_AddObjectToObject(doc, "event");

	(void)cJSON_AddItemToObject(o, "keepalive", cJSON_CreateObject());
	connect_envelope(k, &proto_event, doc, &b);
	cJSON_Delete(doc);
	emu_feed_idle(feed, connect_keepalive_ms(req), b.data, b.len);
	return feed;
}

void envd_start(struct emu_request *req)
{
	struct e2b_box *b = envd_box(req);
	struct connect_kind k;
	struct emu_feed *feed;
	char user[ENVD_USER_BYTES];
	cJSON *doc;

	if (!connect_kind(req, true, &k))
		return;
	doc = connect_message(req, &k, &proto_start);
	if (!doc)
		return;
	if (!envd_user(req, user)) {
		connect_error(req, &k, "unauthenticated", "invalid username");
	} else {
		feed = new_feed(req, &k);
		proc_put(proc_start(b, user, doc, feed, &k, connect_timeout_ms(req)));
		emu_reply_feed(req, 200, connect_stream_type(&k), UINT64_MAX, feed, NULL);
	}
	cJSON_Delete(doc);
}

/* The process that the message selects; NULL, and answered. */
static struct e2b_proc *selected(struct emu_request *req, const struct connect_kind *k,
				 const cJSON *doc)
{
	const cJSON *selector = cJSON_GetObjectItemCaseSensitive(doc, "process");
	struct e2b_proc *p = proc_find(envd_box(req), selector);
	const char *tag = NULL;
	int64_t pid = 0;

	if (p)
		return p;
	(void)abx_json_i64(selector, "pid", &pid);
	(void)abx_json_str(selector, "tag", 256, &tag);
	if (tag)
		connect_error(req, k, "not_found", "process with tag %s not found", tag);
	else
		connect_error(req, k, "not_found", "process with pid %lld not found",
			      (long long)pid);
	return NULL;
}

void envd_connect(struct emu_request *req)
{
	struct connect_kind k;
	struct emu_feed *feed;
	struct e2b_proc *p;
	cJSON *doc;

	if (!connect_kind(req, true, &k))
		return;
	doc = connect_message(req, &k, &proto_connect);
	p = doc ? selected(req, &k, doc) : NULL;
	if (p) {
		feed = new_feed(req, &k);
		proc_listen(p, feed, &k, connect_timeout_ms(req));
		proc_put(p);
		emu_reply_feed(req, 200, connect_stream_type(&k), UINT64_MAX, feed, NULL);
	}
	cJSON_Delete(doc);
}

static cJSON *info(const struct e2b_proc *p)
{
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(p->request, "process");
	cJSON *o = cJSON_CreateObject();

	(void)cJSON_AddItemToObject(o, "config", cJSON_Duplicate(config, true));
	(void)abx_json_add_i64(o, "pid", p->pid);
	(void)abx_json_add_str(o, "tag", p->tag);
	return o;
}

void envd_list_processes(struct emu_request *req)
{
	struct e2b_box *b = envd_box(req);
	struct connect_kind k;
	cJSON *doc, *list;

	if (!connect_kind(req, false, &k))
		return;
	doc = connect_message(req, &k, &proto_empty);
	if (!doc)
		return;
	cJSON_Delete(doc);
	doc = cJSON_CreateObject();
	list = cJSON_CreateArray();
	(void)pthread_mutex_lock(&b->e->lock);
	for (const struct e2b_proc *p = b->procs; p; p = p->next)
		if (p->state == PROC_RUNNING)
			(void)cJSON_AddItemToArray(list, info(p));
	(void)pthread_mutex_unlock(&b->e->lock);
	if (cJSON_GetArraySize(list))
		(void)cJSON_AddItemToObject(doc, "processes", list);
	else
		cJSON_Delete(list);
	connect_reply(req, &k, &proto_list_processes, doc);
}

/* NULL, or the error of the protocol that it is, with its text. */
static const char *give_input(struct e2b_proc *p, const cJSON *input, const char **ret_text)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(CONNECT_MESSAGE_MAX);
	const char *text = NULL, *key = p->pty ? "pty" : "stdin";
	bool in = true;

	(void)abx_json_bool(p->request, "stdin", true, &in);
	if (p->state == PROC_ENDED) {
		*ret_text = "process has ended";
		return "not_found";
	}
	if (abx_json_str(input, key, CONNECT_MESSAGE_MAX, &text) < 0 || !text) {
		*ret_text = p->pty ? "error writing to stdin: tty assigned to process"
				   : "error writing to tty: tty not assigned to process";
		return "internal";
	}
	if (!p->pty && (!in || p->in_closed)) {
		*ret_text = "error writing to stdin: stdin not enabled or closed";
		return "internal";
	}
	if (e2b_unbase64(text, &b) < 0) {
		*ret_text = "input is no base64";
		return "invalid_argument";
	}
	for (size_t at = 0; at < b.len; at += AGENT_FRAME_MAX) {
		size_t n = b.len - at < AGENT_FRAME_MAX ? b.len - at : AGENT_FRAME_MAX;

		if (proc_say(p, AGENT_INPUT, b.data + at, n) < 0) {
			*ret_text = "process has ended";
			return "not_found";
		}
	}
	return NULL;
}

/* A unary call about one process. */
static cJSON *begin_call(struct emu_request *req, const struct proto_message *m,
			 struct connect_kind *k, struct e2b_proc **ret)
{
	cJSON *doc = connect_kind(req, false, k) ? connect_message(req, k, m) : NULL;

	*ret = doc ? selected(req, k, doc) : NULL;
	if (*ret)
		return doc;
	cJSON_Delete(doc);
	return NULL;
}

static void end_call(struct emu_request *req, const struct connect_kind *k, struct e2b_proc *p,
		     cJSON *doc, const char *code, const char *text)
{
	if (code)
		connect_error(req, k, code, "%s", text);
	else
		connect_reply(req, k, &proto_empty, cJSON_CreateObject());
	proc_put(p);
	cJSON_Delete(doc);
}

void envd_send_input(struct emu_request *req)
{
	const char *text = NULL, *code;
	struct connect_kind k;
	struct e2b_proc *p;
	cJSON *doc = begin_call(req, &proto_send_input, &k, &p);

	if (!doc)
		return;
	code = give_input(p, cJSON_GetObjectItemCaseSensitive(doc, "input"), &text);
	end_call(req, &k, p, doc, code, text);
}

void envd_close_stdin(struct emu_request *req)
{
	const char *code = NULL;
	struct connect_kind k;
	struct e2b_proc *p;
	cJSON *doc = begin_call(req, &proto_close_stdin, &k, &p);

	if (!doc)
		return;
	if (p->pty)
		code = "internal";
	else
		(void)proc_say(p, AGENT_END_INPUT, "", 0);
	end_call(req, &k, p, doc, code, "cannot close stdin for PTY process - send Ctrl+D instead");
}

void envd_send_signal(struct emu_request *req)
{
	const char *name = NULL, *code = NULL;
	struct connect_kind k;
	struct e2b_proc *p;
	cJSON *doc = begin_call(req, &proto_send_signal, &k, &p);
	int64_t number = 0;

	if (!doc)
		return;
	if (abx_json_str(doc, "signal", 64, &name) < 0)
		(void)abx_json_i64(doc, "signal", &number);
	if ((name && strcmp(name, "SIGNAL_SIGKILL") == 0) || number == SIGKILL)
		number = SIGKILL;
	else if ((name && strcmp(name, "SIGNAL_SIGTERM") == 0) || number == SIGTERM)
		number = SIGTERM;
	else
		code = "unimplemented";
	if (!code && proc_signal(p, (int)number) < 0)
		code = "not_found";
	end_call(req, &k, p, doc, code, "cannot send that signal to the process");
}

void envd_update(struct emu_request *req)
{
	const char *code = NULL;
	struct connect_kind k;
	struct e2b_proc *p;
	cJSON *doc = begin_call(req, &proto_update, &k, &p);
	unsigned char b[4];

	if (!doc)
		return;
	proc_pty_size(cJSON_GetObjectItemCaseSensitive(doc, "pty"), b);
	if (!p->pty)
		code = "internal";
	else
		(void)proc_say(p, AGENT_RESIZE, b, sizeof(b));
	end_call(req, &k, p, doc, code, "error resizing tty: tty not assigned to process");
}

/* StreamInput: envelopes as they come. */
struct input_stream {
	struct abx_buf b;
	struct connect_kind k;
	struct e2b_proc *p;
	const char *code, *text;
};

static void input_free(void *data)
{
	struct input_stream *s = data;

	if (s->p)
		proc_put(s->p);
	abx_buf_release(&s->b);
	free(s);
}

static void input_message(struct emu_request *req, struct input_stream *s, const char *data,
			  size_t len)
{
	cJSON *doc = NULL, *start, *more;
	int r = s->k.proto ? proto_decode(&proto_stream_input, data, len, &doc)
			   : abx_json_parse(data, len, CONNECT_MESSAGE_MAX, &doc);

	start = r == 0 ? cJSON_GetObjectItemCaseSensitive(doc, "start") : NULL;
	more = r == 0 ? cJSON_GetObjectItemCaseSensitive(doc, "data") : NULL;
	if (start && !s->p) {
		s->p = proc_find(envd_box(req), cJSON_GetObjectItemCaseSensitive(start, "process"));
		s->code = s->p ? NULL : "not_found";
		s->text = "process not found";
	} else if (more && s->p) {
		s->code =
			give_input(s->p, cJSON_GetObjectItemCaseSensitive(more, "input"), &s->text);
	} else if (r < 0 || more) {
		s->code = "invalid_argument";
		s->text = "unexpected message";
	}
	cJSON_Delete(doc);
}

static int input_sink(struct emu_request *req, const void *data, size_t len)
{
	struct input_stream *s = req->data;

	abx_buf_add(&s->b, data, len);
	while (!s->code && s->b.len >= CONNECT_HEAD_BYTES) {
		const unsigned char *h = (const unsigned char *)s->b.data;
		size_t n = (size_t)h[1] << 24 | (size_t)h[2] << 16 | (size_t)h[3] << 8 | h[4];

		if (s->b.len - CONNECT_HEAD_BYTES < n)
			break;
		if (!(h[0] & CONNECT_END))
			input_message(req, s, s->b.data + CONNECT_HEAD_BYTES, n);
		n += CONNECT_HEAD_BYTES;
		memmove(s->b.data, s->b.data + n, s->b.len - n);
		s->b.len -= n;
	}
	return s->code || s->b.failed ? -EPROTO : 0;
}

void envd_stream_input(struct emu_request *req)
{
	struct input_stream *s = req->data;

	if (!s)
		emu_reply(req, 415, NULL, NULL, 0, NULL);
	else if (s->code)
		connect_error(req, &s->k, s->code, "%s", s->text);
	else
		connect_reply(req, &s->k, &proto_empty, cJSON_CreateObject());
}

void envd_stream_input_begin(struct emu_request *req)
{
	struct input_stream *s;
	struct connect_kind k;

	if (!connect_kind_of(req, true, &k))
		return;
	s = calloc(1, sizeof(*s));
	if (!s)
		return;
	s->b = (struct abx_buf)ABX_BUF_INIT(2 * CONNECT_MESSAGE_MAX);
	s->k = k;
	req->data = s;
	req->data_free = input_free;
	req->sink = input_sink;
}
