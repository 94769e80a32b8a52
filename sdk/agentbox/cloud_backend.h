/* SPDX-License-Identifier: MIT */
/*
 * agentbox/cloud_backend.h: the CloudBackend ABI, the only header a provider plugin needs.
 *
 * A provider is a shared object `agentbox-<name>.so` that exports exactly one function,
 * agentbox_cloud_backend(), and carries one ELF note, written by ABX_PROVIDER_NOTE().  The
 * note is read before the file is loaded, so a foreign or outdated file never runs.
 *
 *	static const struct abx_cloud_backend backend = {
 *		ABX_BACKEND_PREFIX("acme", "1.2.0"),
 *		.summary = "Boxes in the Acme cloud",
 *		.thread_model = ABX_THREADS_PARALLEL,
 *		.init = acme_init,
 *		... every operation marked R ...
 *	};
 *	ABX_PROVIDER_NOTE("acme", "1.2.0");
 *	const struct abx_cloud_backend *agentbox_cloud_backend(void) { return &backend; }
 *
 * Growth.  Every struct starts with its size, written by ABX_INIT(); members are only ever
 * appended.  A reader asks ABX_HAS() before it touches a member that is newer than 1.0.
 * A provider built with an older header always runs on a newer host.  A newer provider on
 * an older host is refused with both versions, unless it lowers `abi_minor_min` itself.
 *
 * Ownership.  Pointers from the host live until the operation returns (`abx_host` and the
 * options of a session: for ever, and as long as the session).  Pointers given to a host
 * function live until it returns; the host copies.  Nothing allocated on one side is freed
 * on the other.  Descriptors stay with the side that opened them and are close-on-exec.
 *
 * Threads.  Operations block on a thread of the host.  `thread_model` says how many may be
 * under way at once; exec_signal may run while the exec that it names blocks.  Functions
 * that take an abx_call are called on the thread of that operation only, and never after
 * it returned.
 *
 * Cancelling.  host->cancel_fd() becomes readable when the user gave up; the operation then
 * returns ABX_ECANCELED within one second.  host->time_left_ms() is its deadline.
 *
 * Errors.  An operation returns ABX_OK or a negative code, and says why through
 * host->fail().  Texts are one line, without "error:", without secrets.
 *
 * Not for providers: exit, abort, stdout and stderr, signal handlers, chdir, umask, setenv,
 * setlocale, fork without exec, a TLS library of their own, sleeping other than by
 * host->wait_ms(), and repeating operations.
 *
 * Units are in the names: _ms milliseconds, _s seconds, _bytes bytes, cpu_milli thousandths
 * of a processor.  Strings are UTF-8 and NUL-terminated; file names and argv are bytes.
 * Compiles as C99 and C++11 with -pedantic-errors -Wall -Wextra -Wpadded.
 */
#ifndef AGENTBOX_CLOUD_BACKEND_H
#define AGENTBOX_CLOUD_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ABX_ABI_MAGIC UINT32_C(0x31584241) /* "ABX1" */
#define ABX_ABI_MAJOR 1
#define ABX_ABI_MINOR 0
#define ABX_EXPORT __attribute__((visibility("default")))

/* First initialiser of every sized struct: struct abx_url u = {ABX_INIT(struct abx_url)}; */
#ifdef __cplusplus
#define ABX_INIT(type) (uint32_t)sizeof(type)
#else
#define ABX_INIT(type) .struct_size = (uint32_t)sizeof(type)
#endif

/* Is `field` present in the (possibly older, shorter) struct at `p`? */
#define ABX_HAS(p, type, field) \
	(offsetof(type, field) + sizeof(((type *)0)->field) <= (p)->struct_size)

/* A struct outside its 1.0 size and this is refused as ABX_EPROTO. */
#define ABX_STRUCT_MAX_BYTES 65536
#define ABX_PROVIDER_DATA_MAX_BYTES 8192

