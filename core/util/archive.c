/* SPDX-License-Identifier: MIT */
/* libarchive opened when needed, and the writing of tar streams. */
#include "core/util/archive.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "core/util/mem.h"
#include "core/util/parse.h"

#define CHUNK_BYTES (256 * 1024)
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

static void *preload(void *arg)
{
	(void)arg;
	(void)pthread_once(&api_once, api_open);
	return NULL;
}

static pthread_once_t preload_once = PTHREAD_ONCE_INIT;

static void preload_start(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr))
		return;
	if (pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0)
		(void)pthread_create(&thread, &attr, preload, NULL);
	(void)pthread_attr_destroy(&attr);
}

void abx_archive_preload(void)
{
	(void)pthread_once(&preload_once, preload_start);
}

struct abx_tar {
	const struct abx_archive_api *la;
	struct archive *a;
	struct archive_entry *entry;
	unsigned char *chunk;
	int fd, stop_fd;
	int io_errno; /* why the stream failed */
	bool closing;
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

/* libarchive leaks its buffer when a write fails under a header, so none does: it is told
 * that all went well, and io_errno is looked at after each call.  Only the end of a stream
 * that was given up fails, lest it be filled up with zeros to its announced size. */
static la_ssize_t on_write(struct archive *a, void *ctx, const void *data, size_t len)
{
	struct abx_tar *t = ctx;

	(void)a;
	if (t->closing)
		return -1;
	while (!t->io_errno) {
		const ssize_t n = write(t->fd, data, len);

		if (n >= 0) {
			t->written += (uint64_t)n;
			if (!t->watch || t->watch(t->watch_ctx, t->written) == 0)
				return n;
			t->io_errno = ECANCELED;
		} else {
			t->io_errno = errno == EAGAIN  ? wait_writable(t)
				      : errno == EINTR ? 0
						       : errno;
		}
	}
	return (la_ssize_t)len;
}

void abx_tar_watch(struct abx_tar *t, int (*watch)(void *ctx, uint64_t written), void *ctx)
{
	t->watch = watch;
	t->watch_ctx = ctx;
}

static int tar_fail(const struct abx_tar *t, const char *name, struct abx_err *err)
{
	const char *text = t->la->error_string(t->a);
	char shown[200];

	abx_quote_text(name, shown, sizeof(shown));
	if (t->io_errno == ECANCELED)
		return abx_err_set(err, ABX_ECANCELED, "write archive: given up");
	if (t->io_errno)
		return abx_err_errno(err, t->io_errno, "write archive");
	return abx_err_set(err, ABX_EIO, "write archive: '%s': %s", shown, text ? text : "failed");
}

int abx_tar_open(int fd, int stop_fd, struct abx_tar **ret, struct abx_err *err)
{
	const struct abx_archive_api *la = abx_archive_api(err);
	struct abx_tar *t;
	int r;

	if (!la)
		return ABX_EIO;
	if (stop_fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return abx_err_errno(err, errno, "write archive");
	t = abx_xcalloc(1, sizeof(*t));
	t->la = la;
	t->fd = fd;
	t->stop_fd = stop_fd;
	t->chunk = abx_xcalloc(1, CHUNK_BYTES);
	t->a = la->write_new();
	t->entry = la->entry_new();
	r = t->a && t->entry ? ARCHIVE_OK : ARCHIVE_FATAL;
	if (r == ARCHIVE_OK)
		r = la->write_set_format_gnutar(t->a);
	if (r == ARCHIVE_OK)
		r = la->write_set_bytes_per_block(t->a, CHUNK_BYTES);
	/* The end must not be padded to a whole block: small trees are small streams. */
	if (r == ARCHIVE_OK)
		r = la->write_set_bytes_in_last_block(t->a, 1);
	if (r == ARCHIVE_OK)
		r = la->write_open(t->a, t, NULL, on_write, NULL);
	if (r != ARCHIVE_OK) {
		abx_tar_close(t);
		return abx_err_set(err, ABX_ENOMEM, "write archive: libarchive does not start");
	}
	*ret = t;
	return 0;
}

int abx_tar_finish(struct abx_tar *t, struct abx_err *err)
{
	return t->la->write_close(t->a) == ARCHIVE_OK && !t->io_errno ? 0 : tar_fail(t, "", err);
}

void abx_tar_close(struct abx_tar *t)
{
	if (!t)
		return;
	if (t->entry)
		t->la->entry_free(t->entry);
	if (t->a) {
		/* Freeing an unfinished archive finishes it: a cut stream must look cut. */
		t->closing = true;
		(void)t->la->write_free(t->a);
	}
	free(t->chunk);
	free(t);
}

static int put_header(struct abx_tar *t, const char *name, mode_t mode, time_t mtime, uint64_t size,
		      const char *target, struct abx_err *err)
{
	const struct abx_archive_api *la = t->la;

	la->entry_clear(t->entry);
	la->entry_set_pathname(t->entry, name);
	la->entry_set_filetype(t->entry, mode & S_IFMT);
	la->entry_set_perm(t->entry, mode & PERMISSIONS);
	la->entry_set_mtime(t->entry, mtime, 0);
	la->entry_set_size(t->entry, (la_int64_t)size);
	if (target)
		la->entry_set_symlink(t->entry, target);
	if (la->write_header(t->a, t->entry) != ARCHIVE_OK || t->io_errno)
		return tar_fail(t, name, err);
	return 0;
}

static int put_data(struct abx_tar *t, const char *name, const void *data, size_t len,
		    struct abx_err *err)
{
	if (!len)
		return 0;
	if (t->la->write_data(t->a, data, len) != (la_ssize_t)len || t->io_errno)
		return tar_fail(t, name, err);
	return 0;
}

int abx_tar_dir(struct abx_tar *t, const char *name, mode_t mode, time_t mtime, struct abx_err *err)
{
	return put_header(t, name, S_IFDIR | (mode & PERMISSIONS) | S_IRWXU, mtime, 0, NULL, err);
}

int abx_tar_symlink(struct abx_tar *t, const char *name, const char *target, time_t mtime,
		    struct abx_err *err)
{
	return put_header(t, name, S_IFLNK | PERMISSIONS, mtime, 0, target, err);
}

int abx_tar_bytes(struct abx_tar *t, const char *name, mode_t mode, time_t mtime, const void *data,
		  size_t len, struct abx_err *err)
{
	const int r = put_header(t, name, S_IFREG | (mode & PERMISSIONS), mtime, len, NULL, err);

	return r < 0 ? r : put_data(t, name, data, len, err);
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

int abx_tar_file(struct abx_tar *t, const char *name, int fd, const struct stat *st,
		 struct abx_sha1 *blob, struct abx_err *err)
{
	uint64_t left = (uint64_t)st->st_size;
	struct stat now;
	int r = put_header(t, name, S_IFREG | (st->st_mode & PERMISSIONS), st->st_mtim.tv_sec, left,
			   NULL, err);

	if (blob)
		abx_blob_id_init(blob, left);
	while (r == 0 && left) {
		const size_t want = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
		const ssize_t n = read(fd, t->chunk, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return abx_err_errno(err, errno, "read file '%s'", name);
		if (n == 0)
			return changed(name, err);
		if (blob)
			abx_sha1_update(blob, t->chunk, (size_t)n);
		r = put_data(t, name, t->chunk, (size_t)n, err);
		left -= (uint64_t)n;
	}
	if (r < 0)
		return r;
	if (fstat(fd, &now) < 0)
		return abx_err_errno(err, errno, "read file '%s'", name);
	if (now.st_size != st->st_size || !same_time(&now.st_mtim, &st->st_mtim))
		return changed(name, err);
	return 0;
}
