/* SPDX-License-Identifier: MIT */
/* Pausing boxes: holding all their processes, and letting them go on. */
#include "providers/local/pause.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "providers/local/cgroup.h"

#define MARK "paused"
#define GATE "gate"
#define WAIT_MS 2
/* Processes deep in the kernel are held only when they come back. */
#define FREEZE_WAIT_MS 10000

enum method {
	BY_CGROUP2,
	BY_CGROUP1,
	BY_SIGNAL,
};
static const char *const method_names[] = {"cgroup2", "cgroup1", "signal"};

/* boxes/<id>/paused */
struct mark {
	bool there, complete;
	bool damaged;
	bool by_user; /* false: for as long as a snapshot is made */
	enum method method;
	char dir[LOCAL_CGROUP_PATH_MAX];
};

static int parse_mark(const struct local_box *b, struct mark *ret)
{
	const char *method = NULL, *dir = NULL;
	cJSON *doc = NULL;
	int r = local_read_json(b->dir_fd, MARK, &doc);

	if (r == 0)
		r = abx_json_bool(doc, "complete", false, &ret->complete);
	if (r == 0)
		r = abx_json_bool(doc, "by_user", false, &ret->by_user);
	if (r == 0)
		r = abx_json_str(doc, "method", 32, &method);
	if (r == 0)
		r = abx_json_str(doc, "dir", LOCAL_CGROUP_PATH_MAX - 1, &dir);
	if (r == 0 && !method)
		r = -EPROTO;
	for (size_t i = 0; r == 0 && i < ABX_N_ELEMENTS(method_names); i++)
		if (strcmp(method, method_names[i]) == 0)
			ret->method = (enum method)i;
	if (r == 0)
		(void)snprintf(ret->dir, sizeof(ret->dir), "%s", dir ? dir : "");
	cJSON_Delete(doc);
	return r;
}

static int write_mark(const struct local_box *b, const struct mark *m)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(65536);
	cJSON *doc = cJSON_CreateObject();
	int r = doc ? 0 : -ENOMEM;

	if (r == 0)
		r = abx_json_add_bool(doc, "complete", m->complete);
	if (r == 0)
		r = abx_json_add_bool(doc, "by_user", m->by_user);
	if (r == 0)
		r = abx_json_add_str(doc, "method", method_names[m->method]);
	if (r == 0)
		r = abx_json_add_str(doc, "dir", m->dir);
	if (r == 0)
		r = abx_json_print(doc, &text);
	cJSON_Delete(doc);
	/* Not flushed: after a power loss nothing is paused. */
	return r < 0 ? r : abx_fs_write_atomic(b->dir_fd, MARK, text.data, text.len, 0600, false);
}

static bool is_held(const struct mark *m)
{
	char text[256];

	if (m->method == BY_SIGNAL)
		return true;
	if (m->method == BY_CGROUP1)
		return local_cgroup_read(m->dir, "freezer.state", text, sizeof(text)) == 0 &&
		       strcmp(text, "FROZEN\n") == 0;
	return local_cgroup_read(m->dir, "cgroup.events", text, sizeof(text)) == 0 &&
	       strstr(text, "frozen 1") != NULL;
}

/* visit(): one of the box's cgroups; 1 when it holds processes. */
static int find_held(void *ctx, const char *dir)
{
	static const enum method methods[] = {BY_CGROUP2, BY_CGROUP1};
	struct mark *m = ctx;

	if ((size_t)snprintf(m->dir, sizeof(m->dir), "%s/" LOCAL_CGROUP_INNER, dir) >=
	    sizeof(m->dir))
		return 0;
	for (size_t i = 0; i < ABX_N_ELEMENTS(methods); i++) {
		m->method = methods[i];
		if (is_held(m))
			return 1;
	}
	return 0;
}

/* Where the mark says nothing, what is frozen was paused by the user: only he leaves it so. */
static void read_mark(const struct local_box *b, struct mark *ret)
{
	struct mark m = {.method = BY_SIGNAL},
		    found = {.there = true, .complete = true, .by_user = true};
	int r = parse_mark(b, &m);

	m.there = r != -ENOENT;
	if (r < 0 && local_cgroup_each(b, find_held, &found) == 1)
		m = found;
	else if (r < 0)
		m = (struct mark){.method = BY_SIGNAL, .there = m.there};
	m.damaged = r < 0 && r != -ENOENT;
	*ret = m;
}

static bool is_paused(const struct mark *m)
{
	return m->there && m->complete && m->by_user && is_held(m);
}