/*
 * Error codes.  Numbers never change; new ones may come in a minor.  An unknown negative
 * code means ABX_EINTERNAL, a positive return means ABX_EPROTO.
 */
#define ABX_OK 0
#define ABX_EINTERNAL (-1) /* a bug, or nothing better fits */
#define ABX_ENOTSUP (-2)   /* this provider cannot do that */
#define ABX_EINVAL (-3)	   /* the request makes no sense */
#define ABX_ENOTFOUND (-4) /* the object is gone */
#define ABX_EEXIST (-5)
#define ABX_ESTATE (-6) /* wrong state for that: paused, stopping, ... */
#define ABX_EAUTH (-7)	/* credential missing or refused: log in again */
#define ABX_EPERM (-8)	/* known to the service, but not allowed */
#define ABX_EQUOTA (-9) /* a limit of the account; waiting does not help */
#define ABX_ERATE (-10) /* too many requests; waiting helps */
#define ABX_ETIMEDOUT (-11)
#define ABX_ECANCELED (-12)
#define ABX_ENETWORK (-13) /* the service was not reached */
#define ABX_EREMOTE (-14)  /* the service failed (HTTP 5xx) */
#define ABX_EIO (-15)	   /* this machine failed: disk, descriptor */
#define ABX_ENOMEM (-16)
#define ABX_EPROTO (-17)  /* nonsense from the service, or a broken contract */
#define ABX_EBROKEN (-18) /* a program or library that the provider needs is missing here */

struct abx_call;    /* one operation under way; owned by the host     */
struct abx_session; /* one configured account; owned by the provider  */

struct abx_kv { /* flat pair; frozen, never grows */
	const char *key, *value;
};

/* abx_option.type */
#define ABX_OPT_STRING 1
#define ABX_OPT_INT 2
#define ABX_OPT_BOOL 3
#define ABX_OPT_DURATION 4 /* "90", "1s", "5m", "2h"; given to the session in milliseconds */
#define ABX_OPT_SIZE 5	   /* "64M", "2G"; given to the session in bytes */
#define ABX_OPT_LIST 6	   /* comma separated */
/* abx_option.flags */
#define ABX_OPT_REQUIRED UINT32_C(1)
#define ABX_OPT_SECRET UINT32_C(2)	 /* kept in secrets.env, redacted everywhere */
#define ABX_OPT_PER_BOX UINT32_C(4)	 /* may differ from box to box: given to provision */
#define ABX_OPT_WORKSPACE_OK UINT32_C(8) /* a repository's own agentbox.yaml may set it */

/* One configuration key of the provider, `<provider>.<name>`; a static table in the plugin. */
struct abx_option {
	uint32_t struct_size, type;
	uint32_t flags, reserved0;
	const char *name, *env, *help, *dflt;
};

#define ABX_CMD_TAKES_BOX UINT32_C(1)

/* One extra subcommand, `agentbox <provider> <name> ...`. */
struct abx_command {
	uint32_t struct_size, flags;
	const char *name, *usage, *help;
};

/* abx_sandbox.state.  "Gone" is not a state but ABX_ENOTFOUND. */
#define ABX_STATE_UNKNOWN 0
#define ABX_STATE_STARTING 1
#define ABX_STATE_RUNNING 2
#define ABX_STATE_PAUSING 3
#define ABX_STATE_PAUSED 4
#define ABX_STATE_STOPPING 5
#define ABX_STATE_STOPPED 6
#define ABX_STATE_ARCHIVED 7
#define ABX_STATE_FAILED 8

/* A sandbox as the cloud knows it. */
struct abx_sandbox {
	uint32_t struct_size, state;
	const char *id, *name;
	const char *provider_data; /* opaque to the host, at most 8 KiB, stored and given back */
	const char *account;	   /* who owns it there, as `verify` names it */
	const char *region, *class_name, *arch, *error;
	const char *created_at; /* RFC 3339, UTC */
	const struct abx_kv *labels;
	uint32_t n_labels, cpu_milli;
	uint64_t mem_bytes, disk_bytes;
	int64_t expires_at_ms; /* Unix epoch; 0 = does not expire */
};

