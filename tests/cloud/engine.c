/* SPDX-License-Identifier: MIT */
/* Sandboxes of emulated clouds, which are boxes of the provider `local`. */
#include "tests/cloud/engine.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "core/host/cloud.h"
#include "core/util/mem.h"
#include "core/util/rand.h"

#define AGENT_PATH "/usr/local/lib/agentbox-cloud-agent"
#define CALL_LIMIT_MS 120000

struct emu_engine {
	bool light, no_network;
	const char *setup;
	struct abx_home home;
	struct abx_host_ctx ctx;
	struct abx_cloud *cloud;
	pthread_mutex_t lock;	  /* of base, while it is made */
	char base[EMU_REF_BYTES]; /* a snapshot; "": not made yet */
};

static const struct abx_kv own_label = {"agentbox.cloud", "emulator"};
static const struct abx_call_opts plain = {.timeout_ms = CALL_LIMIT_MS, .cleanup = true};

static struct abx_sandbox sandbox(const char *id)
{
	return (struct abx_sandbox){ABX_INIT(struct abx_sandbox), .id = id};
}

static int sweep(struct emu_engine *e, struct abx_err *err)
{
	const struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};
	struct abx_sandbox_list boxes = {0};
	struct abx_snapshot_list snapshots = {0};
	int r = abx_cloud_list(e->cloud, &plain, &own_label, 1, &boxes, err);

	for (size_t i = 0; r == 0 && i < boxes.len; i++)
		r = abx_cloud_destroy(e->cloud, &plain, &boxes.items[i].s, &req, err);
	if (r == 0)
		r = abx_cloud_snapshot_list(e->cloud, &plain, &own_label, 1, &snapshots, err);
	for (size_t i = 0; r == 0 && i < snapshots.len; i++)
		r = abx_cloud_snapshot_delete(e->cloud, &plain, snapshots.items[i].s.ref, err);
	abx_sandbox_list_release(&boxes);
	abx_snapshot_list_release(&snapshots);
	return r;
}

int emu_engine_open(const struct emu_engine_options *o, struct emu_engine **ret,
		    struct abx_err *err)
{
	const struct abx_home none = ABX_HOME_INIT;
	struct emu_engine *e = abx_xcalloc(1, sizeof(*e));
	int r = 0;

	e->light = o->light;
	e->no_network = o->no_network;
	e->setup = o->setup;
	e->home = none;
	e->ctx.cancel_fd = -1;
	(void)pthread_mutex_init(&e->lock, NULL);
	if (!e->light)
		r = abx_home_open(&e->home, err);
	if (r == 0 && !e->light)
		r = abx_db_open(&e->home, &e->ctx.db, err);
	e->ctx.home = &e->home;
	if (r == 0 && !e->light)
		r = abx_cloud_open("local", &e->ctx, NULL, &e->cloud, err);
	if (r == 0 && !e->light)
		r = sweep(e, err);
	if (r < 0)
		emu_engine_close(e);
	else
		*ret = e;
	return r;
}

void emu_engine_close(struct emu_engine *e)
{
	struct abx_err err = ABX_ERR_INIT;

	if (e->cloud && sweep(e, &err) < 0)
		(void)fprintf(stderr, "agentbox-cloud-emulator: %s\n", err.text);
	abx_cloud_close(e->cloud);
	abx_db_close(e->ctx.db);
	abx_home_release(&e->home);
	(void)pthread_mutex_destroy(&e->lock);
	free(e);
}

bool emu_engine_light(const struct emu_engine *e)
{
	return e->light;
}

static const char *const nothing[] = {NULL};

static int provision(struct emu_engine *e, const char *id, const struct emu_box_options *o,
		     struct abx_err *err)
{
	const struct abx_provision p = {
		ABX_INIT(struct abx_provision),
		.name = id,
		.idempotency_key = id,
		.snapshot = o->snapshot,
		.egress_allow = e->no_network ? nothing : o->allow,
		.egress_deny = e->no_network ? NULL : o->deny,
		.labels = &own_label,
		.n_labels = 1,
	};
	struct abx_sandbox_copy made = {.memory = NULL};
	int r = abx_cloud_provision(e->cloud, &plain, &p, &made, err);

	abx_sandbox_copy_release(&made);
	return r;
}

