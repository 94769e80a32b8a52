/* SPDX-License-Identifier: MIT */
/* Making a box: its record and layers, all at once, then its first start. */
#include "providers/local/local.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "abxsdk/text.h"
#include "providers/local/limits.h"

#define RECORD_MAX_BYTES ((size_t)16 << 20)

/* What this version cannot do is refused by name, never ignored. */
static int32_t refuse(struct abx_call *call, const struct abx_provision *p)
{
	if (p->size && *p->size)
		return abx_fail(call, ABX_ENOTSUP, "use --cpu, --memory, --disk and --pids",
				"--size: this machine has no sizes with a name");
	if (p->location && *p->location)
		return abx_fail(call, ABX_ENOTSUP, "leave it out",
				"--location: a local box is on this machine");
	if (p->inbound && *p->inbound)
		return abx_fail(call, ABX_ENOTSUP, "leave them out",
				"who may connect to a box cannot be restricted: its ports are at "
				"loopback ports of this machine");
	if (p->flags & ABX_PROV_PRIVATE_URLS)
		return abx_fail(call, ABX_ENOTSUP, "leave it out, or publish no port",
				"--private-urls: every user of this machine can connect to its "
				"loopback ports");
	if (p->flags)
		return abx_fail(call, ABX_ENOTSUP, NULL, "unknown flags %#x", p->flags);
	return ABX_OK;
}

static int add_pairs(cJSON *doc, const char *key, const struct abx_kv *kv, uint32_t n)
{
	cJSON *o = cJSON_AddObjectToObject(doc, key);
	int r = o ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && r == 0; i++)
		r = abx_json_add_str(o, kv[i].key, kv[i].value);
	return r;
}

/* Nobody sees the directory yet: no need to replace anything, but to be on disk before the
 * directory gets its name. */
static int write_new(int dir_fd, const char *name, const void *data, size_t len)
{
	abx_autoclose int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = abx_fs_write_all(fd, data, len);
	if (r == 0 && (fchmod(fd, 0600) < 0 || fsync(fd) < 0 || close(abx_steal_fd(&fd)) < 0))
		r = -errno;
	return r;
}

/* What was made ready for a box before there is one. */
struct parts {
	char image[LOCAL_ID_MAX + 1]; /* its key; "": none */
	const char *snapshot;
	struct local_chain chain; /* the layers of that snapshot */
	int image_lock, layers_lock;
	bool pasta;
	struct local_mounts mounts;
	struct local_volumes volumes;
	struct local_limits limits;
};

static int add_base(cJSON *doc, const struct parts *parts)
{
	abx_auto(abx_buf) struct abx_buf layers = ABX_BUF_INIT(4096);
	int r = abx_json_add_str(doc, "image", *parts->image ? parts->image : NULL);

	if (r == 0)
		r = abx_json_add_str(doc, "snapshot", parts->snapshot);
	if (r == 0)
		r = local_chain_text(&parts->chain, &layers);
	if (r == 0 && layers.len)
		r = abx_json_add_str(doc, "layers", abx_buf_str(&layers));
	return r;
}

static int write_record(int dir_fd, const char *id, const struct parts *parts,
			const struct abx_provision *p)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(RECORD_MAX_BYTES);
	cJSON *doc = cJSON_CreateObject();
	char hostname[64], created[32];
	int r = doc ? 0 : -ENOMEM;

	abx_plain_name(p->name, hostname, sizeof(hostname));
	local_time_text(created, sizeof(created));
	if (r == 0)
		r = abx_json_add_i64(doc, "format", 1);
	if (r == 0)
		r = abx_json_add_str(doc, "id", id);
	if (r == 0)
		r = abx_json_add_str(doc, "name", p->name);
	if (r == 0)
		r = abx_json_add_str(doc, "hostname", hostname);
	if (r == 0)
		r = abx_json_add_str(doc, "created_at", created);
	if (r == 0)
		r = add_base(doc, parts);
	if (r == 0)
		r = add_pairs(doc, "labels", p->labels, p->n_labels);
	if (r == 0)
		r = add_pairs(doc, "env", p->env, p->n_env);
	if (r == 0)
		r = local_net_record(doc, p, parts->pasta);
	if (r == 0)
		r = local_mounts_record(doc, &parts->mounts);
	if (r == 0)
		r = local_limits_record(doc, &parts->limits);
	if (r == 0)
		r = abx_json_print(doc, &b);
	cJSON_Delete(doc);
	if (r == 0)
		r = write_new(dir_fd, "box.json", b.data, b.len);
	if (b.data)
		explicit_bzero(b.data, b.len);
	return r;
}

/* Everything of the box is there, labels included, in the instant in which its name is.
 * -EEXIST: somebody has made this box already. */