/* emit_resource's phase */
#define ABX_PHASE_INTENT 1 /* it may exist from now on; id may still be unknown */
#define ABX_PHASE_EXISTS 2
#define ABX_PHASE_GONE 3

/* Anything else that exists because of us: key, firewall, address, volume, build, builder. */
struct abx_resource {
	uint32_t struct_size, n_labels;
	const char *kind, *id, *name, *sandbox_id;
	const struct abx_kv *labels;
};

#define ABX_SNAP_WITH_MEMORY UINT32_C(1)
#define ABX_SNAP_SOURCE_STOPPED UINT32_C(2)

struct abx_snapshot { /* images too */
	uint32_t struct_size, flags;
	const char *ref, *name, *state, *created_at, *sandbox_id, *account;
	const struct abx_kv *labels;
	uint64_t size_bytes; /* 0: not known without looking at all of it */
	uint32_t n_labels, reserved0;
};

#define ABX_MOUNT_READ_ONLY UINT32_C(1)

struct abx_mount {
	uint32_t struct_size, flags;
	const char *source, *target;
};

#define ABX_URL_PUBLIC UINT32_C(1)
#define ABX_URL_LOOPBACK UINT32_C(2)
#define ABX_URL_SIGNED UINT32_C(4)

/*
 * box_port: where the URL leads to another port of the box than the one that was asked for, that
 * one; else 0.  The host has a program of its own listen there, which passes on to the port asked
 * for.  For whoever cannot reach servers that listen on a box's loopback addresses only.
 */
struct abx_url {
	uint32_t struct_size, flags;
	const char *url, *header, *token;
	int64_t expires_at_ms;
	uint32_t box_port, reserved0;
};

struct abx_ssh { /* the host writes a 0600 configuration from it; nothing lands in an argv */
	uint32_t struct_size, port;
	const char *host, *user, *identity_file, *known_hosts, *proxy_command;
	int64_t expires_at_ms;
};

struct abx_file {
	uint32_t struct_size, mode; /* st_mode bits */
	const char *name;
	uint64_t size_bytes;
	int64_t mtime_s;
};

/* What a sandbox costs, by state; rates belong to the provider. */
struct abx_rate {
	uint32_t struct_size, state;
	int64_t nano_per_s, nano_per_cpu_s, nano_per_gib_s; /* billionths of the currency unit */
	uint32_t quantum_s, minimum_s;
	const char *currency, *as_of;
};

#define ABX_USAGE_EXACT UINT32_C(1) /* by the provider's own meter */

struct abx_usage {
	uint32_t struct_size, flags;
	int64_t started_ms, ended_ms, billed_ms, cpu_ms;
};

#define ABX_FAIL_OUTCOME_UNKNOWN UINT32_C(1) /* it may have happened */

/* Why an operation failed. */
struct abx_failure {
	uint32_t struct_size, flags;
	int32_t code, http_status;
	int64_t retry_after_ms; /* -1 = not said */
	const char *text, *remedy, *request_id;
};

#define ABX_LOG_ERROR 0
#define ABX_LOG_WARN 1
#define ABX_LOG_INFO 2
#define ABX_LOG_DEBUG 3

#define ABX_STREAM_STDOUT 1
#define ABX_STREAM_STDERR 2

