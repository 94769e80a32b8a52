/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/e2b/e2b.h: inside the emulated E2B.
 *
 * One listener serves the control plane (control.c and what it routes to) and, where a request
 * names a sandbox by header or host, envd in it (envd.c).  State is in memory behind e->lock; a
 * box is used through a reference.  What takes long is done without the lock, one lifecycle
 * operation of a box at a time (box->op).  A template is built in a box that stays E2B_STARTING.
 */
#ifndef CLOUD_E2B_E2B_H
#define CLOUD_E2B_E2B_H

#include <cjson/cJSON.h>
#include <pthread.h>

#include "tests/cloud/engine.h"
#include "tests/cloud/server.h"

#define E2B_ENVD_PORT 49983
#define E2B_ENVD_VERSION "0.6.1"
#define E2B_DEFAULT_USER "user"
#define E2B_LIFE_MAX_S (24 * 3600)
#define E2B_TEAM "team"
#define E2B_BASE_ID "rki5dems9wqfm4r03t7g"
#define E2B_DISK_MB 1024

enum e2b_state { E2B_STARTING, E2B_RUNNING, E2B_PAUSED, E2B_GONE };

struct e2b_proc;

struct e2b_box {
	struct e2b_box *next; /* newest first */
	struct e2b *e;
	int refs;
	char id[24], template_id[24], alias[64];
	char token[65], traffic_token[65]; /* token "": envd is open */
	_Atomic enum e2b_state state;
	pthread_mutex_t op;
	int64_t started_ms, timeout_s;
	_Atomic int64_t end_ms, run_ms; /* Unix epoch; end_ms of a paused one: when */
	_Atomic bool auto_pause;
	bool pause_memory, auto_resume, internet;
	_Atomic bool disk_only; /* paused without its memory */
	bool reserved;		/* counts as one being made */
	cJSON *metadata, *envs, *network, *mounts;
	char user[64], *cwd; /* of processes that name none; cwd NULL: the user's home */
	int64_t cpus, memory_mb;
	struct e2b_proc *procs;
};

/* What sandboxes begin with. */
struct e2b_boot {
	char ref[EMU_REF_BYTES]; /* "": what every one has */
	char user[64], *cwd;	 /* as in a box */
	int64_t cpus, memory_mb;
	cJSON *procs; /* [{"user", "request"}]: processes that are there from the beginning */
};

struct e2b_template;
struct e2b_file;

struct e2b {
	struct emu_server *server;
	struct emu_engine *engine;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct e2b_box *boxes;
	struct e2b_template *templates;
	struct e2b_file *files; /* uploaded for builds */
	int64_t making;		/* sandboxes, not in the list yet */
	unsigned int threads;	/* under way beside the requests' */
	bool ending;
	pthread_t reaper;
	bool has_reaper;
	char seed[33]; /* of tokens */
};

/* state.c: references, and the ids of things. */
struct e2b_box *e2b_box_find(struct e2b *e, const char *id); /* a reference; NULL: none */
struct e2b_box *e2b_box_new(struct e2b *e);
struct e2b_box *e2b_box_get(struct e2b_box *b);
void e2b_box_put(struct e2b_box *b);
void e2b_box_list_in(struct e2b_box *b);
/* One more may run, this one, until it ends; false: it may not. */
bool e2b_box_reserve(struct e2b_box *b);
void e2b_random_id(char *text, size_t len);
/* hex(HMAC-SHA256(seed, text)) */
void e2b_token(const struct e2b *e, const char *text, char out[65]);
void e2b_time(int64_t wall_ms, char out[40]);
/* A thread that close() waits for; false: there is none. */
bool e2b_thread(struct e2b *e, void *(*fn)(void *), void *arg);
void e2b_thread_over(struct e2b *e);

/* life.c: 0, or with *err why not.  The caller has box->op. */
int e2b_kill(struct e2b_box *b, struct abx_err *err);
int e2b_pause(struct e2b_box *b, bool memory, struct abx_err *err);
int e2b_resume(struct e2b_box *b, int64_t timeout_s, bool memory, struct abx_err *err);
void *e2b_reap(void *e);
/* Seconds that may still be granted. */
int64_t e2b_clamp(const struct e2b_box *b, int64_t timeout_s);

