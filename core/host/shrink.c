/* SPDX-License-Identifier: MIT */
/* What goes to a box elsewhere goes compressed. */
#include "core/host/shrink.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/pump.h"

/* A provider that shows no output before the input has ended must not wait for ever. */
#define ANSWER_MS 15000

const char abx_shrink_script[] =
	"[ -z \"$3\" ] || mkdir -p -- \"$1\" || exit\n"
	"cd -- \"$1\" || exit\n"
	"if " ABX_HAS_ZSTD_SH "; then echo zstd; else echo plain; fi\n"
	"read -r how || exit\n"
	"if [ \"$how\" = zstd ]; then\n" ABX_UNPACK_ZSTD_SH "else\n" ABX_UNPACK_SH "fi\n";

bool abx_shrink_wanted(const struct abx_cloud *c)
{
	return !(abx_cloud_caps(c) & ABX_CAP_LOCAL) && abx_pump_can_zstd();
}

struct feed {
	int from;
	bool zstd;
	const struct abx_shrink_answer *answer;
};

static int pump(const struct feed *f, int fd, int stop_fd, struct abx_err *err)
{
	const struct abx_pump p = {f->from, fd, stop_fd, f->zstd};
	struct abx_pump_count n = {0};
	const int r = abx_pump_run(&p, &n, err);

	if (r == 0)
		abx_log(ABX_LOG_DEBUG, "shrink", "shrink: %llu bytes as %llu",
			(unsigned long long)n.in, (unsigned long long)n.out);
	return r;
}

static int compress(void *ctx, int fd, int stop_fd, struct abx_err *err)
{
	return pump(ctx, fd, stop_fd, err);
}

int abx_shrink_run(int from, abx_stream_call_fn call, void *ctx, struct abx_err *err)
{
	struct feed f = {.from = from, .zstd = true};

	return abx_stream_run(call, ctx, /* put= */ true, compress, &f, err);
}

int abx_shrink_answer_open(struct abx_shrink_answer *a, struct abx_err *err)
{
	return pipe2(a->fds, O_CLOEXEC | O_NONBLOCK) < 0 ? abx_err_errno(err, errno, "make a pipe")
							 : 0;
}

void abx_shrink_answer_close(struct abx_shrink_answer *a)
{
	(void)close(a->fds[0]);
	(void)close(a->fds[1]);
}

/* One letter says it, and a full pipe has it already. */
void abx_shrink_answer_feed(struct abx_shrink_answer *a, const void *data, size_t len)
{
	if (len)
		(void)!write(a->fds[1], data, 1);
}

static int wait_answer(const struct abx_shrink_answer *a, int stop_fd, bool *ret_zstd,
		       struct abx_err *err)
{
	const int64_t end = abx_now_ms() + ANSWER_MS;
	char letter = 'p';

	for (;;) {
		struct pollfd fds[2] = {{a->fds[0], POLLIN, 0}, {stop_fd, POLLIN, 0}};
		const int64_t left = end - abx_now_ms();
		const int n = left > 0 ? poll(fds, 2, (int)left) : 0;

		if (n < 0)
			continue;
		if (fds[1].revents)
			return abx_err_set(err, ABX_ECANCELED, "stream: given up");
		if (n == 0)
			abx_log(ABX_LOG_DEBUG, "shrink",
				"shrink: the box does not say what it can read");
		else if (read(a->fds[0], &letter, 1) < 0)
			letter = 'p';
		*ret_zstd = letter == 'z';
		return 0;
	}
}

static int feed_as_answered(void *ctx, int fd, int stop_fd, struct abx_err *err)
{
	struct feed *f = ctx;
	int r = wait_answer(f->answer, stop_fd, &f->zstd, err);
	const char *line = f->zstd ? "zstd\n" : "plain\n";

	if (r < 0)
		return r;
	/* The pipe is still empty. */
	r = abx_fs_write_all(fd, line, strlen(line));
	return r < 0 ? abx_err_errno(err, -r, "stream") : pump(f, fd, stop_fd, err);
}

int abx_shrink_as_answered(int from, struct abx_shrink_answer *a, abx_stream_call_fn call,
			   void *ctx, struct abx_err *err)
{
	struct feed f = {.from = from, .answer = a};

	return abx_stream_run(call, ctx, /* put= */ true, feed_as_answered, &f, err);
}