/* What the host offers.  Valid from init() until the process ends. */
struct abx_host {
	uint32_t struct_size;
	uint16_t abi_major, abi_minor;
	uint64_t caps;
	const char *version;
	void *ctx;
	void (*log)(void *ctx, int32_t level, const char *topic, const char *msg);
	int64_t (*now_ms)(void *ctx); /* monotonic */
	/* Returns failure->code, so: return host->fail(call, &f);  The last one wins. */
	int32_t (*fail)(struct abx_call *, const struct abx_failure *);
	/* Non-zero: stop.  total = 0 when it is not known. */
	int32_t (*progress)(struct abx_call *, uint64_t done, uint64_t total, const char *what);
	int32_t (*cancel_fd)(struct abx_call *);	   /* readable once the user gave up */
	int64_t (*time_left_ms)(struct abx_call *);	   /* INT64_MAX = no deadline */
	int32_t (*wait_ms)(struct abx_call *, int64_t ms); /* 0, ABX_ECANCELED, ABX_ETIMEDOUT */
	/* Should one idempotent request be sent again?  1 after waiting, or 0.  attempt counts
	 * from 1.  Operations are never repeated by a provider; the host does that. */
	int32_t (*retry)(struct abx_call *, const struct abx_failure *, uint32_t attempt);
	/* From now on redact this value in every text; keep this one for the next session. */
	void (*add_secret)(struct abx_call *, const char *value);
	int32_t (*store_secret)(struct abx_call *, const char *key, const char *value);
	/* One request sent and answered: --trace, and the round trips that tests count. */
	void (*trace)(struct abx_call *, const char *method, const char *path, int32_t status,
		      int64_t us);
	/* Results: the host copies before it returns.  Non-zero: give up with that code.
	 * A sandbox may be emitted any number of times, the last wins; durable on return. */
	int32_t (*emit_sandbox)(struct abx_call *, const struct abx_sandbox *);
	/* INTENT, EXISTS, GONE: durable on return.  In *_list operations: a plain result. */
	int32_t (*emit_resource)(struct abx_call *, const struct abx_resource *, uint32_t phase);
	int32_t (*emit_snapshot)(struct abx_call *, const struct abx_snapshot *);
	int32_t (*emit_url)(struct abx_call *, const struct abx_url *);
	int32_t (*emit_ssh)(struct abx_call *, const struct abx_ssh *);
	int32_t (*emit_file)(struct abx_call *, const struct abx_file *);
	int32_t (*emit_rate)(struct abx_call *, const struct abx_rate *);
	int32_t (*emit_usage)(struct abx_call *, const struct abx_usage *);
	int32_t (*emit_row)(struct abx_call *, const struct abx_kv *cells, uint32_t n);
	/* Build and console logs; stream is ABX_STREAM_*. */
	int32_t (*emit_log)(struct abx_call *, int32_t stream, const void *data, size_t len);
};

struct abx_session_args {
	uint32_t struct_size, n_options;
	const struct abx_kv *options; /* resolved and validated; live as long as the session */
	const char *state_dir;	      /* private to this provider and install, 0700, exists */
	const char *user_agent, *ca_file, *proxy, *no_proxy;
};

struct abx_list_req {
	uint32_t struct_size, n_labels;
	const struct abx_kv *labels; /* all must match; filtered by the service where it can */
};

#define ABX_PROV_PAUSE_ON_TIMEOUT UINT32_C(1)
#define ABX_PROV_AUTO_RESUME UINT32_C(2)
#define ABX_PROV_PRIVATE_URLS UINT32_C(4)

struct abx_provision {
	uint32_t struct_size, flags;
	const char *name;
	const char *image, *snapshot; /* snapshot wins; both NULL = the provider's own base */
	const char *size, *location;
	const char *idempotency_key; /* the attempt label; [0-9a-f]{16,} */
	/* NULL-terminated; both NULL = everything, an empty allow list = nothing. */
	const char *const *egress_allow, *const *egress_deny;
	const char *inbound;
	const struct abx_mount *const *mounts;
	const struct abx_kv *env, *labels, *volumes, *options;
	const uint16_t *ports;
	uint32_t n_env, n_labels, n_volumes, n_mounts;
	uint32_t n_options, n_ports, cpu_milli, max_pids;
	uint64_t mem_bytes, disk_bytes;
	int64_t timeout_ms; /* 0 = provider default */
};

#define ABX_START_READ_ONLY UINT32_C(1) /* read-only workspace */

struct abx_start_req { /* start and resume */
	uint32_t struct_size, flags;
	int64_t timeout_ms;
};