static int make_box(const struct abx_session *s, const char *id, const struct parts *parts,
		    const struct abx_provision *p, struct local_box *ret)
{
	char tmp[32];
	int fd = -1;
	int r = local_make_locked_dir(s, "new-", tmp, sizeof(tmp), &fd);

	if (r < 0)
		return r;
	r = local_make_box_dir(s, fd, "layers");
	if (r == 0)
		r = write_record(fd, id, parts, p);
	if (r == 0 && parts->limits.disk_bytes)
		r = local_quota_set(fd, "layers", &parts->limits);
	if (r == 0 && renameat2(s->tmp_fd, tmp, s->boxes_fd, id, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0) {
		if (parts->limits.project)
			local_quota_release(fd, parts->limits.project);
		(void)abx_fs_remove_tree(s->tmp_fd, tmp);
		(void)close(fd);
		return r;
	}
	r = local_box_open(s, id, ret);
	if (r == 0) {
		/* The lock is the descriptor's: keep the locked one. */
		(void)close(ret->dir_fd);
		ret->dir_fd = fd;
	} else {
		(void)close(fd);
	}
	return r;
}

static const char *option(const struct abx_provision *p, const char *key, const char *otherwise)
{
	for (uint32_t i = 0; i < p->n_options; i++)
		if (strcmp(p->options[i].key, key) == 0 && *p->options[i].value)
			return p->options[i].value;
	return otherwise;
}

static int32_t make_or_adopt(struct abx_session *s, struct abx_call *call, const char *id,
			     const struct parts *parts, const struct abx_provision *p,
			     struct local_box *b, bool *ret_new)
{
	int r = make_box(s, id, parts, p, b);
	int32_t e;

	*ret_new = r == 0;
	if (r == 0)
		return ABX_OK;
	if (r != -EEXIST)
		return abx_fail_errno(call, -r, "box %s: make it", id);
	/* The same attempt again: what it made the first time is the answer. */
	e = local_open(s, call, id, b);
	return e == ABX_OK ? local_lock(s, call, b) : e;
}

static int32_t open_snapshot(struct abx_session *s, struct abx_call *call, const char *ref,
			     struct parts *ret)
{
	struct local_snapshot n = {.doc = NULL};
	int32_t r = local_layers_hold(s, call, &ret->layers_lock);
	int e;

	if (r != ABX_OK)
		return r;
	e = local_snapshot_open(s, ref, &n);
	/* Not "not found", which would be about a box. */
	if (e == -ENOENT)
		return abx_fail(call, ABX_EINVAL, NULL, "snapshot %.64s: there is none", ref);
	if (e < 0)
		return abx_fail_errno(call, -e, "snapshot %s: its record", ref);
	ret->snapshot = ref;
	ret->chain = n.chain;
	if (n.image) {
		(void)snprintf(ret->image, sizeof(ret->image), "%s", n.image);
		r = local_image_hold(s, call, n.image, &ret->image_lock);
	}
	local_snapshot_release(&n);
	return r;
}

static int32_t choose_id(struct abx_call *call, const struct abx_provision *p, char *id,
			 size_t size)
{
	uint64_t nonce[2];

	if (p->idempotency_key) {
		if (!local_id_valid(p->idempotency_key))
			return abx_fail(call, ABX_EINVAL, NULL,
					"idempotency key: not 1 to %d of [0-9a-z-]", LOCAL_ID_MAX);
		(void)snprintf(id, size, "%s", p->idempotency_key);
		return ABX_OK;
	}
	if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return abx_fail_errno(call, EIO, "random number");
	(void)snprintf(id, size, "%016llx%016llx", (unsigned long long)nonce[0],
		       (unsigned long long)nonce[1]);
	return ABX_OK;
}

/* A host built with an older header has a shorter request: what it lacks is zero. */
static void copy_request(struct abx_provision *to, const struct abx_provision *from)
{
	size_t n = from->struct_size < sizeof(*to) ? from->struct_size : sizeof(*to);

	memset(to, 0, sizeof(*to));
	memcpy(to, from, n);
}

static int32_t choose_network(struct abx_session *s, struct abx_call *call,
			      const struct abx_provision *p, bool *ret_pasta)
{
	const char *network = option(p, "network", s->network);

	if (local_net_carrier(network, ret_pasta) < 0)
		return abx_fail(call, ABX_EINVAL, NULL,
				"local.network: %s: neither " LOCAL_SLIRP " nor " LOCAL_PASTA,
				network);
	return local_net_check(call, p, *ret_pasta);
}

static int32_t make_parts(struct abx_session *s, struct abx_call *call,
			  const struct abx_provision *p, struct parts *parts)
{
	const char *image = p->image && *p->image ? p->image : option(p, "image", s->image);
	int32_t r = local_limits_check(s, call, p, &parts->limits);

	if (r == ABX_OK)
		r = local_mounts_make(s, call, p, &parts->mounts);
	if (r == ABX_OK)
		r = local_volumes_lock(s, call, p, &parts->volumes);
	if (r == ABX_OK && p->snapshot && *p->snapshot)
		r = open_snapshot(s, call, p->snapshot, parts);
	else if (r == ABX_OK && image)
		r = local_image_open(s, call, image, parts->image, &parts->image_lock);
	return r;
}

static void release_parts(struct parts *parts)
{
	abx_cleanup_close(&parts->image_lock);
	abx_cleanup_close(&parts->layers_lock);
	local_volumes_unlock(&parts->volumes);
	local_mounts_release(&parts->mounts);
}

/* Nobody should have to find out by trying. */
static void say_what_is_missing(const struct abx_session *s, const struct local_box *b)
{
	const char *text = NULL;

	if (s->ids.map == LB_MAP_SINGLE)
		text = "the box has no user but root, which is you, no sudo, and cannot install "
		       "packages (agentbox doctor says why)";
	else if (!b->image)
		text = "the box has no sudo and cannot install packages (--image has both)";
	else if (local_mounts_are_open(b))
		text = "no file in the box gets a setuid or setgid bit, and packages that have one "
		       "cannot be installed: others of this machine can enter what is mounted for "
		       "writing (chmod 700 it)";
	if (text)
		abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "local", text);
}

