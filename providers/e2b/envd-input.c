/* SPDX-License-Identifier: MIT */
/* What a command is given while it runs. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "abxsdk/clock.h"
#include "providers/e2b/envd.h"

#define CHUNK_BYTES ((size_t)256 << 10)
/* How long a network may be away. */
#define AWAY_MS 60000
#define AGAIN_MS 500
#define GRACE_MS 2000
/* What stands before the bytes in a message of StreamInput. */
#define HEADS_MAX (E2B_FRAME_HEAD_BYTES + 3 * E2B_PB_HEAD_MAX)
#define FIELD_STDIN 1
#define FIELD_PTY 2

static bool is_pty(const struct e2b_input *in)
{
	return in->req->flags & ABX_EXEC_PTY;
}

static void wake(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

/* What the command was to be given is not what it got: no longer wait for what it makes of it. */
static void lose(struct e2b_input *in, const char *why)
{
	(void)snprintf(in->why_lost, sizeof(in->why_lost), "%.190s", why);
	atomic_store(&in->lost, true);
	wake(in->give_up_fd);
}

/* True: it is to end. */
static bool stopped(const struct e2b_input *in, int64_t ms)
{
	struct pollfd p = {.fd = in->stop_fd, .events = POLLIN};

	return poll(&p, 1, (int)ms) > 0;
}

static void rpc_init(struct e2b_input *in, struct e2b_aside *a, const char *method,
		     struct e2b_rpc *ret)
{
	*ret = (struct e2b_rpc){.http = e2b_aside_http(a),
				.call = e2b_aside_call(a),
				.method = method,
				.body_fd = -1};
	(void)in;
}

/* A request that did not get through is sent again; one that may have is not. */
static int32_t send(struct e2b_input *in, struct e2b_rpc *rpc, const struct abx_buf *msg)
{
	const int64_t end = abx_monotonic_ms() + AWAY_MS;

	for (;;) {
		int32_t r = e2b_rpc_call(in->envd, rpc, msg);

		const bool in_vain = r == ABX_ERATE || (r == ABX_ENETWORK && !rpc->sent);

		if (!in_vain || abx_monotonic_ms() > end)
			return r;
		if (stopped(in, AGAIN_MS))
			return ABX_ECANCELED;
	}
}

/* Has it ended, or closed its input, so that nobody misses what it is not given? */
static bool is_over(int32_t r, const struct e2b_rpc *rpc)
{
	return r == ABX_ECANCELED || r == ABX_ENOTFOUND || strcmp(rpc->code, "internal") == 0 ||
	       strcmp(rpc->code, "unknown") == 0;
}

/* {process, input: {stdin or pty: bytes}}; false: there is nobody to give more to. */
static bool give(struct e2b_input *in, struct e2b_aside *a, const void *data, size_t len)
{
	abx_auto(abx_buf) struct abx_buf msg = ABX_BUF_INIT(2 * CHUNK_BYTES);
	abx_auto(abx_buf) struct abx_buf input = ABX_BUF_INIT(2 * CHUNK_BYTES);
	struct e2b_rpc rpc;
	int32_t r;

	rpc_init(in, a, "process.Process/SendInput", &rpc);
	e2b_rpc_put_pid(&msg, in->pid);
	e2b_pb_put_bytes(&input, is_pty(in) ? FIELD_PTY : FIELD_STDIN, data, len);
	e2b_pb_put_bytes(&msg, 2, abx_buf_str(&input), input.len);
	r = input.failed ? ABX_ENOMEM : send(in, &rpc, &msg);
	if (input.data)
		explicit_bzero(input.data, input.len);
	if (msg.data)
		explicit_bzero(msg.data, msg.len);
	if (r != ABX_OK && !is_over(r, &rpc))
		lose(in, rpc.text);
	return r == ABX_OK;
}

static void end_input(struct e2b_input *in, struct e2b_aside *a)
{
	abx_auto(abx_buf) struct abx_buf msg = ABX_BUF_INIT(64);
	struct e2b_rpc rpc;
	int32_t r;

	if (is_pty(in)) {
		(void)give(in, a, "\4", 1);
		return;
	}
	rpc_init(in, a, "process.Process/CloseStdin", &rpc);
	e2b_rpc_put_pid(&msg, in->pid);
	r = send(in, &rpc, &msg);
	if (r != ABX_OK && !is_over(r, &rpc))
		lose(in, rpc.text);
}

/* What is read, in frames of StreamInput. */
struct much {
	struct e2b_input *in;
	bool begun;
	int read_errno;
};

static size_t put_start(const struct much *m, unsigned char *to)
{
	abx_auto(abx_buf) struct abx_buf msg = ABX_BUF_INIT(64), start = ABX_BUF_INIT(64);

	e2b_rpc_put_pid(&start, m->in->pid);
	e2b_pb_put_bytes(&msg, 1, abx_buf_str(&start), start.len);
	e2b_frame_head(to, msg.len);
	memcpy(to + E2B_FRAME_HEAD_BYTES, abx_buf_str(&msg), msg.len);
	return E2B_FRAME_HEAD_BYTES + msg.len;
}

/* {data: {input: {stdin: bytes}}} around the bytes at to + HEADS_MAX. */
static size_t put_data(unsigned char *to, size_t len)
{
	unsigned char heads[3][E2B_PB_HEAD_MAX];
	size_t n[3], all = len, at = E2B_FRAME_HEAD_BYTES;

	n[2] = e2b_pb_head(heads[2], FIELD_STDIN, all);
	all += n[2];
	n[1] = e2b_pb_head(heads[1], 2, all);
	all += n[1];
	n[0] = e2b_pb_head(heads[0], 2, all);
	all += n[0];
	e2b_frame_head(to, all);
	for (int i = 0; i < 3; i++) {
		memcpy(to + at, heads[i], n[i]);
		at += n[i];
	}
	memmove(to + at, to + HEADS_MAX, len);
	return at + len;
}

static ssize_t read_much(void *ctx, void *to, size_t room)
{
	struct much *m = ctx;
	unsigned char *at = to;
	size_t before = 0, max;
	ssize_t n;

	if (room < 1024)
		return ABX_EINTERNAL;
	if (!m->begun)
		before = put_start(m, at);
	m->begun = true;
	max = room - before - HEADS_MAX;
	if ((uint64_t)m->in->left < max)
		max = (size_t)m->in->left;
	do {
		n = max ? read(m->in->req->stdin_fd, at + before + HEADS_MAX, max) : 0;
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		m->read_errno = errno;
		return ABX_EIO;
	}
	m->in->left -= n;
	if (n == 0)
		return (ssize_t)before;
	return (ssize_t)(before + put_data(at + before, (size_t)n));
}

static bool give_much(struct e2b_input *in, struct e2b_aside *a)
{
	const struct abx_buf none = ABX_BUF_INIT(1);
	struct much m = {.in = in};
	struct e2b_rpc rpc;
	int32_t r;

	rpc_init(in, a, "process.Process/StreamInput", &rpc);
	rpc.body_fd = in->req->stdin_fd;
	rpc.source = read_much;
	rpc.ctx = &m;
	r = e2b_rpc_stream(in->envd, &rpc, &none);
	if (m.read_errno)
		lose(in, strerror(m.read_errno));
	else if (r != ABX_OK && !is_over(r, &rpc))
		lose(in, rpc.text);
	return r == ABX_OK;
}

/* 1: more may follow; 0: the end; -1: nobody is there any more. */
static int pass_some(struct e2b_input *in, struct e2b_aside *a, char *chunk)
{
	struct pollfd p[2] = {{.fd = in->stop_fd, .events = POLLIN},
			      {.fd = in->req->stdin_fd, .events = POLLIN}};
	ssize_t n;

	if (!in->left)
		return 0;
	if (poll(p, 2, -1) < 0)
		return 1;
	if (p[0].revents)
		return -1;
	n = read(in->req->stdin_fd, chunk,
		 in->left < (int64_t)CHUNK_BYTES ? (size_t)in->left : CHUNK_BYTES);
	if (n < 0 && errno != EINTR && errno != EAGAIN)
		lose(in, strerror(errno));
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : -1;
	if (n == 0)
		return 0;
	in->left -= n;
	return give(in, a, chunk, (size_t)n) ? 1 : -1;
}

static void *stdin_main(void *arg)
{
	struct e2b_input *in = arg;
	struct e2b_aside *a = in->asides[0];
	const bool bulk = in->req->flags & ABX_EXEC_BULK && !is_pty(in);
	char *chunk = malloc(CHUNK_BYTES);
	int more = 1;

	if (!chunk) {
		lose(in, "out of memory");
		return NULL;
	}
	if (bulk)
		more = give_much(in, a) ? 0 : -1;
	while (more > 0)
		more = pass_some(in, a, chunk);
	if (more == 0)
		end_input(in, a);
	explicit_bzero(chunk, CHUNK_BYTES);
	free(chunk);
	return NULL;
}

/* Signals, a change of size, and the command's own time. */

static void resize(struct e2b_input *in, struct e2b_aside *a, uint16_t rows, uint16_t cols)
{
	abx_auto(abx_buf) struct abx_buf msg = ABX_BUF_INIT(64);
	struct e2b_rpc rpc;

	rpc_init(in, a, "process.Process/Update", &rpc);
	e2b_rpc_put_pid(&msg, in->pid);
	e2b_put_pty(&msg, rows, cols);
	(void)send(in, &rpc, &msg);
}

/* False: no more of them. */
static bool take_control(struct e2b_input *in, struct e2b_aside *a)
{
	uint16_t c[4];
	const ssize_t n = read(in->req->control_fd, c, sizeof(c));

	if (n != (ssize_t)sizeof(c))
		return n < 0 && (errno == EINTR || errno == EAGAIN);
	if (c[0] == ABX_CTRL_RESIZE && is_pty(in))
		resize(in, a, c[1], c[2]);
	else if (c[0] == ABX_CTRL_SIGNAL)
		(void)e2b_signal(in->envd, a, in->pid, c[1]);
	if (c[0] != ABX_CTRL_DETACH)
		return true;
	atomic_store(&in->detached, true);
	wake(in->give_up_fd);
	return false;
}

static void end_command(struct e2b_input *in, struct e2b_aside *a)
{
	atomic_store(&in->timed_out, true);
	(void)e2b_signal(in->envd, a, in->pid, SIGTERM);
	if (!stopped(in, in->req->grace_ms > 0 ? in->req->grace_ms : GRACE_MS))
		(void)e2b_kill_tree(in->envd, a, in->pid);
	/* Whoever keeps its output open after that is nothing of it any more. */
	if (!stopped(in, GRACE_MS))
		wake(in->give_up_fd);
}

static void *control_main(void *arg)
{
	struct e2b_input *in = arg;
	struct e2b_aside *a = in->asides[1];
	const int64_t ms = in->req->timeout_ms, end = ms > 0 ? abx_monotonic_ms() + ms : INT64_MAX;
	bool open = in->req->control_fd >= 0;

	for (;;) {
		struct pollfd p[2] = {{.fd = in->stop_fd, .events = POLLIN},
				      {.fd = open ? in->req->control_fd : -1, .events = POLLIN}};
		const int64_t left = end - abx_monotonic_ms();

		if (left <= 0) {
			end_command(in, a);
			return NULL;
		}
		if (poll(p, 2, left > 60000 ? 60000 : (int)left) < 0)
			continue;
		if (p[0].revents)
			return NULL;
		if (p[1].revents)
			open = take_control(in, a);
	}
}

int32_t e2b_input_init(struct e2b_input *in, struct abx_call *call, const struct e2b_envd *envd,
		       const struct abx_exec *req, int64_t in_bytes)
{
	*in = (struct e2b_input){.envd = envd,
				 .req = req,
				 .left = in_bytes < 0 ? INT64_MAX : in_bytes,
				 .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				 .give_up_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	return in->stop_fd < 0 || in->give_up_fd < 0 ? abx_fail_errno(call, errno, "eventfd")
						     : ABX_OK;
}

/* Signals are the program's own, on threads of its own. */
static int start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(thread, NULL, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

int32_t e2b_input_begin(struct e2b_input *in, struct abx_call *call)
{
	const struct abx_exec *req = in->req;
	const bool wanted[2] = {req->stdin_fd >= 0, req->control_fd >= 0 || req->timeout_ms > 0};
	void *(*const run[2])(void *) = {stdin_main, control_main};

	in->begun = true;
	for (int i = 0; i < 2; i++) {
		int32_t r = ABX_OK;
		int e;

		if (!wanted[i])
			continue;
		r = e2b_aside_open(in->envd, call, in->stop_fd, 0, &in->asides[i]);
		if (r != ABX_OK)
			return r;
		e = start_thread(&in->threads[in->n_threads], run[i], in);
		if (e)
			return abx_fail_errno(call, e, "a thread");
		in->n_threads++;
	}
	return ABX_OK;
}

void e2b_input_end(struct e2b_input *in, struct abx_call *call)
{
	if (in->stop_fd >= 0)
		wake(in->stop_fd);
	for (unsigned int i = 0; i < in->n_threads; i++)
		(void)pthread_join(in->threads[i], NULL);
	in->n_threads = 0;
	for (int i = 0; i < 2; i++)
		e2b_aside_close(abx_steal_ptr(&in->asides[i]), call);
	abx_cleanup_close(&in->stop_fd);
	abx_cleanup_close(&in->give_up_fd);
	in->stop_fd = in->give_up_fd = -1;
}
