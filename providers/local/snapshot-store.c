/* SPDX-License-Identifier: MIT */
/* Snapshots on disk: snapshots/<ref>.json names layers and an image that are on disk. */
#include "providers/local/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"

#define TEXT_MAX 4096
#define MANIFEST_MAX_BYTES ((size_t)1 << 20)

static int file_name(const char *ref, char *name, size_t size)
{
	if (!ref || !local_id_valid(ref))
		return -ENOENT;
	(void)snprintf(name, size, "%s.json", ref);
	return 0;
}

int local_snapshot_open(const struct abx_session *s, const char *ref, struct local_snapshot *ret)
{
	struct local_snapshot n = {.doc = NULL};
	char name[LOCAL_ID_MAX + 16];
	const char *layers = NULL;
	int64_t flags = 0;
	int r = file_name(ref, name, sizeof(name));

	if (r == 0)
		r = local_read_json(s->snapshots_fd, name, &n.doc);
	if (r == 0)
		r = abx_json_str(n.doc, "ref", LOCAL_ID_MAX, &n.ref);
	if (r == 0)
		r = abx_json_str(n.doc, "name", TEXT_MAX, &n.name);
	if (r == 0)
		r = abx_json_str(n.doc, "created_at", 64, &n.created_at);
	if (r == 0)
		r = abx_json_str(n.doc, "sandbox_id", LOCAL_ID_MAX, &n.sandbox_id);
	if (r == 0)
		r = abx_json_str(n.doc, "image", LOCAL_ID_MAX, &n.image);
	if (r == 0)
		r = abx_json_str(n.doc, "layers", LOCAL_CHAIN_MAX * LOCAL_LID_SIZE, &layers);
	if (r == 0)
		r = abx_json_obj(n.doc, "labels", &n.labels);
	if (r == 0)
		r = abx_json_i64(n.doc, "flags", &flags);
	if (r == 0)
		r = abx_json_i64(n.doc, "size_bytes", &n.size_bytes);
	if (r == 0)
		r = local_chain_parse(layers, &n.chain);
	if (r == 0 && (!n.ref || strcmp(n.ref, ref) != 0 || !n.chain.n))
		r = -EPROTO;
	if (r < 0) {
		cJSON_Delete(n.doc);
		return r;
	}
	n.flags = (uint32_t)flags;
	*ret = n;
	return 0;
}

void local_snapshot_release(struct local_snapshot *n)
{
	cJSON_Delete(n->doc);
	*n = (struct local_snapshot){.doc = NULL};
}

static int print_snapshot(const struct local_snapshot *n, const struct abx_kv *labels,
			  uint32_t n_labels, struct abx_buf *b)
{
	abx_auto(abx_buf) struct abx_buf layers = ABX_BUF_INIT(TEXT_MAX);
	cJSON *doc = cJSON_CreateObject();
	int r = doc ? local_chain_text(&n->chain, &layers) : -ENOMEM;

	if (r == 0)
		r = local_labels_put(doc, labels, n_labels);
	if (r == 0)
		r = abx_json_add_i64(doc, "format", 1);
	if (r == 0)
		r = abx_json_add_str(doc, "ref", n->ref);
	if (r == 0)
		r = abx_json_add_str(doc, "name", n->name);
	if (r == 0)
		r = abx_json_add_str(doc, "created_at", n->created_at);
	if (r == 0)
		r = abx_json_add_str(doc, "sandbox_id", n->sandbox_id);
	if (r == 0)
		r = abx_json_add_str(doc, "image", n->image);
	if (r == 0)
		r = abx_json_add_str(doc, "layers", abx_buf_str(&layers));
	if (r == 0)
		r = abx_json_add_i64(doc, "flags", n->flags);
	if (r == 0)
		r = abx_json_add_i64(doc, "size_bytes", n->size_bytes);
	if (r == 0)
		r = abx_json_print(doc, b);
	cJSON_Delete(doc);
	return r;
}

int local_snapshot_write(const struct abx_session *s, const struct local_snapshot *n,
			 const struct abx_kv *labels, uint32_t n_labels)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(MANIFEST_MAX_BYTES);
	char name[LOCAL_ID_MAX + 16];
	int r = file_name(n->ref, name, sizeof(name));

	if (r == 0)
		r = print_snapshot(n, labels, n_labels, &b);
	if (r == 0)
		r = abx_fs_write_atomic(s->snapshots_fd, name, b.data, b.len, 0600, true);
	return r;
}

int local_snapshot_each(const struct abx_session *s,
			int (*visit)(void *ctx, const char *ref, const struct local_snapshot *n),
			void *ctx)
{
	DIR *d = abx_fs_opendir(s->snapshots_fd, ".");
	struct dirent *e;
	int r = d ? 0 : -errno;

	while (r == 0 && (e = readdir(d))) {
		size_t n = strlen(e->d_name);
		struct local_snapshot snap = {.doc = NULL};

		if (n < 6 || n > LOCAL_ID_MAX + 5 || strcmp(e->d_name + n - 5, ".json") != 0)
			continue;
		e->d_name[n - 5] = '\0';
		r = local_snapshot_open(s, e->d_name, &snap);
		if (r == 0 || r == -EPROTO)
			r = visit(ctx, e->d_name, r == 0 ? &snap : NULL);
		else if (r == -ENOENT)
			r = 0;
		local_snapshot_release(&snap);
	}
	if (d)
		(void)closedir(d);
	return r;
}

