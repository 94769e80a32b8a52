/* SPDX-License-Identifier: MIT */
/* Commands by agentbox-ctl: what goes into the box. */
#include "core/host/exec-ctl-run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "abxsdk/fs.h"
#include "core/host/run.h"
#include "core/util/clock.h"
#include "core/util/mem.h"

#define CHUNK_BYTES 65536
/* Frames wait here until the transport takes them. */
#define QUEUE_MAX_BYTES ((size_t)32 << 20)
#define QUEUE_ENOUGH ((size_t)512 << 10)
/* Of input that waits already. */
#define EARLY_MAX_BYTES ((size_t)32 << 10)
/* A transport that does not notice that its program has ended. */
#define END_MS 5000
#define LAST_UPLOAD_MS 5000
#define MAX_CREDIT ((uint64_t)1 << 30)

static void wake(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

void abx_ctl_run_note(struct abx_ctl_run *x, unsigned int said)
{
	(void)pthread_mutex_lock(&x->lock);
	x->said |= said;
	if (said & ABX_CTL_ENDED)
		x->ended_ms = abx_now_ms();
	(void)pthread_mutex_unlock(&x->lock);
	wake(x->wake_fd);
}

int abx_ctl_run_credit(struct abx_ctl_run *x, uint32_t bytes)
{
	bool ok;

	(void)pthread_mutex_lock(&x->lock);
	x->credit += bytes;
	ok = x->credit < MAX_CREDIT;
	(void)pthread_mutex_unlock(&x->lock);
	wake(x->wake_fd);
	return ok ? 0 : -EPROTO;
}

void abx_ctl_run_heard(struct abx_ctl_run *x, bool busy)
{
	(void)pthread_mutex_lock(&x->lock);
	x->heard_ms = abx_now_ms();
	x->busy = busy;
	(void)pthread_mutex_unlock(&x->lock);
}

/* The sender. */

static bool no_one_sends(const struct abx_ctl_run *x)
{
	return x->spool && x->c->plugin->table.thread_model < ABX_THREADS_PARALLEL;
}

/* The queue as the next file of the spool. */
static int upload(struct abx_ctl_run *x, const struct abx_call_opts *o, struct abx_err *err)
{
	const uint32_t len = (uint32_t)x->queue.len;
	const unsigned char head[4] = {(unsigned char)len, (unsigned char)(len >> 8),
				       (unsigned char)(len >> 16), (unsigned char)(len >> 24)};
	struct abx_transfer t = {ABX_INIT(struct abx_transfer)};
	abx_autoclose int fd = memfd_create("agentbox-spool", MFD_CLOEXEC);
	char path[128];
	int r;

	if (fd < 0)
		return abx_err_errno(err, errno, "memory for the command's input");
	r = abx_fs_write_all(fd, head, sizeof(head));
	if (r == 0)
		r = abx_fs_write_all(fd, x->queue.data, x->queue.len);
	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return abx_err_errno(err, r < 0 ? r : errno, "memory for the command's input");
	(void)snprintf(path, sizeof(path), x->next_file ? "%s.d/%u" : "%s.%u", x->base,
		       x->next_file);
	t.fd = fd;
	t.mode = 0600;
	t.size_bytes = (int64_t)x->queue.len + 4;
	t.path = path;
	t.owner = x->req->user;
	r = abx_cloud_upload(x->c, o, x->s, &t, err);
	if (r == 0) {
		x->next_file++;
		explicit_bzero(x->queue.data, x->queue.len);
		abx_buf_reset(&x->queue);
	}
	return r;
}

static void write_pipe(struct abx_ctl_run *x)
{
	ssize_t n = write(x->pipe_fd, x->queue.data + x->sent, x->queue.len - x->sent);

	if (n > 0)
		x->sent += (size_t)n;
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		x->sent = x->queue.len; /* nobody reads: the exec is about to end */
	if (x->sent == x->queue.len) {
		explicit_bzero(x->queue.data, x->queue.len);
		abx_buf_reset(&x->queue);
		x->sent = 0;
	}
}

static void read_input(struct abx_ctl_run *x, uint64_t credit)
{
	char data[CHUNK_BYTES];
	ssize_t n = read(x->input_fd, data, credit < sizeof(data) ? (size_t)credit : sizeof(data));

	if (n > 0) {
		abx_wire_put(&x->out, &x->queue, ABX_WIRE_DATA, data, (size_t)n);
		(void)pthread_mutex_lock(&x->lock);
		x->credit -= (uint64_t)n;
		(void)pthread_mutex_unlock(&x->lock);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		abx_wire_put(&x->out, &x->queue, ABX_WIRE_END, NULL, 0);
		x->input_fd = -1;
	}
}

static void read_control(struct abx_ctl_run *x)
{
	uint16_t c[4];
	ssize_t n = read(x->control_fd, c, sizeof(c));

	if (n == (ssize_t)sizeof(c)) {
		if (c[0] == ABX_CTRL_RESIZE)
			abx_wire_put_u16s(&x->out, &x->queue, ABX_WIRE_RESIZE, c[1], c[2]);
		else if (c[0] == ABX_CTRL_SIGNAL)
			abx_wire_put_u16s(&x->out, &x->queue, ABX_WIRE_SIGNAL, c[1], 0);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		x->control_fd = -1;
	}
}

/* False: the exec has ended, or has to. */
static bool look(struct abx_ctl_run *x, unsigned int *ret_said, uint64_t *ret_credit)
{
	const int64_t now = abx_now_ms();
	bool go_on;

	(void)pthread_mutex_lock(&x->lock);
	*ret_said = x->said;
	*ret_credit = x->credit;
	if (x->said & ABX_CTL_HELLO && !x->busy && now - x->heard_ms > ABX_CTL_SILENCE_MS)
		x->silent = true;
	if (x->silent || (x->said & ABX_CTL_ENDED && !x->busy && now - x->ended_ms > END_MS))
		wake(x->abort_fd);
	go_on = !x->stop;
	(void)pthread_mutex_unlock(&x->lock);
	return go_on;
}

/* Frames that wait go out: into the pipe as it takes them, or as a file. */
static void send_queue(struct abx_ctl_run *x, unsigned int said, bool writable)
{
	if (!x->queue.len)
		return;
	if (!x->spool) {
		if (writable)
			write_pipe(x);
	} else if (said & ABX_CTL_HELLO && !(said & ABX_CTL_ENDED)) {
		/* What fails is tried again with the next look; silence is the limit. */
		(void)upload(x, x->o, NULL);
	}
}

static void *sender_main(void *arg)
{
	struct abx_ctl_run *x = arg;
	unsigned int said;
	uint64_t credit, count;

	while (look(x, &said, &credit)) {
		const bool room = said & ABX_CTL_HELLO && x->queue.len - x->sent < QUEUE_ENOUGH;
		const bool failed = x->spool && x->queue.len; /* the last upload */
		struct pollfd p[4] = {
			{.fd = x->wake_fd, .events = POLLIN},
			{.fd = room && credit ? x->input_fd : -1, .events = POLLIN},
			{.fd = room ? x->control_fd : -1, .events = POLLIN},
			{.fd = x->queue.len ? x->pipe_fd : -1, .events = POLLOUT},
		};

		if (poll(p, 4, failed ? 200 : 1000) < 0)
			memset(p, 0, sizeof(p));
		if (p[0].revents)
			(void)!read(x->wake_fd, &count, sizeof(count));
		if (p[1].revents)
			read_input(x, credit);
		if (p[2].revents)
			read_control(x);
		if (said & ABX_CTL_HELLO && abx_now_ms() >= x->beat_at) {
			abx_wire_put(&x->out, &x->queue, ABX_WIRE_BEAT, NULL, 0);
			x->beat_at = abx_now_ms() + ABX_CTL_BEAT_MS;
		}
		send_queue(x, said, p[3].revents || p[1].revents || p[2].revents);
	}
	return NULL;
}

/* Opening and closing. */

static char *pair(const struct abx_kv *kv)
{
	return abx_xasprintf("%s=%s", kv->key, kv->value);
}

static uint32_t clamp_ms(int64_t ms)
{
	return ms <= 0 ? 0 : ms > INT32_MAX ? INT32_MAX : (uint32_t)ms;
}

/* The first frames; whichever way they take. */
static void put_first(struct abx_ctl_run *x, const struct abx_buf *request, struct abx_buf *to)
{
	abx_wire_put(&x->out, to, ABX_WIRE_REQUEST, request->data, request->len);
	abx_wire_put(&x->out, to, ABX_WIRE_GO, NULL, 0);
	if (x->early->data.len)
		abx_wire_put(&x->out, to, ABX_WIRE_DATA, x->early->data.data, x->early->data.len);
	if (x->req->stdin_fd < 0 || x->early->ended)
		abx_wire_put(&x->out, to, ABX_WIRE_END, NULL, 0);
}

static void forget(struct abx_buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->len);
	abx_buf_release(b);
}

