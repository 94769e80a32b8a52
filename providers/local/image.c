/* SPDX-License-Identifier: MIT */
/*
 * Root file systems of boxes: images/<key>/, made once by box root, and shared by all boxes
 * that use one as their lower layer.  It comes from a directory or a tar file of this machine,
 * whose fingerprint is the key, or was prepared under a name (prepare.c).
 *
 * images/<key>.lock is held shared while a box is made from the image, and exclusively while
 * the image is made or removed.
 */
#include "providers/local/image.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "abxsdk/suite.h"

#define LOCK_POLL_MS 20
#define OPEN_TRIES 8

int32_t local_source_open(struct abx_call *call, const char *path, struct local_source *ret)
{
	struct stat st;
	int fd;

	if (path[0] != '/')
		return abx_fail(call, ABX_EINVAL, NULL, "image: %s: not an absolute path", path);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		int err = errno;

		abx_cleanup_close(&fd);
		/* Not "not found", which would be about a box. */
		return abx_fail(call, err == EACCES ? ABX_EPERM : ABX_EINVAL, NULL, "image: %s: %s",
				path, strerror(err));
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		(void)close(fd);
		return abx_fail(call, ABX_EINVAL, NULL,
				"image: %s: neither a directory nor a tar file", path);
	}
	*ret = (struct local_source){path, fd, S_ISDIR(st.st_mode)};
	return ABX_OK;
}

void local_source_key(const struct abx_session *s, const struct local_source *src,
		      char key[LOCAL_PRINT_TEXT])
{
	struct local_print p = {s->ids.uid_base, s->ids.gid_base};
	struct stat st;
	char id[64];

	if (fstat(src->fd, &st) == 0) {
		(void)snprintf(id, sizeof(id), "%llx:%llx", (unsigned long long)st.st_dev,
			       (unsigned long long)st.st_ino);
		local_print_add(&p, id, &st);
	}
	/* What is deep inside a directory may change without a trace at its top. */
	if (src->is_dir)
		local_print_walk(&p, src->fd, ".", NULL, NULL);
	local_print_text(&p, key);
}

/* How the two ends of an unpacking ended: the reason of the writer comes first, for the
 * other one only sees its stream end. */
static int32_t collect(struct abx_call *call, struct local_helper *pack,
		       struct local_helper *unpack, int64_t *ret_bytes)
{
	struct lb_msg m;
	int32_t r = ABX_OK;

	if (pack->pid > 0) {
		r = local_helper_next(call, pack, &m);
		if (r == ABX_OK)
			local_helper_wait(pack);
	}
	if (r == ABX_OK) {
		r = local_helper_next(call, unpack, &m);
		if (r == ABX_OK) {
			*ret_bytes = m.value;
			local_helper_wait(unpack);
		}
	}
	local_helper_kill(pack);
	local_helper_kill(unpack);
	return r;
}

int32_t local_source_unpack(struct abx_session *s, struct abx_call *call, int dir_fd, void *ctx,
			    int64_t *ret_bytes)
{
	const struct local_source *src = ctx;
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_UNPACK};
	struct local_helper pack = LOCAL_HELPER_INIT, unpack = LOCAL_HELPER_INIT;
	int p[2] = {-1, -1};
	int32_t r = ABX_OK;

	a.program = s->tar_helper;
	a.path = src->path;
	a.req.size_bytes = -1;
	a.fd_box = dir_fd;
	a.fd_in = src->fd;
	if (src->is_dir) {
		struct local_helper_args b = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_PACK};

		if (pipe2(p, O_CLOEXEC) < 0)
			return abx_fail_errno(call, errno, "image: pipe");
		b.program = s->tar_helper;
		b.path = src->path;
		b.fd_box = src->fd;
		b.fd_out = p[1];
		a.fd_in = p[0];
		r = local_helper_start(s, call, &b, &pack);
	}
	if (r == ABX_OK)
		r = local_helper_start(s, call, &a, &unpack);
	abx_cleanup_close(&p[0]);
	abx_cleanup_close(&p[1]);
	if (r == ABX_OK)
		return collect(call, &pack, &unpack, ret_bytes);
	local_helper_kill(&pack);
	return r;
}

