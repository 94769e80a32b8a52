/* SPDX-License-Identifier: MIT */
/*
 * local.h: inside the provider `local`.
 *
 * A session is a state directory, which only the caller may enter, with one directory in
 * it, store/, where box root may pass (0711) on its way to what belongs to it:
 *
 *	boxes/<id>/box.json   what was asked for; never changes (0600: holds env values)
 *	boxes/<id>/run.json   the first process of a box that runs or ran, before it lives
 *	boxes/<id>/live       locked by that process for as long as it lives
 *	boxes/<id>/paused     its processes are held (pause.h), with gate, which is a lock
 *	boxes/<id>/cgroups    directories of control groups that are the box's (cgroup.h)
 *	boxes/<id>/layers/    upper/TOP, what the box writes, over the layers of its chain;
 *	                      belongs to ids of the box
 *	boxes/<id>/chain.json that chain, once it is no longer what box.json says
 *	layers/<lid>/TOP      what was written by one that runs no more; shared, read-only
 *	boxes/<id>/net        locked by the network helper while it lives, and its state
 *	boxes/<id>/net.sock   where that helper takes requests
 *	snapshots/<ref>.json  which layers and image a snapshot is
 *	volumes/<name>/       directories that outlive boxes
 *	tmp/                  what is being made or removed; unlocked ones are swept
 *	ids                   which ids of this machine all of that belongs to
 *	cache/                shared lower layers, made by box root
 *	images/               unpacked images, made by box root
 *
 * flock() on a box's directory orders start, stop and destroy.  All operations may run at
 * the same time on any thread; a session's own mutable part is behind its mutex.
 *
 * Functions return ABX_OK or the ABX_E* code with which host->fail() was called.
 */
#ifndef LOCAL_LOCAL_H
#define LOCAL_LOCAL_H

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abxsdk/buf.h"
#include "abxsdk/clock.h"
#include "abxsdk/plugin.h"
#include "agentbox/cloud_backend.h"
#include "providers/local/labels.h"
#include "providers/local/proto.h"

#define LOCAL_ID_MAX 64
#define LOCAL_LID_SIZE 17 /* the id of a layer: 16 of [0-9a-f] */
#define LOCAL_CHAIN_MAX 64

struct local_exec;

/* How ids of boxes become ids of this machine. */
struct local_ids {
	enum lb_map map; /* LB_MAP_NONE: not at all */
	uint32_t uid_base, gid_base;
};

/* What this machine does not give. */
struct local_lack {
	int32_t code;
	char text[256], remedy[256];
};

struct abx_session {
	int store_fd, boxes_fd, tmp_fd, images_fd, volumes_fd, prepared_fd;
	int layers_fd, snapshots_fd;
	struct local_ids ids;
	const char *ids_lost; /* NULL, or why boxes cannot have their ids any more */
	bool ids_could_be_more;
	char *box_helper, *tar_helper, *net_helper;
	char *image, *mirror, *packages, *network;
	char *proxy, *no_proxy;
	char account[32], arch[32], boot_id[40];
	pthread_mutex_t lock;
	struct local_exec *execs; /* running in this session, for exec_signal */
};

/* A box as it is on disk. */
struct local_box {
	int dir_fd;
	int gate_fd;		       /* held while somebody enters (pause.h); -1 */
	int cgroup_fd[LB_CGROUPS_MAX]; /* what they join (limits.h); -1 */
	cJSON *doc;
	const char *id, *name, *image, *created_at, *hostname;
	const char *layers; /* what it was made over; see local_chain_read() */
	const char *egress, *deny, *wanted_ports; /* as net.c writes them; NULL: none */
	bool pasta;				  /* carries its packets, not slirp4netns */
	cJSON *net_doc;
	const cJSON *ports; /* of the box, and where on this machine each was opened last */
	const cJSON *labels, *env;
};

/* The running side of a box. */
struct local_run {
	int pidfd;	/* -1: not running */
	bool ready;	/* false: its root is not in place yet, and nobody may enter */
	bool lost;	/* found without its record: flags and expiry are not known */
	uint32_t flags; /* that it was started with */
	int64_t pid, expires_at_ms;
};