static int32_t to_stderr(void *ctx, int32_t stream, const void *data, size_t len)
{
	(void)ctx;
	(void)stream;
	(void)fwrite(data, 1, len, stderr);
	return 0;
}

static int run_setup(struct emu_engine *e, const char *id, struct abx_err *err)
{
	const char *const argv[] = {"sh", "-euc", e->setup, NULL};
	const struct abx_sandbox sb = sandbox(id);
	const struct abx_call_opts o = {.timeout_ms = CALL_LIMIT_MS, .plain_exec = true};
	const struct abx_exec x = {
		ABX_INIT(struct abx_exec),
		.flags = ABX_EXEC_OFFLINE,
		.argv = argv,
		.user = "root",
		.cwd = "/",
		.stdin_fd = -1,
		.control_fd = -1,
		.output = to_stderr,
	};
	struct abx_exit end = {ABX_INIT(struct abx_exit)};
	int r = abx_cloud_exec(e->cloud, &o, &sb, &x, &end, err);

	if (r == 0 && (end.code || end.signo))
		r = abx_err_set(err, ABX_EINTERNAL, "set-up of sandboxes: exit code %d", end.code);
	return r;
}

static int put_agent(struct emu_engine *e, const char *id, struct abx_err *err)
{
	const char *from = getenv("AGENTBOX_CLOUD_AGENT");
	const struct abx_sandbox sb = sandbox(id);
	abx_autoclose int fd =
		open(from ? from : ABX_LIBEXECDIR "/agentbox-cloud-agent", O_RDONLY | O_CLOEXEC);
	const struct abx_transfer t = {
		ABX_INIT(struct abx_transfer),
		.flags = ABX_XFER_CREATE_PARENTS,
		.fd = fd,
		.mode = 0755,
		.size_bytes = -1,
		.path = AGENT_PATH,
		.owner = "root",
	};

	if (fd < 0)
		return abx_err_errno(err, errno, "agentbox-cloud-agent: %s",
				     from ? from : ABX_LIBEXECDIR);
	return abx_cloud_upload(e->cloud, &plain, &sb, &t, err);
}

/* What every sandbox begins with, unless it comes from a snapshot. */
static int make_base(struct emu_engine *e, struct abx_err *err)
{
	const struct emu_box_options offline = {.allow = nothing};
	char id[24] = "base-";
	struct abx_err later = ABX_ERR_INIT;
	int r;

	abx_rand_hex(id + 5, 16);
	r = provision(e, id, &offline, err);
	if (r < 0)
		return r;
	r = put_agent(e, id, err);
	if (r == 0 && e->setup)
		r = run_setup(e, id, err);
	if (r == 0)
		r = emu_box_snapshot(e, id, e->base, err);
	if (emu_box_end(e, id, r < 0 ? &later : err) < 0 && r == 0)
		r = ABX_EINTERNAL;
	return r;
}

int emu_box_make(struct emu_engine *e, const char *id, const struct emu_box_options *o,
		 struct abx_err *err)
{
	struct emu_box_options own = *o;
	int r = 0;

	if (e->light)
		return 0;
	(void)pthread_mutex_lock(&e->lock);
	if (!*e->base)
		r = make_base(e, err);
	(void)pthread_mutex_unlock(&e->lock);
	if (!own.snapshot)
		own.snapshot = e->base;
	return r < 0 ? r : provision(e, id, &own, err);
}

int emu_box_set_egress(struct emu_engine *e, const char *id, const struct emu_box_options *o,
		       struct abx_err *err)
{
	const struct abx_policy policy = {ABX_INIT(struct abx_policy), .allow = o->allow,
					  .deny = o->deny};
	const struct abx_sandbox sb = sandbox(id);

	return e->light || e->no_network
		       ? 0
		       : abx_cloud_set_egress(e->cloud, &plain, &sb, &policy, err);
}

int emu_box_end(struct emu_engine *e, const char *id, struct abx_err *err)
{
	const struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};
	const struct abx_sandbox sb = sandbox(id);

	return e->light ? 0 : abx_cloud_destroy(e->cloud, &plain, &sb, &req, err);
}

