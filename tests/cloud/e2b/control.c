/* SPDX-License-Identifier: MIT */
/* The emulated E2B's control plane: who asks, and for what. */
#include <stdarg.h>
#include <string.h>

#include "abxsdk/json.h"
#include "tests/cloud/e2b/e2b.h"

static void health(struct emu_request *req)
{
	emu_reply(req, 200, "text/plain", "Health check successful", 23, NULL);
}

static const struct emu_route routes[] = {
	{"GET", "/health", health, NULL},
	{"POST", "/v2/sandboxes", e2b_create_v2, NULL},
	{"POST", "/sandboxes", e2b_create, NULL},
	{"GET", "/v2/sandboxes", e2b_list, NULL},
	{"GET", "/sandboxes", e2b_list_v1, NULL},
	{"GET", "/sandboxes/*", e2b_get, NULL},
	{"DELETE", "/sandboxes/*", e2b_delete, NULL},
	{"POST", "/sandboxes/*/pause", e2b_post_pause, NULL},
	{"POST", "/sandboxes/*/resume", e2b_post_resume, NULL},
	{"POST", "/sandboxes/*/connect", e2b_post_connect_v1, NULL},
	{"POST", "/v2/sandboxes/*/connect", e2b_post_connect, NULL},
	{"POST", "/sandboxes/*/timeout", e2b_post_timeout, NULL},
	{"POST", "/sandboxes/*/refreshes", e2b_post_refreshes, NULL},
	{"PUT", "/sandboxes/*/network", e2b_put_network, NULL},
	{"GET", "/sandboxes/*/metrics", e2b_get_metrics, NULL},
	{"GET", "/sandboxes/*/logs", e2b_get_logs, NULL},
	{"GET", "/v2/sandboxes/*/logs", e2b_get_logs_v2, NULL},
	{"POST", "/sandboxes/*/snapshots", e2b_post_snapshot, NULL},
	{"GET", "/snapshots", e2b_list_snapshots, NULL},
	{"POST", "/v3/templates", e2b_post_template, NULL},
	{"POST", "/v2/templates", e2b_post_template, NULL},
	{"GET", "/v2/templates", e2b_list_templates_v2, NULL},
	{"GET", "/templates", e2b_list_templates, NULL},
	{"POST", "/templates/tags", e2b_post_tags, NULL},
	{"DELETE", "/templates/tags", e2b_delete_tags, NULL},
	{"GET", "/templates/aliases/*", e2b_get_alias, NULL},
	{"GET", "/templates/*/tags", e2b_get_tags, NULL},
	{"GET", "/templates/*/files/*", e2b_get_file_link, NULL},
	{"POST", "/v2/templates/*/builds/*", e2b_post_build, NULL},
	{"GET", "/templates/*/builds/*/status", e2b_get_build_status, NULL},
	{"GET", "/templates/*/builds/*/logs", e2b_get_build_logs, NULL},
	{"GET", "/templates/*", e2b_get_template, NULL},
	{"DELETE", "/templates/*", e2b_delete_template, NULL},
	{"PATCH", "/v2/templates/*", e2b_patch_template, NULL},
	{"PATCH", "/templates/*", e2b_patch_template, NULL},
	{"PUT", "/_upload/*", e2b_put_file, e2b_put_file_begin},
};

static ABX_PRINTF(4, 0) void reply_error(struct emu_request *req, int status,
					 const char *error_code, const char *fmt, va_list ap)
{
	cJSON *doc = cJSON_CreateObject();
	char text[1024];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)abx_json_add_i64(doc, "code", status);
	(void)abx_json_add_str(doc, "message", text);
	(void)abx_json_add_str(doc, "error_code", error_code);
	emu_reply_json(req, status, doc, NULL);
}

void e2b_error(struct emu_request *req, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	reply_error(req, status, NULL, fmt, ap);
	va_end(ap);
}

void e2b_error_coded(struct emu_request *req, int status, const char *error_code, const char *fmt,
		     ...)
{
	va_list ap;

	va_start(ap, fmt);
	reply_error(req, status, error_code, fmt, ap);
	va_end(ap);
}

struct e2b_box *e2b_named_box(struct emu_request *req)
{
	struct e2b_box *b = e2b_box_find(req->service, req->args[0]);

	if (b && (b->state == E2B_RUNNING || b->state == E2B_PAUSED))
		return b;
	if (b)
		e2b_box_put(b);
	e2b_error(req, 404, "Sandbox \"%.64s\" doesn't exist or you don't have access to it",
		  req->args[0]);
	return NULL;
}

static bool is_key(const char *key, const char *prefix)
{
	size_t n = strlen(prefix);

	return key && strncmp(key, prefix, n) == 0 && strlen(key) >= n + 8 &&
	       strspn(key + n, "0123456789abcdef") == strlen(key + n);
}

static void refuse_key(struct emu_request *req)
{
	e2b_error(req, 401,
		  emu_header(req, "X-API-Key") ? "Invalid API key format" : "no credentials found");
}

static void too_many(struct emu_request *req)
{
	static const struct emu_header_pair headers[] = {{"Retry-After", "1"},
							 {"RateLimit-Remaining", "0"},
							 {"RateLimit-Reset", "1"},
							 {NULL, NULL}};
	cJSON *doc = cJSON_CreateObject();

	(void)abx_json_add_i64(doc, "code", 429);
	(void)abx_json_add_str(doc, "message", "Rate limit exceeded");
	emu_reply_json(req, 429, doc, headers);
}

static void no_route(struct emu_request *req)
{
	e2b_error(req, 404, "no matching operation was found");
}

static void no_method(struct emu_request *req)
{
	e2b_error(req, 405, "method not allowed");
}

void e2b_control_begin(struct emu_request *req)
{
	bool other = false;

	if (!emu_route(req, routes, ABX_N_ELEMENTS(routes), &other)) {
		req->handle = other ? no_method : no_route;
		return;
	}
	if (req->handle != health && req->handle != e2b_put_file &&
	    !is_key(emu_header(req, "X-API-Key"), "e2b_") &&
	    !is_key(emu_header(req, "Authorization"), "Bearer sk_e2b_"))
		req->handle = refuse_key;
	else if (req->handle != health && req->handle != e2b_put_file &&
		 !emu_server_may_ask(req->server))
		req->handle = too_many;
}
