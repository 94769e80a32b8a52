/* SPDX-License-Identifier: MIT */
/*
 * e2b.h: the provider `e2b`: boxes as sandboxes of E2B, or of a cluster of one's own.
 *
 * Two services are spoken with.  The control plane (api.c) makes, lists, pauses, renews and kills
 * sandboxes, makes snapshots and builds templates; it has the labels of a box as the sandbox's
 * metadata.  Envd (envd-*.c) is the daemon in each sandbox, which runs commands and moves files.
 * What is needed to reach it came with the answer that made or resumed the sandbox and is kept
 * by the host as the box's provider data (data.c), so that a command is one request.
 *
 * A sandbox that agentbox did not make (option sandbox_id) is never killed or paused by it.
 */
#ifndef E2B_E2B_H
#define E2B_E2B_H

#include <pthread.h>
#include <stdbool.h>

#include "abxsdk/base.h"
#include "abxsdk/buf.h"
#include "abxsdk/http.h"
#include "abxsdk/json.h"
#include "abxsdk/plugin.h"
#include "agentbox/cloud_backend.h"

#define E2B_DOMAIN "e2b.app"
#define E2B_ENVD_PORT 49983
#define E2B_WORKSPACE "/workspace"
#define E2B_ID_BYTES 80
#define E2B_TOKEN_BYTES 300
#define E2B_NAME_BYTES 320 /* of a template with its namespace and tag */

enum e2b_end { E2B_END_KILL, E2B_END_PAUSE, E2B_END_LEAVE };

struct e2b_host;
struct e2b_kept;

struct abx_session {
	struct abx_http *http; /* the control plane */
	pthread_mutex_t lock;  /* over the two lists */
	struct e2b_host *hosts;
	struct e2b_kept *kept;

	char *state_dir, *user_agent, *ca_file, *proxy, *no_proxy;
	char *api_key, *access_token, *domain, *api_url, *sandbox_url;
	char *template_name, *size, *sandbox_id;
	char *cwd; /* of commands that name none; never NULL */
	enum e2b_end on_destroy;
	bool kill_on_timeout, auto_resume, private_urls, debug;
	int64_t timeout_ms, ready_ms;
	/* So long a box lives after it was used; 0: its use does not matter; < 0: as long as it
	 * was made to live. */
	int64_t keep_alive_ms;
};

#define E2B_REMEDY_KEY "agentbox e2b login; a key is at https://e2b.dev/dashboard"
#define E2B_REMEDY_LATER "try again; https://status.e2b.dev says whether the service has trouble"

/*
 * api.c: one request to the control plane.
 *
 *	struct e2b_request q = {.method = "GET", .idempotent = true};
 *	struct e2b_answer a;
 *	int32_t r = e2b_ask(s, call, &q, &a, "/sandboxes/%s", id);
 *
 *	if (r == ABX_OK)
 *		r = e2b_expect(call, &a, "box %s", id);
 *	e2b_answer_release(&a);
 */
struct e2b_request {
	const char *method;
	const cJSON *body;
	bool idempotent;
	bool outcome_matters; /* it may have happened, although no answer came */
	bool brief;	      /* asked once, whatever comes of it */
	int64_t quiet_ms;     /* how long it may take; 0: E2B_QUIET_MS */
};
struct e2b_answer {
	int32_t status; /* 0: none came */
	cJSON *doc;
	char message[512]; /* of an error, or why none came */
	char error_code[64], request_id[80], next[256];
	int64_t retry_after_ms;
	bool unknown; /* it may have happened, although it does not say so */
};
/* The service gives up a request after 70 s itself. */
#define E2B_QUIET_MS INT64_C(75000)
#define E2B_QUIET_LONG_MS INT64_C(300000)
int32_t e2b_ask(struct abx_session *s, struct abx_call *call, const struct e2b_request *q,
		struct e2b_answer *ret, const char *path_fmt, ...) ABX_PRINTF(5, 6);
