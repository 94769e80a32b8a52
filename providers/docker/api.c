/* SPDX-License-Identifier: MIT */
/* Requests to the engine and its answers. */
#include <stdarg.h>
#include <string.h>

#include "providers/docker/docker.h"

#define PATH_MAX_BYTES ((size_t)256 << 10)
#define ANSWER_MAX_BYTES ((size_t)64 << 20)

bool docker_is_word(const char *text)
{
	return text && *text && strlen(text) <= 300 && !strstr(text, "..") &&
	       text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789-_.:/@")] == '\0' &&
	       *text != '/' && *text != '.';
}

void docker_answer_release(struct docker_answer *a)
{
	cJSON_Delete(a->doc);
	a->doc = NULL;
}

/* {"message": "..."}; some errors of old engines are plain text. */
static void take_message(const struct abx_buf *body, struct docker_answer *ret)
{
	const char *message = NULL;
	cJSON *doc = cJSON_ParseWithLength(abx_buf_str(body), body->len);

	if (abx_json_str(doc, "message", ANSWER_MAX_BYTES, &message) < 0 || !message)
		message = abx_buf_str(body);
	(void)snprintf(ret->message, sizeof(ret->message), "%.*s", (int)strcspn(message, "\r\n"),
		       message);
	cJSON_Delete(doc);
}

static int32_t no_answer(struct abx_session *s, struct abx_call *call,
			 const struct docker_request *q, int32_t r,
			 const struct abx_http_reply *reply, struct docker_answer *ret)
{
	struct abx_failure f = {ABX_INIT(struct abx_failure), .code = r, .retry_after_ms = -1};
	char text[700];

	(void)snprintf(ret->message, sizeof(ret->message), "%s", reply->text);
	ret->unknown = reply->sent;
	if (r == ABX_ECANCELED)
		return abx_fail_canceled(call);
	if (q->outcome_matters && reply->sent)
		f.flags = ABX_FAIL_OUTCOME_UNKNOWN;
	f.text = text;
	(void)snprintf(text, sizeof(text), "Docker engine at %s: %s", s->where, reply->text);
	if (reply->os_errno)
		f.remedy = "start it again (systemctl start docker)";
	else if (r == ABX_ETIMEDOUT)
		f.remedy = "see whether docker info answers, else restart the engine; "
			   "docker.timeout says how long is waited";
	else if (r == ABX_ENETWORK || r == ABX_EPROTO)
		f.remedy = DOCKER_REMEDY_LOST;
	(void)abx_plugin_host->fail(call, &f);
	return r;
}

bool docker_may_have_happened(int32_t r, const struct docker_answer *a)
{
	/* What stands before an engine says these, whatever the engine did. */
	if (r == ABX_OK)
		return a->status >= 502 && a->status <= 504;
	return a->unknown && r != ABX_ECANCELED;
}

int64_t docker_quiet_ms(const struct abx_session *s, const struct docker_request *q)
{
	if (s->timeout_ms)
		return s->timeout_ms + q->takes_ms;
	return q->slow ? 0 : DOCKER_QUIET_MS + q->takes_ms;
}

/* What the engine answered, taken apart. */
static int32_t take_answer(struct abx_session *s, struct abx_call *call,
			   const struct docker_request *q, const struct abx_http_reply *reply,
			   struct docker_answer *ret)
{
	const struct abx_buf *body = &reply->body;

	ret->status = reply->status;
	if (reply->status >= 400) {
		take_message(body, ret);
		return ABX_OK;
	}
	if (!body->len || strncmp(reply->content_type, "application/json", 16) != 0)
		return ABX_OK;
	ret->doc = cJSON_ParseWithLength(body->data, body->len);
	if (ret->doc)
		return ABX_OK;
	return no_answer(s, call, q, ABX_EPROTO,
			 &(struct abx_http_reply){.sent = true, .text = "its answer is not JSON"},
			 ret);
}

/* The engine was replaced behind a socket that stayed. */
static bool is_of_another_version(const struct docker_answer *a)
{
	return a->status == 400 && strncmp(a->message, "client version ", 15) == 0;
}

/* Behind the version that both speak. */
static void add_path(const struct abx_session *s, struct abx_buf *b, const char *path)
{
	abx_buf_addf(b, "/v1.%d%s", atomic_load(&s->api_minor), path);
}

static int32_t send_it(struct abx_session *s, struct abx_call *call, const struct docker_request *q,
		       const char *path, const char *body, struct docker_answer *ret)
{
	abx_auto(abx_buf) struct abx_buf full = ABX_BUF_INIT(PATH_MAX_BYTES);
	struct abx_http_request req = {
		.method = q->method,
		.content_type = body ? "application/json" : q->content_type,
		.body = body,
		.body_len = body ? strlen(body) : 0,
		.body_fd = q->body_fd > 0 ? q->body_fd : -1,
		.body_size = -1,
		.sink = q->sink,
		.sink_ctx = q->sink_ctx,
		.max_bytes = ANSWER_MAX_BYTES,
		.idempotent = q->idempotent,
		.quiet_ms = docker_quiet_ms(s, q),
	};
	struct abx_http_reply reply;
	int32_t r;

	add_path(s, &full, path);
	if (full.failed)
		return abx_fail_no_memory(call);
	req.path = full.data;
	r = abx_http_do(s->http, call, &req, &reply);
	r = r == ABX_OK ? take_answer(s, call, q, &reply, ret)
			: no_answer(s, call, q, r, &reply, ret);
	abx_http_reply_release(&reply);
	return r;
}

