/* SPDX-License-Identifier: MIT */
/* Requests to the control plane and its answers. */
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "providers/e2b/e2b.h"

#define PATH_MAX_BYTES ((size_t)256 << 10)
#define ANSWER_MAX_BYTES ((size_t)16 << 20)

bool e2b_is_id(const char *text)
{
	size_t len = text ? strlen(text) : 0;

	return len && len < E2B_ID_BYTES &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
		       len;
}

int32_t e2b_open_http(struct abx_session *s, struct abx_call *call, const char *base,
		      struct abx_http **ret)
{
	const struct abx_http_options o = {
		.host = abx_plugin_host,
		.base_url = base,
		.user_agent = s->user_agent,
		.ca_file = s->ca_file,
		.proxy = s->proxy,
		.no_proxy = s->no_proxy,
		.id_header = "X-E2B-Trace-ID",
	};

	return abx_http_open_for(call, "E2B", &o, ret);
}

void e2b_answer_release(struct e2b_answer *a)
{
	cJSON_Delete(a->doc);
	a->doc = NULL;
}

/* {"code": 404, "message": "...", "error_code": "..."}; what stands before the service may
 * answer with text or a page. */
static void take_message(const struct abx_buf *body, struct e2b_answer *ret)
{
	cJSON *doc = cJSON_ParseWithLength(abx_buf_str(body), body->len);
	const char *message = abx_json_get_text(doc, "message");

	if (!*message && !doc && *abx_buf_str(body) != '<')
		message = abx_buf_str(body);
	(void)snprintf(ret->message, sizeof(ret->message), "%.*s", (int)strcspn(message, "\r\n"),
		       message);
	(void)snprintf(ret->error_code, sizeof(ret->error_code), "%.63s",
		       abx_json_get_text(doc, "error_code"));
	cJSON_Delete(doc);
}

static int32_t no_answer(struct abx_session *s, struct abx_call *call, const struct e2b_request *q,
			 int32_t r, const struct abx_http_reply *reply, struct e2b_answer *ret)
{
	struct abx_failure f = {ABX_INIT(struct abx_failure), .code = r, .retry_after_ms = -1};
	char text[700];

	(void)snprintf(ret->message, sizeof(ret->message), "%s", reply->text);
	(void)snprintf(ret->request_id, sizeof(ret->request_id), "%s", reply->request_id);
	ret->unknown = reply->sent;
	if (r == ABX_ECANCELED)
		return abx_fail_canceled(call);
	if (q->outcome_matters && reply->sent)
		f.flags = ABX_FAIL_OUTCOME_UNKNOWN;
	f.text = text;
	(void)snprintf(text, sizeof(text), "E2B at %s: %s", s->api_url, reply->text);
	f.request_id = *reply->request_id ? reply->request_id : NULL;
	f.remedy = r == ABX_EAUTH      ? "set ca_file to the certificates of your proxy or cluster"
		   : r == ABX_ENETWORK ? "see whether this machine reaches it; E2B_DOMAIN or "
					 "E2B_API_URL say where it is"
				       : E2B_REMEDY_LATER;
	(void)abx_plugin_host->fail(call, &f);
	return r;
}

bool e2b_may_have_happened(int32_t r, const struct e2b_answer *a)
{
	/* What stands before the service says these, whatever the service did; and of what it
	 * says itself some came after the sandbox was placed. */
	if (r == ABX_OK)
		return a->status >= 500;
	return a->unknown && r != ABX_ECANCELED;
}

/* Of a route that is there, 404 names what is not there. */
bool e2b_no_route(const struct e2b_answer *a)
{
	return a->status == 405 ||
	       (a->status == 404 && (!*a->message || strstr(a->message, "no matching operation")));
}

static int32_t take_answer(struct abx_session *s, struct abx_call *call,
			   const struct e2b_request *q, const struct abx_http_reply *reply,
			   struct e2b_answer *ret)
{
	const struct abx_buf *body = &reply->body;

