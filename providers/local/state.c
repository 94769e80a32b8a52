/* SPDX-License-Identifier: MIT */
/* Boxes on disk: their records, locks, and removal. */
#include "providers/local/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "providers/local/image.h"
#include "providers/local/limits.h"

#define RECORD_MAX_BYTES ((size_t)16 << 20)
#define TEXT_MAX 4096
#define LOCK_POLL_MS 5
#define MAKE_TRIES 16

bool local_id_valid(const char *id)
{
	size_t n = strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz-");

	return n > 0 && n <= LOCAL_ID_MAX && id[n] == '\0' && id[0] != '-';
}

/* A directory of ours where box root may pass on to what belongs to it. */
static int open_dir(int at, const char *name, int *ret_fd)
{
	struct stat st;
	int fd;

	if (mkdirat(at, name, 0711) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	/* The caller's umask must not keep box root out. */
	if (fstat(fd, &st) < 0 || ((st.st_mode & 0777) != 0711 && fchmod(fd, 0711) < 0))
		return -errno;
	return 0;
}

/* A directory in which box root makes things. */
int local_make_box_dir(const struct abx_session *s, int at, const char *name)
{
	struct stat st;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (s->ids.map == LB_MAP_DIRECT &&
	    (st.st_uid != s->ids.uid_base || st.st_gid != s->ids.gid_base) &&
	    fchownat(at, name, s->ids.uid_base, s->ids.gid_base, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* Nobody else gets past the state directory, which is 0700. */
	if (s->ids.map == LB_MAP_SUBID && (st.st_mode & 0777) != 0777 &&
	    fchmodat(at, name, 0777, 0) < 0)
		return -errno;
	return 0;
}

int local_make_locked_dir(const struct abx_session *s, const char *prefix, char *name, size_t size,
			  int *ret_fd)
{
	for (int i = 0; i < MAKE_TRIES; i++) {
		struct stat st;
		uint64_t nonce;
		int fd;

		if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
			return -EIO;
		(void)snprintf(name, size, "%s%016llx", prefix, (unsigned long long)nonce);
		if (mkdirat(s->tmp_fd, name, 0700) < 0)
			return -errno;
		fd = openat(s->tmp_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* The caller's umask must not keep box root out. */
		if (fd >= 0 && fchmod(fd, 0711) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
		    fstat(fd, &st) == 0 && st.st_nlink > 0) {
			*ret_fd = fd;
			return 0;
		}
		abx_cleanup_close(&fd);
	}
	return -EAGAIN;
}

void local_time_text(char *out, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	*out = '\0';
	if (gmtime_r(&now, &tm))
		(void)strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

int local_state_open(struct abx_session *s, const char *dir)
{
	abx_autoclose int state_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (state_fd < 0)
		return -errno;
	r = open_dir(state_fd, "store", &s->store_fd);
	if (r == 0)
		r = open_dir(s->store_fd, "boxes", &s->boxes_fd);
	if (r == 0)
		r = open_dir(s->store_fd, "tmp", &s->tmp_fd);
	if (r == 0)
		r = open_dir(s->store_fd, "volumes", &s->volumes_fd);
	if (r == 0)
		r = open_dir(s->store_fd, "prepared", &s->prepared_fd);
	if (r == 0)
		r = local_ids_settle(s);
	if (r == 0)
		r = local_make_box_dir(s, s->store_fd, "cache");
	if (r == 0)
		r = local_make_box_dir(s, s->store_fd, "images");
	if (r == 0)
		r = local_make_box_dir(s, s->store_fd, "layers");
	if (r == 0)
		r = open_dir(s->store_fd, "snapshots", &s->snapshots_fd);
	if (r == 0) {
		s->layers_fd = openat(s->store_fd, "layers",
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = s->layers_fd < 0 ? -errno : 0;
	}
	if (r == 0) {
		s->images_fd = openat(s->store_fd, "images",
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = s->images_fd < 0 ? -errno : 0;
	}
	return r;
}

void local_state_close(struct abx_session *s)
{
	abx_cleanup_close(&s->snapshots_fd);
	abx_cleanup_close(&s->layers_fd);
	abx_cleanup_close(&s->images_fd);
	abx_cleanup_close(&s->prepared_fd);
	abx_cleanup_close(&s->volumes_fd);
	abx_cleanup_close(&s->tmp_fd);
	abx_cleanup_close(&s->boxes_fd);
	abx_cleanup_close(&s->store_fd);
}

int local_read_json(int dir_fd, const char *name, cJSON **ret)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(RECORD_MAX_BYTES);
	int r = abx_fs_read(dir_fd, name, &b);

	if (r < 0)
		return r;
	return abx_json_parse(abx_buf_str(&b), b.len, RECORD_MAX_BYTES, ret);
}

int local_box_open(const struct abx_session *s, const char *id, struct local_box *ret)
{
	struct local_box b = LOCAL_BOX_INIT;
	int r;

	if (!local_id_valid(id))
		return -ENOENT;
	b.dir_fd = openat(s->boxes_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (b.dir_fd < 0)
		return -errno;
	r = local_read_json(b.dir_fd, "box.json", &b.doc);
	if (r == 0)
		r = abx_json_str(b.doc, "id", LOCAL_ID_MAX, &b.id);
	if (r == 0)
		r = abx_json_str(b.doc, "name", TEXT_MAX, &b.name);
	if (r == 0)
		r = abx_json_str(b.doc, "image", LOCAL_ID_MAX, &b.image);
	if (r == 0)
		r = abx_json_str(b.doc, "layers", LOCAL_CHAIN_MAX * LOCAL_LID_SIZE, &b.layers);
	if (r == 0)
		r = abx_json_str(b.doc, "created_at", 64, &b.created_at);
	if (r == 0)
		r = abx_json_str(b.doc, "hostname", 64, &b.hostname);
	if (r == 0)
		r = abx_json_obj(b.doc, "labels", &b.labels);
	if (r == 0)
		r = abx_json_obj(b.doc, "env", &b.env);
	if (r == 0)
		r = local_net_load(&b);
	if (r == 0 && (!b.id || strcmp(b.id, id) != 0 || !b.hostname))
		r = -EPROTO;
	if (r < 0) {
		local_box_release(&b);
		/* The directory was there a moment ago: being destroyed, or damaged. */
		if (r == -ENOENT && faccessat(s->boxes_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			r = -EPROTO;
		return r;
	}
	*ret = b;
	return 0;
}

void local_box_release(struct local_box *b)
{
	cJSON_Delete(b->doc);
	cJSON_Delete(b->net_doc);
	abx_cleanup_close(&b->gate_fd);
	for (size_t i = 0; i < LB_CGROUPS_MAX; i++)
		abx_cleanup_close(&b->cgroup_fd[i]);
	abx_cleanup_close(&b->dir_fd);
	*b = (struct local_box)LOCAL_BOX_INIT;
}

int local_box_each(const struct abx_session *s,
		   int (*visit)(void *ctx, const char *id, const struct local_box *b), void *ctx)
{
	DIR *d = abx_fs_opendir(s->boxes_fd, ".");
	struct dirent *e;
	int r = d ? 0 : -errno;

	while (r == 0 && (e = readdir(d))) {
		struct local_box b = LOCAL_BOX_INIT;

		if (!local_id_valid(e->d_name))
			continue;
		r = local_box_open(s, e->d_name, &b);
		r = r == -ENOENT ? 0 : visit(ctx, e->d_name, r == 0 ? &b : NULL);
		local_box_release(&b);
	}
	if (d)
		(void)closedir(d);
	return r;
}

struct question {
	bool (*uses)(const struct local_box *b, const char *what);
	const char *what;
	char *user;
	size_t size;
};

/* A record that cannot be read may name anything. */
static int ask(void *ctx, const char *id, const struct local_box *b)
{
	const struct question *q = ctx;

	if (b && !q->uses(b, q->what))
		return 0;
	(void)snprintf(q->user, q->size, "%.100s", b && b->name ? b->name : id);
	return 1;
}

bool local_box_uses(const struct abx_session *s,
		    bool (*uses)(const struct local_box *b, const char *what), const char *what,
		    char *user, size_t size)
{
	struct question q = {uses, what, user, size};

	(void)snprintf(user, size, "unknown");
	return local_box_each(s, ask, &q) != 0;
}

int32_t local_box_lock(const struct abx_session *s, struct abx_call *call,
		       const struct local_box *b)
{
	struct stat held, named;

	while (flock(b->dir_fd, LOCK_EX | LOCK_NB) < 0) {
		int32_t r;

		if (errno != EWOULDBLOCK)
			return abx_fail_errno(call, errno, "lock box %s", b->id);
		r = abx_plugin_host->wait_ms(call, LOCK_POLL_MS);
		if (r == ABX_ECANCELED)
			return abx_fail_canceled(call);
		if (r != ABX_OK)
			return abx_fail_timed_out(call);
	}
	if (fstat(b->dir_fd, &held) < 0 ||
	    fstatat(s->boxes_fd, b->id, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    held.st_ino != named.st_ino)
		return ABX_ENOTFOUND;
	return ABX_OK;
}

int32_t local_box_emit(const struct abx_session *s, struct abx_call *call,
		       const struct local_box *b, const struct local_run *run, uint32_t state)
{
	struct local_labels labels;
	struct abx_sandbox sb = {
		ABX_INIT(struct abx_sandbox),
		.state = state,
		.id = b->id,
		.name = b->name,
		.account = s->account,
		.arch = s->arch,
		.created_at = b->created_at,
		.expires_at_ms = run && run->pidfd >= 0 ? run->expires_at_ms : 0,
	};

	local_labels_get(b->labels, &labels);
	sb.labels = labels.kv;
	sb.n_labels = labels.n;
	return abx_plugin_host->emit_sandbox(call, &sb);
}

/* What boxes have written belongs to ids that only a user namespace can remove. */
static int32_t empty_inner(const struct abx_session *s, struct abx_call *call, int parent_fd,
			   const char *name, const char *inner)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_REMOVE};
	struct local_helper h = LOCAL_HELPER_INIT;
	struct lb_msg m;
	char path[NAME_MAX + 32];
	int32_t r;

	(void)snprintf(path, sizeof(path), "%s/%s", name, inner);
	a.fd_box = openat(parent_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (a.fd_box < 0)
		return errno == ENOENT ? ABX_OK : abx_fail_errno(call, errno, "remove %s", name);
	a.program = s->box_helper;
	r = local_helper_start(s, call, &a, &h);
	if (r == ABX_OK) {
		r = local_helper_next(call, &h, &m);
		if (r == ABX_OK)
			local_helper_wait(&h);
		else
			local_helper_kill(&h);
	}
	(void)close(a.fd_box);
	return r;
}

/* The project of a box that is about to go, if it has one. */
static void release_quota(int parent_fd, const char *name)
{
	abx_autoclose int fd =
		openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct local_limits l = {0};
	cJSON *doc = NULL;

	if (fd >= 0 && local_read_json(fd, "box.json", &doc) == 0 &&
	    local_limits_read(doc, &l) == 0 && l.project)
		local_quota_release(fd, l.project);
	cJSON_Delete(doc);
}

int32_t local_remove_tree(const struct abx_session *s, struct abx_call *call, int parent_fd,
			  const char *name, const char *inner)
{
	int r;

	/* Root can remove whatever there is. */
	if (geteuid() != 0) {
		int32_t e = local_ids_check(s, call, "remove %s", name);

		if (e != ABX_OK)
			return e;
	}
	release_quota(parent_fd, name);
	if (s->ids.map == LB_MAP_SUBID) {
		int32_t e = empty_inner(s, call, parent_fd, name, inner);

		if (e != ABX_OK)
			return e;
	}
	r = abx_fs_remove_tree(parent_fd, name);
	return r < 0 ? abx_fail_errno(call, -r, "remove %s", name) : ABX_OK;
}

int32_t local_sweep(const struct abx_session *s, struct abx_call *call)
{
	DIR *d = abx_fs_opendir(s->tmp_fd, ".");
	struct dirent *e;
	bool found = false;

	if (!d)
		return abx_fail_errno(call, errno, "state directory");
	while ((e = readdir(d))) {
		int dead;

		if (e->d_name[0] == '.')
			continue;
		dead = openat(s->tmp_fd, e->d_name,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dead < 0)
			continue;
		/* Its maker holds a lock for as long as it lives.  What cannot be removed
		 * now is no reason to refuse work; the next one tries again. */
		if (flock(dead, LOCK_EX | LOCK_NB) == 0) {
			(void)local_remove_tree(s, call, s->tmp_fd, e->d_name,
						strncmp(e->d_name, "volume-", 7) == 0 ? "data"
										      : "layers");
			found = true;
		}
		(void)close(dead);
	}
	(void)closedir(d);
	local_image_collect(s, call, NULL);
	/* Who died may have left a layer without a record. */
	if (found)
		local_layers_collect(s, call);
	return ABX_OK;
}
