/* SPDX-License-Identifier: MIT */
/*
 * box.h: what the helper programs share.
 *
 * A helper is single-threaded, serves one request and ends by _exit().  It is not dumpable
 * from its first instruction on, so nothing in a box can look into it, and it loads nothing
 * from a box: users are resolved by parsing the box's own files, never through NSS.
 */
#ifndef LOCAL_BOX_H
#define LOCAL_BOX_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abxsdk/user.h"
#include "agentbox/cloud_backend.h"
#include "providers/local/proto.h"

struct box_req {
	struct lb_req h;
	const char *user, *path, *name; /* "" when not given */
	char **argv, **env;		/* NULL-terminated */
};

/* box-common.c */
void box_harden(void); /* first call of main() */
void box_req_load(struct box_req *ret);
void box_send(const struct lb_msg *m);
void box_send_kind(enum lb_kind kind, int64_t value);
/* Called before a helper ends by box_fail(); NULL: nothing to undo. */
extern void (*box_at_fail)(void);
/* Say why and end.  `remedy` may be NULL; `code` is an ABX_E*. */
_Noreturn void box_fail(int code, const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for a failed system call: appends strerror(err) and chooses the code. */
_Noreturn void box_fail_errno(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void *box_alloc(size_t n);
char *box_strdup(const char *s);
void box_unescape(char *s); /* a path of mountinfo, which has \ooo for blanks and the like */
char *box_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Read a regular file of at most `max` bytes, never blocking on anything else: NULL and
 * errno; NUL-terminated, free() it. */
char *box_read_file(int dirfd, const char *path, size_t max, size_t *ret_len);
/* Keep the flock() of this descriptor for as long as the process lives, and close it: box root
 * may open what is in /proc/1/fd, and would hold up others by locks of its own on it. */
void box_keep_lock(int fd);
void box_write_all(int fd, const void *data, size_t len);
/* Give back the pages of this program that only its start needed. */
void box_forget_pages(void);
/* Make the directories above `path`, and `path` itself when `itself`. */
void box_make_parents(const char *path, bool itself);
/* Where a tar stream is unpacked: made when asked for, and the current directory from now on. */
void box_enter_target(const struct box_req *rq);
void *box_shared(size_t n); /* abx_child_shared() */
/* abx_child_start() with common descriptors, and waited for; returns its wait status. */
int box_run_child(int (*fn)(void *), void *arg);

/* box-creds.c */
void box_become_root(bool single_id); /* box root's ids and no supplementary groups */
void box_new_session_keyring(void);
void box_drop_capabilities(bool no_new_privs);
void box_become_user(const struct abx_user *u, bool single_id);
void box_lookup_user(const char *name, bool single_id, struct abx_user *ret);

/* box-seccomp.c: from here on, for good, only the calls that a box may make.  While box root
 * still has all its capabilities: without them it would take no_new_privs, and sudo. */
void box_filter_calls(void);
/* Nor gives any file a setuid or setgid bit: before the other, which says who may add one. */
void box_filter_set_id(void);

/* box-ns.c */
#define BOX_NAMESPACES                                                               \
	((unsigned long)(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | \
			 CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP))
unsigned long box_namespaces(const struct box_req *rq); /* those of this box */
/* What root of a new namespace may do, and may not here: say who forbids it. */
_Noreturn void box_fail_refused(int err, const char *what);
pid_t box_clone(const struct box_req *rq, unsigned long flags);
/* A map of a child's; 0 or errno. */
int box_write_proc(pid_t pid, const char *file, const char *text);
/* In the child: wait until the parent has written the maps; end when it failed to. */
void box_await_maps(int fd);
/* Map the ids of `pid`, a child in a new user namespace. */
void box_write_maps(const struct box_req *rq, pid_t pid);
/* Run fn as root of a new user and mount namespace. */
int box_in_userns(const struct box_req *rq, int (*fn)(const struct box_req *));
/* Join the box's control groups; before anything is made or run for it. */
void box_join_cgroups(const struct box_req *rq);
/* Join the box behind LB_FD_BOX as its root, with a container's capabilities. */
void box_enter(const struct box_req *rq);
/* For file operations: run fn in the box as rq->user, and end with the client. */
_Noreturn void box_serve(const struct box_req *rq, int (*fn)(const struct box_req *));

/* box-scope.c: into the cgroup behind `procs_fd` through a scope of the user's systemd, for who
 * was refused there.  0 or -errno. */
int box_scope_join(int procs_fd);
/* Ask the systemd behind the socket `path` for a scope around `pid`. */
int box_scope_ask(const char *path, pid_t pid);

/* box-start.c */
_Noreturn void box_start(const struct box_req *rq);
_Noreturn void box_remove(const struct box_req *rq);

/* box-plan.c: what the box of a start request is made of.  Strings are the request's. */
struct box_plan {
	const char *image;   /* NULL: the host's root, as far as box root may read it */
	const char **layers; /* topmost first */
	size_t n_layers;
	const char *seal; /* NULL, or what the writable layer becomes before all else */
};
void box_plan_parse(const struct box_req *rq, struct box_plan *ret);

/* box-pause.c */
_Noreturn void box_hold(const struct box_req *rq);
/* box-stats.c */
_Noreturn void box_stats(const struct box_req *rq);
_Noreturn void box_usage(const struct box_req *rq);

/* box-layer.c: overlays of layers.  A layer is a directory with one directory for each top
 * that was written to: "root" for /, "usr" for /usr, ... */
struct box_store {
	int fd;	       /* the store, opened in the box's own mount namespace */
	int layers_fd; /* the box's own part of it: upper/TOP, work/TOP */
	const struct box_plan *plan;
};
void box_store_open(struct box_store *st, const char *own, const struct box_plan *plan);
void box_store_close(struct box_store *st);
/* At `target` in the current directory: the box's writable layer of `top`, over those of its
 * plan, over `lowest`, which is in the syntax of lowerdir.  0 or errno. */
int box_layer_mount(const struct box_store *st, const char *target, const char *top,
		    const char *lowest);

/* box-bind.c: directories of the host and volumes, in this order. */
void box_binds_load(const struct box_req *rq);
/* In the host's root: by host root before the namespaces are made, by others in them while
 * their ids are still the caller's. */
void box_binds_open(void);
/* By host root only, outside: once the box has said at the other end of `fd` who its user is, the
 * owner of each directory is that user in the box.  Returns when that is done, or the box gone. */
void box_binds_map_ids(const struct box_req *rq, int fd);
void box_binds_open_volumes(int store_fd);
/* In the box's root; `map_fd` is that other end, -1 where nobody can map ids. */
void box_binds_attach(const struct box_req *rq, int map_fd);
bool box_binds_are_mounts(void);

/* box-idmap.c: on this machine `uid` and `gid`, the user of a box in it; nobody else is anybody. */
struct box_idmap {
	uid_t uid;
	gid_t gid;
	uint32_t box_uid, box_gid;
};
/* A user namespace with that map, for ABX_ATTR_IDMAP. */
int box_idmap_open(const struct box_req *rq, const struct box_idmap *map);

/* box-bootstrap.c */
_Noreturn void box_bootstrap(const struct box_req *rq);

/* box-snap.c: the current directory is the store.  Where something can still write to the
 * writable layer, LB_MSG_IN_USE is the answer and this process ends. */
void box_seal(const char *own, const char *layer);
_Noreturn void box_op_seal(const struct box_req *rq);
_Noreturn void box_op_merge(const struct box_req *rq);

/* box-swap.c */
_Noreturn void box_op_swap(const struct box_req *rq);

/* box-merge.c: make `name` in a directory of the n layers `from`, the topmost first, as a
 * copy of what nobody may change meanwhile or of hard links; returns bytes copied. */
uint64_t box_merge(const int *from, size_t n, int to_parent, const char *name, bool link);

/* box-mount.c, box-dev.c */
/* A read-only view of a directory with all that is mounted below it; 0 or errno. */
int box_bind_read_only(const char *source, const char *target);
/* The current directory is the store; rq->path names the box's layers in it.  For `map_fd` see
 * box_binds_attach(). */
void box_mount_root(const struct box_req *rq, int map_fd);
/* All layers of the box, over the image of the plan or over this machine's root and the
 * skeleton of that name; the current directory is their root afterwards. */
void box_mount_layers(const struct box_store *st, const char *skeleton);
/* Is a mount at this place one of those? */
bool box_is_host_part(const char *path);
/* A program with more capabilities in its file than the box has would not start at all. */
void box_ignore_file_capabilities(int tree_fd);
void box_mount_dev(bool single_id);
void box_mount_kernel(const struct box_req *rq);

/* box-skel.c: ensure the shared lower layer in `cache_fd`; its name there.  Holds a lock on
 * it for as long as the process lives.  A look at the host after `since_ns` is good enough. */
void box_skel_ensure(int cache_fd, int64_t since_ns, char ret_name[33]);
/* box-passwd.c */
char *box_make_passwd(const char *host, const char *shell);
char *box_make_group(const char *host);
char *box_make_shadow(const char *passwd);
void box_image_user(bool single_id); /* after pivot_root: the box user in an image's own files */

/* box-init.c: the first process of a box, once everything is in place. */
_Noreturn void box_init(const struct box_req *rq);
/* The same, by this program anew, so that its memory belongs to the box's user namespace. */
_Noreturn void box_init_anew(const struct box_req *rq, int program_fd);

/* box-exec.c, box-file.c */
_Noreturn void box_exec(const struct box_req *rq);
int box_upload(const struct box_req *rq);
int box_download(const struct box_req *rq);
int box_list(const struct box_req *rq);

/* box-tar.c */
int box_put_tar(const struct box_req *rq);

#endif
