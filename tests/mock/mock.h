/* SPDX-License-Identifier: MIT */
/*
 * tests/mock/mock.h: a provider for the tests of the core.
 *
 * A sandbox is a record, STATE/sandboxes/ID.json, and a directory ID/root; commands are real
 * processes of this machine, without any isolation, whose paths below /workspace are mapped
 * to root/workspace.  AGENTBOX_MOCK_ROOT in a process names the root and marks it as ours.
 *
 * The option `mock.faults` (AGENTBOX_MOCK_FAULTS) makes it misbehave.  Rules are separated by
 * `;`, parameters of a rule by `,`:
 *
 *	provision:fail=ERATE,retry_after=50,times=2     the first two fail
 *	exec:delay=300                                  each takes so long, cancel is honoured
 *	list:again=ERATE                                sends one request as long as retry() says
 *	verify:learn                                    learns a token, to be kept as mock.token
 *	provision:lose                                  does it, and reports a lost answer
 *	destroy:kill        destroy:kill,after=1        SIGKILL of the own process
 *	exec:deaf=1500                                  the same, and cancel is not honoured
 *	exec:wait                                       until it is cancelled
 *	exec:hang                                       for ever, whatever the host says
 *	exec:print                                      prints on stdout
 *	exec:leak                                       leaves a descriptor open
 *	verify:tell                                     puts the token into an error text
 *	get:garbage                                     results that break the contract
 *	resource                                        provision makes a "disk" beside the sandbox
 *
 *	snapshot_create:lose                            the same words for every other operation
 *
 * `times=N` holds for all processes together: a counter is kept in STATE/faults.
 *
 * Snapshots, images and volumes are directories beside the sandboxes, pausing is SIGSTOP, what
 * provision was asked for is in the record as `request`; a volume or mount is a symbolic link.
 *
 * The second provider, mockbare, is the same code with only the required operations,
 * ABX_THREADS_SERIAL, and an exec that forwards stdin and can do nothing else: both outputs in
 * one, ASCII only, and giving up ends one process.  The third, mockpoor, does not even forward
 * stdin, and is ABX_THREADS_PARALLEL.  Their commands have root as their root (enter.c).
 *
 * The others say that their boxes are elsewhere, and add up in STATE/bytes what they were sent,
 * one line "put_tar BYTES" or "upload BYTES" each: mockfar takes zstd, mockfarplain does not,
 * mockfarexec has an exec that can do all but neither put_tar nor get_tar, and mockfarbare is as
 * mockbare.
 */
#ifndef ABX_MOCK_H
#define ABX_MOCK_H

#include <agentbox/cloud_backend.h>

/* 0 = its exec has no stdin. */
#ifndef MOCK_HAS_STDIN
#define MOCK_HAS_STDIN 1
#endif

#include "abxsdk/buf.h"

struct abx_session {
	char *state_dir, *faults, *token;
};

extern const struct abx_host *mock_host;

struct mock_box {
	char id[64], name[256], attempt[64], created_at[32];
	uint32_t state;
	int64_t expires_at_ms;
	int64_t start_flags; /* ABX_START_* of the last start */
	char egress[4096];   /* what may be reached, joined by commas; "all", "none" */
	struct abx_kv *labels;
	uint32_t n_labels;
	void *doc;     /* cJSON that owns the labels */
	void *request; /* cJSON: what else provision was asked for; owned by doc when that is set */
};

/* A thing of its own beside sandboxes: a snapshot, an image, a volume. */
struct mock_object {
	char id[96], name[256], created_at[32], sandbox_id[64];
	struct abx_kv *labels;
	uint32_t n_labels;
	void *doc;
};

/* mock.c */
int32_t mock_fail(struct abx_call *call, int32_t code, const char *fmt, ...) ABX_PRINTF(3, 4);
int32_t mock_fail_errno(struct abx_call *call, int errnum, const char *what);
/* The time as RFC 3339. */
void mock_now(char text[32]);
/* `prefix` and a number that nobody else has. */
int32_t mock_new_id(struct abx_call *call, const char *prefix, char *id, size_t size);

/* mock-faults.c: what the rules say about an operation, before and after it is done. */
int32_t mock_fault_before(struct abx_session *s, struct abx_call *call, const char *op);
int32_t mock_fault_after(struct abx_session *s, struct abx_call *call, const char *op);
/* Is there a rule `what`, alone or for `op`?  Counts as one use. */
int mock_fault_is(struct abx_session *s, const char *op, const char *what);

/* mock-state.c */
char *mock_path(const struct abx_session *s, const char *fmt, ...) ABX_PRINTF(2, 3);
/* 0, ABX_ENOTFOUND, or another failure that was reported. */
int32_t mock_box_load(struct abx_session *s, struct abx_call *call, const char *id,
		      struct mock_box *ret);