void e2b_answer_release(struct e2b_answer *a);
/* ABX_OK for 2xx; else say that `what` failed, why, and what to do. */
int32_t e2b_expect(struct abx_call *call, const struct e2b_answer *a, const char *what_fmt, ...)
	ABX_PRINTF(3, 4);
/* Did it come to an end that is not known? */
bool e2b_may_have_happened(int32_t r, const struct e2b_answer *a);
/* Does the server not know the route that was asked for? */
bool e2b_no_route(const struct e2b_answer *a);
/* Is it what ids consist of?  Never a path of its own. */
bool e2b_is_id(const char *text);
/* A session of HTTP with what this one was configured with; base is scheme, host and port. */
int32_t e2b_open_http(struct abx_session *s, struct abx_call *call, const char *base,
		      struct abx_http **ret);

/* data.c: how a sandbox is reached, as the host keeps it for us. */
struct e2b_data {
	char token[E2B_TOKEN_BYTES];   /* of envd; "" */
	char traffic[E2B_TOKEN_BYTES]; /* of the other ports; "": they are public */
	char domain[256];	       /* "": the session's */
	char version[32];	       /* of envd; "": not known */
	int64_t timeout_s;	       /* it was made with; 0: not known */
	bool foreign;		       /* we did not make it */
	bool known;		       /* there is any */
};
/* Of a sandbox as the host gives it, and of one as the service describes it. */
void e2b_data_read(struct abx_call *call, const struct abx_sandbox *sb, struct e2b_data *ret);
void e2b_data_take(struct abx_call *call, const cJSON *described, struct e2b_data *io);
/* Of the former only how long it was made to live; 0: not known. */
int64_t e2b_data_timeout_s(const struct abx_sandbox *sb);
/* As text for abx_sandbox.provider_data; cJSON_free() it. */
char *e2b_data_print(const struct e2b_data *d);

/*
 * envd.c: the way to envd of one sandbox.
 *
 *	struct e2b_envd d;
 *	int32_t r = e2b_envd_of(s, call, sb, &d);
 *	struct abx_http_request req = {ABX_HTTP_REQUEST_INIT, .method = "POST",
 *				       .path = "/process.Process/Start", .headers = d.headers, ...};
 *
 *	if (r == ABX_OK)
 *		r = abx_http_do(d.http, call, &req, &reply);
 *	e2b_envd_release(&d);
 *
 * Points into itself: it cannot be copied.  Costs no request when the host has kept the box's
 * provider data.  It renews the box when that is due (e2b_keep).
 */
struct e2b_envd {
	struct abx_http *http;	/* the session's */
	const char *headers[8]; /* "Name: value", NULL-terminated; at most 3 of them are used */
	char id[E2B_ID_BYTES];
	char version[32]; /* of envd, "0.6.13"; "": not known */
	char texts[3][E2B_TOKEN_BYTES + 40];
};
/* With the session; not for others. */
void e2b_hosts_free(struct abx_session *s);
int32_t e2b_envd_of(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    struct e2b_envd *ret);
void e2b_envd_release(struct e2b_envd *d);
/*
 * What stands before envd said (HTTP 502) that the sandbox is not there.  Asks what it is, emits
 * that, and fails accordingly: ABX_ESTATE when it is paused, ABX_ENOTFOUND when it is gone,
 * ABX_ENETWORK when it runs all the same.  `said`: the answer's words; may be "".
 */
int32_t e2b_envd_gone(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const char *said);

/*
 * keep.c: renew a box that is in use, at most once a minute.  To be called as often as one likes,
 * also while a stream of the box is under way; mostly it returns at once.  What fails is logged.
 */
void e2b_keep(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);
/* The deadline is known to be this. */
void e2b_kept_until(struct abx_session *s, const char *id, int64_t expires_at_ms);
void e2b_kept_free(struct abx_session *s);