static int needs_image(void *ctx, const char *ref, const struct local_snapshot *n)
{
	(void)ref;
	return !n || (n->image && strcmp(n->image, ctx) == 0);
}

bool local_snapshot_needs_image(const struct abx_session *s, const char *key)
{
	return local_snapshot_each(s, needs_image, (void *)(uintptr_t)key) != 0;
}

/* Operations. */

int32_t local_snapshot_emit(const struct abx_session *s, struct abx_call *call, const char *ref)
{
	struct local_snapshot n = {.doc = NULL};
	struct local_labels labels;
	struct abx_snapshot out = {ABX_INIT(struct abx_snapshot), .state = "ready"};
	int e = local_snapshot_open(s, ref, &n);
	int32_t r;

	if (e == -ENOENT)
		return abx_fail(call, ABX_ENOTFOUND, NULL,
				"snapshot %.64s: there is no such snapshot", ref ? ref : "");
	if (e < 0 && e != -EPROTO)
		return abx_fail_errno(call, -e, "snapshot %s: its record", ref);
	if (e < 0)
		return abx_fail(call, ABX_EPROTO, "delete it", "snapshot %s: damaged record", ref);
	local_labels_get(n.labels, &labels);
	out.ref = n.ref;
	out.name = n.name;
	out.created_at = n.created_at;
	out.sandbox_id = n.sandbox_id;
	out.account = s->account;
	out.labels = labels.kv;
	out.n_labels = labels.n;
	out.size_bytes = n.size_bytes < 0 ? 0 : (uint64_t)n.size_bytes;
	out.flags = n.flags;
	r = abx_plugin_host->emit_snapshot(call, &out);
	local_snapshot_release(&n);
	return r;
}

int32_t local_snapshot_exists(struct abx_session *s, struct abx_call *call, const char *ref)
{
	return local_snapshot_emit(s, call, ref);
}

struct listing {
	const struct abx_session *s;
	struct abx_call *call;
	const struct abx_list_req *req;
	int32_t r;
};

static int list_one(void *ctx, const char *ref, const struct local_snapshot *n)
{
	const struct abx_snapshot damaged = {
		ABX_INIT(struct abx_snapshot),
		.ref = ref,
		.state = "failed",
	};
	struct listing *l = ctx;

	/* Damaged: it has no labels any more, yet it must be found. */
	if (!n && (!l->req || !l->req->n_labels))
		l->r = abx_plugin_host->emit_snapshot(l->call, &damaged);
	else if (n && local_labels_match(n->labels, l->req))
		l->r = local_snapshot_emit(l->s, l->call, n->ref);
	/* Deleted a moment ago. */
	if (l->r == ABX_ENOTFOUND)
		l->r = ABX_OK;
	return l->r == ABX_OK ? 0 : -ECANCELED;
}

int32_t local_snapshot_list(struct abx_session *s, struct abx_call *call,
			    const struct abx_list_req *req)
{
	struct listing l = {s, call, req, ABX_OK};
	int32_t r = local_sweep(s, call);
	int e = r == ABX_OK ? local_snapshot_each(s, list_one, &l) : 0;

	if (r != ABX_OK || l.r != ABX_OK)
		return r != ABX_OK ? r : l.r;
	return e < 0 ? abx_fail_errno(call, -e, "snapshots: a record") : ABX_OK;
}

static bool has_layer(const struct local_chain *c, const char *lid)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->lid[i], lid) == 0)
			return true;
	return false;
}

/* The box that it was taken of has all its layers: they go with that, later than now. */
static bool is_below_its_box(const struct abx_session *s, const struct local_snapshot *n)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_chain chain;
	bool below = n->sandbox_id && local_box_open(s, n->sandbox_id, &b) == 0 &&
		     local_chain_read(s, &b, &chain) == 0;

	for (size_t i = 0; i < n->chain.n; i++)
		below = below && has_layer(&chain, n->chain.lid[i]);
	local_box_release(&b);
	return below;
}

int32_t local_snapshot_delete(struct abx_session *s, struct abx_call *call, const char *ref)
{
	abx_autoclose int dir = -1;
	char name[LOCAL_ID_MAX + 16], tmp[32];
	struct local_snapshot n = {.doc = NULL};
	int r = file_name(ref, name, sizeof(name));

	if (r == -ENOENT)
		return ABX_OK;
	(void)local_snapshot_open(s, ref, &n);
	/* From here on it is gone; whoever sweeps after us removes its layers. */
	r = local_make_locked_dir(s, "gone-", tmp, sizeof(tmp), &dir);
	if (r == 0 && renameat(s->snapshots_fd, name, dir, "deleted.json") < 0)
		r = errno == ENOENT ? 0 : -errno;
	if (r == 0 && fsync(s->snapshots_fd) < 0)
		r = -errno;
	if (r < 0) {
		local_snapshot_release(&n);
		if (dir >= 0)
			(void)abx_fs_remove_tree(s->tmp_fd, tmp);
		return abx_fail_errno(call, -r, "snapshot %s: delete", ref);
	}
	if (!is_below_its_box(s, &n))
		local_layers_collect(s, call);
	local_snapshot_release(&n);
	(void)abx_fs_remove_tree(s->tmp_fd, tmp);
	return ABX_OK;
}
