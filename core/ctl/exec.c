/* SPDX-License-Identifier: MIT */
/* agentbox-ctl exec: the loop between the host and one command. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "abxsdk/clock.h"
#include "agentbox/cloud_backend.h"
#include "core/ctl/ctl.h"

#define QUEUE_MAX_BYTES ((size_t)64 << 20)
/* The command's output is not read while so much waits to be sent. */
#define QUEUE_ENOUGH ((size_t)192 << 10)
#define READ_BYTES ((size_t)32 << 10)
/* A box may be paused for hours: that is not the silence of a client. */
#define TICK_MAX_MS 1000
#define SPOOL_LOOK_MS 10
#define SPOOL_IDLE_MS 100

void ctl_fail(struct ctl_exec *x, int32_t code, const char *fmt, ...)
{
	char text[700];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!x->said_bye)
		abx_wire_put_fail(&x->out, &x->queue, code, text);
	x->said_bye = x->finishing = true;
}

static void client_gone(struct ctl_exec *x)
{
	x->in_fd = -1;
	if (x->running && !(x->request.flags & ABX_WIRE_REQ_LEAVE_RUNNING))
		abx_supervise_end(&x->sup);
	else if (!x->running)
		x->finishing = true;
}

/* Frames. */

static int take_data(struct ctl_exec *x, const unsigned char *data, size_t len)
{
	if (len > sizeof(x->input) - x->input_len || x->end_of_input)
		return -EPROTO;
	if (x->to_cmd < 0 && x->running) {
		x->credit += (uint32_t)len;
		return 0;
	}
	/* Room is always made at the front, so that this is one piece. */
	if (x->input_at) {
		memmove(x->input, x->input + x->input_at, x->input_len);
		x->input_at = 0;
	}
	memcpy(x->input + x->input_len, data, len);
	x->input_len += len;
	return 0;
}

static int on_frame(void *ctx, enum abx_wire_kind kind, const unsigned char *data, size_t len)
{
	struct ctl_exec *x = ctx;

	x->silent_ms = 0;
	switch ((unsigned int)kind) {
	case ABX_WIRE_REQUEST:
		if (x->go || x->request_bytes.failed)
			return -EPROTO;
		abx_buf_add(&x->request_bytes, data, len);
		return x->request_bytes.failed ? -EPROTO : 0;
	case ABX_WIRE_GO:
		if (x->go || abx_wire_decode_request(x->request_bytes.data, x->request_bytes.len,
						     &x->request) < 0)
			return -EPROTO;
		x->go = true;
		return 0;
	case ABX_WIRE_DATA:
		return take_data(x, data, len);
	case ABX_WIRE_END:
		x->end_of_input = true;
		return 0;
	case ABX_WIRE_SIGNAL:
		if (len >= 2 && x->running && abx_wire_u16(data) > 0 && abx_wire_u16(data) < 65)
			abx_supervise_signal(&x->sup, abx_wire_u16(data));
		return 0;
	case ABX_WIRE_RESIZE:
		if (len >= 4 && x->pty)
			abx_pty_resize(x->pty, abx_wire_u16(data), abx_wire_u16(data + 2));
		return 0;
	case ABX_WIRE_CANCEL:
		if (x->running)
			abx_supervise_end(&x->sup);
		return 0;
	default:
		return 0;
	}
}

static void broken_input(struct ctl_exec *x)
{
	ctl_fail(x, ABX_EPROTO,
		 "agentbox-ctl: what came from the host is no frame, or out of order");
	/* The command has to end before we do. */
	x->finishing = !x->running;
	client_gone(x);
}

static void read_input(struct ctl_exec *x)
{
	char data[65536];
	ssize_t n = read(x->in_fd, data, sizeof(data));

	if (n > 0) {
		if (abx_wire_feed(&x->in, data, (size_t)n) < 0)
			broken_input(x);
		explicit_bzero(data, (size_t)n);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		client_gone(x);
	}
}

static bool read_spool(struct ctl_exec *x)
{
	int r = 1, n = 0;

	while (x->spool.base && r == 1 && n < 64) {
		r = ctl_spool_take(&x->spool, &x->in);
		if (r < 0)
			broken_input(x);
		n += r == 1;
	}
	return n > 0;
}

/* The other direction. */

