/* SPDX-License-Identifier: MIT */
/* Running a helper program and listening to it. */
#include "providers/local/local.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "abxsdk/spawn.h"
#include "providers/local/limits.h"
#include "providers/local/pause.h"

#define REQUEST_MAX_BYTES ((size_t)16 << 20)
#define LEFT_MAX 256

/* Helpers that outlive the operation that started them; reaped by later operations. */
static struct {
	pthread_mutex_t lock;
	pid_t pid[LEFT_MAX];
	size_t n;
} left = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reap_left(pid_t add)
{
	size_t n = 0;

	(void)pthread_mutex_lock(&left.lock);
	for (size_t i = 0; i < left.n; i++)
		if (waitpid(left.pid[i], NULL, WNOHANG) == 0)
			left.pid[n++] = left.pid[i];
	left.n = n;
	if (add > 0 && left.n < LEFT_MAX)
		left.pid[left.n++] = add;
	(void)pthread_mutex_unlock(&left.lock);
}

static void add_string(struct abx_buf *b, const char *s)
{
	abx_buf_add(b, s ? s : "", s ? strlen(s) + 1 : 1);
}

struct env_sink {
	struct abx_buf *b;
	uint32_t n;
};

static int add_pair(void *ctx, const char *key, const char *value)
{
	struct env_sink *e = ctx;

	abx_buf_adds(e->b, key);
	abx_buf_addc(e->b, '=');
	add_string(e->b, value);
	e->n++;
	return 0;
}

