/* SPDX-License-Identifier: MIT */
/* libarchive opened when streams are read, and the writing of tar streams. */
#include "core/util/archive.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "abxsdk/tar.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define CHUNK_BYTES (256 * 1024)
#define HEAD_MAX ((size_t)4 << 20)
#define PERMISSIONS 0777

static struct abx_archive_api api;
static pthread_once_t api_once = PTHREAD_ONCE_INIT;
static char api_problem[200];

static void api_open(void)
{
	void *lib = dlopen("libarchive.so.13", RTLD_LAZY | RTLD_LOCAL);
	const char *why;

	if (!lib) {
		why = dlerror();
		(void)snprintf(api_problem, sizeof(api_problem), "%s", why ? why : "unknown");
		return;
	}
	/* POSIX lets dlsym's object pointers carry functions; C does not, hence the copies. */
#define LOAD(name)                                                                   \
	do {                                                                         \
		void *at = dlsym(lib, "archive_" #name);                             \
		memcpy(&api.name, &at, sizeof(at));                                  \
		if (!at)                                                             \
			(void)snprintf(api_problem, sizeof(api_problem),             \
				       "libarchive.so.13 has no archive_%s", #name); \
	} while (0);
	ABX_ARCHIVE_FUNCTIONS(LOAD)
#undef LOAD
}

const struct abx_archive_api *abx_archive_api(struct abx_err *err)
{
	(void)pthread_once(&api_once, api_open);
	if (!api_problem[0])
		return &api;
	(void)abx_err_set(err, ABX_EIO, "libarchive: not usable: %s", api_problem);
	(void)abx_err_remedy(err, "install libarchive, version 3.4 or newer (libarchive13)");
	return NULL;
}

struct abx_tar {
	struct abx_buf head; /* of the entry under way */
	unsigned char *chunk;
	size_t used;
	int fd, stop_fd;
	uint64_t written;
	int (*watch)(void *ctx, uint64_t written);
	void *watch_ctx;
};

/* Wait until the pipe takes something, or somebody says stop. */
static int wait_writable(struct abx_tar *t)
{
	struct pollfd fds[2] = {{t->fd, POLLOUT, 0}, {t->stop_fd, POLLIN, 0}};

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return errno;
	return fds[1].revents ? ECANCELED : 0;
}

static int flush(struct abx_tar *t, struct abx_err *err)
{
	size_t done = 0;
	int e = 0;

	while (!e && done < t->used) {
		const ssize_t n = write(t->fd, t->chunk + done, t->used - done);

		if (n < 0) {
			e = errno == EAGAIN ? wait_writable(t) : errno == EINTR ? 0 : errno;
			continue;
		}
		done += (size_t)n;
		t->written += (uint64_t)n;
		if (t->watch && t->watch(t->watch_ctx, t->written) != 0)
			e = ECANCELED;
	}
	t->used = 0;
	if (e == ECANCELED)
		return abx_err_set(err, ABX_ECANCELED, "write archive: given up");
	return e ? abx_err_errno(err, e, "write archive") : 0;
}

void abx_tar_watch(struct abx_tar *t, int (*watch)(void *ctx, uint64_t written), void *ctx)
{
	t->watch = watch;
	t->watch_ctx = ctx;
}

int abx_tar_open(int fd, int stop_fd, struct abx_tar **ret, struct abx_err *err)
{
	struct abx_tar *t;

	if (stop_fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return abx_err_errno(err, errno, "write archive");
	t = abx_xcalloc(1, sizeof(*t));
	t->head = (struct abx_buf)ABX_BUF_INIT(HEAD_MAX);
	t->fd = fd;
	t->stop_fd = stop_fd;
	t->chunk = abx_xcalloc(1, CHUNK_BYTES);
	*ret = t;
	return 0;
}

/* `data` NULL: zeros. */
static int put(struct abx_tar *t, const void *data, size_t len, struct abx_err *err)
{
	size_t done = 0;

	while (done < len) {
		const size_t room = CHUNK_BYTES - t->used,
			     n = len - done < room ? len - done : room;
		int r;

		if (data)
			memcpy(t->chunk + t->used, (const unsigned char *)data + done, n);
		else
			memset(t->chunk + t->used, 0, n);
		t->used += n;
		done += n;
		r = t->used == CHUNK_BYTES ? flush(t, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* What is left when it is not called has no end: a cut stream looks cut. */
int abx_tar_finish(struct abx_tar *t, struct abx_err *err)
{
	const int r = put(t, NULL, 2 * ABX_TAR_BLOCK, err);

	return r < 0 ? r : flush(t, err);
}

void abx_tar_close(struct abx_tar *t)
{
	if (!t)
		return;
	abx_buf_release(&t->head);
	free(t->chunk);
	free(t);
}

static int put_head(struct abx_tar *t, const struct abx_tar_head *head, struct abx_err *err)
{
	char shown[200];

	abx_buf_reset(&t->head);
	abx_tar_head_add(&t->head, head);
	if (!t->head.failed)
		return put(t, t->head.data, t->head.len, err);
	abx_quote_text(head->name, shown, sizeof(shown));
	return abx_err_set(err, ABX_EINVAL, "write archive: '%s': the name is too long", shown);
}

int abx_tar_dir(struct abx_tar *t, const char *name, mode_t mode, time_t mtime, struct abx_err *err)
{
	const struct abx_tar_head head = {.type = ABX_TAR_DIR,
					  .name = name,
					  .mode = (mode & PERMISSIONS) | S_IRWXU,
					  .mtime_s = mtime};

	return put_head(t, &head, err);
}

int abx_tar_symlink(struct abx_tar *t, const char *name, const char *target, time_t mtime,
		    struct abx_err *err)
{
	const struct abx_tar_head head = {.type = ABX_TAR_SYMLINK,
					  .name = name,
					  .target = target,
					  .mode = PERMISSIONS,
					  .mtime_s = mtime};

	return put_head(t, &head, err);
}

int abx_tar_hardlink(struct abx_tar *t, const char *name, const char *target, mode_t mode,
		     time_t mtime, struct abx_err *err)
{
	const struct abx_tar_head head = {.type = ABX_TAR_HARDLINK,
					  .name = name,
					  .target = target,
					  .mode = mode & PERMISSIONS,
					  .mtime_s = mtime};

	return put_head(t, &head, err);
}

static int put_file_head(struct abx_tar *t, const char *name, mode_t mode, time_t mtime,
			 uint64_t size, struct abx_err *err)
{
	/* What root may read here, a user may own there. */
	const struct abx_tar_head head = {.type = ABX_TAR_FILE,
					  .name = name,
					  .mode = (mode & PERMISSIONS) | S_IRUSR,
					  .size = size,
					  .mtime_s = mtime};

	return put_head(t, &head, err);
}

int abx_tar_bytes(struct abx_tar *t, const char *name, mode_t mode, time_t mtime, const void *data,
		  size_t len, struct abx_err *err)
{
	int r = put_file_head(t, name, mode, mtime, len, err);

	if (r == 0 && len)
		r = put(t, data, len, err);
	return r < 0 ? r : put(t, NULL, abx_tar_padding(len), err);
}

static int changed(const char *name, struct abx_err *err)
{
	char shown[200];

	abx_quote_text(name, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_ESTATE, "read file: '%s': it changed while it was read", shown);
	return abx_err_remedy(err, "try again when nothing writes to it");
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Read into the chunk, where the stream goes on. */
static int put_content(struct abx_tar *t, const char *name, int fd, uint64_t left,
		       struct abx_sha1 *blob, struct abx_err *err)
{
	while (left) {
		unsigned char *at = t->chunk + t->used;
		const size_t room = CHUNK_BYTES - t->used;
		const ssize_t n = read(fd, at, left < room ? (size_t)left : room);
		int r = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return abx_err_errno(err, errno, "read file '%s'", name);
		if (n == 0)
			return changed(name, err);
		if (blob)
			abx_sha1_update(blob, at, (size_t)n);
		t->used += (size_t)n;
		left -= (uint64_t)n;
		if (t->used == CHUNK_BYTES)
			r = flush(t, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int abx_tar_file_live(struct abx_tar *t, const char *name, int fd, const struct stat *st,
		      struct abx_sha1 *blob, struct stat *ret_after, struct abx_err *err)
{
	const uint64_t size = (uint64_t)st->st_size;
	struct stat now;
	int r = put_file_head(t, name, st->st_mode, st->st_mtim.tv_sec, size, err);

	if (blob)
		abx_blob_id_init(blob, size);
	if (r == 0)
		r = put_content(t, name, fd, size, blob, err);
	if (r == 0)
		r = put(t, NULL, abx_tar_padding(size), err);
	if (r < 0)
		return r;
	if (fstat(fd, &now) < 0)
		return abx_err_errno(err, errno, "read file '%s'", name);
	*ret_after = now;
	return 0;
}

int abx_tar_file(struct abx_tar *t, const char *name, int fd, const struct stat *st,
		 struct abx_sha1 *blob, struct abx_err *err)
{
	struct stat now;
	const int r = abx_tar_file_live(t, name, fd, st, blob, &now, err);

	if (r < 0)
		return r;
	if (now.st_size != st->st_size || !same_time(&now.st_mtim, &st->st_mtim))
		return changed(name, err);
	return 0;
}