/* idmap.c: which ids boxes of this state directory get; 0 or -errno. */
int local_ids_settle(struct abx_session *s);
/* ABX_OK, or the call has failed since boxes can have no ids; `fmt` is about what was to do. */
int32_t local_ids_check(const struct abx_session *s, struct abx_call *call, const char *fmt, ...)
	ABX_PRINTF(3, 4);
void local_ids_lack(const struct abx_session *s, struct local_lack *ret);
bool local_in_path(const char *program);

/* state.c */
bool local_id_valid(const char *id);
int local_state_open(struct abx_session *s, const char *dir);
void local_state_close(struct abx_session *s);
int local_make_box_dir(const struct abx_session *s, int at, const char *name);
int local_read_json(int dir_fd, const char *name, cJSON **ret);
/* -ENOENT: there is no such box.  -EPROTO: its record is damaged. */
int local_box_open(const struct abx_session *s, const char *id, struct local_box *ret);
void local_box_release(struct local_box *b);
/* b is NULL where the record cannot be read; ends with the first visit that is not 0. */
int local_box_each(const struct abx_session *s,
		   int (*visit)(void *ctx, const char *id, const struct local_box *b), void *ctx);
/* Does, or may, any box use it?  Then `user` is which, by name where it has one. */
bool local_box_uses(const struct abx_session *s,
		    bool (*uses)(const struct local_box *b, const char *what), const char *what,
		    char *user, size_t size);
#define LOCAL_BOX_INIT                                                       \
	{                                                                    \
		.dir_fd = -1, .gate_fd = -1, .cgroup_fd = { -1, -1, -1, -1 } \
	}
/* Take the box's lock, for as long as b->dir_fd is open. */
int32_t local_box_lock(const struct abx_session *s, struct abx_call *call,
		       const struct local_box *b);
int32_t local_box_emit(const struct abx_session *s, struct abx_call *call,
		       const struct local_box *b, const struct local_run *run, uint32_t state);
/* RFC 3339, now. */
void local_time_text(char *out, size_t size);
/* A directory tmp/PREFIX... that is locked and that no sweeper has got hold of. */
int local_make_locked_dir(const struct abx_session *s, const char *prefix, char *name, size_t size,
			  int *ret_fd);
/* Remove a directory of ours in which `inner` belongs to ids of the box. */
int32_t local_remove_tree(const struct abx_session *s, struct abx_call *call, int parent_fd,
			  const char *name, const char *inner);
/* Remove what dead processes left half-made. */
int32_t local_sweep(const struct abx_session *s, struct abx_call *call);

/* run.c: the first process of a box, where there is one. */
int local_run_open(const struct abx_session *s, const struct local_box *b, struct local_run *ret);
int local_run_write(const struct abx_session *s, int dir_fd, pid_t pid, int64_t expires_at_ms,
		    uint32_t flags);
void local_run_release(struct local_run *r);
#define LOCAL_RUN_INIT      \
	{                   \
		.pidfd = -1 \
	}
uint32_t local_run_state(const struct local_run *run);

#define LOCAL_DAMAGED_REMEDY "put it back, or agentbox destroy --force removes the box"

/* layer.c: the layers below a box's writable one, the topmost first. */
struct local_chain {
	size_t n;
	char lid[LOCAL_CHAIN_MAX][LOCAL_LID_SIZE];
};
/* Ids with a space between; NULL or "": none.  -EPROTO, -E2BIG. */
int local_chain_parse(const char *text, struct local_chain *ret);
int local_chain_text(const struct local_chain *c, struct abx_buf *b);
int local_chain_push(struct local_chain *c, const char *lid);
/* Right while the box runs, or while its live lock is held: it is no one's to change then. */
int local_chain_read(const struct abx_session *s, const struct local_box *b,
		     struct local_chain *ret);
/* With a layer that is only announced: the helper of a dead client may make it yet. */
int local_chain_named(const struct abx_session *s, const struct local_box *b,
		      struct local_chain *ret);

