/* SPDX-License-Identifier: MIT */
/*
 * proto.h: how the plugin and its helper programs talk.  Both come from the same build.
 *
 * A request is a sealed-off memfd, so that environment values are in no argv, no environ
 * and no file: one struct lb_req, then NUL-terminated strings: user, path, name, then
 * n_argv arguments, then n_env "K=V".  Answers are struct lb_msg on a pipe; each is one
 * write below PIPE_BUF and so arrives whole.
 */
#ifndef LOCAL_PROTO_H
#define LOCAL_PROTO_H

#include <stdint.h>

#define LB_MAGIC UINT32_C(0x314c4241)

/* Descriptors of a helper beside its standard three. */
#define LB_FD_REQUEST 3
#define LB_FD_STATUS 4
#define LB_FD_LIFELINE 5 /* end of file: the client is gone */
#define LB_FD_BOX 6	 /* enter: pidfd of the box; remove: a directory; else: the store */
#define LB_FD_LIVE 7	 /* start, network, seal, swap: locked while it runs; merge: a lock */
#define LB_FD_CONTROL 8	 /* network: a listening socket for commands; swap: the store */
#define LB_FD_DIR 9	 /* network: the directory of the box */
#define LB_FD_GATE 9	 /* enter: locked until whoever enters is in sight of others there */
#define LB_FD_CGROUP 10	 /* and the next ones: cgroup.procs files, lb_req.n_cgroups of them */
#define LB_CGROUPS_MAX 4
#define LB_FD_LAST (LB_FD_CGROUP + LB_CGROUPS_MAX - 1)

enum lb_op {
	LB_OP_START = 1,
	LB_OP_EXEC,
	LB_OP_UPLOAD,
	LB_OP_DOWNLOAD,
	LB_OP_LIST,
	LB_OP_PUT_TAR,
	LB_OP_GET_TAR,
	LB_OP_REMOVE,	 /* empty a directory whose files belong to box ids */
	LB_OP_UNPACK,	 /* a tar stream becomes an image */
	LB_OP_BOOTSTRAP, /* mmdebstrap becomes an image; argv is its own */
	LB_OP_PACK,	 /* a directory of the host as a tar stream, for LB_OP_UNPACK */
	LB_OP_NET,	 /* the network of a box; argv is a net_policy */
	LB_OP_GATHER,	 /* all processes of the box but the first into LB_FD_CGROUP */
	LB_OP_SUSPEND,	 /* or SIGSTOP for them, until all have stopped */
	LB_OP_WAKE,	 /* and SIGCONT */
	LB_OP_STATS,	 /* struct lb_process for each process of the box */
	LB_OP_USAGE,	 /* how much a directory takes on disk, whose files belong to box ids */
	LB_OP_SEAL,	 /* the writable layer of a stopped box becomes a shared one */
	LB_OP_SWAP,	 /* that of a running one, which goes on over it; input: its mountinfo */
	LB_OP_MERGE,	 /* argv: layers, the topmost first, become one more, `path` */
	LB_OP_INIT,	 /* what a start makes of its first process */
};

/* How ids of the box become ids of this machine. */
enum lb_map {
	LB_MAP_NONE,   /* there are no ids for boxes */
	LB_MAP_DIRECT, /* 65536 ids, written by host root */
	LB_MAP_SUBID,  /* 65536 ids, by newuidmap and newgidmap */
	LB_MAP_SINGLE, /* box root is the caller; there is no other id */
};
#define LB_MAP_IDS 65536u

/* lb_req.flags */
#define LB_F_PTY UINT32_C(1)
#define LB_F_DETACHED UINT32_C(2)
#define LB_F_LEAVE_RUNNING UINT32_C(4)
#define LB_F_CREATE_PARENTS UINT32_C(8)
#define LB_F_KEEP_OWNER UINT32_C(16)
#define LB_F_IMAGE UINT32_C(32)		/* the box has a root of its own, not the host's */
#define LB_F_SINGLE_ID UINT32_C(64)	/* the box has one id only */
#define LB_F_READ_ONLY UINT32_C(128)	/* read-only workspace */
#define LB_F_FIRST UINT32_C(256)	/* the box starts for the first time */
#define LB_F_PROBE UINT32_C(512)	/* end when the box could run, and its image's shell has */
#define LB_F_REST UINT32_C(0x20000)	/* put: standard output has what was read already */
#define LB_F_NO_SET_ID UINT32_C(8192)	/* no file gets a setuid or setgid bit */
#define LB_F_PASTA UINT32_C(2048)	/* network: by pasta instead of slirp4netns */
#define LB_F_HOST_NET UINT32_C(0x10000) /* the box has no network namespace of its own */