static int set_frozen(const struct mark *m, bool on)
{
	if (m->method == BY_CGROUP1)
		return local_cgroup_write(m->dir, "freezer.state", on ? "FROZEN" : "THAWED");
	return local_cgroup_write(m->dir, "cgroup.freeze", on ? "1" : "0");
}

uint32_t local_box_state(const struct local_box *b, const struct local_run *run)
{
	uint32_t state = local_run_state(run);
	struct mark m;

	if (state != ABX_STATE_RUNNING)
		return state;
	read_mark(b, &m);
	if (!is_paused(&m))
		return state;
	/* The first process is ending the box; what is frozen cannot hear of it, and what version
	 * 1 has frozen cannot even be killed. */
	if (run->expires_at_ms && abx_realtime_ms() >= run->expires_at_ms) {
		local_pause_release(b);
		return ABX_STATE_STOPPING;
	}
	return ABX_STATE_PAUSED;
}

void local_pause_release(const struct local_box *b)
{
	struct mark m;

	read_mark(b, &m);
	if (m.there && m.method != BY_SIGNAL && *m.dir)
		(void)set_frozen(&m, false);
}

void local_pause_forget(const struct local_box *b)
{
	(void)unlinkat(b->dir_fd, MARK, 0);
}

/* The gate. */

static int32_t lock_gate(struct abx_call *call, const struct local_box *b, int how, int *ret_fd)
{
	abx_autoclose int fd =
		openat(b->dir_fd, GATE, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return abx_fail_errno(call, errno, "box %s: its gate", b->id);
	while (flock(fd, how | LOCK_NB) < 0) {
		int32_t r;

		if (errno != EWOULDBLOCK)
			return abx_fail_errno(call, errno, "box %s: its gate", b->id);
		r = abx_plugin_host->wait_ms(call, WAIT_MS);
		if (r != ABX_OK)
			return r == ABX_ECANCELED ? abx_fail_canceled(call)
						  : abx_fail_timed_out(call);
	}
	*ret_fd = abx_steal_fd(&fd);
	return ABX_OK;
}

int32_t local_pause_gate(struct abx_call *call, const struct local_box *b, int *ret_gate)
{
	return lock_gate(call, b, LOCK_SH, ret_gate);
}

/* Holding. */

/* A helper in the box, as its root: all processes but the first into the cgroup behind
 * procs_fd, or a signal for them.  It keeps the gate, so that when we die nobody acts on the
 * box before it has ended: it would hold the next one's helper too. */
static int32_t act_inside(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			  const struct local_run *run, int gate, uint32_t op, int procs_fd,
			  struct lb_msg *ret)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = op};
	struct local_helper h = LOCAL_HELPER_INIT;
	int32_t r;

	a.program = s->box_helper;
	a.fd_box = run->pidfd;
	a.fd_gate = gate;
	a.fd_cgroup[0] = procs_fd;
	if (b->image)
		a.req.flags |= LB_F_IMAGE;
	r = local_helper_start(s, call, &a, &h);
	if (r == ABX_OK)
		r = local_helper_any(call, &h, ret);
	if (r == ABX_OK)
		local_helper_wait(&h);
	else
		local_helper_kill(&h);
	return r;
}