/* Its writable layer is about to become layers/<lid>, over this chain. */
int local_chain_write(const struct local_box *b, const struct local_chain *chain,
		      const char *sealing);

/* layer-gc.c: no layer is removed while *ret_lock is open; remove those that nobody needs. */
int32_t local_layers_hold(const struct abx_session *s, struct abx_call *call, int *ret_lock);
void local_layers_collect(const struct abx_session *s, struct abx_call *call);

/* snapshot-store.c */
struct local_snapshot {
	cJSON *doc;
	const char *ref, *name, *created_at, *sandbox_id, *image;
	const cJSON *labels;
	struct local_chain chain;
	uint32_t flags;
	int64_t size_bytes; /* -1: nobody has looked */
};
/* -ENOENT: there is none.  -EPROTO: its record is damaged. */
int local_snapshot_open(const struct abx_session *s, const char *ref, struct local_snapshot *ret);
void local_snapshot_release(struct local_snapshot *n);
int local_snapshot_write(const struct abx_session *s, const struct local_snapshot *n,
			 const struct abx_kv *labels, uint32_t n_labels);
/* n is NULL where the record is damaged; ends with the first visit that is not 0. */
int local_snapshot_each(const struct abx_session *s,
			int (*visit)(void *ctx, const char *ref, const struct local_snapshot *n),
			void *ctx);
/* Is there, or may there be, a snapshot over this image? */
bool local_snapshot_needs_image(const struct abx_session *s, const char *key);
int32_t local_snapshot_emit(const struct abx_session *s, struct abx_call *call, const char *ref);

/* plan.c: arguments of a start request (proto.h). */
struct local_plan {
	char **argv;
	size_t n, cap;
	bool failed; /* out of memory */
};
void local_plan_add(struct local_plan *p, const char *key, const char *fmt, ...) ABX_PRINTF(3, 4);
void local_plan_release(struct local_plan *p);

/* mounts.c: directories of the host, and volumes, in a box. */
struct local_mounts {
	cJSON *mounts, *volumes;
};
#define LOCAL_MOUNTS_INIT  \
	{                  \
		NULL, NULL \
	}
int32_t local_mounts_make(const struct abx_session *s, struct abx_call *call,
			  const struct abx_provision *p, struct local_mounts *ret);
void local_mounts_release(struct local_mounts *m);
/* Into box.json, and from there into a start request; 0 or -errno. */
int local_mounts_record(cJSON *doc, const struct local_mounts *m);
int local_mounts_plan(const struct local_box *b, struct local_plan *plan);
bool local_mounts_use_volume(const struct local_box *b, const char *name);
/* Could other users of this machine run what the box writes to one of them? */
bool local_mounts_are_open(const struct local_box *b);

/* volume.c: keep the volumes of a request until its box is on record. */
struct local_volumes {
	int *fd;
	uint32_t n;
};
int32_t local_volumes_lock(const struct abx_session *s, struct abx_call *call,
			   const struct abx_provision *p, struct local_volumes *ret);
void local_volumes_unlock(struct local_volumes *v);

/* helper.c */
struct local_helper {
	pid_t pid;
	int status_fd, lifeline;
};
#define LOCAL_HELPER_INIT                                  \
	{                                                  \
		.pid = -1, .status_fd = -1, .lifeline = -1 \
	}
struct local_helper_args {
	const char *program;
	struct lb_req req; /* op, flags and numbers; the rest is filled in */
	const char *user, *path, *name;
	const char *const *argv;
	const cJSON *box_env;
	const struct abx_kv *env;
	uint32_t n_env;
	int fd_in, fd_out, fd_err;
	int fd_box, fd_live, fd_control, fd_gate, fd_dir; /* -1: none */
	int fd_cgroup[LB_CGROUPS_MAX];
};
#define LOCAL_HELPER_ARGS_INIT                                                                  \
	.fd_in = -1, .fd_out = -1, .fd_err = -1, .fd_box = -1, .fd_live = -1, .fd_control = -1, \
	.fd_gate = -1, .fd_dir = -1, .fd_cgroup = {-1, -1, -1, -1}
