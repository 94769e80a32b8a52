/* SPDX-License-Identifier: MIT */
/*
 * docker.h: the provider `docker`: boxes as containers of a Docker engine, over its HTTP API.
 *
 * A box is one container.  Its name is agentbox-<box>-<attempt>, which makes an attempt that is
 * repeated find what it made the first time; its labels are the host's and DOCKER_LABEL_NAME.
 * A label is inherited by images made of the container and by containers of these, so what is
 * a box is only what has its own name there.
 *
 * What is given to commands as environment is never in the container's configuration, where
 * every image made of it would have it: it is in the state directory, env/<container id>.
 */
#ifndef DOCKER_H
#define DOCKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "abxsdk/base.h"
#include "abxsdk/buf.h"
#include "abxsdk/http.h"
#include "abxsdk/json.h"
#include "abxsdk/move.h"
#include "abxsdk/plugin.h"
#include "agentbox/cloud_backend.h"

#define DOCKER_LABEL_NAME "agentbox.docker.name"
#define DOCKER_LABEL_TIMEOUT "agentbox.docker.timeout_s"
#define DOCKER_LABEL_VOLUME "agentbox.docker.volume"
#define DOCKER_LABEL_PORTS "agentbox.docker.ports"
#define DOCKER_LABEL_INSIDE "agentbox.docker.dockerd"	   /* "1": inside.c */
#define DOCKER_LABEL_READ_ONLY "agentbox.docker.read_only" /* "1": readonly.c */
/*
 * What is published of a box is no port that somebody asked for, but one where agentbox-ctl
 * listens: the engine would reach no server that listens on the box's loopback addresses.  The
 * n-th of DOCKER_LABEL_PORTS ("80,3000") is DOCKER_FIRST_PORT + n in the box: above what the
 * kernel gives to outgoing connections.
 */
#define DOCKER_FIRST_PORT 61440
#define DOCKER_PORTS_MAX 1024
#define DOCKER_WORKSPACE "/workspace"
#define DOCKER_PATH_MAX 4096
#define DOCKER_ID_SHOWN 12 /* of a container's id, as docker shows it */
/* What is spoken here of the API 1.x: from 20.10 on. */
#define DOCKER_API_MINOR_MIN 41
#define DOCKER_API_MINOR_MAX 51

/* Where an engine may be; fixed size: an array of them is looked through. */
struct docker_endpoint {
	char unix_path[108]; /* "": tcp */
	char url[300];	     /* for tcp */
	char tls_dir[1024];  /* of ca.pem, cert.pem, key.pem; "" */
	const char *from;    /* who said so: "DOCKER_HOST"; NULL: nobody */
};

struct abx_session {
	pthread_mutex_t lock; /* over what connect.c fills, until it is connected */
	atomic_bool connected;
	struct abx_http *http;
	atomic_int api_minor; /* of 1.41 it is 41 */
	bool api_known;	      /* it was not asked for in this session */
	char where[320];

	char *state_dir, *user_agent, *ca_file, *proxy, *no_proxy;
	char *host, *context, *cert_path, *tls_verify, *image;
	int64_t timeout_ms; /* how long an answer may take; 0: as this file says */
	bool start_dockerd;
	atomic_bool cannot_unset; /* a variable of a command (Podman) */
};

#define DOCKER_REMEDY_LOST \
	"see whether the engine runs (docker info) and what its log says, and try again"

/* context.c: where the engine is said to be.  *ret_n = 0: nowhere; look around. */
#define DOCKER_ENDPOINTS_MAX 16
int32_t docker_endpoints(const struct abx_session *s, struct abx_call *call,
			 struct docker_endpoint list[DOCKER_ENDPOINTS_MAX], size_t *ret_n);
/* tls.c: say why a connection by TLS was none; `text` is libcurl's. */
int32_t docker_tls_fail(struct abx_session *s, struct abx_call *call,
			const struct docker_endpoint *e, int32_t code, const char *text);
