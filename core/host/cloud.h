/* SPDX-License-Identifier: MIT */
/*
 * core/host/cloud.h: a provider in use, and every operation on it.
 *
 * A cloud is a loaded provider with one configured account.  All calls block, but the
 * provider's code runs on a thread of its own: when it does not come back within its
 * deadline (or one second after the user gave up) the call returns ABX_ETIMEDOUT or
 * ABX_ECANCELED without it, the cloud is lost (further calls fail), and the journal knows
 * what may remain.  Operations that are idempotent are repeated on ERATE, ENETWORK, EREMOTE
 * with backoff and Retry-After.  Everything a provider returns is checked before it is used.
 *
 * Errors carry the provider's name.  Texts are redacted.
 *
 * A cloud may be used from several threads.  What a provider emits is recorded from its own
 * thread, so no database transaction may be open in the caller meanwhile.  Callbacks return
 * soon once cancel_fd is readable: the call waits for one that is under way.
 */
#ifndef ABX_CLOUD_H
#define ABX_CLOUD_H

#include "abxsdk/buf.h"
#include "core/state/boxes.h"
#include "core/state/config.h"
#include "core/state/db.h"

struct abx_cloud;

/* Called with bytes done, total (0 = unknown) and what; non-zero gives up. */
typedef int (*abx_progress_fn)(void *ctx, uint64_t done, uint64_t total, const char *what);

/* What the whole program shares with the host. */
struct abx_host_ctx {
	const struct abx_home *home;
	struct abx_db *db;
	int cancel_fd; /* readable once the user gave up; -1 = never */
	abx_progress_fn progress;
	void *progress_ctx;
	/* Build and console logs; may be NULL. */
	void (*log_output)(void *ctx, int stream, const void *data, size_t len);
	void *log_ctx;
};

/*
 * Load `provider` (a name, or an absolute path to a plugin), declare its options in `config`
 * (may be NULL: defaults and environment only) and open a session.  `ctx` must outlive it.
 */
int abx_cloud_open(const char *provider, const struct abx_host_ctx *ctx, struct abx_config *config,
		   struct abx_cloud **ret, struct abx_err *err);
void abx_cloud_close(struct abx_cloud *c);

const char *abx_cloud_name(const struct abx_cloud *c);
uint64_t abx_cloud_caps(const struct abx_cloud *c);
/* The provider's table: members that it does not have are NULL.  For asking, not calling. */
const struct abx_cloud_backend *abx_cloud_table(const struct abx_cloud *c);
/* Requests that the provider sent and traced so far. */
uint64_t abx_cloud_round_trips(const struct abx_cloud *c);
/* Per-box options as resolved from config, for abx_provision.options. */
const struct abx_kv *abx_cloud_box_options(const struct abx_cloud *c, uint32_t *ret_n);

/* A box as its provider knows it; the pointers are the box's. */
struct abx_sandbox abx_cloud_sandbox(const struct abx_box *box);

enum abx_box_zstd { ABX_BOX_ZSTD_UNKNOWN, ABX_BOX_ZSTD_NO, ABX_BOX_ZSTD_YES };

/* How to make one call. */
/* What was read of a command's input before it was known whether it runs: it is in no descriptor
 * any more.  Whoever may have to run a command again keeps one of these for all tries. */
struct abx_early_input {
	struct abx_buf data;
	bool read, ended;
};
void abx_early_input_release(struct abx_early_input *e);

struct abx_call_opts {
	int64_t timeout_ms; /* 0 = no deadline */
	bool cleanup;	    /* not cancelled by the user's Ctrl-C: undoing must finish */
	const char *box_id; /* whose emitted sandbox and resources are recorded; may be NULL */
	/* What is made outside of any box is recorded under it (core/state/attempt.h); may be
	 * NULL. */
	const char *attempt;
	bool has_mounts; /* of the box: what is mounted below its workspace is no part of that */
	bool plain_exec; /* the provider's own exec is enough: its exit code is all that counts */
	/* agentbox-ctl came with the project, as this file of the box: to be put in its place
	 * before the command (exec-ctl.h); may be NULL. */
	const char *ctl_came_as;
	struct abx_early_input *early; /* may be NULL */
	const int *abort_fd;	       /* readable: this one call is given up; may be NULL */
	enum abx_box_zstd zstd;	       /* is there a zstd in the box?  Only exec-tar.h asks. */
};

/* A copy of what the provider emitted. */
struct abx_sandbox_copy {
	struct abx_sandbox s; /* pointers into this copy */
	void *memory;
};
void abx_sandbox_copy_release(struct abx_sandbox_copy *c);
struct abx_sandbox_list {
	struct abx_sandbox_copy *items;
	size_t len;
};
void abx_sandbox_list_release(struct abx_sandbox_list *l);
const char *abx_sandbox_label(const struct abx_sandbox *s, const char *key);

bool abx_sandbox_has_labels(const struct abx_sandbox *s, const struct abx_kv *labels, uint32_t n);