static void queue_first(struct abx_ctl_run *x, const struct abx_buf *request)
{
	const struct abx_wire_out out = x->out;

	x->out.text = x->out.short_lines = true;
	put_first(x, request, &x->given);
	x->out.text = out.text;
	x->out.short_lines = out.short_lines;
	if (!x->given.failed) {
		x->next_file = 1;
		return;
	}
	abx_buf_release(&x->given);
	x->out = out;
	put_first(x, request, &x->queue);
}

static int queue_request(struct abx_ctl_run *x, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(ABX_WIRE_REQUEST_MAX);
	const struct abx_exec *req = x->req;
	char **env = abx_xcalloc(req->n_env + 1, sizeof(*env));
	const struct abx_wire_request r = {
		.flags = (req->flags & ABX_EXEC_PTY ? ABX_WIRE_REQ_PTY : 0) |
			 (req->flags & ABX_EXEC_DETACHED ? ABX_WIRE_REQ_DETACHED : 0) |
			 (req->flags & ABX_EXEC_LEAVE_RUNNING ? ABX_WIRE_REQ_LEAVE_RUNNING : 0),
		.rows = req->rows,
		.cols = req->cols,
		.timeout_ms = clamp_ms(req->timeout_ms),
		.grace_ms = clamp_ms(req->grace_ms),
		.beat_ms = ABX_CTL_BEAT_MS,
		.silence_ms = no_one_sends(x) ? 0 : ABX_CTL_CLIENT_SILENCE_MS,
		.id = x->id,
		.cwd = req->cwd,
		/* The provider's exec makes it that user's already. */
		.user = NULL,
		.argv = (char **)(uintptr_t)req->argv,
		.env = env,
		.n_env = req->n_env,
		.n_argv = 0,
	};
	struct abx_wire_request counted = r;

	while (req->argv[counted.n_argv])
		counted.n_argv++;
	for (uint32_t i = 0; i < req->n_env; i++)
		env[i] = pair(&req->env[i]);
	if (abx_wire_encode_request(&counted, &b) == 0) {
		queue_first(x, &b);
		explicit_bzero(b.data, b.len);
	}
	for (uint32_t i = 0; i < req->n_env; i++) {
		explicit_bzero(env[i], strlen(env[i]));
		free(env[i]);
	}
	free(env);
	if (b.failed || x->queue.failed)
		return abx_run_fail(x->c, "exec", ABX_EINVAL, err,
				    "arguments and environment are more than %zu bytes",
				    ABX_WIRE_REQUEST_MAX);
	return 0;
}

