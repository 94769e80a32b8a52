/* SPDX-License-Identifier: MIT */
/* envd of the emulated E2B: which sandbox a request is for, and whether it may. */
#include "tests/cloud/e2b/envd.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "abxsdk/json.h"
#include "abxsdk/number.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/proto.h"

static void health(struct emu_request *req)
{
	emu_reply(req, 204, NULL, NULL, 0, NULL);
}

static void get_envs(struct emu_request *req)
{
	struct e2b_box *b = envd_box(req);
	cJSON *doc = cJSON_Duplicate(b->envs, true);

	cJSON_DeleteItemFromObjectCaseSensitive(doc, "E2B_SANDBOX");
	(void)abx_json_add_str(doc, "E2B_SANDBOX", "true");
	emu_reply_json(req, 200, doc, NULL);
}

static void get_metrics(struct emu_request *req)
{
	cJSON *doc = cJSON_CreateObject();

	(void)abx_json_add_i64(doc, "ts", time(NULL));
	(void)abx_json_add_i64(doc, "cpu_count", 2);
	(void)abx_json_add_i64(doc, "cpu_used_pct", 1);
	(void)abx_json_add_i64(doc, "mem_total", (int64_t)512 << 20);
	(void)abx_json_add_i64(doc, "mem_used", (int64_t)64 << 20);
	(void)abx_json_add_i64(doc, "disk_total", (int64_t)1 << 30);
	(void)abx_json_add_i64(doc, "disk_used", (int64_t)256 << 20);
	emu_reply_json(req, 200, doc, NULL);
}

static const struct emu_route routes[] = {
	{"GET", "/health", health, NULL},
	{"GET", "/envs", get_envs, NULL},
	{"GET", "/metrics", get_metrics, NULL},
	{"GET", "/files", envd_get_file, NULL},
	{"POST", "/files", envd_post_file, envd_post_file_begin},
	{"POST", "/process.Process/Start", envd_start, NULL},
	{"POST", "/process.Process/Connect", envd_connect, NULL},
	{"POST", "/process.Process/List", envd_list_processes, NULL},
	{"POST", "/process.Process/SendInput", envd_send_input, NULL},
	{"POST", "/process.Process/StreamInput", envd_stream_input, envd_stream_input_begin},
	{"POST", "/process.Process/CloseStdin", envd_close_stdin, NULL},
	{"POST", "/process.Process/SendSignal", envd_send_signal, NULL},
	{"POST", "/process.Process/Update", envd_update, NULL},
	{"POST", "/filesystem.Filesystem/Stat", envd_stat, NULL},
	{"POST", "/filesystem.Filesystem/MakeDir", envd_make_dir, NULL},
	{"POST", "/filesystem.Filesystem/Move", envd_move, NULL},
	{"POST", "/filesystem.Filesystem/ListDir", envd_list_dir, NULL},
	{"POST", "/filesystem.Filesystem/Remove", envd_remove, NULL},
	{"POST", "/filesystem.Filesystem/WatchDir", envd_watch_dir, NULL},
};

struct e2b_box *envd_box(const struct emu_request *req)
{
	return req->subject;
}

void envd_error(struct emu_request *req, int status, const char *fmt, ...)
{
	cJSON *doc = cJSON_CreateObject();
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)abx_json_add_i64(doc, "code", status);
	(void)abx_json_add_str(doc, "message", text);
	emu_reply_json(req, status, doc, NULL);
}

bool envd_user(const struct emu_request *req, char user[ENVD_USER_BYTES])
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1024);
	const char *text = emu_header(req, "Authorization");
	size_t n;

	(void)snprintf(user, ENVD_USER_BYTES, "%s", envd_box(req)->user);
	if (!text || strncasecmp(text, "Basic ", 6) != 0)
		return true;
	if (e2b_unbase64(text + 6, &b) < 0 || !b.len)
		return false;
	n = strcspn(b.data, ":");
	if (n >= ENVD_USER_BYTES)
		return false;
	if (n)
		(void)snprintf(user, ENVD_USER_BYTES, "%.*s", (int)n, b.data);
	return true;
}