static void write_queue(struct ctl_exec *x)
{
	ssize_t n;

	if (x->sent == x->queue.len)
		return;
	n = x->out_fd < 0 ? (ssize_t)(x->queue.len - x->sent)
			  : write(x->out_fd, x->queue.data + x->sent, x->queue.len - x->sent);
	if (n > 0) {
		x->sent += (size_t)n;
		x->beat_at = abx_monotonic_ms() + x->request.beat_ms;
	} else if (n < 0 && errno != EINTR && errno != EAGAIN) {
		/* Nobody reads any more. */
		x->out_fd = -1;
		x->sent = x->queue.len;
		client_gone(x);
	}
	if (x->sent == x->queue.len) {
		abx_buf_reset(&x->queue);
		x->sent = 0;
	} else if (x->sent >= QUEUE_ENOUGH) {
		x->queue.len -= x->sent;
		memmove(x->queue.data, x->queue.data + x->sent, x->queue.len);
		x->sent = 0;
	}
}

void ctl_flush(struct ctl_exec *x)
{
	while (x->queue.len > x->sent && x->out_fd >= 0) {
		struct pollfd p = {.fd = x->out_fd, .events = POLLOUT};

		(void)poll(&p, 1, -1);
		write_queue(x);
	}
}

static void feed_command(struct ctl_exec *x)
{
	ssize_t n = 0;

	if (x->to_cmd >= 0 && x->input_len)
		n = write(x->to_cmd, x->input + x->input_at, x->input_len);
	if (n < 0 && errno != EINTR && errno != EAGAIN) {
		(void)close(abx_steal_fd(&x->to_cmd));
		n = (ssize_t)x->input_len;
	}
	if (n > 0) {
		x->input_at += (size_t)n;
		x->input_len -= (size_t)n;
		x->credit += (uint32_t)n;
	}
	if (!x->input_len)
		x->input_at = 0;
	if (x->end_of_input && !x->input_len && x->to_cmd >= 0)
		(void)close(abx_steal_fd(&x->to_cmd));
}

/* Credit is worth a frame when it is much, or when nothing else is left to take. */
static void say_credit(struct ctl_exec *x)
{
	if (!x->credit || (x->credit < ABX_WIRE_WINDOW / 4 && x->input_len))
		return;
	abx_wire_put_u32(&x->out, &x->queue, ABX_WIRE_CREDIT, x->credit);
	x->credit = 0;
}

static int wait_ms(const struct ctl_exec *x, bool busy)
{
	const int tick = x->request.beat_ms < TICK_MAX_MS ? (int)x->request.beat_ms : TICK_MAX_MS;
	int ms = x->running ? abx_supervise_wait_ms(&x->sup) : -1;

	if (x->request.beat_ms && (ms < 0 || ms > tick))
		ms = tick;
	if (x->spool.base && (ms < 0 || ms > SPOOL_IDLE_MS))
		ms = busy ? SPOOL_LOOK_MS : SPOOL_IDLE_MS;
	return ms;
}

static void on_time(struct ctl_exec *x)
{
	const int64_t now = abx_monotonic_ms(), passed = now - x->last_ms;

	x->last_ms = now;
	x->silent_ms += passed < TICK_MAX_MS ? passed : TICK_MAX_MS;
	if (x->request.silence_ms && x->silent_ms > x->request.silence_ms) {
		x->spool.base = NULL;
		client_gone(x);
		x->silent_ms = 0;
	}
	if (x->request.beat_ms && now >= x->beat_at && x->queue.len == x->sent) {
		abx_wire_put(&x->out, &x->queue, ABX_WIRE_BEAT, NULL, 0);
		x->beat_at = now + x->request.beat_ms;
	}
}

enum {
	FD_LIFE,
	FD_IN,
	FD_OUT,
	FD_SIGNAL,
	FD_INPUT,
	FD_STDOUT,
	FD_STDERR,
	FD_PTY,
	N_FDS = FD_PTY + 3
};