/* Once: it is gone from where it was, whatever becomes of the attempt. */
static void read_early(struct abx_ctl_run *x)
{
	struct pollfd p = {.fd = x->req->stdin_fd, .events = POLLIN};
	struct abx_early_input *early = x->early;

	if (early->read || p.fd < 0)
		return;
	early->read = true;
	early->data.max = EARLY_MAX_BYTES + 1;
	while (early->data.len < EARLY_MAX_BYTES && poll(&p, 1, 0) > 0) {
		const size_t room = EARLY_MAX_BYTES - early->data.len;
		char *to = abx_buf_reserve(&early->data, room);
		ssize_t n = to ? read(p.fd, to, room) : -1;

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		abx_buf_commit(&early->data, n > 0 ? (size_t)n : 0);
		early->ended = n <= 0;
		if (n <= 0)
			break;
	}
}

static int open_descriptors(struct abx_ctl_run *x, struct abx_err *err)
{
	int p[2] = {-1, -1};

	x->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	x->abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (x->wake_fd < 0 || x->abort_fd < 0)
		return abx_err_errno(err, errno, "eventfd");
	if (x->spool)
		return 0;
	if (pipe2(p, O_CLOEXEC) < 0)
		return abx_err_errno(err, errno, "make a pipe");
	x->child_fd = p[0];
	x->pipe_fd = p[1];
	if (fcntl(p[1], F_SETFL, O_NONBLOCK) < 0)
		return abx_err_errno(err, errno, "make a pipe");
	return 0;
}