	ret->status = reply->status;
	ret->retry_after_ms = reply->retry_after_ms;
	(void)snprintf(ret->next, sizeof(ret->next), "%s", reply->header);
	(void)snprintf(ret->request_id, sizeof(ret->request_id), "%s", reply->request_id);
	if (reply->status >= 300) {
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

static int32_t send_it(struct abx_session *s, struct abx_call *call, const struct e2b_request *q,
		       const char *path, const char *body, struct e2b_answer *ret)
{
	char key[E2B_TOKEN_BYTES + 32];
	const char *headers[] = {key, NULL};
	const struct abx_http_request req = {
		ABX_HTTP_REQUEST_INIT,
		.method = q->method,
		.path = path,
		.content_type = body ? "application/json" : NULL,
		.body = body,
		.body_len = body ? strlen(body) : 0,
		.headers = headers,
		.want_header = "X-Next-Token",
		.max_bytes = ANSWER_MAX_BYTES,
		.idempotent = q->idempotent,
		.rate_limited = !q->brief,
		.quiet_ms = q->quiet_ms ? q->quiet_ms : E2B_QUIET_MS,
	};
	struct abx_http_reply reply;
	int32_t r;

	if (s->api_key)
		(void)snprintf(key, sizeof(key), "X-API-Key: %s", s->api_key);
	else
		(void)snprintf(key, sizeof(key), "Authorization: Bearer %s", s->access_token);
	r = abx_http_do(s->http, call, &req, &reply);
	explicit_bzero(key, sizeof(key));
	r = r == ABX_OK ? take_answer(s, call, q, &reply, ret)
			: no_answer(s, call, q, r, &reply, ret);
	abx_http_reply_release(&reply);
	return r;
}

static bool is_header_text(const char *text)
{
	for (; *text; text++)
		if (!isgraph((unsigned char)*text))
			return false;
	return true;
}

/* Said before anything is asked: a service can only say that it did not like it. */
static int32_t check_key(const struct abx_session *s, struct abx_call *call)
{
	const char *key = s->api_key ? s->api_key : s->access_token;

	if (!key)
		return abx_fail(call, ABX_EAUTH, E2B_REMEDY_KEY, "E2B: no API key");
	if (!is_header_text(key) || strlen(key) >= E2B_TOKEN_BYTES)
		return abx_fail(call, ABX_EAUTH, E2B_REMEDY_KEY,
				"E2B: the API key is not one line");
	if (s->api_key && strncmp(key, "e2b_", 4) != 0)
		return abx_fail(call, ABX_EAUTH, E2B_REMEDY_KEY,
				"E2B: an API key begins with 'e2b_', and this one does not");
	return ABX_OK;
}

/* Once in a session: no I/O. */
static int32_t need_http(struct abx_session *s, struct abx_call *call)
{
	int32_t r = ABX_OK;

	(void)pthread_mutex_lock(&s->lock);
	if (!s->http)
		r = e2b_open_http(s, call, s->api_url, &s->http);
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

int32_t e2b_ask(struct abx_session *s, struct abx_call *call, const struct e2b_request *q,
		struct e2b_answer *ret, const char *path_fmt, ...)
{
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(PATH_MAX_BYTES);
	char *body = NULL;
	va_list ap;
	int32_t r;

	*ret = (struct e2b_answer){.retry_after_ms = -1};
	r = check_key(s, call);
	if (r == ABX_OK)
		r = need_http(s, call);
	if (r != ABX_OK)
		return r;
	va_start(ap, path_fmt);
	abx_buf_addv(&path, path_fmt, ap);
	va_end(ap);
	body = q->body ? cJSON_PrintUnformatted(q->body) : NULL;
	r = path.failed || (q->body && !body) ? abx_fail_no_memory(call)
					      : send_it(s, call, q, path.data, body, ret);
	if (body)
		explicit_bzero(body, strlen(body));
	cJSON_free(body);
	return r;
}

/* What an answer means beyond its status, and what to do about it. */
static void judge(const struct e2b_answer *a, struct abx_failure *f)
{
	f->code = abx_http_code(a->status);
	switch (a->status) {
	case 400:
		if (strstr(a->message, "imeout") || strstr(a->message, "instance length"))
			f->remedy = "ask for less: e2b.timeout may be as long as your plan allows";
		break;
	case 401:
		f->remedy = E2B_REMEDY_KEY;
		break;
	case 403:
		f->remedy = "use a key of the team that owns it";
		break;
	case 429:
		/* A limit on how many there are gets no better by waiting. */
		if (a->retry_after_ms >= 0)
			break;
		f->code = ABX_EQUOTA;
		f->remedy =
			"destroy or stop boxes (agentbox list), or raise the limit of your plan";
		break;
	case 503:
	case 504:
		f->code = ABX_EREMOTE;
		f->remedy = "the service has no room just now: try again, or a smaller template";
		break;
	default:
		if (a->status >= 500)
			f->remedy = E2B_REMEDY_LATER;
		break;
	}
}

int32_t e2b_expect(struct abx_call *call, const struct e2b_answer *a, const char *what_fmt, ...)
{
	struct abx_failure f = {ABX_INIT(struct abx_failure), .http_status = a->status,
				.retry_after_ms = a->retry_after_ms};
	char what[400], text[1024];
	va_list ap;

	if (a->status >= 200 && a->status < 300)
		return ABX_OK;
	va_start(ap, what_fmt);
	(void)vsnprintf(what, sizeof(what), what_fmt, ap);
	va_end(ap);
	judge(a, &f);
	if (*a->message)
		(void)snprintf(text, sizeof(text), "%s: %s", what, a->message);
	else
		(void)snprintf(text, sizeof(text), "%s: E2B says no more than HTTP %d", what,
			       a->status);
	f.text = text;
	f.request_id = *a->request_id ? a->request_id : NULL;
	(void)abx_plugin_host->fail(call, &f);
	return f.code;
}