static bool box_is_over(const struct local_box *b, const char *key)
{
	return b->image && strcmp(b->image, key) == 0;
}

bool local_image_user(const struct abx_session *s, const char *key, char *user, size_t size)
{
	char box[LOCAL_USER_MAX];

	if (local_box_uses(s, box_is_over, key, box, sizeof(box))) {
		(void)snprintf(user, size, "box %.100s", box);
		return true;
	}
	(void)snprintf(user, size, "a snapshot");
	return local_snapshot_needs_image(s, key);
}

static bool is_used(const struct abx_session *s, const char *key)
{
	char user[LOCAL_USER_MAX];

	return local_prepared_uses(s, key) || local_image_user(s, key, user, sizeof(user));
}

int local_image_lock_fd(const struct abx_session *s, const char *key)
{
	char name[LOCAL_PRINT_TEXT + 8];

	(void)snprintf(name, sizeof(name), "%s.lock", key);
	return openat(s->images_fd, name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void local_image_collect(const struct abx_session *s, struct abx_call *call, const char *keep)
{
	DIR *d = abx_fs_opendir(s->images_fd, ".");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		bool half_made = strncmp(e->d_name, "new-", 4) == 0;
		const char *key = half_made ? e->d_name + 4 : e->d_name;
		int lock;

		if (strlen(key) != LOCAL_PRINT_TEXT - 1 ||
		    (keep ? strcmp(key, keep) == 0 : !half_made))
			continue;
		lock = local_image_lock_fd(s, key);
		if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 &&
		    (half_made || !is_used(s, key)))
			(void)local_remove_tree(s, call, s->images_fd, e->d_name, ".");
		abx_cleanup_close(&lock);
	}
	if (d)
		(void)closedir(d);
}

/* Whoever prepares it is told, not whoever makes a box of it. */
static int32_t try_image(struct abx_session *s, struct abx_call *call, const char *dir)
{
	struct lb_msg m = {.kind = 0};
	int32_t r = local_probe(s, call, dir, &m);

	return r == ABX_OK && m.kind == LB_MSG_FAIL ? local_helper_failed(call, &m) : r;
}