int32_t mock_box_save(struct abx_session *s, struct abx_call *call, const struct mock_box *b);
void mock_box_release(struct mock_box *b);
int32_t mock_box_emit(struct abx_session *s, struct abx_call *call, const struct mock_box *b);
/* A path in the box as a path here; free it. */
char *mock_map_path(const struct abx_session *s, const char *id, const char *path);

/* mock-exec.c */
int32_t mock_exec(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_exec *req, struct abx_exit *ret);
/* What is in the environment of every process of a box; free it. */
char *mock_marker(const struct abx_session *s, const char *id);
/* End every process of a box. */
void mock_kill_all(const struct abx_session *s, const char *id);
/* Send a signal to every process of a box; how many got it. */
int mock_signal_all(const struct abx_session *s, const char *id, int signo);
/* A program of this machine, ended when the call is cancelled. */
int32_t mock_run(struct abx_session *s, struct abx_call *call, const char *id,
		 const char *const *argv, int fd_in, int fd_out);
/* One line for mock_logs(). */
void mock_note(const struct abx_session *s, const char *id, const char *text);

/* mock-files.c */
int32_t mock_upload(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_transfer *req);
int32_t mock_download(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_transfer *req);
int32_t mock_put_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_transfer *req);
int32_t mock_get_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_transfer *req);

/* mock-life.c */
int32_t mock_provision(struct abx_session *s, struct abx_call *call,
		       const struct abx_provision *req);
int32_t mock_get(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);
int32_t mock_list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req);
int32_t mock_start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_start_req *req);
int32_t mock_stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_stop_req *req);
int32_t mock_destroy(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_stop_req *req);
int32_t mock_resource_list(struct abx_session *s, struct abx_call *call,
			   const struct abx_list_req *req);
int32_t mock_resource_delete(struct abx_session *s, struct abx_call *call,
			     const struct abx_resource *res);

/* mock-objects.c: records in STATE/<kind>s/ID.json, with their files in ID/. */
int32_t mock_object_save(struct abx_session *s, struct abx_call *call, const char *kind,
			 const struct mock_object *o);
int32_t mock_object_load(struct abx_session *s, struct abx_call *call, const char *kind,
			 const char *id, struct mock_object *ret);
void mock_object_release(struct mock_object *o);
int32_t mock_objects_each(struct abx_session *s, struct abx_call *call, const char *kind,
			  const struct abx_list_req *req,
			  int32_t (*emit)(struct abx_call *call, const struct mock_object *o));
int32_t mock_object_delete(struct abx_session *s, struct abx_call *call, const char *kind,
			   const char *id);
int mock_labels_match(const struct abx_kv *have, uint32_t n, const struct abx_list_req *req);

/* mock-snapshot.c, mock-volume.c */
int32_t mock_snapshot_create(struct abx_session *s, struct abx_call *call,
			     const struct abx_sandbox *sb, const struct abx_snapshot_req *req);
int32_t mock_snapshot_list(struct abx_session *s, struct abx_call *call,
			   const struct abx_list_req *req);
int32_t mock_snapshot_exists(struct abx_session *s, struct abx_call *call, const char *ref);
int32_t mock_snapshot_delete(struct abx_session *s, struct abx_call *call, const char *ref);
/* The files of a snapshot become those of a sandbox. */
int32_t mock_snapshot_use(struct abx_session *s, struct abx_call *call, const char *ref,
			  const char *id);
int32_t mock_prepare(struct abx_session *s, struct abx_call *call, const struct abx_prepare *req);
int32_t mock_image_list(struct abx_session *s, struct abx_call *call,
			const struct abx_list_req *req);
int32_t mock_image_delete(struct abx_session *s, struct abx_call *call, const char *ref);
int32_t mock_volume_ensure(struct abx_session *s, struct abx_call *call,
			   const struct abx_volume_req *req);
int32_t mock_volume_list(struct abx_session *s, struct abx_call *call,
			 const struct abx_list_req *req);
int32_t mock_volume_delete(struct abx_session *s, struct abx_call *call, const char *id);
/* Mounts and volumes of a new sandbox, as links. */
int32_t mock_volumes_use(struct abx_session *s, struct abx_call *call, const char *id,
			 const struct abx_provision *req);

/* mock-look.c */
int32_t mock_watch(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req);
int32_t mock_stats(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);
int32_t mock_logs(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_logs_req *req);
int32_t mock_rates(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);
int32_t mock_usage(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb);
int32_t mock_url(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		 const struct abx_url_req *req);
int32_t mock_list_files(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const char *dir);
int32_t mock_choices(struct abx_session *s, struct abx_call *call, const char *option);

/* mock-set.c */
int32_t mock_pause(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_stop_req *req);
int32_t mock_resume(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_start_req *req);
int32_t mock_renew(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   int64_t target_ms, int64_t current_ms);
int32_t mock_set_egress(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const struct abx_policy *req);
int32_t mock_exec_signal(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			 const char *exec_id, int32_t signo);
int32_t mock_command(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const char *const *argv);
/* An allow list as text. */
void mock_egress_text(const char *const *allow, const char *const *deny, char *text, size_t size);

#endif