static void plain_error(struct emu_request *req, const char *text)
{
	emu_reply(req, 400, "text/plain", text, strlen(text), NULL);
}

static void bad_header(struct emu_request *req)
{
	plain_error(req, "missing header E2b-Sandbox-Id or E2b-Sandbox-Port");
}

static void bad_id(struct emu_request *req)
{
	plain_error(req, "Invalid sandbox ID");
}

static void bad_port(struct emu_request *req)
{
	plain_error(req, "Invalid sandbox port");
}

void envd_proxy_error(struct emu_request *req, int status, const char *message, uint64_t port)
{
	const struct e2b_box *b = envd_box(req);
	cJSON *doc = cJSON_CreateObject();

	(void)abx_json_add_str(doc, "sandboxId", b ? b->id : req->data);
	(void)abx_json_add_str(doc, "message", message);
	if (port)
		(void)abx_json_add_i64(doc, "port", (int64_t)port);
	(void)abx_json_add_i64(doc, "code", status);
	emu_reply_json(req, status, doc, NULL);
}

static void gone(struct emu_request *req)
{
	envd_proxy_error(req, 502, "The sandbox was not found", 0);
}

static void no_traffic_token(struct emu_request *req)
{
	envd_proxy_error(req, 403,
			 "Sandbox is secured with traffic access token. Token header "
			 "'e2b-traffic-access-token' is missing",
			 0);
}

static void wrong_traffic_token(struct emu_request *req)
{
	envd_proxy_error(req, 403,
			 "Sandbox is secured with traffic access token. Provided traffic access "
			 "token is invalid",
			 0);
}

static void unauthorized(struct emu_request *req)
{
	envd_error(req, 401,
		   "unauthorized access, please provide a valid access token or method "
		   "signing if supported");
}

static void no_route(struct emu_request *req)
{
	emu_reply(req, 404, "text/plain", "404 page not found\n", 19, NULL);
}

static void no_signature(struct emu_request *req)
{
	envd_error(req, 401, "missing signature query parameter");
}

static void wrong_signature(struct emu_request *req)
{
	envd_error(req, 401, "invalid signature");
}

static void old_signature(struct emu_request *req)
{
	envd_error(req, 401, "signature is already expired");
}

static bool same_text(const char *a, const char *b)
{
	size_t n = strlen(a);

	return n == strlen(b) && CRYPTO_memcmp(a, b, n) == 0;
}

/* Is that the signature of this box for what the request is? */
static bool signed_by(const struct emu_request *req, const char *token)
{
	const char *path = emu_query(req, "path"), *user = emu_query(req, "username");
	const char *until = emu_query(req, "signature_expiration");
	const char *have = emu_query(req, "signature");
	bool read = strcmp(req->method, "GET") == 0;
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	char *msg = abx_xasprintf("%s:%s:%s:%s%s%s", path ? path : "", read ? "read" : "write",
				  user ? user : "", token, until ? ":" : "", until ? until : "");
	char *text, want[80];

	(void)EVP_Digest(msg, strlen(msg), sum, &len, EVP_sha256(), NULL);
	text = e2b_base64(sum, len);
	text[strcspn(text, "=")] = '\0';
	(void)snprintf(want, sizeof(want), "v1_%s", text);
	free(text);
	free(msg);
	return have && same_text(have, want);
}

/* NULL: it may.  Else the answer. */
static void (*check_access(struct emu_request *req, const struct e2b_box *b))(struct emu_request *)
{
	const char *token = emu_header(req, "X-Access-Token"), *until;
	uint64_t s;

	if (!*b->token || strcmp(req->path, "/health") == 0)
		return NULL;
	if (token)
		return same_text(token, b->token) ? NULL : unauthorized;
	if (strcmp(req->path, "/files") != 0)
		return unauthorized;
	if (!emu_query(req, "signature"))
		return no_signature;
	if (!signed_by(req, b->token))
		return wrong_signature;
	until = emu_query(req, "signature_expiration");
	if (until && (!abx_parse_u64(until, INT64_MAX, &s) || (time_t)s < time(NULL)))
		return old_signature;
	return NULL;
}