struct abx_stop_req { /* stop, pause, destroy */
	uint32_t struct_size, flags;
	int64_t grace_ms;
};

struct abx_build_step { /* frozen */
	const char *op; /* FROM COPY RUN ENV USER WORKDIR */
	const char *const *args;
};

#define ABX_PREPARE_FORCE UINT32_C(1)

/* Build a base image.  The context is a regular file (tar), at offset 0, seekable. */
struct abx_prepare {
	uint32_t struct_size, flags;
	int32_t context_fd, from_fd; /* from_fd: a root file system as tar, or -1 */
	const char *name, *from, *dockerfile, *script, *fingerprint, *size, *location;
	const struct abx_build_step *steps; /* the Dockerfile, already parsed */
	const struct abx_kv *args, *labels, *options;
	uint32_t n_steps, n_args, n_labels, n_options;
	uint64_t mem_bytes, disk_bytes;
	uint32_t cpu_milli, reserved0;
};

#define ABX_EXEC_PTY UINT32_C(1)
#define ABX_EXEC_DETACHED UINT32_C(2)
#define ABX_EXEC_LEAVE_RUNNING UINT32_C(4)
#define ABX_EXEC_OFFLINE UINT32_C(8) /* it uses no network: do not wait for one */
#define ABX_EXEC_BULK UINT32_C(16)   /* stdin is much: nobody waits for an answer to a part */

/* Records on control_fd: {u16 kind, u16 a, u16 b, u16 0}, native byte order. */
#define ABX_CTRL_RESIZE 1 /* a = rows, b = columns */
#define ABX_CTRL_SIGNAL 2 /* a = signal number */
#define ABX_CTRL_DETACH 3

struct abx_exec {
	uint32_t struct_size, flags;
	const char *const *argv; /* exact bytes; never re-parsed by a shell */
	const char *cwd, *user;	 /* NULL = the box's own: /workspace, the box user */
	/* Beside what the box has of its own: PATH, HOME (a directory that the user may write) and
	 * what provision was given.  Values never appear in an argv, on either side. */
	const struct abx_kv *env;
	uint32_t n_env;
	int32_t stdin_fd;   /* -1 = /dev/null; any kind of file, read to its end; the
			       provider never sets O_NONBLOCK on it */
	int32_t control_fd; /* -1, or a descriptor of ABX_CTRL_* records */
	uint16_t rows, cols;
	int64_t timeout_ms, grace_ms; /* the command's own; 0 = none */
	void *io;
	int32_t (*started)(void *io, const char *exec_id); /* may be NULL */
	/* Non-zero: stop; the tree is killed unless LEAVE_RUNNING. */
	int32_t (*output)(void *io, int32_t stream, const void *data, size_t len);
	/* Output that was lost before what comes next; UINT64_MAX = unknown how much. */
	int32_t (*gap)(void *io, int32_t stream, uint64_t lost); /* may be NULL */
};

#define ABX_EXIT_DETACHED UINT32_C(1)
#define ABX_EXIT_LOST UINT32_C(2)
#define ABX_EXIT_NOT_STARTED UINT32_C(4) /* code is 126 or 127, as a shell would say */

struct abx_exit { /* struct_size is set by the host */
	uint32_t struct_size, flags;
	int32_t code, signo, timed_out, reserved0; /* signo != 0: died of it, code ignored */
};

#define ABX_XFER_CREATE_PARENTS UINT32_C(1)
#define ABX_XFER_NO_OWNER UINT32_C(2) /* keep what the stream says, as far as allowed */

/* upload, download: one file at `path`.  put_tar: a tar stream unpacked below `path`.
 * get_tar: `path` (a directory: its contents; a file: itself) as a tar stream. */
struct abx_transfer {
	uint32_t struct_size, flags;
	int32_t fd;
	uint32_t mode;
	int64_t size_bytes;	  /* -1 = until the end of fd */
	const char *path, *owner; /* owner by name; NULL = the box user */
};

