/* SPDX-License-Identifier: MIT */
/* Running commands in a box: pipes, control records, cancelling. */
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "providers/local/feed.h"
#include "providers/local/limits.h"
#include "providers/local/local.h"

#define READ_BYTES ((size_t)256 << 10)
#define PIPE_BYTES (256 << 10)
/* After a cancel the host wants its thread back within a second. */
#define CANCEL_MS 800

/* One command under way, so that exec_signal finds it. */
struct local_exec {
	struct local_exec *next;
	const struct local_helper *helper;
	char id[32];
};

struct run {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_exec *req;
	struct local_helper h;
	struct local_exec entry;
	int out[2]; /* read ends of stdout and stderr */
	struct local_feed feed;
	struct local_oom oom;
	int control_fd;
	char *buffer;
	struct lb_msg last; /* EXIT or NOT_STARTED, or kind 0 */
	bool ended;	    /* nothing more will come from the helper */
};

/* It also names the log of a detached command, so it is unique in the box. */
static void make_id(struct run *x)
{
	static atomic_uint seq;
	unsigned long long r;

	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		r = ((unsigned long long)abx_plugin_host->now_ms(abx_plugin_host->ctx) << 20) +
		    ((unsigned int)getpid() << 8) + atomic_fetch_add(&seq, 1);
	(void)snprintf(x->entry.id, sizeof(x->entry.id), "%016llx", r);
}

static void exec_register(struct run *x)
{
	(void)pthread_mutex_lock(&x->s->lock);
	x->entry.helper = &x->h;
	x->entry.next = x->s->execs;
	x->s->execs = &x->entry;
	(void)pthread_mutex_unlock(&x->s->lock);
}

static void exec_unregister(struct run *x)
{
	(void)pthread_mutex_lock(&x->s->lock);
	for (struct local_exec **p = &x->s->execs; *p; p = &(*p)->next)
		if (*p == &x->entry) {
			*p = x->entry.next;
			break;
		}
	(void)pthread_mutex_unlock(&x->s->lock);
}

int32_t local_exec_signal(struct abx_session *s, struct abx_call *call,
			  const struct abx_sandbox *sb, const char *exec_id, int32_t signo)
{
	bool found = false;

	(void)sb;
	if (signo < 1 || signo > 64)
		return abx_fail(call, ABX_EINVAL, NULL, "signal %d: no such signal", signo);
	(void)pthread_mutex_lock(&s->lock);
	for (struct local_exec *e = s->execs; e && !found; e = e->next)
		if (strcmp(e->id, exec_id) == 0) {
			local_helper_control(e->helper, ABX_CTRL_SIGNAL, (uint16_t)signo, 0);
			found = true;
		}
	(void)pthread_mutex_unlock(&s->lock);
	if (found)
		return ABX_OK;
	return abx_fail(call, ABX_ENOTFOUND, NULL, "exec %s: it is not running here", exec_id);
}

/* A directory would be a way out of the box, by openat() and "..". */
static int32_t check_stdin(struct abx_call *call, int fd)
{
	struct stat st;

	if (fd < 0)
		return ABX_OK;
	if (fstat(fd, &st) < 0)
		return abx_fail_errno(call, errno, "exec: standard input");
	if (S_ISDIR(st.st_mode) || (fcntl(fd, F_GETFL) & O_PATH))
		return abx_fail(call, ABX_EINVAL, NULL, "exec: standard input is a directory");
	return ABX_OK;
}

static int make_pipe(int *ret_read, int *ret_write)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = p[0];
	*ret_write = p[1];
	/* Larger where the caller may; the default serves as well, in more trips. */
	(void)fcntl(p[0], F_SETPIPE_SZ, PIPE_BYTES);
	return fcntl(p[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int32_t start(struct run *x, const char *id)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_EXEC};
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run running = LOCAL_RUN_INIT;
	const struct abx_exec *req = x->req;
	int32_t r = local_box_enter(x->s, x->call, id, &b, &running, &a);
	int e = 0;

	if (r == ABX_OK && !(req->flags & ABX_EXEC_OFFLINE))
		r = local_net_ready(x->s, x->call, &b, &running);
	if (r == ABX_OK &&
	    (running.lost ? local_mounts_are_open(&b) : (running.flags & LB_F_NO_SET_ID) != 0))
		a.req.flags |= LB_F_NO_SET_ID;
	a.program = x->s->box_helper;
	a.user = req->user;
	a.path = req->cwd;
	a.name = x->entry.id;
	a.argv = req->argv;
	a.box_env = b.env;
	a.env = req->env;
	a.n_env = req->n_env;
	a.req.timeout_ms = req->timeout_ms;
	a.req.grace_ms = req->grace_ms;
	a.req.rows = req->rows;
	a.req.cols = req->cols;
	if (req->flags & ABX_EXEC_PTY)
		a.req.flags |= LB_F_PTY;
	if (req->flags & ABX_EXEC_DETACHED)
		a.req.flags |= LB_F_DETACHED;
	if (req->flags & ABX_EXEC_LEAVE_RUNNING)
		a.req.flags |= LB_F_LEAVE_RUNNING;
	/* One that lives on has nothing to read: its client is gone. */
	if (r == ABX_OK && !(req->flags & ABX_EXEC_DETACHED)) {
		local_oom_open(&b, &x->oom);
		e = local_feed_open(&x->feed, req->stdin_fd, &a.fd_in);
		if (e == 0)
			e = make_pipe(&x->out[0], &a.fd_out);
		if (e == 0)
			e = make_pipe(&x->out[1], &a.fd_err);
		if (e < 0)
			r = abx_fail_errno(x->call, -e, "exec: pipe");
	}
	if (r == ABX_OK)
		r = local_helper_start(x->s, x->call, &a, &x->h);
	abx_cleanup_close(&a.fd_in);
	abx_cleanup_close(&a.fd_out);
	abx_cleanup_close(&a.fd_err);
	local_run_release(&running);
	local_box_release(&b);
	return r;
}

