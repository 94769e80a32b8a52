/* SPDX-License-Identifier: MIT */
/* The HTTP server that emulated clouds share: requests. */
#include "tests/cloud/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "tests/cloud/gzip.h"
#include "tests/cloud/server-private.h"

#define SLICE_MS 100

bool emu_server_ending(const struct emu_server *s)
{
	return atomic_load(&s->ending);
}

bool emu_client_left(const struct emu_request *req)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct pollfd p = {.fd = i ? i->connect_fd : -1, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* Until it is over, the client is gone or the server ends. */
static void wait_ms(const struct emu_request *req, int64_t ms)
{
	int64_t until = abx_now_ms() + ms;

	while (!emu_server_ending(req->server) && !emu_client_left(req)) {
		int64_t left = until - abx_now_ms();

		if (left <= 0)
			return;
		(void)poll(NULL, 0, (int)(left < SLICE_MS ? left : SLICE_MS));
	}
}

static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *conn)
{
	struct emu_request *req = abx_xcalloc(1, sizeof(*req));

	req->server = ctx;
	req->conn = conn;
	req->service = req->server->service_data;
	req->uri = abx_xstrdup(uri);
	req->path = abx_xstrndup(uri, strcspn(uri, "?"));
	req->body = (struct abx_buf)ABX_BUF_INIT(EMU_BODY_MAX);
	return req;
}

/* All that a description of the service can say about it. */
static void record(const struct emu_request *req)
{
	const char *type = emu_header(req, "Content-Type");
	cJSON *doc, *body = NULL;
	char *text;

	if (req->server->record_fd < 0)
		return;
	doc = cJSON_CreateObject();
	(void)abx_json_add_str(doc, "method", req->method);
	(void)abx_json_add_str(doc, "uri", req->uri);
	(void)abx_json_add_str(doc, "type", type);
	(void)abx_json_add_bool(doc, "inner", req->inner);
	(void)abx_json_add_i64(doc, "status", req->status);
	(void)abx_json_add_bool(doc, "has_body", req->body.len > 0);
	if (req->body.len &&
	    abx_json_parse(req->body.data, req->body.len, EMU_BODY_MAX, &body) == 0)
		(void)cJSON_AddItemToObject(doc, "body", body);
	text = cJSON_PrintUnformatted(doc);
	cJSON_Delete(doc);
	if (text) {
		char *line = abx_xasprintf("%s\n", text);

		/* Whole, as the file is open for appending. */
		(void)abx_fs_write_all(req->server->record_fd, line, strlen(line));
		free(line);
	}
	cJSON_free(text);
}

static void on_completed(void *ctx, struct MHD_Connection *conn, void **req_ptr,
			 enum MHD_RequestTerminationCode code)
{
	struct emu_request *req = *req_ptr;

	(void)ctx;
	(void)conn;
	(void)code;
	if (!req)
		return;
	*req_ptr = NULL;
	if (req->begun && req->log_at != SIZE_MAX) {
		emu_log_end(req->server->log, req->log_at);
		record(req);
	}
	if (req->data && req->data_free)
		req->data_free(req->data);
	if (req->subject && req->subject_free)
		req->subject_free(req->subject);
	for (size_t i = 0; i < req->n_args; i++)
		free(req->args[i]);
	emu_fault_release(&req->fault);
	emu_gunzip_free(req->gunzip);
	abx_buf_release(&req->body);
	free(req->method);
	free(req->uri);
	free(req->path);
	free(req);
}

struct emu_limits emu_server_limits(struct emu_server *s)
{
	struct emu_limits limits;

	(void)pthread_mutex_lock(&s->lock);
	limits = s->limits;
	(void)pthread_mutex_unlock(&s->lock);
	return limits;
}

bool emu_server_may_ask(struct emu_server *s)
{
	int64_t now = abx_now_ms() / 1000;
	bool may;

	(void)pthread_mutex_lock(&s->lock);
	if (s->second != now)
		s->asked = 0;
	s->second = now;
	may = s->limits.requests_per_second == 0 || s->asked < s->limits.requests_per_second;
	s->asked += may;
	(void)pthread_mutex_unlock(&s->lock);
	return may;
}