/* look.c */
int32_t e2b_get(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);
int32_t e2b_list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req);
int32_t e2b_url(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		const struct abx_url_req *req);
/* The sandbox's description, cJSON_Delete() it; ABX_ENOTFOUND when it is gone. */
int32_t e2b_inspect(struct abx_session *s, struct abx_call *call, const char *id, cJSON **ret);
/* That of a box, which is emitted as it is now; cJSON_Delete() it. */
int32_t e2b_look(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		 cJSON **ret);
/* Emit it as described. */
int32_t e2b_emit(struct abx_session *s, struct abx_call *call, const cJSON *described,
		 const struct e2b_data *data);

/* Every page of a list, whose path has a query already. */
int32_t e2b_pages(struct abx_session *s, struct abx_call *call, const char *path, const char *what,
		  int32_t (*page)(void *ctx, const cJSON *list), void *ctx);

/* network.c */
int32_t e2b_egress_check(struct abx_call *call, const char *const *allow, const char *const *deny);
/* Add lists to one object, and what concerns all of it to the other. */
void e2b_egress_add(cJSON *lists, cJSON *whole, const char *const *allow, const char *const *deny);
int32_t e2b_set_egress(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_policy *policy);

/* money.c */
int32_t e2b_rates(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);
int32_t e2b_usage(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);
int32_t e2b_stats(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);

/* doctor.c */
int32_t e2b_verify(struct abx_session *s, struct abx_call *call);
int32_t e2b_doctor(struct abx_session *s, struct abx_call *call);

/* create.c */
int32_t e2b_provision(struct abx_session *s, struct abx_call *call, const struct abx_provision *p);

/* snapshot.c */
int32_t e2b_snapshot_create(struct abx_session *s, struct abx_call *call,
			    const struct abx_sandbox *sb, const struct abx_snapshot_req *req);
int32_t e2b_snapshot_list(struct abx_session *s, struct abx_call *call,
			  const struct abx_list_req *req);
int32_t e2b_snapshot_exists(struct abx_session *s, struct abx_call *call, const char *ref);
int32_t e2b_snapshot_delete(struct abx_session *s, struct abx_call *call, const char *ref);

/* build.c */
int32_t e2b_prepare(struct abx_session *s, struct abx_call *call, const struct abx_prepare *p);
int32_t e2b_image_list(struct abx_session *s, struct abx_call *call,
		       const struct abx_list_req *req);
int32_t e2b_image_delete(struct abx_session *s, struct abx_call *call, const char *ref);

/* removed.c: what is to go, and stays for as long as sandboxes stand on it. */
int32_t e2b_remove(struct abx_session *s, struct abx_call *call, const char *ref);
bool e2b_removed_is(const struct abx_session *s, const char *ref);
/* Remove those that nothing stands on any more; no request where there are none. */
void e2b_removed_sweep(struct abx_session *s, struct abx_call *call);

/* ready.c: until commands run in it, and there is a workspace. */
int32_t e2b_ready(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);

/* life.c */
/* Resume it, or see that it lives so long; emits it. */
int32_t e2b_connect(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    struct e2b_data *io, int64_t timeout_s);
int32_t e2b_start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_start_req *req);
int32_t e2b_stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		 const struct abx_stop_req *req);
/* Paused already is success.  Without memory its processes end. */
int32_t e2b_pause(struct abx_session *s, struct abx_call *call, const char *id, bool memory);
int32_t e2b_destroy(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_stop_req *req);
int32_t e2b_renew(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  int64_t target_ms, int64_t current_ms);

/* envd-exec.c */
int32_t e2b_exec(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		 const struct abx_exec *req, struct abx_exit *ret);
/* envd-attach.c */
int32_t e2b_exec_attach(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const char *exec_id, uint64_t offset, const struct abx_exec *req,
			struct abx_exit *ret);
int32_t e2b_exec_signal(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const char *exec_id, int32_t signo);
/* envd-files.c */
int32_t e2b_upload(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_transfer *t);
int32_t e2b_download(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_transfer *t);
/* envd-tree.c */
int32_t e2b_get_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_transfer *t);

#endif