/* control.c */
void e2b_control_begin(struct emu_request *req);
void e2b_error(struct emu_request *req, int status, const char *fmt, ...) ABX_PRINTF(3, 4);
void e2b_error_coded(struct emu_request *req, int status, const char *error_code, const char *fmt,
		     ...) ABX_PRINTF(4, 5);
/* The running or paused box that args[0] names, or 404 is the answer. */
struct e2b_box *e2b_named_box(struct emu_request *req);

/* create.c, list.c, change.c, snapshots.c: the routes of the control plane. */
void e2b_create(struct emu_request *req);
void e2b_create_v2(struct emu_request *req);
cJSON *e2b_sandbox_json(const struct e2b_box *b);
void e2b_get(struct emu_request *req);
void e2b_list(struct emu_request *req);
void e2b_list_v1(struct emu_request *req);
void e2b_delete(struct emu_request *req);
void e2b_post_pause(struct emu_request *req);
void e2b_post_resume(struct emu_request *req);
void e2b_post_connect(struct emu_request *req);
void e2b_post_connect_v1(struct emu_request *req);
void e2b_post_timeout(struct emu_request *req);
void e2b_post_refreshes(struct emu_request *req);
void e2b_put_network(struct emu_request *req);
void e2b_get_metrics(struct emu_request *req);
void e2b_get_logs(struct emu_request *req);
void e2b_get_logs_v2(struct emu_request *req);
void e2b_post_snapshot(struct emu_request *req);
void e2b_list_snapshots(struct emu_request *req);

/* templates.c */
void e2b_boot_init(struct e2b_boot *b);
void e2b_boot_copy(const struct e2b_boot *from, struct e2b_boot *to);
void e2b_boot_release(struct e2b_boot *b);
/* What `name` boots, and its template's id and alias; false: there is no such thing. */
bool e2b_boot_find(struct e2b *e, const char *name, struct e2b_boot *ret, char template_id[24],
		   char alias[64]);
void e2b_templates_free(struct e2b *e);

/* template-list.c, tags.c, build.c */
void e2b_list_templates(struct emu_request *req);
void e2b_list_templates_v2(struct emu_request *req);
void e2b_get_template(struct emu_request *req);
void e2b_patch_template(struct emu_request *req);
void e2b_delete_template(struct emu_request *req);
void e2b_get_alias(struct emu_request *req);
void e2b_post_tags(struct emu_request *req);
void e2b_delete_tags(struct emu_request *req);
void e2b_get_tags(struct emu_request *req);
void e2b_post_template(struct emu_request *req);
void e2b_get_file_link(struct emu_request *req);
void e2b_put_file(struct emu_request *req);
void e2b_put_file_begin(struct emu_request *req);
void e2b_post_build(struct emu_request *req);
void e2b_get_build_status(struct emu_request *req);
void e2b_get_build_logs(struct emu_request *req);
/* What was uploaded with that hash, to be read from its beginning; -1: nothing. */
int e2b_file_open(struct e2b *e, const char *hash);
void e2b_files_free(struct e2b *e);

/* egress.c: where a box may connect to, in the engine's terms. */
struct e2b_egress {
	const char **allow, **deny; /* their texts are the box's */
};
/* NULL, or what is wrong. */
const char *e2b_check_network(const cJSON *network);
void e2b_egress_of(const struct e2b_box *b, struct e2b_egress *ret, struct emu_box_options *o);
void e2b_egress_release(struct e2b_egress *g);

/* envd.c */
/* True: the request is one of a sandbox. */
bool e2b_envd_begin(struct emu_request *req);
/* The same, of one that may not be begun. */
bool e2b_envd_asked(const struct emu_request *req);

/* process.c: breaking all streams of a box, and freeing what ended long ago. */
void e2b_procs_cut(struct e2b_box *b);
void e2b_procs_reap(struct e2b_box *b, int64_t now_ms);
void e2b_procs_free(struct e2b_box *b);
/* Those that run, as e2b_boot has them. */
cJSON *e2b_procs_describe(struct e2b_box *b);
void e2b_procs_boot(struct e2b_box *b, const cJSON *procs);

#endif
