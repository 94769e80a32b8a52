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

/* How to make one call. */
struct abx_call_opts {
	int64_t timeout_ms; /* 0 = no deadline */
	bool cleanup;	    /* not cancelled by the user's Ctrl-C: undoing must finish */
	const char *box_id; /* whose emitted sandbox and resources are recorded; may be NULL */
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

/* `req` callbacks run on the provider's thread, never after this returned.  A command that
 * could not be started (ABX_EXIT_NOT_STARTED) is a result, 0, and yet `err` says why. */
int abx_cloud_exec(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		   const struct abx_exec *req, struct abx_exit *ret, struct abx_err *err);
int abx_cloud_upload(struct abx_cloud *c, const struct abx_call_opts *o,
		     const struct abx_sandbox *s, const struct abx_transfer *req,
		     struct abx_err *err);
int abx_cloud_download(struct abx_cloud *c, const struct abx_call_opts *o,
		       const struct abx_sandbox *s, const struct abx_transfer *req,
		       struct abx_err *err);
/* Without the operation: `tar` in the box, over exec. */
int abx_cloud_put_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const struct abx_transfer *req,
		      struct abx_err *err);
int abx_cloud_get_tar(struct abx_cloud *c, const struct abx_call_opts *o,
		      const struct abx_sandbox *s, const struct abx_transfer *req,
		      struct abx_err *err);

#endif