static int32_t ask(struct abx_session *s, struct abx_call *call, const struct docker_request *q,
		   struct docker_answer *ret, const char *path_fmt, va_list ap) ABX_PRINTF(5, 0);

static int32_t ask(struct abx_session *s, struct abx_call *call, const struct docker_request *q,
		   struct docker_answer *ret, const char *path_fmt, va_list ap)
{
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(PATH_MAX_BYTES);
	char *body = q->body ? cJSON_PrintUnformatted(q->body) : NULL;
	bool again = false;
	int32_t r;

	*ret = (struct docker_answer){.status = 0};
	abx_buf_addv(&path, path_fmt, ap);
	if (path.failed || (q->body && !body)) {
		cJSON_free(body);
		return abx_fail_no_memory(call);
	}
	r = docker_connect(s, call);
	if (r == ABX_OK)
		r = send_it(s, call, q, path.data, body, ret);
	if (r == ABX_OK && is_of_another_version(ret) && q->body_fd <= 0)
		r = docker_agree_again(s, call, &again);
	if (again) {
		docker_answer_release(ret);
		*ret = (struct docker_answer){.status = 0};
		r = send_it(s, call, q, path.data, body, ret);
	}
	cJSON_free(body);
	return r;
}

int32_t docker_ask(struct abx_session *s, struct abx_call *call, const struct docker_request *q,
		   struct docker_answer *ret, const char *path_fmt, ...)
{
	va_list ap;
	int32_t r;

	va_start(ap, path_fmt);
	r = ask(s, call, q, ret, path_fmt, ap);
	va_end(ap);
	return r;
}

int32_t docker_expect(struct abx_call *call, const struct docker_answer *a, const char *what_fmt,
		      ...)
{
	char what[300];
	struct abx_failure f = {ABX_INIT(struct abx_failure), .code = abx_http_code(a->status),
				.http_status = a->status, .retry_after_ms = -1};
	char text[900];
	va_list ap;

	if (f.code == ABX_OK || a->status == 304)
		return ABX_OK;
	va_start(ap, what_fmt);
	(void)vsnprintf(what, sizeof(what), what_fmt, ap);
	va_end(ap);
	(void)snprintf(text, sizeof(text), "%s: %s", what,
		       *a->message ? a->message : "the Docker engine says no more");
	f.text = text;
	/* An engine that is there and says no is not the network: nothing to try again. */
	if (a->status == 500) {
		f.code = ABX_EIO;
		f.remedy = "the engine's log may say more (journalctl -u docker)";
	}
	(void)abx_plugin_host->fail(call, &f);
	return f.code;
}

int32_t docker_do(struct abx_session *s, struct abx_call *call, const char *method,
		  const char *what, const char *path_fmt, ...)
{
	const struct docker_request q = {.method = method, .idempotent = true, .slow = true};
	struct docker_answer a;
	va_list ap;
	int32_t r;

	va_start(ap, path_fmt);
	r = ask(s, call, &q, &a, path_fmt, ap);
	va_end(ap);
	if (r == ABX_OK)
		r = docker_expect(call, &a, "%s", what);
	docker_answer_release(&a);
	return r;
}

int32_t docker_upgrade(struct abx_session *s, struct abx_call *call, const char *path,
		       const cJSON *body, struct abx_http_stream **ret)
{
	abx_auto(abx_buf) struct abx_buf full = ABX_BUF_INIT(PATH_MAX_BYTES);
	const struct docker_request q = {.outcome_matters = true};
	struct docker_answer a = {.status = 0};
	struct abx_http_request req = {ABX_HTTP_REQUEST_INIT, .method = "POST",
				       .content_type = "application/json",
				       .quiet_ms = docker_quiet_ms(s, &q)};
	struct abx_http_reply reply = {.retry_after_ms = -1};
	char *text = cJSON_PrintUnformatted(body);
	int32_t r;

	*ret = NULL;
	add_path(s, &full, path);
	if (!text || full.failed) {
		cJSON_free(text);
		return abx_fail_no_memory(call);
	}
	req.path = full.data;
	req.body = text;
	req.body_len = strlen(text);
	r = abx_http_upgrade(s->http, call, &req, &reply, ret);
	if (r != ABX_OK) {
		r = no_answer(s, call, &q, r, &reply, &a);
	} else if (!*ret) {
		a.status = reply.status;
		take_message(&reply.body, &a);
		r = docker_expect(call, &a, "exec");
	}
	abx_http_reply_release(&reply);
	cJSON_free(text);
	return r;
}