#define ABX_URLREQ_SIGNED UINT32_C(1)
#define ABX_URLREQ_REFRESH UINT32_C(2)

struct abx_url_req {
	uint32_t struct_size, flags;
	uint32_t port, reserved0;
	int64_t ttl_ms;
};

#define ABX_SNAPREQ_DISK_ONLY UINT32_C(1)
#define ABX_SNAPREQ_STOP UINT32_C(2) /* may end what runs, where that saves a copy */

struct abx_snapshot_req {
	uint32_t struct_size, flags;
	uint32_t n_labels, reserved0;
	const char *name;
	const struct abx_kv *labels;
};

#define ABX_LOGS_FOLLOW UINT32_C(1)

struct abx_logs_req {
	uint32_t struct_size, flags;
	int64_t since_ms, tail;
};

struct abx_volume_req {
	uint32_t struct_size, n_labels;
	const char *name, *size;
	const struct abx_kv *labels;
};

struct abx_policy { /* set_egress, set_inbound */
	uint32_t struct_size, mode;
	const char *const *allow, *const *deny;
};

/*
 * abx_cloud_backend.caps: only what the absence of an operation cannot say.  Unknown bits
 * are ignored.  The top byte is for experiments and is never set in a release.
 */
#define ABX_CAP_EXEC_STDIN (UINT64_C(1) << 0)	  /* exec forwards stdin and its end */
#define ABX_CAP_EXEC_SPLIT (UINT64_C(1) << 1)	  /* stdout and stderr apart */
#define ABX_CAP_EXEC_BINARY (UINT64_C(1) << 2)	  /* output byte-exact */
#define ABX_CAP_EXEC_SIGNAL (UINT64_C(1) << 3)	  /* death by signal is told from an exit */
#define ABX_CAP_EXEC_TREE_KILL (UINT64_C(1) << 4) /* timeout and cancel end the whole tree */
#define ABX_CAP_EXEC_REATTACH (UINT64_C(1) << 5)  /* exec_attach finds a lost command */
#define ABX_CAP_EXEC_PTY (UINT64_C(1) << 6)
#define ABX_CAP_PUT_GZIP (UINT64_C(1) << 7) /* put_tar takes gzip */
#define ABX_CAP_PUT_ZSTD (UINT64_C(1) << 8)
#define ABX_CAP_LOCAL (UINT64_C(1) << 9)	 /* boxes live and die with this machine */
#define ABX_CAP_MEMORY_PAUSE (UINT64_C(1) << 10) /* pause keeps processes */
#define ABX_CAP_TIMEOUT_ADDS (UINT64_C(1) << 11) /* renew adds to the deadline */
#define ABX_CAP_TIMEOUT_IDLE (UINT64_C(1) << 12) /* the deadline is one of idleness */
/* A box boots from an image only; the host prepares one, of a context, where none is named. */
#define ABX_CAP_NEEDS_BASE (UINT64_C(1) << 13)
#define ABX_CAP_READ_ONLY (UINT64_C(1) << 14) /* start takes ABX_START_READ_ONLY */
/* With egress to everything, boxes reach the machine that they run on, which may be this one. */
#define ABX_CAP_HOST_REACHED (UINT64_C(1) << 15)
/* Commands run as soon as provision, start and resume have returned: nobody has to wait for it.
 * So it is with ABX_CAP_LOCAL. */
#define ABX_CAP_READY (UINT64_C(1) << 16)
/* With NEEDS_BASE: one is only prepared when somebody asks for that. */
#define ABX_CAP_BASE_ASKED (UINT64_C(1) << 17)

/* thread_model; gaps leave room for models in between */
#define ABX_THREADS_SERIAL 1000	  /* one operation at a time in the whole provider */
#define ABX_THREADS_SESSION 2000  /* one at a time in a session */
#define ABX_THREADS_PARALLEL 3000 /* any number */

#define ABX_OP struct abx_session *, struct abx_call *
#define ABX_SB const struct abx_sandbox *