/* The same for what else listens there. */
static void (*check_traffic(struct emu_request *req, const struct e2b_box *b))(struct emu_request *)
{
	const char *token = emu_header(req, "e2b-traffic-access-token");

	if (!*b->traffic_token)
		return NULL;
	if (!token)
		return no_traffic_token;
	return same_text(token, b->traffic_token) ? NULL : wrong_traffic_token;
}

/* A signed URL with a base of its own names no sandbox: whose signature is it? */
static struct e2b_box *find_signer(struct emu_request *req)
{
	struct e2b *e = req->service;
	struct e2b_box *b;

	(void)pthread_mutex_lock(&e->lock);
	for (b = e->boxes; b; b = b->next)
		if (*b->token && signed_by(req, b->token))
			break;
	if (b)
		b->refs++;
	(void)pthread_mutex_unlock(&e->lock);
	return b;
}

/* {port}-{id}. of the host; false: it is another kind of host. */
static bool by_host(const struct emu_request *req, uint64_t *ret_port, char id[64])
{
	const char *host = emu_header(req, "Host");
	uint64_t port;
	size_t n;

	if (!host || !abx_parse_digits(&host, UINT16_MAX, &port) || *host != '-')
		return false;
	host++;
	n = strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789");
	if (n == 0 || n >= 64 || !host[n] || !strchr("-.", host[n]))
		return false;
	(void)snprintf(id, 64, "%.*s", (int)n, host);
	*ret_port = port;
	return true;
}

static void put_box(void *b)
{
	e2b_box_put(b);
}

static void begin_in(struct emu_request *req, struct e2b_box *b, uint64_t port)
{
	void (*refused)(struct emu_request *);
	bool other;

	req->subject = b;
	req->subject_free = put_box;
	refused = port == E2B_ENVD_PORT ? check_access(req, b) : check_traffic(req, b);
	if (b->state == E2B_PAUSED && b->auto_resume && !b->disk_only && !refused) {
		struct abx_err err = ABX_ERR_INIT;

		(void)pthread_mutex_lock(&b->op);
		if (b->state == E2B_PAUSED)
			(void)e2b_resume(b, b->timeout_s > 300 ? b->timeout_s : 300, true, &err);
		(void)pthread_mutex_unlock(&b->op);
	}
	if (b->state != E2B_RUNNING)
		req->handle = gone;
	else if (refused)
		req->handle = refused;
	else if (port != E2B_ENVD_PORT)
		envd_port_begin(req, b, port);
	else if (!emu_route(req, routes, ABX_N_ELEMENTS(routes), &other))
		req->handle = no_route;
}

bool e2b_envd_asked(const struct emu_request *req)
{
	uint64_t port;
	char id[64];

	return by_host(req, &port, id) || emu_header(req, "E2b-Sandbox-Id") ||
	       strcmp(req->path, "/files") == 0;
}

bool e2b_envd_begin(struct emu_request *req)
{
	const char *header = emu_header(req, "E2b-Sandbox-Id");
	const char *port_text = emu_header(req, "E2b-Sandbox-Port");
	struct e2b_box *b = NULL;
	char id[64] = "";
	uint64_t port = E2B_ENVD_PORT;

	if (by_host(req, &port, id)) {
		b = e2b_box_find(req->service, id);
	} else if (header) {
		(void)snprintf(id, sizeof(id), "%s", header);
		if (!port_text)
			req->handle = bad_header;
		else if (strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(header))
			req->handle = bad_id;
		else if (!abx_parse_u64(port_text, UINT16_MAX, &port))
			req->handle = bad_port;
		if (req->handle)
			return true;
		b = e2b_box_find(req->service, id);
	} else if (strcmp(req->path, "/files") == 0) {
		b = find_signer(req);
		if (!b) {
			req->handle = emu_query(req, "signature") ? wrong_signature : bad_header;
			return true;
		}
	} else {
		return false;
	}
	if (b) {
		begin_in(req, b, port);
		return true;
	}
	req->data = abx_xstrdup(id);
	req->data_free = free;
	req->handle = gone;
	return true;
}