/* Copies of what else a provider emits; each _release frees what it points to. */
struct abx_snapshot_copy {
	struct abx_snapshot s;
	void *memory;
};
void abx_snapshot_copy_release(struct abx_snapshot_copy *c);
struct abx_snapshot_list {
	struct abx_snapshot_copy *items;
	size_t len;
};
void abx_snapshot_list_release(struct abx_snapshot_list *l);

struct abx_resource_copy {
	struct abx_resource r;
	void *memory;
};
void abx_resource_copy_release(struct abx_resource_copy *c);
struct abx_resource_list {
	struct abx_resource_copy *items;
	size_t len;
};
void abx_resource_list_release(struct abx_resource_list *l);

struct abx_file_copy {
	struct abx_file f;
	void *memory;
};
struct abx_file_list {
	struct abx_file_copy *items;
	size_t len;
};
void abx_file_list_release(struct abx_file_list *l);

struct abx_rate_copy {
	struct abx_rate r;
	void *memory;
};
struct abx_rate_list {
	struct abx_rate_copy *items;
	size_t len;
};
void abx_rate_list_release(struct abx_rate_list *l);

struct abx_url_copy {
	struct abx_url u;
	void *memory;
};
void abx_url_copy_release(struct abx_url_copy *c);

struct abx_ssh_copy {
	struct abx_ssh s;
	void *memory;
};
void abx_ssh_copy_release(struct abx_ssh_copy *c);

/* Where changes and logs go, on the provider's thread; non-zero gives up (ABX_ECANCELED). */
struct abx_watcher {
	int (*changed)(void *ctx, const struct abx_sandbox *s);
	void *ctx;
};
struct abx_log_sink {
	int (*output)(void *ctx, int stream, const void *data, size_t len);
	void *ctx;
};

/* Rows of verify, doctor, choices: parallel key and value lists, one per row. */
struct abx_row {
	struct abx_kv_owned_pair {
		char *key, *value;
	} * cells;
	size_t len;
};
struct abx_row_list {
	struct abx_row *items;
	size_t len;
};
void abx_row_list_release(struct abx_row_list *l);
const char *abx_row_get(const struct abx_row *r, const char *key); /* NULL when absent */

/* Who we are there; *ret_account to be freed, may stay NULL when the provider has none. */
int abx_cloud_verify(struct abx_cloud *c, const struct abx_call_opts *o, char **ret_account,
		     struct abx_err *err);
int abx_cloud_doctor(struct abx_cloud *c, const struct abx_call_opts *o, struct abx_row_list *ret,
		     struct abx_err *err);

/* The last emitted sandbox; ABX_EPROTO when none was.  Never repeated by itself: a lost
 * answer is found again by label (abx_cloud_list). */
int abx_cloud_provision(struct abx_cloud *c, const struct abx_call_opts *o,
			const struct abx_provision *req, struct abx_sandbox_copy *ret,
			struct abx_err *err);
int abx_cloud_get(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		  struct abx_sandbox_copy *ret, struct abx_err *err);
int abx_cloud_list(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_kv *labels,
		   uint32_t n_labels, struct abx_sandbox_list *ret, struct abx_err *err);
int abx_cloud_start(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const struct abx_start_req *req, struct abx_err *err);
int abx_cloud_stop(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		   const struct abx_stop_req *req, struct abx_err *err);
int abx_cloud_destroy(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const struct abx_stop_req *req,
		      struct abx_err *err);
int abx_cloud_resource_delete(struct abx_cloud *c, const struct abx_call_opts *o,
			      const struct abx_resource *res, struct abx_err *err);

/* Where the provider's own exec cannot do what the request needs, agentbox-ctl does
 * (core/host/exec-ctl.h).  `req` callbacks run on the provider's thread, never after this
 * returned.  A command that
 * could not be started (ABX_EXIT_NOT_STARTED) is a result, 0, and yet `err` says why. */
int abx_cloud_exec(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		   const struct abx_exec *req, struct abx_exit *ret, struct abx_err *err);
int abx_cloud_upload(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err);
int abx_cloud_download(struct abx_cloud *c, const struct abx_call_opts *o,
		       const struct abx_sandbox *s, const struct abx_transfer *req,
		       struct abx_err *err);
/* Without the operation: `tar` in the box, over exec; where the provider's own exec does not
 * carry a stream as it is, the archive is uploaded and unpacked.  What goes to a box elsewhere is
 * compressed on its way where it can be read there (core/host/shrink.h). */
int abx_cloud_put_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const struct abx_transfer *req,
		      struct abx_err *err);
int abx_cloud_get_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const struct abx_transfer *req,
		      struct abx_err *err);

/*
 * The operations below need not be there: ABX_ENOTSUP, "provider 'x': cannot ...".  Ask
 * abx_cloud_table() beforehand where that decides what is done at all.
 */

/* cloud-set.c: changing a box that is there. */
int abx_cloud_pause(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const struct abx_stop_req *req, struct abx_err *err);
int abx_cloud_resume(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_start_req *req,
		     struct abx_err *err);
/* Until `target_ms` of the Unix epoch; what was granted is recorded.  Repeated only where the
 * deadline is set, not added to. */