#define LB_F_INSIDE UINT32_C(1024) /* merge: in the user namespace of the box */
#define LB_F_LINK UINT32_C(4096)   /* merge: hard links; nobody writes to these layers */

/* LB_OP_MERGE has the store as its standard output, LB_OP_SWAP the mount namespace. */
#define LB_MERGE_STORE_FD 1
#define LB_SWAP_NS_FD 1

struct lb_req {
	uint32_t magic, op, flags, n_argv;
	uint32_t n_env, map, uid_base, gid_base;
	uint32_t rows, cols, file_mode, strings_len;
	uint32_t n_cgroups, reserved0;
	int64_t timeout_ms, grace_ms, expires_at_ms, size_bytes;
	int64_t asked_at_ns; /* CLOCK_REALTIME */
};

enum lb_kind {
	LB_MSG_PID = 1, /* value: pid as the caller sees it */
	LB_MSG_READY,
	LB_MSG_STARTED,
	LB_MSG_EXIT,	    /* code, signo, timed_out */
	LB_MSG_NOT_STARTED, /* code: 126 or 127; text says why */
	LB_MSG_FAIL,	    /* code: ABX_E*; text, remedy */
	LB_MSG_DONE,	    /* value: bytes */
	LB_MSG_WARN,	    /* text; work goes on */
	LB_MSG_MORE,	    /* put: what was read and not used is on standard output */
	LB_MSG_IN_USE,	    /* seal: something can still write to the layer (code: errno) */
};

struct lb_msg {
	uint32_t kind;
	int32_t code, signo, timed_out;
	int64_t value;
	char text[640], remedy[256];
};

/*
 * A start request's arguments, the plan of the box: "key:value" each, paths relative to the
 * store.  Parsed by box-plan.c, made by plan.c.
 */
#define LB_PLAN_IMAGE "image" /* images/KEY/root: what is below all layers; absent: the host */
#define LB_PLAN_LAYER "layer" /* layers/ID: written earlier, read-only; the topmost first */
#define LB_PLAN_SEAL "seal"   /* layers/ID: first, the writable layer becomes this one */

#define LB_PLAN_MOUNT "mount"	/* "rw" or "ro":LENGTH:SOURCETARGET, LENGTH that of the source */
#define LB_PLAN_VOLUME "volume" /* NAME:TARGET */

/* On the lifeline: {kind, a, b, 0}, ABX_CTRL_* of the ABI, and: */
#define LB_CTRL_CANCEL 100 /* end the tree: TERM, grace, KILL */
#define LB_CTRL_GO 101	   /* start: the process is on record and may live */

struct lb_ctrl {
	uint16_t kind, a, b, zero;
};

/*
 * What a command asks of the network helper: one struct lb_net_req on a SOCK_SEQPACKET socket,
 * answered by one struct lb_net_rep.  With a FORWARD comes the listening socket, with a POLICY
 * a memfd of NUL-terminated strings, see net_policy_parse().
 */
#define LB_NET_FIND 1	 /* host_port of a port, or 0 */
#define LB_NET_FORWARD 2 /* host_port leads to box_port from now on */
#define LB_NET_POLICY 3
#define LB_NET_END 4

struct lb_net_req {
	uint32_t kind;
	uint16_t box_port, host_port;
};

struct lb_net_rep {
	int32_t code; /* ABX_E* */
	uint16_t host_port, zero;
	char text[248];
};

#define LB_NET_POLICY_MAX_BYTES (4u << 20)

/* LB_OP_LIST: one header for each entry, then name_len bytes of name. */
struct lb_entry {
	uint64_t size_bytes;
	int64_t mtime_s;
	uint32_t mode, name_len;
};

/* LB_OP_STATS, on standard output.  All of it comes from the box. */
#define LB_PROCESSES_MAX 4096
struct lb_process {
	int32_t pid, parent;
	uint32_t uid;
	char state, user[35], command[512];
	uint64_t cpu_ms, rss_bytes;
};

/* The name of a box's first process once the box is ready: before that, its mount namespace
 * still shows this machine's root, and nothing may be run in it. */
#define LB_READY_NAME "agentbox-init"

/* The name server of every box with a network of its own. */
#define LB_RESOLVER "10.0.2.3"

/* Where programs of this machine are looked for. */
#define LB_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The user of a box, where the root has more than one id. */
#define LB_BOX_USER "vscode"
#define LB_BOX_UID 1000u
#define LB_BOX_HOME "/home/vscode"
#define LB_WORKSPACE "/workspace"
#define LB_LOG_DIR "/var/log/agentbox" /* output of detached commands, ID.log */

#endif