int32_t local_helper_start(const struct abx_session *s, struct abx_call *call,
			   struct local_helper_args *a, struct local_helper *ret);
/* The next message; ABX_EIO, already failed, when there is none any more.  A LB_MSG_FAIL
 * is turned into the call's failure. */
int32_t local_helper_next(struct abx_call *call, const struct local_helper *h, struct lb_msg *m);
/* The same, but a LB_MSG_FAIL is a message like another. */
int32_t local_helper_any(struct abx_call *call, const struct local_helper *h, struct lb_msg *m);
/* 1 and a message, 0 at the end, -EAGAIN. */
int local_helper_read(const struct local_helper *h, struct lb_msg *m);
int32_t local_helper_failed(struct abx_call *call, const struct lb_msg *m);
void local_helper_control(const struct local_helper *h, uint16_t kind, uint16_t a, uint16_t b);
void local_helper_kill(struct local_helper *h);	 /* and forget it */
void local_helper_wait(struct local_helper *h);	 /* it is about to end by itself */
void local_helper_leave(struct local_helper *h); /* it outlives the call */
/* Enter a running box: its pidfd and flags for a request. */
int32_t local_box_enter(struct abx_session *s, struct abx_call *call, const char *id,
			struct local_box *b, struct local_run *run, struct local_helper_args *a);

/* life.c */
/* Open a box, or say that there is none. */
int32_t local_open(struct abx_session *s, struct abx_call *call, const char *id,
		   struct local_box *b);
int32_t local_lock(struct abx_session *s, struct abx_call *call, const struct local_box *b);
/* End a box whose lock is held. */
int32_t local_stop_locked(struct abx_call *call, const struct local_box *b, struct local_run *run,
			  int64_t grace_ms);
/* In a box's directory, locked by whoever gives its first process a new root, and not empty
 * until that is done: the box does not run meanwhile. */
#define LOCAL_SWAP "swap"
/* What the box is made of; with its writable layer as layers/<seal>, unless NULL. */
int32_t local_box_plan(const struct abx_session *s, struct abx_call *call,
		       const struct local_box *b, const char *seal, struct local_plan *plan);
/* The lock of a running box, for whoever is about to act as if it were one. */
int32_t local_live_take(struct abx_call *call, const struct local_box *b, int *ret_fd);
struct local_start {
	uint32_t flags;
	int64_t expires_at_ms;
	const char *seal; /* NULL, or the id of the layer that its writable layer becomes */
	bool in_use;	  /* set: it could not be sealed, and the box is not started */
};
/* Start a box that does not run and whose lock is held. */
int32_t local_start_again(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			  struct local_start *st, struct local_run *run);
/* Start a box whose lock is held, unless it runs already. */
int32_t local_start_locked(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			   uint32_t flags, int64_t timeout_ms, struct local_run *run);
/* provision.c: make a box for a moment, over images/IMAGE where that is not NULL, and run its
 * shell; READY or FAIL in *ret. */
int32_t local_probe(struct abx_session *s, struct abx_call *call, const char *image,
		    struct lb_msg *ret);

/* image.c: unpack `image` unless that was done before.  Nobody removes it while *ret_lock is
 * open, or while a box's record names its key. */
int32_t local_image_open(struct abx_session *s, struct abx_call *call, const char *image,
			 char ret_key[LOCAL_ID_MAX], int *ret_lock);

/* The same for an image that a snapshot is over. */
int32_t local_image_hold(struct abx_session *s, struct abx_call *call, const char *key,
			 int *ret_lock);

/* net.c */
#define LOCAL_SLIRP "slirp4netns"
#define LOCAL_PASTA "pasta"
/* What the option local.network means; -EINVAL: it is none of these. */
int local_net_carrier(const char *network, bool *ret_pasta);
/* True when this machine cannot give a box a network of its own, and what is missing. */
bool local_net_lacks(bool pasta, struct local_lack *ret);
/* Refuse, before anything is made, an egress that makes no sense or cannot be had here. */
int32_t local_net_check(struct abx_call *call, const struct abx_provision *p, bool pasta);
int local_net_record(cJSON *doc, const struct abx_provision *p, bool pasta);
int local_net_load(struct local_box *b); /* the newest state, from box.json and net.json */
/* Both lists of a request in the form in which records keep them. */
int32_t local_net_lists(struct abx_call *call, const char *const *allow, const char *const *deny,
			struct abx_buf *ret_egress, struct abx_buf *ret_deny);