/* connect.c: find the engine and agree on a version; once in a session. */
int32_t docker_connect(struct abx_session *s, struct abx_call *call);
/* The engine does not speak what was known of it: agree again.  *ret: something else than before.
 */
int32_t docker_agree_again(struct abx_session *s, struct abx_call *call, bool *ret);

/* known.c: which version the engine at a socket spoke in an earlier session; 0: not known. */
int docker_known_minor(const struct abx_session *s, const char *socket_path);
void docker_known_keep(const struct abx_session *s, const char *socket_path, int minor);
void docker_known_forget(const struct abx_session *s);

/*
 * api.c: one request to the engine.
 *
 *	struct docker_request q = {.method = "GET", .idempotent = true};
 *	struct docker_answer a;
 *	int32_t r = docker_ask(s, call, &q, &a, "/containers/%s/json", id);
 *
 *	if (r == ABX_OK)
 *		r = docker_expect(call, &a, "box %s", id);
 *	docker_answer_release(&a);
 */
struct docker_request {
	const char *method;
	const cJSON *body;
	const char *content_type; /* of body_fd */
	int body_fd;		  /* > 0: is sent */
	int32_t (*sink)(void *ctx, const void *data, size_t len);
	void *sink_ctx;
	bool idempotent;
	bool outcome_matters; /* it may have happened, although no answer came */
	bool slow;	      /* may take as long as the operation may */
	int64_t takes_ms;     /* it waits so long itself before it answers */
};
struct docker_answer {
	int32_t status; /* 0: none came */
	cJSON *doc;
	char message[512]; /* of an error, or why none came */
	bool unknown;	   /* it may have happened, although it does not say so */
};
/* How long the engine may say nothing. */
#define DOCKER_QUIET_MS INT64_C(60000)
int64_t docker_quiet_ms(const struct abx_session *s, const struct docker_request *q);
int32_t docker_ask(struct abx_session *s, struct abx_call *call, const struct docker_request *q,
		   struct docker_answer *ret, const char *path_fmt, ...) ABX_PRINTF(5, 6);
void docker_answer_release(struct docker_answer *a);
/* ABX_OK for 2xx and 304; else say that `what` failed, and why. */
int32_t docker_expect(struct abx_call *call, const struct docker_answer *a, const char *what_fmt,
		      ...) ABX_PRINTF(3, 4);
/* Take over the connection of a request with this body; *ret is a stream when it is ABX_OK. */
int32_t docker_upgrade(struct abx_session *s, struct abx_call *call, const char *path,
		       const cJSON *body, struct abx_http_stream **ret);
/* A request whose answer is not wanted, and that may be made twice. */
int32_t docker_do(struct abx_session *s, struct abx_call *call, const char *method,
		  const char *what, const char *path_fmt, ...) ABX_PRINTF(5, 6);
/* Did it come to an end that is not known? */
bool docker_may_have_happened(int32_t r, const struct docker_answer *a);
/* list.c: filters={"label":[...]}, of the last that are asked for, or else `own`; "" to *b on no
 * memory.  What comes may lack the others. */
void docker_filters(struct abx_buf *b, const struct abx_list_req *req, const char *own);
bool docker_has_labels(const cJSON *labels, const struct abx_list_req *req, const char *own);
struct docker_list {
	const char *path;   /* "/images/json?" */
	const char *member; /* of the answer, that is the list; NULL: the answer is */
	const char *what;   /* for messages */
	const struct abx_list_req *req;
	const char *own; /* a label that all have */
	int32_t (*each)(struct abx_session *s, struct abx_call *call, const cJSON *item);
	bool quiet; /* nothing is said when the engine has none */
};
/* Until one fails. */
int32_t docker_each(struct abx_session *s, struct abx_call *call, const struct docker_list *l);
/* Is it what an id, name or reference of docker's consists of?  Never a path of its own. */
bool docker_is_word(const char *text);

/* look.c: boxes as the engine shows them. */
int32_t docker_get(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);
int32_t docker_list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req);
/* A command ended or not: ABX_OK and what is known of it; *ret NULL: nothing any more. */
int32_t docker_exec_look(struct abx_session *s, struct abx_call *call, const char *id, cJSON **ret,
			 bool *ret_running);