int abx_cloud_renew(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    int64_t target_ms, int64_t current_ms, struct abx_err *err);
/* allow and deny as in abx_provision: both NULL = everything, an empty allow list = nothing. */
int abx_cloud_set_egress(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_sandbox *s, const struct abx_policy *req,
			 struct abx_err *err);
int abx_cloud_set_inbound(struct abx_cloud *c, const struct abx_call_opts *o,
			  const struct abx_sandbox *s, const struct abx_policy *req,
			  struct abx_err *err);
/* Make it reachable again after a change of address. */
int abx_cloud_repair(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, struct abx_err *err);
/* May be called while the exec that it names blocks on another thread. */
int abx_cloud_exec_signal(struct abx_cloud *c, const struct abx_call_opts *o,
			  const struct abx_sandbox *s, const char *exec_id, int signo,
			  struct abx_err *err);
/* The provider's own subcommand argv[0]; s may be NULL; rows are its answer, output goes to
 * `log` (may be NULL: as ctx says). */
int abx_cloud_command(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const char *const *argv,
		      const struct abx_log_sink *log, struct abx_row_list *ret,
		      struct abx_err *err);

/* cloud-look.c: looking at boxes. */
/* Every change of sandboxes with these labels, and how they are at first, until the deadline
 * (ABX_ETIMEDOUT), a cancel, or until `changed` gives up (ABX_ECANCELED). */
int abx_cloud_watch(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_kv *labels,
		    uint32_t n_labels, const struct abx_watcher *to, struct abx_err *err);
/* One row. */
int abx_cloud_stats(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    struct abx_row_list *ret, struct abx_err *err);
int abx_cloud_logs(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		   const struct abx_logs_req *req, const struct abx_log_sink *to,
		   struct abx_err *err);
/* s NULL: what a box would cost. */
int abx_cloud_rates(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    struct abx_rate_list *ret, struct abx_err *err);
int abx_cloud_usage(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    struct abx_usage *ret, struct abx_err *err);
/* Token and header are secret and redacted from now on. */
int abx_cloud_url(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		  const struct abx_url_req *req, struct abx_url_copy *ret, struct abx_err *err);
int abx_cloud_ssh(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		  struct abx_ssh_copy *ret, struct abx_err *err);
/* Names are bytes from the box: one component each, never "." or "..". */
int abx_cloud_list_files(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_sandbox *s, const char *dir, struct abx_file_list *ret,
			 struct abx_err *err);
/* What an option of the provider may be: rows of value, label, note. */
int abx_cloud_choices(struct abx_cloud *c, const struct abx_call_opts *o, const char *option,
		      struct abx_row_list *ret, struct abx_err *err);
int abx_cloud_resource_list(struct abx_cloud *c, const struct abx_call_opts *o,
			    const struct abx_kv *labels, uint32_t n_labels,
			    struct abx_resource_list *ret, struct abx_err *err);

/*
 * cloud-snapshot.c, cloud-volume.c: what outlives a box.  Making one is never repeated.  With
 * o->attempt its name outside is on record as soon as the provider says it, and when an
 * answer is lost, the one object that carries all of the request's labels is the answer; so
 * give one label that is this attempt's own (core/state/attempt.h).  Deleting what is gone is
 * success.
 */
int abx_cloud_snapshot_create(struct abx_cloud *c, const struct abx_call_opts *o,
			      const struct abx_sandbox *s, const struct abx_snapshot_req *req,
			      struct abx_snapshot_copy *ret, struct abx_err *err);
int abx_cloud_snapshot_list(struct abx_cloud *c, const struct abx_call_opts *o,
			    const struct abx_kv *labels, uint32_t n_labels,
			    struct abx_snapshot_list *ret, struct abx_err *err);
/* Without the operation it is looked for in the list. */
int abx_cloud_snapshot_exists(struct abx_cloud *c, const struct abx_call_opts *o, const char *ref,
			      bool *ret, struct abx_err *err);
int abx_cloud_snapshot_delete(struct abx_cloud *c, const struct abx_call_opts *o, const char *ref,
			      struct abx_err *err);
/* `log` gets the build's output; may be NULL. */
int abx_cloud_prepare(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_prepare *req, const struct abx_log_sink *log,
		      struct abx_snapshot_copy *ret, struct abx_err *err);
int abx_cloud_image_list(struct abx_cloud *c, const struct abx_call_opts *o,
			 const struct abx_kv *labels, uint32_t n_labels,
			 struct abx_snapshot_list *ret, struct abx_err *err);
int abx_cloud_image_delete(struct abx_cloud *c, const struct abx_call_opts *o, const char *ref,
			   struct abx_err *err);
/* The volume of that name, made when there is none; its id is in the result. */
int abx_cloud_volume_ensure(struct abx_cloud *c, const struct abx_call_opts *o,
			    const struct abx_volume_req *req, struct abx_resource_copy *ret,
			    struct abx_err *err);
int abx_cloud_volume_list(struct abx_cloud *c, const struct abx_call_opts *o,
			  const struct abx_kv *labels, uint32_t n_labels,
			  struct abx_resource_list *ret, struct abx_err *err);
int abx_cloud_volume_delete(struct abx_cloud *c, const struct abx_call_opts *o, const char *id,
			    struct abx_err *err);

#endif