/* The cgroup to freeze: within the one that limits the box, if there is one in that place. */
static int make_frozen_dir(const struct abx_session *s, const struct local_box *b, struct mark *m)
{
	struct local_place p;
	char dir[LOCAL_CGROUP_PATH_MAX];
	int r = local_cgroup_find("freezer", &p);

	if (r == 0)
		r = local_cgroup_make(s, b, &p, dir);
	if (r < 0)
		return r;
	if ((size_t)snprintf(m->dir, sizeof(m->dir), "%s/" LOCAL_CGROUP_INNER, dir) >=
	    sizeof(m->dir))
		return -ENAMETOOLONG;
	m->method = p.v2 ? BY_CGROUP2 : BY_CGROUP1;
	return mkdir(m->dir, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int32_t await_held(struct abx_call *call, const struct local_box *b, const struct mark *m)
{
	int64_t end = abx_plugin_host->now_ms(abx_plugin_host->ctx) + FREEZE_WAIT_MS;

	while (!is_held(m)) {
		int32_t r = abx_plugin_host->wait_ms(call, WAIT_MS);

		if (r != ABX_OK)
			return r == ABX_ECANCELED ? abx_fail_canceled(call)
						  : abx_fail_timed_out(call);
		if (abx_plugin_host->now_ms(abx_plugin_host->ctx) > end)
			return abx_fail(call, ABX_EIO, "look for a process in state D",
					"box %s: its processes do not stop", b->id);
	}
	return ABX_OK;
}

/* Frozen first, then filled: whoever is put there stops at once, and nobody can get away by
 * starting others.  *ret_done is false where the kernel does not let us. */
static int32_t hold_by_cgroup(struct abx_session *s, struct abx_call *call,
			      const struct local_box *b, const struct local_run *run, int gate,
			      struct mark *m, bool *ret_done)
{
	char path[LOCAL_CGROUP_PATH_MAX + 16];
	abx_autoclose int fd = -1;
	struct lb_msg msg;
	int32_t r;
	int e;

	*ret_done = false;
	if (make_frozen_dir(s, b, m) < 0)
		return ABX_OK;
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", m->dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return ABX_OK;
	e = write_mark(b, m);
	if (e < 0)
		return abx_fail_errno(call, -e, "box %s: write " MARK, b->id);
	if (set_frozen(m, true) < 0)
		return ABX_OK;
	r = act_inside(s, call, b, run, gate, LB_OP_GATHER, fd, &msg);
	if (r == ABX_OK && msg.kind == LB_MSG_FAIL && msg.code != ABX_EPERM)
		r = local_helper_failed(call, &msg);
	if (r != ABX_OK)
		return r;
	if (msg.kind == LB_MSG_DONE) {
		*ret_done = true;
		return await_held(call, b, m);
	}
	(void)set_frozen(m, false);
	return ABX_OK;
}

static int32_t hold_by_signal(struct abx_session *s, struct abx_call *call,
			      const struct local_box *b, const struct local_run *run, int gate,
			      struct mark *m)
{
	struct lb_msg msg;
	int32_t r;
	int e;

	m->method = BY_SIGNAL;
	m->dir[0] = '\0';
	e = write_mark(b, m);
	if (e < 0)
		return abx_fail_errno(call, -e, "box %s: write " MARK, b->id);
	r = act_inside(s, call, b, run, gate, LB_OP_SUSPEND, -1, &msg);
	return r == ABX_OK && msg.kind == LB_MSG_FAIL ? local_helper_failed(call, &msg) : r;
}

static int32_t wake(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		    const struct local_run *run, int gate)
{
	struct lb_msg msg;
	int32_t r = act_inside(s, call, b, run, gate, LB_OP_WAKE, -1, &msg);

	return r == ABX_OK && msg.kind == LB_MSG_FAIL ? local_helper_failed(call, &msg) : r;
}

static void warn_damaged(const struct local_box *b)
{
	char text[LOCAL_ID_MAX + 96];

	(void)snprintf(text, sizeof(text),
		       "store/boxes/%.64s/" MARK ": damaged; all processes of the box go on",
		       b->id);
	abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "local", text);
}

/* The mark goes last: as long as it is there, the next one tries again. */
static int32_t let_go(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		      const struct local_run *run, int gate)
{
	struct mark m;
	int32_t r = ABX_OK;
	int e = 0;

	read_mark(b, &m);
	if (!m.there)
		return ABX_OK;
	if (m.damaged)
		warn_damaged(b);
	if (m.method == BY_SIGNAL)
		r = wake(s, call, b, run, gate);
	else
		e = set_frozen(&m, false);
	/* Where there is no directory, nothing was frozen yet. */
	if (e < 0 && e != -ENOENT)
		r = abx_fail_errno(call, -e, "box %s: %s", b->id, m.dir);
	if (r == ABX_OK)
		local_pause_forget(b);
	return r;
}

/* The gate is ours alone. */
static int32_t hold(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		    const struct local_run *run, int gate, bool by_user)
{
	struct mark m = {.by_user = by_user};
	bool done = false;
	int32_t r = hold_by_cgroup(s, call, b, run, gate, &m, &done);

	if (r == ABX_OK && !done)
		r = hold_by_signal(s, call, b, run, gate, &m);
	if (r == ABX_OK) {
		int e;

		m.complete = true;
		e = write_mark(b, &m);
		if (e < 0)
			r = abx_fail_errno(call, -e, "box %s: write " MARK, b->id);
	}
	if (r == ABX_OK)
		return ABX_OK;
	/* The call is over, by its deadline perhaps; a cgroup is thawed without it. */
	local_pause_release(b);
	return r;
}

int32_t local_freeze(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		     const struct local_run *run, struct local_freeze *ret)
{
	struct local_freeze f = {.gate_fd = -1};
	struct mark m;
	int32_t r;

	read_mark(b, &m);
	f.was_paused = is_paused(&m);
	r = lock_gate(call, b, LOCK_EX, &f.gate_fd);
	if (r == ABX_OK && !f.was_paused)
		r = let_go(s, call, b, run, f.gate_fd);
	if (r == ABX_OK && !f.was_paused)
		r = hold(s, call, b, run, f.gate_fd, /* by_user= */ false);
	if (r != ABX_OK) {
		abx_cleanup_close(&f.gate_fd);
		return r;
	}
	*ret = f;
	return ABX_OK;
}

int32_t local_thaw(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		   const struct local_run *run, struct local_freeze *f)
{
	int32_t r = f->was_paused ? ABX_OK : let_go(s, call, b, run, f->gate_fd);

	abx_cleanup_close(&f->gate_fd);
	f->gate_fd = -1;
	return r;
}

/* An unfinished pause or snapshot: somebody is at it, or has died at it. */
static int32_t repair(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		      const struct local_run *run)
{
	abx_autoclose int fd =
		openat(s->boxes_fd, b->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int gate = -1;
	int32_t r;

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
		r = lock_gate(call, b, LOCK_EX, &gate);
		if (r == ABX_OK)
			r = let_go(s, call, b, run, gate);
		abx_cleanup_close(&gate);
		return r;
	}
	r = abx_plugin_host->wait_ms(call, WAIT_MS);
	if (r != ABX_OK)
		return r == ABX_ECANCELED ? abx_fail_canceled(call) : abx_fail_timed_out(call);
	return ABX_OK;
}

int32_t local_gate_close(struct abx_call *call, const struct local_box *b, int *ret_gate)
{
	return lock_gate(call, b, LOCK_EX, ret_gate);
}

int32_t local_pause_pass(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			 struct local_run *run, int *ret_gate)
{
	for (;;) {
		abx_autoclose int gate = -1;
		struct mark m;
		int32_t r = lock_gate(call, b, LOCK_SH, &gate);

		if (r != ABX_OK)
			return r;
		/* A snapshot may have ended the first process, and started another one. */
		local_run_release(run);
		(void)local_run_open(s, b, run);
		read_mark(b, &m);
		if (!m.there || run->pidfd < 0) {
			*ret_gate = abx_steal_fd(&gate);
			return ABX_OK;
		}
		if (is_paused(&m))
			return abx_fail(call, ABX_ESTATE, "resume it", "box %s: it is paused",
					b->id);
		abx_cleanup_close(&gate);
		gate = -1;
		r = repair(s, call, b, run);
		if (r != ABX_OK)
			return r;
	}
}

static bool can_freeze(void)
{
	struct local_place p;

	return local_cgroup_find("freezer", &p) == 0;
}

/* Operations. */

static int32_t open_running(struct abx_session *s, struct abx_call *call, const char *id,
			    struct local_box *b, struct local_run *run)
{
	int32_t r = local_open(s, call, id, b);

	if (r == ABX_OK)
		r = local_lock(s, call, b);
	if (r == ABX_OK) {
		(void)local_run_open(s, b, run);
		if (run->pidfd < 0 || !run->ready)
			r = abx_fail(call, ABX_ESTATE, "start it", "box %s: it is not running",
				     b->id);
	}
	return r;
}

int32_t local_pause(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_stop_req *req)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	struct mark m;
	int gate = -1;
	int32_t r = open_running(s, call, sb->id, &b, &run);

	(void)req;
	if (r == ABX_OK) {
		read_mark(&b, &m);
		if (!is_paused(&m)) {
			r = lock_gate(call, &b, LOCK_EX, &gate);
			if (r == ABX_OK)
				r = let_go(s, call, &b, &run, gate);
			if (r == ABX_OK)
				r = hold(s, call, &b, &run, gate, /* by_user= */ true);
			abx_cleanup_close(&gate);
		}
	}
	if (r == ABX_OK)
		r = local_box_emit(s, call, &b, &run, ABX_STATE_PAUSED);
	local_run_release(&run);
	local_box_release(&b);
	return r;
}

int32_t local_resume(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_start_req *req)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	int gate = -1;
	int32_t r = open_running(s, call, sb->id, &b, &run);

	(void)req;
	if (r == ABX_OK)
		r = lock_gate(call, &b, LOCK_EX, &gate);
	if (r == ABX_OK)
		r = let_go(s, call, &b, &run, gate);
	/* Where a mark was lost, nothing tells who has been stopped by a signal. */
	if (r == ABX_OK && !can_freeze())
		r = wake(s, call, &b, &run, gate);
	abx_cleanup_close(&gate);
	if (r == ABX_OK)
		r = local_box_emit(s, call, &b, &run, ABX_STATE_RUNNING);
	local_run_release(&run);
	local_box_release(&b);
	return r;
}
