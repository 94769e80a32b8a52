/* SPDX-License-Identifier: MIT */
/* Calls of process.Process over the Connect protocol. */
#include <string.h>

#include "abxsdk/base64.h"
#include "abxsdk/json.h"
#include "providers/e2b/envd.h"

#define BODY_MAX_BYTES ((size_t)2 << 20)
#define HEADERS_MAX 16
#define STREAM_TYPE "application/connect+proto"
#define CALL_TYPE "application/proto"

static const struct {
	const char *word;
	int32_t code;
} codes[] = {
	{"invalid_argument", ABX_EINVAL},
	{"out_of_range", ABX_EINVAL},
	{"not_found", ABX_ENOTFOUND},
	{"already_exists", ABX_EEXIST},
	{"permission_denied", ABX_EPERM},
	{"unauthenticated", ABX_EAUTH},
	{"resource_exhausted", ABX_ERATE},
	{"failed_precondition", ABX_ESTATE},
	{"aborted", ABX_ESTATE},
	{"unimplemented", ABX_ENOTSUP},
	{"deadline_exceeded", ABX_ETIMEDOUT},
};

static int32_t code_of(const char *word)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(codes); i++)
		if (strcmp(codes[i].word, word) == 0)
			return codes[i].code;
	return ABX_EREMOTE;
}

/* The headers of the sandbox, and of this call. */
struct heads {
	const char *list[HEADERS_MAX];
	char user[160];
};

/* A name without a password: it says who it is done as, and proves nothing. */
static bool add_user(const char *user, char *to, size_t size)
{
	abx_auto(abx_buf) struct abx_buf name = ABX_BUF_INIT(size), line = ABX_BUF_INIT(size);

	abx_buf_addf(&name, "%s:", user);
	abx_buf_adds(&line, "Authorization: Basic ");
	abx_base64_add(&line, abx_buf_str(&name), name.len);
	(void)snprintf(to, size, "%s", abx_buf_str(&line));
	return !name.failed && !line.failed;
}

static const char *const *make_heads(const struct e2b_envd *envd, const struct e2b_rpc *rpc,
				     struct heads *ret)
{
	size_t n = 0;

	while (envd->headers[n] && n < HEADERS_MAX - 4) {
		ret->list[n] = envd->headers[n];
		n++;
	}
	ret->list[n++] = "Connect-Protocol-Version: 1";
	if (rpc->message)
		ret->list[n++] = "Keepalive-Ping-Interval: " E2B_KEEPALIVE_S;
	if (rpc->user && add_user(rpc->user, ret->user, sizeof(ret->user)))
		ret->list[n++] = ret->user;
	ret->list[n] = NULL;
	return ret->list;
}

int32_t e2b_rest_error(int32_t status, const struct abx_buf *body, char *text, size_t size)
{
	cJSON *doc = NULL;
	const char *message;

	if (abx_json_parse(abx_buf_str(body), body->len, BODY_MAX_BYTES, &doc) < 0)
		doc = NULL;
	message = abx_json_get_text(doc, "message");
	if (!*message)
		message = abx_buf_str(body);
	(void)snprintf(text, size, "%.*s", (int)strcspn(message, "\r\n"), message);
	cJSON_Delete(doc);
	/* The proxy's word for a sandbox that was paused, or that is gone. */
	if (status == 502)
		return strstr(text, "not found") ? ABX_ESTATE : ABX_ENETWORK;
	return abx_http_code(status);
}

bool e2b_rpc_is_gone(int32_t r, int32_t status)
{
	return r == ABX_ESTATE && status == 502;
}

static int32_t take_refusal(struct e2b_rpc *rpc, const struct abx_buf *body)
{
	if (e2b_frames_error(abx_buf_str(body), body->len, rpc->code, sizeof(rpc->code), rpc->text,
			     sizeof(rpc->text)))
		return code_of(rpc->code);
	return e2b_rest_error(rpc->status, body, rpc->text, sizeof(rpc->text));
}

static void take_reply(struct e2b_rpc *rpc, const struct abx_http_reply *reply)
{
	rpc->status = reply->status;
	rpc->sent = reply->sent || reply->status;
	rpc->code[0] = '\0';
	(void)snprintf(rpc->text, sizeof(rpc->text), "%s", reply->text);
	(void)snprintf(rpc->request_id, sizeof(rpc->request_id), "%s", reply->request_id);
}

static void init_request(struct abx_http_request *req, const struct e2b_rpc *rpc, char path[64],
			 const char *const *headers)
{
	(void)snprintf(path, 64, "/%s", rpc->method);
	*req = (struct abx_http_request){
		ABX_HTTP_REQUEST_INIT,	     .method = "POST", .path = path, .headers = headers,
		.max_bytes = BODY_MAX_BYTES, .once = true};
}

int32_t e2b_rpc_call(const struct e2b_envd *envd, struct e2b_rpc *rpc, const struct abx_buf *msg)
{
	struct abx_http_request req;
	struct abx_http_reply reply;
	struct heads heads;
	char path[64];
	int32_t r;

	if (msg->failed)
		return ABX_ENOMEM;
	init_request(&req, rpc, path, make_heads(envd, rpc, &heads));
	req.content_type = CALL_TYPE;
	req.body = msg->data;
	req.body_len = msg->len;
	req.quiet_ms = E2B_ANSWER_MS;
	r = abx_http_do(rpc->http, rpc->call, &req, &reply);
	take_reply(rpc, &reply);
	if (r == ABX_OK && reply.status != 200)
		r = take_refusal(rpc, &reply.body);
	else if (r == ABX_OK && rpc->answer)
		abx_buf_add(rpc->answer, reply.body.data, reply.body.len);
	if (r == ABX_OK && rpc->answer && rpc->answer->failed)
		r = ABX_EPROTO;
	abx_http_reply_release(&reply);
	return r;
}