int32_t local_provision(struct abx_session *s, struct abx_call *call,
			const struct abx_provision *req)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	struct abx_provision p;
	struct parts parts = {.image_lock = -1, .layers_lock = -1};
	char id[LOCAL_ID_MAX + 1];
	bool is_new = false;
	int32_t r;

	copy_request(&p, req);
	r = refuse(call, &p);
	if (r == ABX_OK)
		r = choose_network(s, call, &p, &parts.pasta);
	if (r == ABX_OK)
		r = local_ids_check(s, call, "provision");
	if (r == ABX_OK)
		r = choose_id(call, &p, id, sizeof(id));
	if (r == ABX_OK)
		r = local_sweep(s, call);
	if (r == ABX_OK)
		r = make_parts(s, call, &p, &parts);
	if (r == ABX_OK)
		r = make_or_adopt(s, call, id, &parts, &p, &b, &is_new);
	release_parts(&parts);
	if (r == ABX_OK)
		r = local_box_emit(s, call, &b, NULL, ABX_STATE_STARTING);
	if (r == ABX_OK)
		r = local_ports_assign(call, &b);
	if (r == ABX_OK)
		r = local_start_locked(s, call, &b, is_new ? LB_F_FIRST : 0, p.timeout_ms, &run);
	if (r == ABX_OK && is_new)
		say_what_is_missing(s, &b);
	if (r == ABX_OK)
		r = local_box_emit(s, call, &b, &run, ABX_STATE_RUNNING);
	local_run_release(&run);
	local_box_release(&b);
	return r;
}

/* Everything that a start does, in a directory of its own, and then its end. */
int32_t local_probe(struct abx_session *s, struct abx_call *call, const char *image,
		    struct lb_msg *ret)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_START};
	struct local_helper h = LOCAL_HELPER_INIT;
	struct local_box b = LOCAL_BOX_INIT;
	struct local_plan plan = {0};
	char tmp[32], layers[64];
	int32_t r = ABX_OK;
	int e = local_make_locked_dir(s, "new-", tmp, sizeof(tmp), &b.dir_fd);

	if (e == 0)
		e = local_make_box_dir(s, b.dir_fd, "layers");
	if (e < 0)
		r = abx_fail_errno(call, -e, "state directory");
	if (r == ABX_OK)
		a.fd_live = openat(b.dir_fd, "live", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	(void)snprintf(layers, sizeof(layers), "tmp/%s/layers", tmp);
	a.program = s->box_helper;
	a.path = layers;
	a.name = "probe";
	a.fd_box = s->store_fd;
	a.req.flags = LB_F_PROBE | LB_F_FIRST;
	if (image) {
		a.req.flags |= LB_F_IMAGE;
		local_plan_add(&plan, LB_PLAN_IMAGE, "images/%s/root", image);
	}
	if (plan.failed)
		r = abx_fail(call, ABX_ENOMEM, NULL, "out of memory");
	a.argv = (const char *const *)plan.argv;
	if (r == ABX_OK)
		r = local_helper_start(s, call, &a, &h);
	while (r == ABX_OK) {
		r = local_helper_any(call, &h, ret);
		if (r == ABX_OK && ret->kind != LB_MSG_PID)
			break;
		local_helper_control(&h, LB_CTRL_GO, 0, 0);
	}
	local_helper_kill(&h);
	local_plan_release(&plan);
	abx_cleanup_close(&a.fd_live);
	if (b.dir_fd >= 0)
		(void)local_remove_tree(s, call, s->tmp_fd, tmp, "layers");
	local_box_release(&b);
	return r;
}