/* The request as a memfd: in no argument list, no environment and no file. */
static int make_request(struct local_helper_args *a, int *ret_fd)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(REQUEST_MAX_BYTES);
	struct env_sink env = {.b = &b};
	abx_autoclose int fd = -1;
	struct timespec now;
	int r;

	a->req.magic = LB_MAGIC;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	a->req.asked_at_ns = (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	abx_buf_add(&b, &a->req, sizeof(a->req));
	add_string(&b, a->user);
	add_string(&b, a->path);
	add_string(&b, a->name);
	for (a->req.n_argv = 0; a->argv && a->argv[a->req.n_argv]; a->req.n_argv++)
		add_string(&b, a->argv[a->req.n_argv]);
	(void)abx_json_each_str(a->box_env, add_pair, &env);
	for (uint32_t i = 0; i < a->n_env; i++)
		(void)add_pair(&env, a->env[i].key, a->env[i].value);
	if (b.failed)
		return -E2BIG;
	a->req.n_env = env.n;
	a->req.strings_len = (uint32_t)(b.len - sizeof(a->req));
	memcpy(b.data, &a->req, sizeof(a->req));
	fd = memfd_create("agentbox-request", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = abx_fs_write_all(fd, b.data, b.len);
	explicit_bzero(b.data, b.len);
	if (r < 0)
		return r;
	*ret_fd = abx_steal_fd(&fd);
	return 0;
}

static void pass(struct abx_spawn *sp, int from, int to)
{
	if (from < 0)
		return;
	sp->extra[sp->n_extra].from = from;
	sp->extra[sp->n_extra++].to = to;
}

int32_t local_helper_start(const struct abx_session *s, struct abx_call *call,
			   struct local_helper_args *a, struct local_helper *ret)
{
	/* Nothing of the caller's environment: a box's first process keeps this one. */
	static const char *const env[] = {"PATH=" LB_PATH, NULL};
	const char *argv[] = {a->program, NULL};
	struct abx_spawn sp = {.argv = argv,
			       .envp = env,
			       .fd_in = a->fd_in,
			       .fd_out = a->fd_out,
			       .fd_err = a->fd_err,
			       .new_session = 1};
	int status[2] = {-1, -1}, life[2] = {-1, -1}, request = -1;
	struct local_helper h = LOCAL_HELPER_INIT;
	int r;

	reap_left(-1);
	a->req.map = (uint32_t)s->ids.map;
	a->req.uid_base = s->ids.uid_base;
	a->req.gid_base = s->ids.gid_base;
	if (s->ids.map == LB_MAP_SINGLE)
		a->req.flags |= LB_F_SINGLE_ID;
	for (a->req.n_cgroups = 0;
	     a->req.n_cgroups < LB_CGROUPS_MAX && a->fd_cgroup[a->req.n_cgroups] >= 0;)
		a->req.n_cgroups++;
	r = make_request(a, &request);
	if (r == 0 && (pipe2(status, O_CLOEXEC) < 0 ||
		       socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, life) < 0))
		r = -errno;
	if (r == 0) {
		pass(&sp, request, LB_FD_REQUEST);
		pass(&sp, status[1], LB_FD_STATUS);
		pass(&sp, life[0], LB_FD_LIFELINE);
		pass(&sp, a->fd_box, LB_FD_BOX);
		pass(&sp, a->fd_live, LB_FD_LIVE);
		pass(&sp, a->fd_control, LB_FD_CONTROL);
		pass(&sp, a->fd_gate, LB_FD_GATE);
		pass(&sp, a->fd_dir, LB_FD_DIR);
		for (uint32_t i = 0; i < a->req.n_cgroups; i++)
			pass(&sp, a->fd_cgroup[i], LB_FD_CGROUP + (int)i);
		r = abx_spawn_start(&sp, &h.pid);
	}
	abx_cleanup_close(&request);
	abx_cleanup_close(&status[1]);
	abx_cleanup_close(&life[0]);
	if (r == 0 && fcntl(status[0], F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	h.status_fd = status[0];
	h.lifeline = life[1];
	if (r == 0) {
		*ret = h;
		return ABX_OK;
	}
	local_helper_kill(&h);
	if (r == -ENOENT)
		return abx_fail(call, ABX_EBROKEN,
				"reinstall agentbox, or set AGENTBOX_LIBEXEC_PATH",
				"helper program: %s is missing", a->program);
	return abx_fail_errno(call, -r, "helper program: %s", a->program);
}

int local_helper_read(const struct local_helper *h, struct lb_msg *m)
{
	ssize_t n = read(h->status_fd, m, sizeof(*m));

	if (n == (ssize_t)sizeof(*m)) {
		m->text[sizeof(m->text) - 1] = '\0';
		m->remedy[sizeof(m->remedy) - 1] = '\0';
		return 1;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : 0;
}

int32_t local_helper_failed(struct abx_call *call, const struct lb_msg *m)
{
	int32_t code = m->code < 0 ? m->code : ABX_EINTERNAL;

	return abx_fail(call, code, m->remedy, "%s", m->text);
}

int32_t local_helper_any(struct abx_call *call, const struct local_helper *h, struct lb_msg *m)
{
	for (;;) {
		struct pollfd p = {.fd = h->status_fd, .events = POLLIN};
		int32_t r = abx_call_poll(call, &p, 1, -1);
		int got;

		if (r != ABX_OK)
			return r;
		got = local_helper_read(h, m);
		if (got == 1 && m->kind == LB_MSG_WARN) {
			abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "local", m->text);
			continue;
		}
		if (got == 1)
			return ABX_OK;
		if (got == 0)
			return abx_fail(call, ABX_ESTATE, NULL, "the box ended while it was used");
	}
}

int32_t local_helper_next(struct abx_call *call, const struct local_helper *h, struct lb_msg *m)
{
	int32_t r = local_helper_any(call, h, m);

	return r == ABX_OK && m->kind == LB_MSG_FAIL ? local_helper_failed(call, m) : r;
}

void local_helper_control(const struct local_helper *h, uint16_t kind, uint16_t a, uint16_t b)
{
	struct lb_ctrl c = {.kind = kind, .a = a, .b = b};

	/* send() on a pair of sockets: writing to a pipe whose reader has ended would raise
	 * SIGPIPE, which is not ours to handle in a host's process. */
	(void)send(h->lifeline, &c, sizeof(c), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void forget(struct local_helper *h)
{
	abx_cleanup_close(&h->lifeline);
	abx_cleanup_close(&h->status_fd);
	*h = (struct local_helper)LOCAL_HELPER_INIT;
}

void local_helper_kill(struct local_helper *h)
{
	int status;

	/* In this order: the one inside looks at the lifeline after it asked to die with
	 * its parent. */
	abx_cleanup_close(&h->lifeline);
	h->lifeline = -1;
	if (h->pid > 0) {
		(void)kill(h->pid, SIGKILL);
		(void)abx_spawn_wait(h->pid, &status);
	}
	forget(h);
}

void local_helper_wait(struct local_helper *h)
{
	int status;

	(void)abx_spawn_wait(h->pid, &status);
	forget(h);
}

void local_helper_leave(struct local_helper *h)
{
	if (h->pid > 0)
		reap_left(h->pid);
	forget(h);
}

int32_t local_box_enter(struct abx_session *s, struct abx_call *call, const char *id,
			struct local_box *b, struct local_run *run, struct local_helper_args *a)
{
	int32_t r = local_open(s, call, id, b);

	if (r == ABX_OK)
		r = local_pause_pass(s, call, b, run, &b->gate_fd);
	if (r != ABX_OK)
		return r;
	if (run->pidfd >= 0 && !run->ready)
		return abx_fail(call, ABX_ESTATE, NULL, "box %s: it is starting", id);
	if (run->pidfd < 0)
		return abx_fail(call, ABX_ESTATE, "start it", "box %s: it is not running", id);
	a->fd_box = run->pidfd;
	if (b->image)
		a->req.flags |= LB_F_IMAGE;
	if (local_net_is_host(b))
		a->req.flags |= LB_F_HOST_NET;
	a->fd_gate = b->gate_fd;
	r = local_limits_enter(call, b, b->cgroup_fd);
	memcpy(a->fd_cgroup, b->cgroup_fd, sizeof(a->fd_cgroup));
	return r;
}
