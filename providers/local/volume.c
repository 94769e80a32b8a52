/* SPDX-License-Identifier: MIT */
/*
 * Volumes: directories that outlive boxes and can be in several of them.
 *
 *	volumes/<name>/volume.json   labels, since when
 *	volumes/<name>/data/         belongs to box ids; the volume is data/root, made by the
 *	                             first box that has it
 *
 * A lock on the directory is held shared while a box is put on record that has the volume,
 * and exclusively while it is removed.
 */
#include "providers/local/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"

#define RECORD_MAX_BYTES ((size_t)1 << 20)
#define NAME_MAX_BYTES 64
#define LOCK_POLL_MS 5

static bool name_valid(const char *name)
{
	size_t n =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n > 0 && n <= NAME_MAX_BYTES && !name[n] && name[0] != '.' && name[0] != '-';
}

static int32_t check_name(struct abx_call *call, const char *name)
{
	if (name && name_valid(name))
		return ABX_OK;
	return abx_fail(call, ABX_EINVAL, NULL,
			"volume: %.80s: not a name (1 to %d of A-Z a-z 0-9 . _ -)",
			name ? name : "", NAME_MAX_BYTES);
}

static int32_t take_lock(struct abx_call *call, int fd, int how, const char *name)
{
	while (flock(fd, how | LOCK_NB) < 0) {
		int32_t r;

		if (errno != EWOULDBLOCK)
			return abx_fail_errno(call, errno, "volume: %s: lock", name);
		r = abx_plugin_host->wait_ms(call, LOCK_POLL_MS);
		if (r == ABX_ECANCELED)
			return abx_fail_canceled(call);
		if (r != ABX_OK)
			return abx_fail_timed_out(call);
	}
	return ABX_OK;
}