/*
 * The plugin's descriptor: static, const, complete.  R = required; any other operation
 * may be NULL, and its absence is how a provider says that it cannot do it.
 * Any operation may emit_sandbox: state, expiry and provider_data are stored.  A sandbox
 * from `list` may lack provider_data; the host calls `get` before it is used.
 * session_open does no network I/O.
 */
struct abx_cloud_backend {
	/* Frozen for ever, in every major. */
	uint32_t magic, struct_size;
	uint16_t abi_major, abi_minor, abi_minor_min, reserved0;
	const char *name, *version;

	/* Major 1. */
	const char *summary, *homepage;
	uint64_t caps;
	uint64_t host_caps_required; /* bits of abx_host.caps */
	uint32_t thread_model;
	uint16_t web_port, reserved1;
	const struct abx_option *const *options;   /* NULL-terminated, may be NULL */
	const struct abx_command *const *commands; /* NULL-terminated, may be NULL */

	int32_t (*init)(const struct abx_host *); /* R */
	void (*fini)(void);
	int32_t (*session_open)(struct abx_call *, const struct abx_session_args *,
				struct abx_session **ret); /* R */
	void (*session_close)(struct abx_session *);	   /* R */
	int32_t (*verify)(ABX_OP); /* cheapest call that proves the credential; emit_row account */
	int32_t (*doctor)(ABX_OP); /* emit_row check, status (ok|warn|fail), detail, remedy */
	int32_t (*choices)(ABX_OP, const char *option); /* emit_row value, label, note */
	int32_t (*command)(ABX_OP, ABX_SB, const char *const *argv);

	int32_t (*prepare)(ABX_OP, const struct abx_prepare *); /* emit_snapshot */
	int32_t (*image_list)(ABX_OP, const struct abx_list_req *);
	int32_t (*image_delete)(ABX_OP, const char *ref);

	int32_t (*provision)(ABX_OP, const struct abx_provision *); /* R */
	int32_t (*get)(ABX_OP, ABX_SB);			      /* R; never wakes a paused one */
	int32_t (*list)(ABX_OP, const struct abx_list_req *); /* R; adoption, prune */
	int32_t (*start)(ABX_OP, ABX_SB, const struct abx_start_req *); /* R */
	int32_t (*stop)(ABX_OP, ABX_SB, const struct abx_stop_req *);	/* R */
	int32_t (*pause)(ABX_OP, ABX_SB, const struct abx_stop_req *);
	int32_t (*resume)(ABX_OP, ABX_SB, const struct abx_start_req *);
	int32_t (*destroy)(ABX_OP, ABX_SB,
			   const struct abx_stop_req *); /* R; a missing one is success */
	int32_t (*renew)(ABX_OP, ABX_SB, int64_t target_ms, int64_t current_ms); /* emits what
									was granted */
	int32_t (*watch)(ABX_OP, const struct abx_list_req *); /* emit_sandbox on change until
								  cancelled */
	int32_t (*stats)(ABX_OP, ABX_SB);
	int32_t (*logs)(ABX_OP, ABX_SB, const struct abx_logs_req *); /* emit_log */
	int32_t (*rates)(ABX_OP, ABX_SB); /* sandbox may be NULL: before there is one */
	int32_t (*usage)(ABX_OP, ABX_SB);
	int32_t (*resource_list)(ABX_OP, const struct abx_list_req *);
	int32_t (*resource_delete)(ABX_OP, const struct abx_resource *);

	int32_t (*exec)(ABX_OP, ABX_SB, const struct abx_exec *, struct abx_exit *ret); /* R */
	/* offset: bytes of both streams, in the order in which they were delivered. */
	int32_t (*exec_attach)(ABX_OP, ABX_SB, const char *exec_id, uint64_t offset,
			       const struct abx_exec *, struct abx_exit *ret);
	/* May run on another thread while the exec it names blocks. */
	int32_t (*exec_signal)(ABX_OP, ABX_SB, const char *exec_id, int32_t signo);
	int32_t (*ssh)(ABX_OP, ABX_SB); /* emit_ssh */