/* Deliver what is there, at most `max` bytes.  The host's code, or ABX_OK. */
static int32_t deliver(struct run *x, int i, size_t max)
{
	size_t done = 0;

	while (x->out[i] >= 0 && done < max) {
		ssize_t n = read(x->out[i], x->buffer, READ_BYTES);
		int32_t r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return ABX_OK;
		if (n <= 0) {
			abx_cleanup_close(&x->out[i]);
			x->out[i] = -1;
			return ABX_OK;
		}
		r = x->req->output(x->req->io, i == 0 ? ABX_STREAM_STDOUT : ABX_STREAM_STDERR,
				   x->buffer, (size_t)n);
		if (r)
			return r;
		done += (size_t)n;
	}
	return ABX_OK;
}

/* What was written before the command ended, and no more: a process that it left behind
 * may write for ever. */
static int32_t deliver_rest(struct run *x)
{
	int32_t r = ABX_OK;

	for (int i = 0; i < 2 && r == ABX_OK; i++) {
		int size = x->out[i] < 0 ? 0 : fcntl(x->out[i], F_GETPIPE_SZ);

		if (size > 0)
			r = deliver(x, i, (size_t)size);
	}
	return r;
}

static int32_t on_message(struct run *x)
{
	struct lb_msg m;
	int got = local_helper_read(&x->h, &m);

	if (got == -EAGAIN)
		return ABX_OK;
	if (got == 0) {
		x->ended = true;
		return ABX_OK;
	}
	if (m.kind == LB_MSG_FAIL)
		return local_helper_failed(x->call, &m);
	if (m.kind == LB_MSG_STARTED) {
		if (x->req->started)
			return x->req->started(x->req->io, x->entry.id);
		return ABX_OK;
	}
	if (m.kind == LB_MSG_EXIT || m.kind == LB_MSG_NOT_STARTED) {
		x->last = m;
		x->ended = true;
	}
	return ABX_OK;
}

static void on_control(struct run *x)
{
	struct lb_ctrl c;
	ssize_t n = read(x->control_fd, &c, sizeof(c));

	if (n == (ssize_t)sizeof(c) && (c.kind == ABX_CTRL_RESIZE || c.kind == ABX_CTRL_SIGNAL))
		local_helper_control(&x->h, c.kind, c.a, c.b);
	else if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		x->control_fd = -1;
}

static int32_t pump(struct run *x)
{
	int32_t r = ABX_OK;

	while (r == ABX_OK && !x->ended) {
		struct pollfd p[6] = {
			{.fd = x->out[0], .events = POLLIN},
			{.fd = x->out[1], .events = POLLIN},
			{.fd = x->h.status_fd, .events = POLLIN},
			{.fd = x->control_fd, .events = POLLIN},
		};

		local_feed_poll(&x->feed, p + 4);
		r = abx_call_poll(x->call, p, ABX_N_ELEMENTS(p), -1);
		if (r == ABX_OK && p[0].revents)
			r = deliver(x, 0, READ_BYTES);
		if (r == ABX_OK && p[1].revents)
			r = deliver(x, 1, READ_BYTES);
		if (r == ABX_OK && p[3].revents)
			on_control(x);
		if (r == ABX_OK)
			local_feed_move(&x->feed, p + 4);
		if (r == ABX_OK && p[2].revents)
			r = on_message(x);
	}
	return r == ABX_OK ? deliver_rest(x) : r;
}