/* The container's description; cJSON_Delete() it. */
int32_t docker_inspect(struct abx_session *s, struct abx_call *call, const char *id, cJSON **ret);
/* Of a box: emit it. */
int32_t docker_emit(struct abx_call *call, const cJSON *inspected);
uint32_t docker_state(const cJSON *inspected);
int32_t docker_url(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_url_req *req);

/* stats.c */
int32_t docker_stats(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);

/* snapshot.c */
int32_t docker_snapshot_create(struct abx_session *s, struct abx_call *call,
			       const struct abx_sandbox *sb, const struct abx_snapshot_req *req);
int32_t docker_snapshot_list(struct abx_session *s, struct abx_call *call,
			     const struct abx_list_req *req);
int32_t docker_snapshot_exists(struct abx_session *s, struct abx_call *call, const char *ref);
int32_t docker_snapshot_delete(struct abx_session *s, struct abx_call *call, const char *ref);

/* removed.c: images that are in use keep their layers, but are none of ours any more. */
#define DOCKER_REMOVED "agentbox/removed"
#define DOCKER_TAG_BYTES 40 /* of an id, as a tag of theirs */
int32_t docker_removed_mark(struct abx_session *s, struct abx_call *call, const char *id);
/* Remove those that nothing uses any more. */
int32_t docker_removed_sweep(struct abx_session *s, struct abx_call *call);
/* Of an image's description: was it removed? */
bool docker_removed_is(const cJSON *item);

/* flatten.c: is the next snapshot of this container to be an image of one layer, and make it. */
bool docker_flatten_wanted(struct abx_session *s, struct abx_call *call, const cJSON *box);
int32_t docker_flatten(struct abx_session *s, struct abx_call *call, const cJSON *box,
		       const struct abx_snapshot_req *req, const char *ref, char id[80]);

/* volume.c */
int32_t docker_volume_ensure(struct abx_session *s, struct abx_call *call,
			     const struct abx_volume_req *req);
int32_t docker_volume_list(struct abx_session *s, struct abx_call *call,
			   const struct abx_list_req *req);
int32_t docker_volume_delete(struct abx_session *s, struct abx_call *call, const char *id);
/* Is there one of ours with that id? */
int32_t docker_volume_check(struct abx_session *s, struct abx_call *call, const char *id);

/* watch.c */
int32_t docker_watch(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req);

/* create.c */
int32_t docker_provision(struct abx_session *s, struct abx_call *call,
			 const struct abx_provision *p);
/* Make a container of this description.  Its name is an attempt's, so it is asked for again when
 * the answer is lost.  *ret_missing: the engine has no such image. */
int32_t docker_create(struct abx_session *s, struct abx_call *call, const cJSON *body,
		      const char *name, const char *image, char id[80], bool *ret_missing);
/* To a list of HostConfig.Mounts. */
void docker_add_mount(cJSON *list, const char *type, const char *source, const char *target,
		      bool read_only);

/* inside.c: an engine in the box.  Add what it needs to a HostConfig that has its mounts. */
void docker_inside_ask(cJSON *host);
void docker_inside_warn(void);
/* Of a container's description: is there to be one? */
bool docker_inside_is(const cJSON *inspected);
/* In a box that runs. */
int32_t docker_inside_start(struct abx_session *s, struct abx_call *call, const char *id);
/* What runs in it ends, or this time is over. */
int32_t docker_inside_stop(struct abx_session *s, struct abx_call *call, const char *id,
			   int64_t grace_ms);
/* Say that the engine around it forbids it. */
int32_t docker_inside_refused(struct abx_session *s, struct abx_call *call, const char *why);

/* life.c */
int32_t docker_start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_start_req *req);
int32_t docker_stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_stop_req *req);
int32_t docker_pause(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_stop_req *req);
int32_t docker_resume(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_start_req *req);
int32_t docker_destroy(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_stop_req *req);
/* Start it and wait until it runs; emits it.  `inside`: with an engine in it.  Its description to
 * *ret, when that is not NULL. */