int32_t local_image_make(struct abx_session *s, struct abx_call *call, const char *key,
			 local_image_fill *fill, void *ctx, int64_t *ret_bytes)
{
	abx_autoclose int dir_fd = -1;
	char tmp[LOCAL_PRINT_TEXT + 8];
	int32_t r;
	int e;

	(void)snprintf(tmp, sizeof(tmp), "new-%s", key);
	r = local_remove_tree(s, call, s->images_fd, tmp, ".");
	if (r != ABX_OK)
		return r;
	e = local_make_box_dir(s, s->images_fd, tmp);
	if (e < 0)
		return abx_fail_errno(call, -e, "image: state directory");
	dir_fd = openat(s->images_fd, tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		return abx_fail_errno(call, errno, "image: state directory");
	r = fill(s, call, dir_fd, ctx, ret_bytes);
	if (r == ABX_OK)
		r = try_image(s, call, tmp);
	if (r == ABX_OK && renameat(s->images_fd, tmp, s->images_fd, key) < 0)
		r = abx_fail_errno(call, errno, "image: state directory");
	if (r != ABX_OK)
		(void)local_remove_tree(s, call, s->images_fd, tmp, ".");
	return r;
}

int32_t local_image_lock(struct abx_call *call, int fd, int how)
{
	while (flock(fd, how | LOCK_NB) < 0) {
		int32_t r;

		if (errno != EWOULDBLOCK)
			return abx_fail_errno(call, errno, "image: lock");
		r = abx_plugin_host->wait_ms(call, LOCK_POLL_MS);
		if (r == ABX_ECANCELED)
			return abx_fail_canceled(call);
		if (r != ABX_OK)
			return abx_fail_timed_out(call);
	}
	return ABX_OK;
}

int32_t local_image_from(struct abx_session *s, struct abx_call *call,
			 const struct local_source *src, const char *key, int64_t *ret_bytes,
			 int *ret_lock)
{
	abx_autoclose int lock = local_image_lock_fd(s, key);
	bool made = false;
	int32_t r = lock < 0 ? abx_fail_errno(call, errno, "image: lock") : ABX_OK;

	*ret_bytes = 0;
	while (r == ABX_OK) {
		r = local_image_lock(call, lock, LOCK_SH);
		if (r != ABX_OK || faccessat(s->images_fd, key, F_OK, 0) == 0)
			break;
		/* Changing the kind of a lock lets go of it in between: look again. */
		r = local_image_lock(call, lock, LOCK_EX);
		if (r == ABX_OK && faccessat(s->images_fd, key, F_OK, 0) < 0)
			r = local_image_make(s, call, key, local_source_unpack,
					     (void *)(uintptr_t)src, ret_bytes);
		made = r == ABX_OK;
	}
	if (made && r == ABX_OK)
		local_image_collect(s, call, key);
	if (r == ABX_OK)
		*ret_lock = abx_steal_fd(&lock);
	return r;
}

/* A name that an image was prepared under.  One that is replaced meanwhile is looked up
 * again. */
static int32_t open_prepared(const struct abx_session *s, struct abx_call *call, const char *name,
			     char ret_key[LOCAL_ID_MAX], int *ret_lock)
{
	char remedy[256];

	for (int i = 0; i < OPEN_TRIES; i++) {
		struct local_prepared pr = LOCAL_PREPARED_INIT;
		abx_autoclose int lock = -1;
		int e = local_prepared_open(s, name, &pr);
		int32_t r;

		if (e == -ENOENT)
			break;
		if (e < 0)
			return abx_fail(call, ABX_EIO, "prepare it again",
					"image: %s: its record is damaged", name);
		(void)snprintf(ret_key, LOCAL_ID_MAX, "%s", pr.key);
		local_prepared_release(&pr);
		lock = local_image_lock_fd(s, ret_key);
		if (lock < 0)
			return abx_fail_errno(call, errno, "image: lock");
		r = local_image_lock(call, lock, LOCK_SH);
		if (r != ABX_OK)
			return r;
		if (faccessat(s->images_fd, ret_key, F_OK, 0) == 0) {
			*ret_lock = abx_steal_fd(&lock);
			return ABX_OK;
		}
	}
	(void)snprintf(remedy, sizeof(remedy), "agentbox prepare --provider local --from %s%.80s",
		       abx_suite_is(name) ? name : "X -n ", abx_suite_is(name) ? "" : name);
	return abx_fail(call, ABX_EINVAL, remedy, "image: %s: not prepared", name);
}

int32_t local_image_open(struct abx_session *s, struct abx_call *call, const char *image,
			 char ret_key[LOCAL_ID_MAX], int *ret_lock)
{
	struct local_source src = {.fd = -1};
	int64_t bytes;
	int32_t r;

	if (image[0] != '/')
		return open_prepared(s, call, image, ret_key, ret_lock);
	r = local_source_open(call, image, &src);
	if (r != ABX_OK)
		return r;
	local_source_key(s, &src, ret_key);
	r = local_image_from(s, call, &src, ret_key, &bytes, ret_lock);
	(void)close(src.fd);
	return r;
}

int32_t local_image_hold(struct abx_session *s, struct abx_call *call, const char *key,
			 int *ret_lock)
{
	abx_autoclose int lock = local_image_lock_fd(s, key);
	int32_t r = lock < 0 ? abx_fail_errno(call, errno, "image: lock")
			     : local_image_lock(call, lock, LOCK_SH);

	if (r == ABX_OK && faccessat(s->images_fd, key, F_OK, 0) < 0)
		return abx_fail_errno(call, errno, "image %s", key);
	if (r == ABX_OK)
		*ret_lock = abx_steal_fd(&lock);
	return r;
}