static void reset(struct abx_ctl_run *x)
{
	const struct abx_buf queue = ABX_BUF_INIT(QUEUE_MAX_BYTES);
	const struct abx_wire_out out = {.text = x->in.text && !x->spool, .short_lines = true};

	x->queue = queue;
	x->sent = 0;
	x->out = out;
	x->in.number = 0;
	x->in.len = 0;
	x->in.skipping = x->broken = false;
	x->noise_len = 0;
	x->said = 0;
	x->given = (struct abx_buf)ABX_BUF_INIT(ABX_WIRE_GIVEN_MAX);
	x->credit = ABX_WIRE_WINDOW - x->early->data.len;
	x->stop = x->busy = x->silent = false;
	x->heard_ms = abx_now_ms();
	x->beat_at = x->heard_ms + ABX_CTL_BEAT_MS;
	x->child_fd = x->pipe_fd = x->wake_fd = x->abort_fd = -1;
	x->next_file = 0;
	x->input_fd = x->early->ended ? -1 : x->req->stdin_fd;
	x->control_fd = x->req->control_fd;
	(void)pthread_mutex_init(&x->lock, NULL);
}

static void release(struct abx_ctl_run *x)
{
	abx_cleanup_close(&x->child_fd);
	abx_cleanup_close(&x->pipe_fd);
	abx_cleanup_close(&x->wake_fd);
	abx_cleanup_close(&x->abort_fd);
	forget(&x->queue);
	forget(&x->given);
	(void)pthread_mutex_destroy(&x->lock);
}

static int start_sender(struct abx_ctl_run *x, struct abx_err *err)
{
	sigset_t all, old;
	int r;

	/* Signals are for the main thread. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&x->sender, NULL, sender_main, x);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r ? abx_err_errno(err, r, "start a thread") : 0;
}

void abx_early_input_release(struct abx_early_input *e)
{
	forget(&e->data);
	*e = (struct abx_early_input){.read = false};
}

int abx_ctl_run_open(struct abx_ctl_run *x, struct abx_err *err)
{
	int r;

	read_early(x);
	reset(x);
	r = open_descriptors(x, err);
	if (r == 0)
		r = queue_request(x, err);
	if (r == 0 && x->spool && x->queue.len)
		r = upload(x, x->o, err);
	if (r == 0)
		r = start_sender(x, err);
	if (r < 0)
		release(x);
	return r;
}

/* Nobody but us can tell an agentbox-ctl behind a spool that its client is gone. */
static void say_goodbye(struct abx_ctl_run *x)
{
	struct abx_call_opts o = {.timeout_ms = LAST_UPLOAD_MS, .cleanup = true};

	o.box_id = x->o->box_id;
	if (!x->spool || !(x->said & ABX_CTL_HELLO) || x->said & ABX_CTL_ENDED ||
	    x->req->flags & ABX_EXEC_LEAVE_RUNNING || atomic_load(&x->c->lost))
		return;
	abx_wire_put(&x->out, &x->queue, ABX_WIRE_CANCEL, NULL, 0);
	if (!x->queue.failed)
		(void)upload(x, &o, NULL);
}

void abx_ctl_run_close(struct abx_ctl_run *x)
{
	(void)pthread_mutex_lock(&x->lock);
	x->stop = true;
	(void)pthread_mutex_unlock(&x->lock);
	wake(x->wake_fd);
	(void)pthread_join(x->sender, NULL);
	say_goodbye(x);
	release(x);
}

void abx_ctl_run_release(struct abx_ctl_run *x)
{
	abx_early_input_release(&x->own_early);
}