/* The user gave up: the supervisor ends the tree, whether we wait for it or not. */
static void cancel(struct run *x)
{
	int64_t end = abx_plugin_host->now_ms(abx_plugin_host->ctx) + CANCEL_MS;

	if (x->req->flags & ABX_EXEC_LEAVE_RUNNING) {
		local_helper_leave(&x->h);
		return;
	}
	local_helper_control(&x->h, LB_CTRL_CANCEL, 0, 0);
	while (!x->ended) {
		struct pollfd p[3] = {
			{.fd = x->h.status_fd, .events = POLLIN},
			{.fd = x->out[0], .events = POLLIN},
			{.fd = x->out[1], .events = POLLIN},
		};
		int64_t left = end - abx_plugin_host->now_ms(abx_plugin_host->ctx);
		struct lb_msg m;

		if (left <= 0 || (poll(p, 3, (int)left) < 0 && errno != EINTR))
			break;
		/* A command that writes as it ends must not block on us. */
		for (int i = 0; i < 2; i++)
			if (x->out[i] >= 0 && p[i + 1].revents &&
			    read(x->out[i], x->buffer, READ_BYTES) == 0) {
				abx_cleanup_close(&x->out[i]);
				x->out[i] = -1;
			}
		if (p[0].revents) {
			int got = local_helper_read(&x->h, &m);

			x->ended = got == 0 || (got == 1 && m.kind != LB_MSG_STARTED);
		}
	}
	if (x->ended)
		local_helper_wait(&x->h);
	else
		local_helper_leave(&x->h);
}

static int32_t result(struct run *x, struct abx_exit *ret)
{
	struct abx_exit e = {.struct_size = ret->struct_size};

	if (x->last.kind == LB_MSG_NOT_STARTED) {
		e.flags = ABX_EXIT_NOT_STARTED;
		e.code = x->last.code;
		(void)abx_fail(x->call, ABX_ENOTFOUND, NULL, "%s", x->last.text);
	} else if (x->last.kind == LB_MSG_EXIT) {
		e.code = x->last.code;
		e.signo = x->last.signo;
		e.timed_out = x->last.timed_out;
	} else {
		return abx_fail_unknown(x->call, ABX_ESTATE, NULL,
					"exec: the box was stopped, or what supervised the "
					"command was killed in it");
	}
	memcpy(ret, &e, ret->struct_size < sizeof(e) ? ret->struct_size : sizeof(e));
	return ABX_OK;
}

static int32_t wait_started(struct run *x, struct abx_exit *ret)
{
	struct lb_msg m;
	int32_t r = local_helper_next(x->call, &x->h, &m);

	if (r != ABX_OK) {
		local_helper_kill(&x->h);
		return r;
	}
	if (m.kind == LB_MSG_NOT_STARTED) {
		x->last = m;
		local_helper_wait(&x->h);
		return result(x, ret);
	}
	ret->flags = ABX_EXIT_DETACHED;
	ret->code = ret->signo = ret->timed_out = 0;
	if (x->req->started)
		r = x->req->started(x->req->io, x->entry.id);
	local_helper_leave(&x->h);
	return r;
}

int32_t local_exec(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_exec *req, struct abx_exit *ret)
{
	const uint32_t known = ABX_EXEC_PTY | ABX_EXEC_DETACHED | ABX_EXEC_LEAVE_RUNNING |
			       ABX_EXEC_OFFLINE | ABX_EXEC_BULK;
	struct run x = {
		.s = s,
		.call = call,
		.req = req,
		.h = LOCAL_HELPER_INIT,
		.out = {-1, -1},
		.feed = LOCAL_FEED_INIT,
		.oom = LOCAL_OOM_INIT,
		.control_fd = req->control_fd,
	};
	int32_t r;

	if ((req->flags & ABX_EXEC_PTY) && (req->flags & ABX_EXEC_DETACHED))
		return abx_fail(call, ABX_ENOTSUP, NULL, "exec: a detached terminal");
	if (req->flags & ~known)
		return abx_fail(call, ABX_ENOTSUP, NULL, "exec: unknown flags %#x", req->flags);
	if (!req->argv || !req->argv[0])
		return abx_fail(call, ABX_EINVAL, NULL, "exec: no command given");
	make_id(&x);
	r = check_stdin(call, req->stdin_fd);
	if (r == ABX_OK) {
		x.buffer = malloc(READ_BYTES);
		if (!x.buffer)
			r = abx_fail(call, ABX_ENOMEM, NULL, "exec: out of memory");
	}
	if (r == ABX_OK)
		r = start(&x, sb->id);
	if (r == ABX_OK) {
		exec_register(&x);
		if (req->flags & ABX_EXEC_DETACHED) {
			r = wait_started(&x, ret);
			exec_unregister(&x);
		} else {
			r = pump(&x);
			exec_unregister(&x);
			if (r == ABX_OK)
				r = result(&x, ret);
			if (x.ended)
				local_helper_wait(&x.h);
			else
				cancel(&x);
			local_oom_tell(&x.oom);
		}
	}
	abx_cleanup_close(&x.out[0]);
	abx_cleanup_close(&x.out[1]);
	local_feed_close(&x.feed);
	local_oom_close(&x.oom);
	free(x.buffer);
	return r;
}