int32_t docker_start_it(struct abx_session *s, struct abx_call *call, const char *id, bool inside,
			cJSON **ret);

/* A container, with its volumes that have no name; one that is not there is none. */
int32_t docker_remove(struct abx_session *s, struct abx_call *call, const char *id);

/* readonly.c: is nobody in the box to change its workspace? */
bool docker_readonly_is(const cJSON *inspected);
/* Make it so, of one that is stopped.  It is another container then: emitted, and not started. */
int32_t docker_readonly_make(struct abx_session *s, struct abx_call *call, const cJSON *box,
			     char ret_id[80]);
/* What may be left of doing that to this container. */
void docker_readonly_forget(struct abx_session *s, struct abx_call *call, const char *id);
/* Remove workspaces whose containers are gone. */
int32_t docker_readonly_sweep(struct abx_session *s, struct abx_call *call);

/* exec.c */
int32_t docker_exec(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_exec *req, struct abx_exit *ret);
/* The same; of stdin_fd only so many bytes are given to it. */
int32_t docker_exec_some(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			 const struct abx_exec *req, int64_t in_bytes, struct abx_exit *ret);

/* env.c: what the box's commands have as environment beside their own. */
int docker_env_write(const struct abx_session *s, const char *id, const struct abx_kv *env,
		     uint32_t n);
/* Add "K=V" strings to a JSON array. */
int docker_env_add(const struct abx_session *s, const char *id, cJSON *array);
/* Is the variable of a "K=V" in the array? */
bool docker_env_has(const cJSON *array, const char *pair);
int docker_env_copy(const struct abx_session *s, const char *from, const char *to);
void docker_env_remove(const struct abx_session *s, const char *id);

/* files.c */
/* Runs the scripts of an abx_move, whose ctx is this. */
struct docker_mover {
	struct abx_session *s;
	const struct abx_sandbox *sb;
};
int32_t docker_move_exec(const struct abx_move *m, const struct abx_exec *req,
			 struct abx_exit *ret);
/* A file without a name in the state directory. */
int32_t docker_scratch(const struct abx_session *s, struct abx_call *call, int *ret_fd);
int32_t docker_upload(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_transfer *t);
int32_t docker_download(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const struct abx_transfer *t);

/* tree.c */
int32_t docker_put_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_transfer *t);
int32_t docker_get_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_transfer *t);

/* build.c */
int32_t docker_prepare(struct abx_session *s, struct abx_call *call, const struct abx_prepare *p);

/* image.c */
int32_t docker_image_list(struct abx_session *s, struct abx_call *call,
			  const struct abx_list_req *req);
int32_t docker_image_delete(struct abx_session *s, struct abx_call *call, const char *ref);
/* Get an image that the engine lacks from where its name says. */
int32_t docker_pull(struct abx_session *s, struct abx_call *call, const char *image);
/* Make an image of a root file system as tar stream.  `ref` is NAME:TAG; id as sha256:...;
 * `changes`: more of the request's query, "&changes=...", or "". */
int32_t docker_import(struct abx_session *s, struct abx_call *call, int fd, const char *ref,
		      const struct abx_kv *labels, uint32_t n_labels, const char *changes,
		      char id[80]);
bool docker_image_there(struct abx_session *s, struct abx_call *call, const char *ref);

/* base.c: a root of a suite ("debian:bookworm"), as an unlinked tar file.  packages NULL: the usual
 * ones.  ABX_EBROKEN, with nothing said: mmdebstrap is not installed. */
int32_t docker_bootstrap(struct abx_session *s, struct abx_call *call, const char *from,
			 const char *packages, int *ret_fd);

/* docker.c */
int32_t docker_verify(struct abx_session *s, struct abx_call *call);
int32_t docker_doctor(struct abx_session *s, struct abx_call *call);
/* Does the engine run on this very machine, with the same file system? */
int32_t docker_is_here(struct abx_session *s, struct abx_call *call, bool *ret);

#endif
