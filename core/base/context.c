/* SPDX-License-Identifier: MIT */
/* What base images are built of, as a tar stream. */
#include "core/base/context.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "abxsdk/tar.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/sha1.h"

#ifndef ABX_DATADIR
#define ABX_DATADIR "/usr/share/agentbox"
#endif
#define TEXT_MAX_BYTES ((size_t)1 << 20)
#define GIVEN_MAX_BYTES ((int64_t)1 << 30)
#define CHUNK_BYTES ((size_t)65536)
#define PLUGIN_DIR "cli-plugins"

/* What comes with the program. */
static const struct {
	const char *name;
	uint32_t mode;
} parts[] = {
	{"Dockerfile", 0644},
	{"install.sh", 0755},
	{"start-dockerd.sh", 0755},
};

struct writer {
	int fd; /* -1: nothing is written */
	char *dockerfile;
	struct abx_sha1 all; /* what the fingerprint is of */
	struct abx_err *err;
};

static int put(struct writer *w, const void *data, size_t len)
{
	int r = w->fd >= 0 ? abx_fs_write_all(w->fd, data, len) : 0;

	return r < 0 ? abx_err_errno(w->err, r, "write what the image is built of") : 0;
}

static int put_head(struct writer *w, enum abx_tar_type type, const char *name, uint32_t mode,
		    uint64_t size)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);
	const struct abx_tar_head head = {.type = type, .name = name, .mode = mode, .size = size};

	abx_tar_head_add(&b, &head);
	return put(w, b.data, b.len);
}

static int put_zeros(struct writer *w, size_t n)
{
	static const char zeros[2 * ABX_TAR_BLOCK];

	return put(w, zeros, n);
}

static void note(struct writer *w, const char *name, const void *data, size_t len)
{
	char head[128];
	int n = snprintf(head, sizeof(head), "%.80s %zu", name, len);

	abx_sha1_update(&w->all, head, (size_t)n + 1);
	abx_sha1_update(&w->all, data, len);
}

static int put_text(struct writer *w, const char *name, uint32_t mode, const char *text, size_t len)
{
	int r = put_head(w, ABX_TAR_FILE, name, mode, len);

	if (r == 0)
		r = put(w, text, len);
	return r < 0 ? r : put_zeros(w, abx_tar_padding(len));
}

static int put_part(struct writer *w, const char *name, uint32_t mode)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(TEXT_MAX_BYTES);
	const char *given = secure_getenv("AGENTBOX_BASE_PATH");
	abx_autofree char *path =
		abx_xasprintf("%s/%s", given && *given ? given : ABX_DATADIR "/base", name);
	int r = abx_fs_read(AT_FDCWD, path, &text);

	if (r < 0) {
		(void)abx_err_errno(w->err, r, "what base images are built of: '%s'", path);
		return abx_err_remedy(w->err, "reinstall agentbox, or set AGENTBOX_BASE_PATH");
	}
	note(w, name, text.data, text.len);
	r = put_text(w, name, mode, abx_buf_str(&text), text.len);
	if (r == 0 && strcmp(name, "Dockerfile") == 0)
		w->dockerfile = abx_buf_steal(&text);
	return r;
}

static int open_given(const struct abx_base_file *f, struct stat *st, struct abx_err *err)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, st) < 0) {
		int e = errno;

		abx_cleanup_close(&fd);
		(void)abx_err_errno(err, e, "%s: '%s'", f->name, f->path);
		return abx_err_remedy(err, "correct its path, or take the setting away");
	}
	if (S_ISREG(st->st_mode) && st->st_size <= GIVEN_MAX_BYTES)
		return fd;
	(void)close(fd);
	return abx_err_set(err, ABX_EINVAL, "%s: '%s': not a file of at most 1 GiB", f->name,
			   f->path);
}