struct stream {
	struct e2b_rpc *rpc;
	const struct abx_http_reply *reply;
	struct e2b_frames frames;
	bool wrong;   /* it is nothing of Connect's */
	int32_t said; /* by message() */
};

static int32_t on_data(void *ctx, const void *data, size_t len)
{
	struct stream *x = ctx;
	int32_t r;

	if (strncmp(x->reply->content_type, STREAM_TYPE, strlen(STREAM_TYPE)) != 0)
		r = ABX_EPROTO;
	else
		r = e2b_frames_feed(&x->frames, data, len);
	x->wrong = r == ABX_EPROTO && !x->said;
	return r;
}

static int32_t on_message(void *ctx, const void *data, size_t len)
{
	struct stream *x = ctx;

	if (x->rpc->message)
		x->said = x->rpc->message(x->rpc->ctx, data, len);
	return x->said;
}

static int32_t judge(struct stream *x, int32_t r, const struct abx_buf *body)
{
	struct e2b_rpc *rpc = x->rpc;

	if (x->said)
		return x->said;
	if (x->wrong) {
		(void)snprintf(rpc->text, sizeof(rpc->text),
			       "its answer is no stream of Connect's");
		return ABX_EPROTO;
	}
	if (r == ABX_OK && rpc->status != 200)
		return take_refusal(rpc, body);
	/* What follows the last frame is nothing that anybody waits for. */
	if (x->frames.ended) {
		(void)snprintf(rpc->code, sizeof(rpc->code), "%s", x->frames.code);
		(void)snprintf(rpc->text, sizeof(rpc->text), "%s", x->frames.text);
		return *rpc->code ? code_of(rpc->code) : ABX_OK;
	}
	rpc->lost = r == ABX_OK || r == ABX_ENETWORK || (r == ABX_ETIMEDOUT && rpc->sent);
	if (r == ABX_OK)
		(void)snprintf(rpc->text, sizeof(rpc->text), "the stream ends in the middle");
	return r == ABX_OK ? ABX_ENETWORK : r;
}

int32_t e2b_rpc_stream(const struct e2b_envd *envd, struct e2b_rpc *rpc, const struct abx_buf *msg)
{
	abx_auto(abx_buf) struct abx_buf body =
		ABX_BUF_INIT(E2B_MESSAGE_MAX + E2B_FRAME_HEAD_BYTES);
	struct abx_http_reply reply = {.retry_after_ms = -1};
	struct stream x = {.rpc = rpc, .reply = &reply, .frames = E2B_FRAMES_INIT(on_message, &x)};
	unsigned char head[E2B_FRAME_HEAD_BYTES];
	struct abx_http_request req;
	struct heads heads;
	char path[64];
	int32_t r;

	e2b_frame_head(head, msg->len);
	abx_buf_add(&body, head, sizeof(head));
	abx_buf_add(&body, abx_buf_str(msg), msg->len);
	if (msg->failed || body.failed)
		return ABX_ENOMEM;
	init_request(&req, rpc, path, make_heads(envd, rpc, &heads));
	req.content_type = STREAM_TYPE;
	req.sink = on_data;
	req.sink_ctx = &x;
	req.stop_fd = rpc->stop_fd;
	if (rpc->source) {
		/* A command may leave its input alone as long as it likes. */
		req.body_fd = rpc->body_fd;
		req.source = rpc->source;
		req.source_ctx = rpc->ctx;
	} else {
		req.body = body.data;
		req.body_len = body.len;
		req.quiet_ms = E2B_STREAM_QUIET_MS;
	}
	rpc->lost = false;
	r = abx_http_do(rpc->http, rpc->call, &req, &reply);
	take_reply(rpc, &reply);
	explicit_bzero(body.data, body.len);
	r = judge(&x, r, &reply.body);
	e2b_frames_release(&x.frames);
	abx_http_reply_release(&reply);
	return r;
}

int32_t e2b_rpc_fail(struct abx_call *call, int32_t r, const struct e2b_rpc *rpc, const char *what)
{
	struct abx_failure f = {ABX_INIT(struct abx_failure), .code = r, .retry_after_ms = -1,
				.http_status = rpc->status};
	char text[1024];

	if (r == ABX_ECANCELED)
		return abx_fail_canceled(call);
	if (r == ABX_ENOMEM)
		return abx_fail_no_memory(call);
	(void)snprintf(text, sizeof(text), "%s: %s", what,
		       *rpc->text   ? rpc->text
		       : *rpc->code ? rpc->code
				    : "envd says no more");
	f.text = text;
	f.request_id = *rpc->request_id ? rpc->request_id : NULL;
	if (e2b_rpc_is_gone(r, rpc->status))
		f.remedy = "see whether the box still runs: agentbox status";
	else if (r == ABX_EAUTH)
		f.remedy = "the box's token is not its own any more: agentbox stop and start it";
	(void)abx_plugin_host->fail(call, &f);
	return r;
}

void e2b_rpc_put_pid(struct abx_buf *msg, uint32_t pid)
{
	abx_auto(abx_buf) struct abx_buf selector = ABX_BUF_INIT(64);

	e2b_pb_put_uint(&selector, 1, pid);
	e2b_pb_put_bytes(msg, 1, selector.data, selector.len);
}