/* Open and lock a volume; ABX_ENOTFOUND, not yet failed, when there is none. */
static int32_t open_locked(const struct abx_session *s, struct abx_call *call, const char *name,
			   int how, int *ret_fd)
{
	abx_autoclose int fd =
		openat(s->volumes_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat held, named;
	int32_t r;

	if (fd < 0)
		return errno == ENOENT ? ABX_ENOTFOUND
				       : abx_fail_errno(call, errno, "volume: %s", name);
	r = take_lock(call, fd, how, name);
	if (r != ABX_OK)
		return r;
	if (fstat(fd, &held) < 0 || fstatat(s->volumes_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    held.st_ino != named.st_ino)
		return ABX_ENOTFOUND;
	*ret_fd = abx_steal_fd(&fd);
	return ABX_OK;
}

void local_volumes_unlock(struct local_volumes *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		abx_cleanup_close(&v->fd[i]);
	free(v->fd);
	*v = (struct local_volumes){NULL, 0};
}

int32_t local_volumes_lock(const struct abx_session *s, struct abx_call *call,
			   const struct abx_provision *p, struct local_volumes *ret)
{
	struct local_volumes v = {calloc(p->n_volumes + 1, sizeof(*v.fd)), 0};
	int32_t r = v.fd ? ABX_OK : abx_fail(call, ABX_ENOMEM, NULL, "out of memory");

	while (r == ABX_OK && v.n < p->n_volumes) {
		const char *name = p->volumes[v.n].key;

		r = check_name(call, name);
		if (r == ABX_OK)
			r = open_locked(s, call, name, LOCK_SH, &v.fd[v.n]);
		/* Not "not found", which would be about a box. */
		if (r == ABX_ENOTFOUND)
			r = abx_fail(call, ABX_EINVAL, "make it first",
				     "volume: %s: there is no such volume", name);
		if (r == ABX_OK)
			v.n++;
	}
	if (r == ABX_OK)
		*ret = v;
	else
		local_volumes_unlock(&v);
	return r;
}

static int write_record(int dir_fd, const struct abx_volume_req *req)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(RECORD_MAX_BYTES);
	cJSON *doc = cJSON_CreateObject();
	char created[32];
	int r = doc ? local_labels_put(doc, req->labels, req->n_labels) : -ENOMEM;

	local_time_text(created, sizeof(created));
	if (r == 0)
		r = abx_json_add_i64(doc, "format", 1);
	if (r == 0)
		r = abx_json_add_str(doc, "created_at", created);
	if (r == 0)
		r = abx_json_print(doc, &b);
	cJSON_Delete(doc);
	return r == 0 ? abx_fs_write_atomic(dir_fd, "volume.json", b.data, b.len, 0600, true) : r;
}

/* All of it at once: -EEXIST when somebody was faster. */
static int make_volume(const struct abx_session *s, const struct abx_volume_req *req)
{
	abx_autoclose int fd = -1;
	char tmp[32];
	int r = local_make_locked_dir(s, "volume-", tmp, sizeof(tmp), &fd);

	if (r < 0)
		return r;
	r = local_make_box_dir(s, fd, "data");
	if (r == 0)
		r = write_record(fd, req);
	if (r == 0 && renameat2(s->tmp_fd, tmp, s->volumes_fd, req->name, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r == 0)
		return fsync(s->volumes_fd) < 0 ? -errno : 0;
	(void)abx_fs_remove_tree(s->tmp_fd, tmp);
	return r;
}

/* Emit it, unless `req` wants other labels than it has. */
static int32_t emit(const struct abx_session *s, struct abx_call *call, const char *name,
		    const struct abx_list_req *req)
{
	struct abx_resource res = {ABX_INIT(struct abx_resource), .kind = "volume", .id = name,
				   .name = name};
	struct local_labels list;
	const cJSON *labels = NULL;
	char path[NAME_MAX_BYTES + 16];
	cJSON *doc = NULL;
	int32_t r = ABX_OK;

	(void)snprintf(path, sizeof(path), "%s/volume.json", name);
	/* A damaged record has no labels any more, yet the volume must be found. */
	if (local_read_json(s->volumes_fd, path, &doc) == 0)
		(void)abx_json_obj(doc, "labels", &labels);
	if (!req || local_labels_match(labels, req)) {
		local_labels_get(labels, &list);
		res.labels = list.kv;
		res.n_labels = list.n;
		r = abx_plugin_host->emit_resource(call, &res, ABX_PHASE_EXISTS);
	}
	cJSON_Delete(doc);
	return r;
}

int32_t local_volume_ensure(struct abx_session *s, struct abx_call *call,
			    const struct abx_volume_req *req)
{
	struct abx_resource res = {ABX_INIT(struct abx_resource),
				   .kind = "volume",
				   .id = req->name,
				   .name = req->name,
				   .labels = req->labels,
				   .n_labels = req->n_labels};
	int32_t r = check_name(call, req->name);
	int e;

	if (r == ABX_OK && req->size && *req->size)
		r = abx_fail(call, ABX_ENOTSUP, "make it without a size",
			     "volume: %s: provider local keeps no size", req->name);
	if (r == ABX_OK)
		r = local_ids_check(s, call, "volume");
	if (r == ABX_OK)
		r = local_sweep(s, call);
	if (r != ABX_OK)
		return r;
	if (faccessat(s->volumes_fd, req->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return emit(s, call, req->name, NULL);
	r = abx_plugin_host->emit_resource(call, &res, ABX_PHASE_INTENT);
	if (r != ABX_OK)
		return r;
	e = make_volume(s, req);
	if (e < 0 && e != -EEXIST)
		return abx_fail_errno(call, -e, "volume: %s: make it", req->name);
	return emit(s, call, req->name, NULL);
}

int32_t local_volume_list(struct abx_session *s, struct abx_call *call,
			  const struct abx_list_req *req)
{
	DIR *d = abx_fs_opendir(s->volumes_fd, ".");
	struct dirent *e;
	int32_t r = ABX_OK;

	if (!d)
		return abx_fail_errno(call, errno, "state directory");
	while (r == ABX_OK && (e = readdir(d)))
		if (name_valid(e->d_name))
			r = emit(s, call, e->d_name, req);
	(void)closedir(d);
	return r;
}

int32_t local_volume_delete(struct abx_session *s, struct abx_call *call, const char *id)
{
	struct abx_resource res = {ABX_INIT(struct abx_resource), .kind = "volume", .id = id,
				   .name = id};
	abx_autoclose int fd = -1;
	char user[128], tmp[NAME_MAX_BYTES + 16];
	int32_t r = check_name(call, id);

	if (r == ABX_OK)
		r = local_sweep(s, call);
	if (r == ABX_OK)
		r = open_locked(s, call, id, LOCK_EX, &fd);
	if (r == ABX_ENOTFOUND)
		return abx_fail(call, r, NULL, "volume: %s: there is no such volume", id);
	if (r == ABX_OK && local_box_uses(s, local_mounts_use_volume, id, user, sizeof(user)))
		r = abx_fail(call, ABX_ESTATE, "destroy that box first",
			     "volume: %s: box %s has it", id, user);
	if (r != ABX_OK)
		return r;
	(void)snprintf(tmp, sizeof(tmp), "volume-%s", id);
	/* From here on it is gone; what is left is swept by anybody if we die. */
	if (renameat(s->volumes_fd, id, s->tmp_fd, tmp) < 0)
		return abx_fail_errno(call, errno, "volume: %s: remove", id);
	r = local_remove_tree(s, call, s->tmp_fd, tmp, "data");
	return r == ABX_OK ? abx_plugin_host->emit_resource(call, &res, ABX_PHASE_GONE) : r;
}