/* The form in which the helper reads them: strings, each with its NUL. */
int local_net_texts(const char *egress, const char *deny, struct abx_buf *b);
bool local_net_alive(const struct local_box *b);
bool local_net_is_host(const struct local_box *b);
/* Start the helper of a box that runs, unless it is alive; nobody waits for it. */
int32_t local_net_start(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			const struct local_run *run);
/* Before a command: the network is up, or a warning says why not. */
int32_t local_net_ready(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			const struct local_run *run);
/* Its helper is alive and the network up, or the call has failed. */
int32_t local_net_up(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		     const struct local_run *run);
/* After the box's first process has ended: its helper has too. */
int32_t local_net_ended(struct abx_call *call, const struct local_box *b);

/* url.c: the ports that a box had before go to its new helper. */
void local_ports_reopen(const struct local_box *b);
/* The box's lock is held: give those that it was made with a place on this machine. */
int32_t local_ports_assign(struct abx_call *call, struct local_box *b);

/* Operations. */
int32_t local_provision(struct abx_session *, struct abx_call *, const struct abx_provision *);
int32_t local_get(struct abx_session *, struct abx_call *, const struct abx_sandbox *);
int32_t local_list(struct abx_session *, struct abx_call *, const struct abx_list_req *);
int32_t local_start(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		    const struct abx_start_req *);
int32_t local_stop(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		   const struct abx_stop_req *);
int32_t local_pause(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		    const struct abx_stop_req *);
int32_t local_resume(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		     const struct abx_start_req *);
int32_t local_watch(struct abx_session *, struct abx_call *, const struct abx_list_req *);
/*
 * emit_row, numbers in decimal, 0 where there is no limit:
 *	kind=box cpu_ms mem_bytes mem_limit_bytes pids pids_limit cpu_limit_milli disk_bytes
 *		disk_limit_bytes
 *	kind=process pid parent user state cpu_ms mem_bytes command, one for each process
 * cpu_ms is that of the processes which live, with their ended children.
 */
int32_t local_stats(struct abx_session *, struct abx_call *, const struct abx_sandbox *);
int32_t local_destroy(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		      const struct abx_stop_req *);
int32_t local_exec(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		   const struct abx_exec *, struct abx_exit *);
int32_t local_exec_signal(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
			  const char *, int32_t);
int32_t local_upload(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		     const struct abx_transfer *);
int32_t local_download(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		       const struct abx_transfer *);
int32_t local_put_tar(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		      const struct abx_transfer *);
int32_t local_get_tar(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		      const struct abx_transfer *);
int32_t local_list_files(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
			 const char *);
int32_t local_volume_ensure(struct abx_session *, struct abx_call *, const struct abx_volume_req *);
int32_t local_volume_list(struct abx_session *, struct abx_call *, const struct abx_list_req *);
int32_t local_volume_delete(struct abx_session *, struct abx_call *, const char *);
int32_t local_prepare(struct abx_session *, struct abx_call *, const struct abx_prepare *);
int32_t local_image_list(struct abx_session *, struct abx_call *, const struct abx_list_req *);
int32_t local_image_delete(struct abx_session *, struct abx_call *, const char *);
int32_t local_snapshot_create(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
			      const struct abx_snapshot_req *);
int32_t local_snapshot_list(struct abx_session *, struct abx_call *, const struct abx_list_req *);
int32_t local_snapshot_exists(struct abx_session *, struct abx_call *, const char *);
int32_t local_snapshot_delete(struct abx_session *, struct abx_call *, const char *);
int32_t local_url(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
		  const struct abx_url_req *);
int32_t local_set_egress(struct abx_session *, struct abx_call *, const struct abx_sandbox *,
			 const struct abx_policy *);
int32_t local_doctor(struct abx_session *, struct abx_call *);

#endif