/* Exactly `size` bytes, whatever becomes of the file; their hash. */
static int copy_given(struct writer *w, const struct abx_base_file *f, int fd, uint64_t size,
		      char sum[ABX_SHA256_HEX_BYTES])
{
	abx_auto(abx_sha1) struct abx_sha1 h = ABX_SHA1_INIT;
	abx_autofree char *chunk = abx_xcalloc(1, CHUNK_BYTES);
	int r = 0;

	abx_sha256_init(&h);
	while (size && r == 0) {
		ssize_t n = read(fd, chunk, size < CHUNK_BYTES ? (size_t)size : CHUNK_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return abx_err_errno(w->err, n < 0 ? errno : EIO, "%s: read '%s'", f->name,
					     f->path);
		abx_sha1_update(&h, chunk, (size_t)n);
		r = put(w, chunk, (size_t)n);
		size -= (uint64_t)n;
	}
	abx_sha256_hex(&h, sum);
	return r;
}

static int put_given(struct writer *w, const struct abx_base_file *f)
{
	abx_autofree char *name = abx_xasprintf(PLUGIN_DIR "/%s", f->name);
	char sum[ABX_SHA256_HEX_BYTES];
	struct stat st;
	abx_autoclose int fd = open_given(f, &st, w->err);
	int r;

	if (fd < 0)
		return fd;
	r = put_head(w, ABX_TAR_FILE, name, 0755, (uint64_t)st.st_size);
	if (r == 0)
		r = copy_given(w, f, fd, (uint64_t)st.st_size, sum);
	if (r == 0)
		r = put_zeros(w, abx_tar_padding((uint64_t)st.st_size));
	if (r < 0)
		return r;
	if (strcmp(sum, f->sha256) == 0)
		return 0;
	(void)abx_err_set(w->err, ABX_EPOLICY,
			  "%s: '%s' is not the file that was meant: its SHA-256 is %s", f->name,
			  f->path, sum);
	return abx_err_remedy(w->err, "get it again, or correct the hash");
}

static int put_all(struct writer *w, const struct abx_base_how *how)
{
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(parts) && r == 0; i++)
		r = put_part(w, parts[i].name, parts[i].mode);
	note(w, "packages", how->packages, strlen(how->packages));
	for (size_t i = 0; i < how->n_files; i++)
		note(w, how->files[i].name, how->files[i].sha256, strlen(how->files[i].sha256));
	if (w->fd < 0 || r < 0)
		return r;
	/* It leaves no trace in the image, and changes nothing about it. */
	r = put_text(w, "ca.pem", 0644, how->ca ? how->ca : "", how->ca ? strlen(how->ca) : 0);
	if (r == 0)
		r = put_head(w, ABX_TAR_DIR, PLUGIN_DIR, 0755, 0);
	for (size_t i = 0; i < how->n_files && r == 0; i++)
		r = put_given(w, &how->files[i]);
	return r < 0 ? r : put_zeros(w, 2 * ABX_TAR_BLOCK);
}

static int open_unnamed(const struct abx_home *home, struct abx_err *err)
{
	abx_autofree char *dir = NULL;
	int fd, r = abx_home_dir(home, &dir, err, "tmp");

	if (r < 0)
		return r;
	fd = abx_fs_open_scratch(dir);
	return fd < 0 ? abx_err_errno(err, fd, "a file in '%s'", dir) : fd;
}

static int make(struct writer *w, const struct abx_base_how *how,
		char fingerprint[ABX_BASE_FINGERPRINT_BYTES])
{
	char sum[ABX_SHA256_HEX_BYTES];
	int r = abx_sha1_open(w->err);

	if (r < 0)
		return r;
	abx_sha256_init(&w->all);
	r = put_all(w, how);
	abx_sha256_hex(&w->all, sum);
	abx_sha1_release(&w->all);
	if (r == 0)
		(void)snprintf(fingerprint, ABX_BASE_FINGERPRINT_BYTES, "sha256:%s", sum);
	return r;
}

int abx_base_context_print(const struct abx_base_how *how,
			   char fingerprint[ABX_BASE_FINGERPRINT_BYTES], struct abx_err *err)
{
	struct writer w = {.fd = -1, .all = ABX_SHA1_INIT, .err = err};
	int r = make(&w, how, fingerprint);

	free(w.dockerfile);
	return r;
}

int abx_base_context_open(const struct abx_home *home, const struct abx_base_how *how,
			  struct abx_base_context *ret, struct abx_err *err)
{
	struct abx_base_context c = ABX_BASE_CONTEXT_INIT;
	struct writer w = {.fd = -1, .all = ABX_SHA1_INIT, .err = err};
	int r;

	c.fd = w.fd = open_unnamed(home, err);
	if (c.fd < 0)
		return c.fd;
	r = make(&w, how, c.fingerprint);
	c.dockerfile = w.dockerfile;
	if (r == 0 && lseek(c.fd, 0, SEEK_SET) < 0)
		r = abx_err_errno(err, errno, "what the image is built of");
	if (r < 0)
		abx_base_context_release(&c);
	else
		*ret = c;
	return r;
}

void abx_base_context_release(struct abx_base_context *c)
{
	abx_cleanup_close(&c->fd);
	free(c->dockerfile);
	c->dockerfile = NULL;
}