/* NULL, or what is wrong. */
static const char *set_limits(struct emu_request *req)
{
	cJSON *doc = emu_body_json(req);
	struct emu_limits limits = {0};
	int a = abx_json_i64(doc, "requests_per_second", &limits.requests_per_second);
	int b = abx_json_i64(doc, "sandboxes", &limits.sandboxes);
	bool good = doc && (a == 0 || a == -ENOENT) && (b == 0 || b == -ENOENT) &&
		    limits.requests_per_second >= 0 && limits.sandboxes >= 0;

	cJSON_Delete(doc);
	if (!good)
		return "not {\"requests_per_second\": N, \"sandboxes\": N}";
	(void)pthread_mutex_lock(&req->server->lock);
	req->server->limits = limits;
	(void)pthread_mutex_unlock(&req->server->lock);
	return NULL;
}

static void answer_control(struct emu_request *req)
{
	struct emu_server *s = req->server;
	const char *what = req->path + sizeof(EMU_CONTROL) - 1, *wrong = NULL;
	bool remove = strcmp(req->method, "DELETE") == 0;
	cJSON *doc;

	if (strcmp(what, "log") == 0 && strcmp(req->method, "GET") == 0) {
		emu_reply_json(req, 200, emu_log_json(s->log), NULL);
		return;
	}
	if (strcmp(what, "limits") == 0 && strcmp(req->method, "POST") == 0) {
		wrong = set_limits(req);
	} else if (strcmp(what, "log") == 0 && remove) {
		emu_log_clear(s->log);
	} else if (strcmp(what, "faults") == 0 && remove) {
		emu_faults_clear(s->faults);
	} else if (strcmp(what, "faults") == 0 && strcmp(req->method, "POST") == 0) {
		doc = emu_body_json(req);
		wrong = doc ? emu_faults_add(s->faults, doc) : "no JSON object";
		cJSON_Delete(doc);
	} else {
		wrong = "no such thing";
	}
	if (wrong)
		emu_reply(req, 400, "text/plain", wrong, strlen(wrong), NULL);
	else
		emu_reply(req, 204, NULL, NULL, 0, NULL);
}

/* By its failure: not even begun. */
static bool is_nothing_done(const struct emu_request *req)
{
	return req->fault.kind == EMU_FAULT_STATUS || req->fault.kind == EMU_FAULT_RESET ||
	       req->fault.kind == EMU_FAULT_HANG;
}

static void begin(struct emu_request *req, const char *method)
{
	const char *coding = emu_header(req, "Content-Encoding");
	struct emu_server *s = req->server;

	req->begun = true;
	req->method = abx_xstrdup(method);
	if (strncmp(req->path, EMU_CONTROL, sizeof(EMU_CONTROL) - 1) == 0) {
		req->handle = answer_control;
		req->log_at = SIZE_MAX;
		return;
	}
	if (coding && strcasecmp(coding, "gzip") == 0)
		req->gunzip = emu_gunzip_new();
	req->log_at = emu_log_begin(s->log, method, req->uri);
	req->inner = s->service->is_inner(req);
	emu_faults_take(s->faults, method, req->path, &req->fault);
	if (!is_nothing_done(req))
		s->service->begin(req);
}

static int keep(void *ctx, const void *data, size_t len)
{
	struct emu_request *req = ctx;

	if (req->sink && len)
		return req->sink(req, data, len);
	abx_buf_add(&req->body, data, len);
	return 0;
}

static void take_body(struct emu_request *req, const char *data, size_t len)
{
	if (req->refused || is_nothing_done(req))
		return;
	if (req->gunzip)
		req->refused = emu_gunzip_put(req->gunzip, data, len, keep, req) != 0;
	else
		req->refused = keep(req, data, len) != 0;
}