static void fill(struct ctl_exec *x, struct pollfd *p)
{
	const bool room = x->queue.len - x->sent < QUEUE_ENOUGH;

	p[FD_LIFE] = (struct pollfd){.fd = x->life_fd, .events = POLLIN};
	p[FD_IN] = (struct pollfd){.fd = x->in_fd, .events = POLLIN};
	/* Without something to send it still tells that nobody reads any more. */
	p[FD_OUT] =
		(struct pollfd){.fd = x->out_fd, .events = x->queue.len > x->sent ? POLLOUT : 0};
	p[FD_SIGNAL] = (struct pollfd){.fd = x->running ? x->sup.signal_fd : -1, .events = POLLIN};
	p[FD_INPUT] = (struct pollfd){.fd = x->to_cmd, .events = x->input_len ? POLLOUT : 0};
	for (int i = 0; i < 2; i++)
		p[FD_STDOUT + i] =
			(struct pollfd){.fd = room ? x->from_cmd[i] : -1, .events = POLLIN};
	for (int i = 0; i < ABX_PTY_FDS; i++)
		p[FD_PTY + i].fd = -1;
	if (x->pty)
		abx_pty_poll(x->pty, p + FD_PTY);
}

static void serve(struct ctl_exec *x, const struct pollfd *p)
{
	if (p[FD_LIFE].revents) {
		x->life_fd = -1;
		client_gone(x);
	}
	if (p[FD_IN].revents && x->in_fd >= 0)
		read_input(x);
	if (x->go && !x->launch && !x->finishing)
		ctl_command_start(x);
	if (p[FD_OUT].revents & (POLLERR | POLLHUP) && !(p[FD_OUT].revents & POLLOUT)) {
		x->out_fd = -1;
		client_gone(x);
	}
	if (x->pty)
		abx_pty_serve(x->pty, p + FD_PTY);
	for (int i = 0; i < 2; i++)
		if (p[FD_STDOUT + i].revents)
			(void)ctl_command_output(x, i, READ_BYTES);
	if (x->running || x->to_cmd >= 0)
		feed_command(x);
	if (x->running && abx_supervise_step(&x->sup)) {
		x->running = false;
		ctl_command_ended(x);
	}
}

static int loop(struct ctl_exec *x)
{
	bool busy = true;

	abx_wire_put_u32(&x->out, &x->queue, ABX_WIRE_HELLO, ABX_WIRE_VERSION);
	while (!(x->finishing && x->queue.len == x->sent) && !(x->finishing && x->out_fd < 0)) {
		struct pollfd p[N_FDS];

		fill(x, p);
		if (poll(p, N_FDS, wait_ms(x, busy)) < 0)
			memset(p, 0, sizeof(p));
		busy = read_spool(x);
		serve(x, p);
		say_credit(x);
		on_time(x);
		write_queue(x);
	}
	return 0;
}

static void set_flag(int fd, bool nonblocking)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

static void take_given(struct ctl_exec *x, char *given)
{
	const bool text = x->in.text;
	const size_t len = strlen(given);

	x->in.text = true;
	if (abx_wire_feed(&x->in, given, len) < 0)
		broken_input(x);
	x->in.text = text;
	x->spool.next = 1;
	explicit_bzero(given, len);
	free(given);
}

int ctl_exec(int argc, char **argv, char *given, int life_fd, int done_fd)
{
	static struct ctl_exec x;
	const struct abx_buf queue = ABX_BUF_INIT(QUEUE_MAX_BYTES);
	const struct abx_buf request = ABX_BUF_INIT(ABX_WIRE_REQUEST_MAX);
	int r;

	x.queue = queue;
	x.request_bytes = request;
	x.in.frame = on_frame;
	x.in.ctx = &x;
	x.in_fd = STDIN_FILENO;
	x.life_fd = life_fd;
	x.done_fd = done_fd;
	x.out_fd = STDOUT_FILENO;
	x.to_cmd = x.from_cmd[0] = x.from_cmd[1] = -1;
	x.last_ms = abx_monotonic_ms();
	/* Until the request says otherwise. */
	x.request.beat_ms = 5000;
	x.request.silence_ms = 60000;
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--text") == 0)
			x.in.text = x.out.text = true;
		else if (strcmp(argv[i], "--spool") == 0 && i + 1 < argc)
			x.spool.base = argv[++i];
		else
			return 2;
	}
	if (x.spool.base) {
		x.in.text = false; /* files are byte-exact */
		x.in_fd = -1;
		r = ctl_spool_open(&x.spool);
		if (r < 0)
			ctl_fail(&x, ABX_EIO, "agentbox-ctl: %s.d: %s", x.spool.base, strerror(-r));
	}
	if (given)
		take_given(&x, given);
	set_flag(STDIN_FILENO, true);
	set_flag(STDOUT_FILENO, true);
	r = loop(&x);
	set_flag(STDIN_FILENO, false);
	set_flag(STDOUT_FILENO, false);
	ctl_spool_remove(&x.spool);
	return r;
}