	int32_t (*upload)(ABX_OP, ABX_SB, const struct abx_transfer *);	  /* R */
	int32_t (*download)(ABX_OP, ABX_SB, const struct abx_transfer *); /* R */
	int32_t (*put_tar)(ABX_OP, ABX_SB, const struct abx_transfer *);
	int32_t (*get_tar)(ABX_OP, ABX_SB, const struct abx_transfer *);
	int32_t (*list_files)(ABX_OP, ABX_SB, const char *dir);

	int32_t (*url)(ABX_OP, ABX_SB, const struct abx_url_req *);
	int32_t (*set_egress)(ABX_OP, ABX_SB, const struct abx_policy *);
	int32_t (*set_inbound)(ABX_OP, ABX_SB, const struct abx_policy *);
	int32_t (*repair)(ABX_OP, ABX_SB); /* reachability: tunnel, firewall after an address
					      change */

	int32_t (*snapshot_create)(ABX_OP, ABX_SB, const struct abx_snapshot_req *);
	int32_t (*snapshot_list)(ABX_OP, const struct abx_list_req *);
	int32_t (*snapshot_exists)(ABX_OP, const char *ref);
	int32_t (*snapshot_delete)(ABX_OP, const char *ref);
	int32_t (*volume_ensure)(ABX_OP, const struct abx_volume_req *);
	int32_t (*volume_list)(ABX_OP, const struct abx_list_req *);
	int32_t (*volume_delete)(ABX_OP, const char *id);
};

#undef ABX_OP
#undef ABX_SB

/* First initialiser of the descriptor.  Name: [a-z][a-z0-9-]{0,30}, equal to the file's. */
#ifndef __cplusplus
#define ABX_BACKEND_PREFIX(name_, version_)                                                     \
	.magic = ABX_ABI_MAGIC, .struct_size = (uint32_t)sizeof(struct abx_cloud_backend),      \
	.abi_major = ABX_ABI_MAJOR, .abi_minor = ABX_ABI_MINOR, .abi_minor_min = ABX_ABI_MINOR, \
	.name = (name_), .version = (version_)
#endif

/*
 * The ELF note: SHT_NOTE, owner "agentbox", type 1, descriptor as below, little endian on
 * every platform that is supported.  Frozen for ever.
 */
#define ABX_NOTE_OWNER "agentbox"
#define ABX_NOTE_TYPE 1
#define ABX_NOTE_NAME_BYTES 32
#define ABX_NOTE_VERSION_BYTES 32

struct abx_note {
	uint32_t owner_size, desc_size, type;
	char owner[12]; /* "agentbox", padded to four bytes */
	uint32_t magic;
	uint16_t abi_major, abi_minor, abi_minor_min, reserved0;
	char name[ABX_NOTE_NAME_BYTES], version[ABX_NOTE_VERSION_BYTES];
};
#define ABX_NOTE_DESC_BYTES (sizeof(struct abx_note) - offsetof(struct abx_note, magic))

#define ABX_PROVIDER_NOTE(name_, version_)                                             \
	__attribute__((section(".note.agentbox"), used,                                \
		       aligned(4))) static const struct abx_note abx_provider_note = { \
		sizeof(ABX_NOTE_OWNER),                                                \
		ABX_NOTE_DESC_BYTES,                                                   \
		ABX_NOTE_TYPE,                                                         \
		ABX_NOTE_OWNER,                                                        \
		ABX_ABI_MAGIC,                                                         \
		ABX_ABI_MAJOR,                                                         \
		ABX_ABI_MINOR,                                                         \
		ABX_ABI_MINOR,                                                         \
		0,                                                                     \
		name_,                                                                 \
		version_}

/* The only symbol a plugin exports.  Pure: returns a static const descriptor. */
ABX_EXPORT const struct abx_cloud_backend *agentbox_cloud_backend(void);

#ifdef __cplusplus
}
#endif
#endif