int emu_box_pause(struct emu_engine *e, const char *id, struct abx_err *err)
{
	const struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};
	const struct abx_sandbox sb = sandbox(id);

	return e->light ? 0 : abx_cloud_pause(e->cloud, &plain, &sb, &req, err);
}

int emu_box_resume(struct emu_engine *e, const char *id, struct abx_err *err)
{
	const struct abx_start_req req = {ABX_INIT(struct abx_start_req)};
	const struct abx_sandbox sb = sandbox(id);

	return e->light ? 0 : abx_cloud_resume(e->cloud, &plain, &sb, &req, err);
}

int emu_box_stop(struct emu_engine *e, const char *id, struct abx_err *err)
{
	const struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};
	const struct abx_sandbox sb = sandbox(id);

	return e->light ? 0 : abx_cloud_stop(e->cloud, &plain, &sb, &req, err);
}

int emu_box_start(struct emu_engine *e, const char *id, struct abx_err *err)
{
	const struct abx_start_req req = {ABX_INIT(struct abx_start_req)};
	const struct abx_sandbox sb = sandbox(id);

	return e->light ? 0 : abx_cloud_start(e->cloud, &plain, &sb, &req, err);
}

int emu_box_snapshot(struct emu_engine *e, const char *id, char ref[EMU_REF_BYTES],
		     struct abx_err *err)
{
	const struct abx_snapshot_req req = {
		ABX_INIT(struct abx_snapshot_req),
		.flags = ABX_SNAPREQ_DISK_ONLY,
		.name = id,
		.labels = &own_label,
		.n_labels = 1,
	};
	const struct abx_sandbox sb = sandbox(id);
	struct abx_snapshot_copy made = {.memory = NULL};
	int r;

	if (e->light) {
		(void)snprintf(ref, EMU_REF_BYTES, "light");
		return 0;
	}
	r = abx_cloud_snapshot_create(e->cloud, &plain, &sb, &req, &made, err);
	if (r == 0)
		(void)snprintf(ref, EMU_REF_BYTES, "%s", made.s.ref);
	abx_snapshot_copy_release(&made);
	return r;
}

int emu_snapshot_end(struct emu_engine *e, const char *ref, struct abx_err *err)
{
	return e->light ? 0 : abx_cloud_snapshot_delete(e->cloud, &plain, ref, err);
}

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	const struct emu_exec *x = *(const struct emu_exec **)io;

	if (stream != ABX_STREAM_STDOUT)
		return to_stderr(NULL, stream, data, len);
	return x->output ? x->output(x->ctx, data, len) : 0;
}

int emu_exec(struct emu_engine *e, const char *id, const struct emu_exec *x, int *ret_code,
	     struct abx_err *err)
{
	const struct abx_call_opts o = {.plain_exec = true};
	const struct abx_sandbox sb = sandbox(id);
	const char *argv[12] = {AGENT_PATH};
	struct abx_exec exec = {
		ABX_INIT(struct abx_exec),
		.flags = x->network ? 0 : ABX_EXEC_OFFLINE,
		.argv = argv,
		.user = "root",
		.cwd = "/",
		.stdin_fd = x->in_fd,
		.control_fd = -1,
		.io = &x,
		.output = on_output,
	};
	struct abx_exit end = {ABX_INIT(struct abx_exit)};
	int r;

	if (e->light) {
		*ret_code = 0;
		return 0;
	}
	for (size_t i = 0; x->args[i] && i + 2 < ABX_N_ELEMENTS(argv); i++)
		argv[i + 1] = x->args[i];
	r = abx_cloud_exec(e->cloud, &o, &sb, &exec, &end, err);
	if (r == 0)
		*ret_code = end.signo ? 128 + end.signo : end.code;
	return r;
}

static int32_t collect(void *ctx, const void *data, size_t len)
{
	abx_buf_add(ctx, data, len);
	return 0;
}

int emu_ask(struct emu_engine *e, const char *id, const char *const *args, struct abx_buf *answer,
	    struct abx_err *err)
{
	const struct emu_exec x = {.args = args, .in_fd = -1, .output = collect, .ctx = answer};
	int code = 0;
	int r = emu_exec(e, id, &x, &code, err);

	if (r == 0 && answer->failed)
		r = abx_err_set(err, ABX_EINTERNAL, "sandbox %s: its answer is too long", id);
	return r;
}