static void answer(struct emu_request *req)
{
	static const char too_large[] = "{\"code\":413,\"message\":\"request body too large\"}";

	if (req->fault.kind == EMU_FAULT_HANG)
		wait_ms(req, INT64_MAX / 2);
	else if (req->fault.delay_ms)
		wait_ms(req, req->fault.delay_ms);
	if (req->fault.kind == EMU_FAULT_HANG || req->fault.kind == EMU_FAULT_RESET)
		emu_reply_reset(req);
	else if (req->fault.kind == EMU_FAULT_STATUS)
		emu_reply_fault(req);
	else if (req->body.failed)
		emu_reply(req, 413, "application/json", too_large, sizeof(too_large) - 1, NULL);
	else if (req->handle)
		req->handle(req);
	if (!req->answered)
		emu_reply(req, 500, "text/plain", "no handler", 10, NULL);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *conn, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **req_ptr)
{
	struct emu_request *req = *req_ptr;

	(void)ctx;
	(void)conn;
	(void)url;
	(void)version;
	if (!req->begun) {
		begin(req, method);
		return MHD_YES;
	}
	if (*len) {
		take_body(req, data, *len);
		*len = 0;
		return MHD_YES;
	}
	answer(req);
	return (enum MHD_Result)req->result;
}

static struct MHD_Daemon *start_daemon(struct emu_server *s, const struct sockaddr_in *at)
{
	return MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
					MHD_USE_POLL | MHD_ALLOW_UPGRADE,
				0, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, at,
				MHD_OPTION_URI_LOG_CALLBACK, on_uri, s, MHD_OPTION_NOTIFY_COMPLETED,
				on_completed, s, MHD_OPTION_CONNECTION_LIMIT, 4096U,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)256 << 10,
				MHD_OPTION_LISTENING_ADDRESS_REUSE, 1U, MHD_OPTION_END);
}

static int listen_at(struct emu_server *s, const struct emu_options *o, struct abx_err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(o->port)};
	const union MHD_DaemonInfo *info;

	if (inet_pton(AF_INET, o->address, &at.sin_addr) != 1)
		return abx_err_set(err, ABX_EUSAGE, "listen: '%s' is no address", o->address);
	s->daemon = start_daemon(s, &at);
	if (!s->daemon)
		return abx_err_errno(err, errno, "listen: %s:%u", o->address, o->port);
	info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
	s->port = info ? info->port : 0;
	return 0;
}

static int open_record(struct emu_server *s, const char *path, struct abx_err *err)
{
	if (!path)
		return 0;
	s->record_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	return s->record_fd < 0 ? abx_err_errno(err, errno, "%s", path) : 0;
}

int emu_server_start(const struct emu_service *service, const struct emu_options *options,
		     struct emu_server **ret, struct abx_err *err)
{
	struct emu_server *s = abx_xcalloc(1, sizeof(*s));
	int r;

	s->service = service;
	(void)pthread_mutex_init(&s->lock, NULL);
	s->faults = emu_faults_new();
	s->log = emu_log_new();
	s->record_fd = -1;
	r = open_record(s, options->record, err);
	if (r == 0)
		r = service->open(s, options->engine, &s->service_data, err);
	if (r == 0)
		r = listen_at(s, options, err);
	if (r < 0)
		emu_server_stop(s);
	else
		*ret = s;
	return r;
}

uint16_t emu_server_port(const struct emu_server *s)
{
	return s->port;
}

void emu_server_stop(struct emu_server *s)
{
	atomic_store(&s->ending, true);
	if (s->service_data)
		s->service->close(s->service_data);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	if (s->service_data)
		s->service->free(s->service_data);
	abx_cleanup_close(&s->record_fd);
	emu_faults_free(s->faults);
	emu_log_free(s->log);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

const char *emu_header(const struct emu_request *req, const char *name)
{
	return MHD_lookup_connection_value(req->conn, MHD_HEADER_KIND, name);
}

const char *emu_query(const struct emu_request *req, const char *key)
{
	return MHD_lookup_connection_value(req->conn, MHD_GET_ARGUMENT_KIND, key);
}

cJSON *emu_body_json(const struct emu_request *req)
{
	cJSON *doc = NULL;

	if (req->body.len == 0)
		return cJSON_CreateObject();
	return abx_json_parse(req->body.data, req->body.len, EMU_BODY_MAX, &doc) == 0 ? doc : NULL;
}
