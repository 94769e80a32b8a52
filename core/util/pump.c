/* SPDX-License-Identifier: MIT */
/* A stream from one descriptor to another, on request compressed on its way. */
#include "core/util/pump.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "core/util/archive.h"
#include "core/util/mem.h"

#define CHUNK_BYTES ((size_t)256 * 1024)
#define PIPE_BYTES (1 << 20)

static const unsigned char zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};

struct run {
	const struct abx_pump *pump;
	const struct abx_archive_api *la;
	struct archive *a;
	struct abx_pump_count count;
	int error; /* of writing; nothing is written any more */
};

static int wait_for(const struct abx_pump *p, int fd, short events)
{
	struct pollfd fds[2] = {{fd, events, 0}, {p->stop_fd, POLLIN, 0}};

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return errno;
	return fds[1].revents ? ECANCELED : 0;
}

static int write_out(struct run *x, const void *data, size_t len)
{
	const char *at = data;

	while (!x->error && len) {
		const ssize_t n = write(x->pump->to, at, len);

		if (n < 0) {
			if (errno != EINTR)
				x->error = errno == EAGAIN ? wait_for(x->pump, x->pump->to, POLLOUT)
							   : errno;
			continue;
		}
		at += n;
		len -= (size_t)n;
		x->count.out += (uint64_t)n;
	}
	return x->error;
}

static la_ssize_t on_compressed(struct archive *a, void *ctx, const void *data, size_t len)
{
	(void)a;
	return write_out(ctx, data, len) ? -1 : (la_ssize_t)len;
}

static int failed(const struct run *x, int errnum, struct abx_err *err)
{
	const char *why = x->a ? x->la->error_string(x->a) : NULL;

	if (x->error)
		errnum = x->error;
	if (errnum == ECANCELED)
		return abx_err_set(err, ABX_ECANCELED, "stream: given up");
	if (errnum)
		return abx_err_errno(err, errnum, "stream");
	return abx_err_set(err, ABX_EIO, "compress: %s", why ? why : "libarchive failed");
}

/* A filter that libarchive would have to run a program for is none. */
static struct archive *new_compressor(const struct abx_archive_api *la)
{
	struct archive *a = la->write_new();

	if (!a)
		return NULL;
	if (la->write_add_filter_zstd(a) == ARCHIVE_OK &&
	    la->write_set_format_raw(a) == ARCHIVE_OK &&
	    la->write_set_filter_option(a, "zstd", "compression-level", "1") == ARCHIVE_OK &&
	    la->write_set_bytes_per_block(a, 0) == ARCHIVE_OK &&
	    la->write_set_bytes_in_last_block(a, 1) == ARCHIVE_OK)
		return a;
	(void)la->write_free(a);
	return NULL;
}

bool abx_pump_can_zstd(void)
{
	const struct abx_archive_api *la = abx_archive_api(/* err= */ NULL);
	struct archive *a = la ? new_compressor(la) : NULL;

	if (a)
		(void)la->write_free(a);
	return a;
}

static int open_compressor(struct run *x, struct abx_err *err)
{
	struct archive_entry *e;
	int r;

	x->la = abx_archive_api(err);
	if (!x->la)
		return ABX_EIO;
	x->a = new_compressor(x->la);
	e = x->la->entry_new();
	if (!x->a || !e) {
		x->la->entry_free(e);
		return abx_err_set(err, ABX_EIO, "compress: libarchive has no zstd");
	}
	x->la->entry_set_filetype(e, AE_IFREG);
	r = x->la->write_open(x->a, x, NULL, on_compressed, NULL);
	if (r == ARCHIVE_OK)
		r = x->la->write_header(x->a, e);
	x->la->entry_free(e);
	return r == ARCHIVE_OK ? 0 : failed(x, 0, err);
}

static int put(struct run *x, const unsigned char *data, size_t len, struct abx_err *err)
{
	if (!x->a)
		return write_out(x, data, len) ? failed(x, 0, err) : 0;
	while (len) {
		const la_ssize_t n = x->la->write_data(x->a, data, len);

		if (n <= 0)
			return failed(x, 0, err);
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* At least `least` bytes, or what is left before the end; negative: failed. */
static ssize_t fill(struct run *x, unsigned char *chunk, size_t least, struct abx_err *err)
{
	size_t have = 0;

	while (have < least) {
		const int e = wait_for(x->pump, x->pump->from, POLLIN);
		const ssize_t n = e ? 0 : read(x->pump->from, chunk + have, CHUNK_BYTES - have);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (e || n < 0)
			return failed(x, e ? e : errno, err);
		if (n == 0)
			break;
		have += (size_t)n;
		x->count.in += (uint64_t)n;
	}
	return (ssize_t)have;
}

static int run(struct run *x, unsigned char *chunk, struct abx_err *err)
{
	ssize_t n = fill(x, chunk, sizeof(zstd_magic), err);
	int r = n < 0 ? (int)n : 0;

	if (r == 0 && x->pump->zstd &&
	    ((size_t)n < sizeof(zstd_magic) || memcmp(chunk, zstd_magic, sizeof(zstd_magic)) != 0))
		r = open_compressor(x, err);
	while (r == 0 && n > 0) {
		r = put(x, chunk, (size_t)n, err);
		if (r < 0)
			break;
		n = fill(x, chunk, 1, err);
		r = n < 0 ? (int)n : 0;
	}
	if (r == 0 && x->a && x->la->write_close(x->a) != ARCHIVE_OK)
		r = failed(x, 0, err);
	return r;
}

void abx_pump_widen(int fd)
{
#ifdef F_SETPIPE_SZ
	(void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
#else
	(void)fd;
#endif
}

int abx_pump_run(const struct abx_pump *pump, struct abx_pump_count *ret, struct abx_err *err)
{
	abx_autofree unsigned char *chunk = abx_xcalloc(1, CHUNK_BYTES);
	struct run x = {.pump = pump};
	int r;

	if (fcntl(pump->to, F_SETFL, O_NONBLOCK) < 0)
		return abx_err_errno(err, errno, "stream");
	abx_pump_widen(pump->to);
	r = run(&x, chunk, err);
	/* Freeing what did not come to its end writes once more. */
	if (r < 0 && !x.error)
		x.error = ECANCELED;
	if (x.a)
		(void)x.la->write_free(x.a);
	if (r == 0 && ret)
		*ret = x.count;
	return r;
}
