/* SPDX-License-Identifier: MIT */
/* The life of a box: provision, start, stop, destroy, get, list. */
#include "providers/local/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "providers/local/cgroup.h"
#include "providers/local/limits.h"
#include "providers/local/pause.h"

#include "abxsdk/fs.h"
#include "abxsdk/json.h"

/* The kernel ends all processes of a killed box; longer than this it is stuck in one. */
#define KILL_WAIT_MS 10000
#define LIVE_WAIT_MS 5000
#define FAILED_WAIT_MS 500

static int send_signal(int pidfd, int signo)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}

/* Which of the files that describe a box is it? */
static int32_t fail_damaged(const struct abx_session *s, struct abx_call *call, const char *id)
{
	char path[LOCAL_ID_MAX + 16];
	const char *own = NULL;
	cJSON *doc = NULL;
	bool whole;

	(void)snprintf(path, sizeof(path), "%s/box.json", id);
	whole = local_read_json(s->boxes_fd, path, &doc) == 0 &&
		abx_json_str(doc, "id", LOCAL_ID_MAX, &own) == 0 && own && strcmp(own, id) == 0;
	cJSON_Delete(doc);
	if (whole)
		return abx_fail(call, ABX_EPROTO,
				"put it back; without it the network is as the box was made with",
				"box %s: store/boxes/%s/net.json: damaged", id, id);
	return abx_fail(call, ABX_EPROTO, LOCAL_DAMAGED_REMEDY,
			"box %s: store/boxes/%s/box.json: damaged or missing", id, id);
}

int32_t local_open(struct abx_session *s, struct abx_call *call, const char *id,
		   struct local_box *b)
{
	int r = local_box_open(s, id, b);

	if (r == -ENOENT)
		return abx_fail(call, ABX_ENOTFOUND, NULL, "box %s: there is no such box", id);
	if (r == -EPROTO)
		return fail_damaged(s, call, id);
	if (r < 0)
		return abx_fail_errno(call, -r, "box %s: its record", id);
	return ABX_OK;
}

int32_t local_lock(struct abx_session *s, struct abx_call *call, const struct local_box *b)
{
	int32_t r = local_box_lock(s, call, b);

	if (r == ABX_ENOTFOUND)
		return abx_fail(call, r, NULL, "box %s: it was destroyed meanwhile", b->id);
	return r;
}

/* Wait until the first process, and with it every other one, has ended. */
static int32_t wait_ended(struct abx_call *call, int pidfd, int64_t max_ms, bool *ret_ended)
{
	int64_t end = abx_plugin_host->now_ms(abx_plugin_host->ctx) + max_ms;

	*ret_ended = false;
	for (;;) {
		struct pollfd p = {.fd = pidfd, .events = POLLIN};
		int64_t left = end - abx_plugin_host->now_ms(abx_plugin_host->ctx);
		int32_t r = abx_call_poll(call, &p, 1, left > 0 ? left : 0);

		if (r != ABX_OK)
			return r;
		if (p.revents) {
			*ret_ended = true;
			return ABX_OK;
		}
		if (left <= 0)
			return ABX_OK;
	}
}

/* Its record says that it does not run: is that so? */
static int32_t check_not_live(struct abx_call *call, const struct local_box *b)
{
	abx_autoclose int live = -1;

	return faccessat(b->dir_fd, "live", F_OK, AT_SYMLINK_NOFOLLOW) < 0
		       ? ABX_OK
		       : local_live_take(call, b, &live);
}

static int32_t end_processes(struct abx_call *call, const struct local_box *b,
			     const struct local_run *run, int64_t grace_ms)
{
	bool ended = false;
	int32_t r = ABX_OK;

	if (grace_ms > 0 && send_signal(run->pidfd, SIGTERM) == 0) {
		local_pause_release(b);
		r = wait_ended(call, run->pidfd, grace_ms, &ended);
	}
	if (r == ABX_OK && !ended) {
		(void)send_signal(run->pidfd, SIGKILL);
		local_pause_release(b);
		r = wait_ended(call, run->pidfd, KILL_WAIT_MS, &ended);
	}
	if (r == ABX_OK && !ended)
		/* What joined the box and lost its parent is this machine's first process's to
		 * reap. */
		return abx_fail(call, ABX_EIO,
				"look for a process in state D, or for a zombie that the first "
				"process of this container does not reap (docker run --init)",
				"box %s: its processes do not end", b->id);
	return r;
}

/* What remains outside of a box that has ended. */
static int32_t clean_up(struct abx_call *call, const struct local_box *b)
{
	local_pause_forget(b);
	local_cgroup_remove(call, b);
	return local_net_ended(call, b);
}

/* The box's lock is held. */
int32_t local_stop_locked(struct abx_call *call, const struct local_box *b, struct local_run *run,
			  int64_t grace_ms)
{
	int32_t r =
		run->pidfd >= 0 ? end_processes(call, b, run, grace_ms) : check_not_live(call, b);

	return r == ABX_OK ? clean_up(call, b) : r;
}

/* So that a start which failed is not seen as one that goes on; why it failed is known, and
 * stays what the call says. */
static void await_killed(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	(void)poll(&p, 1, FAILED_WAIT_MS);
}

/* Starting. */

static int open_first_process(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* From the helper's first word to a box that runs. */
static int32_t follow_start(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			    const struct local_helper *h, struct local_start *st,
			    struct local_run *run)
{
	struct lb_msg m;
	int32_t r = local_helper_next(call, h, &m);
	int e;

	if (r != ABX_OK)
		return r;
	if (m.kind != LB_MSG_PID)
		return abx_fail(call, ABX_EPROTO, NULL, "helper program: unexpected answer");
	run->pid = m.value;
	run->ready = true; /* to whom this is returned */
	run->expires_at_ms = st->expires_at_ms;
	run->flags = st->flags;
	run->pidfd = open_first_process((pid_t)m.value);
	e = local_run_write(s, b->dir_fd, (pid_t)m.value, st->expires_at_ms, st->flags);
	/* When it has ended already, its last word says why. */
	if (e < 0 && e != -ENOENT && e != -ESRCH)
		return abx_fail_errno(call, -e, "box %s: write run.json", b->id);
	local_helper_control(h, LB_CTRL_GO, 0, 0);
	r = local_helper_next(call, h, &m);
	st->in_use = r == ABX_OK && m.kind == LB_MSG_IN_USE;
	if (r == ABX_OK && !st->in_use && (m.kind != LB_MSG_READY || run->pidfd < 0))
		return abx_fail(call, ABX_EPROTO, NULL, "helper program: unexpected answer");
	return r;
}

static int32_t await_lock(struct abx_call *call, const struct local_box *b, int fd)
{
	int64_t end = abx_plugin_host->now_ms(abx_plugin_host->ctx) + LIVE_WAIT_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int32_t r = abx_plugin_host->wait_ms(call, 2);

		if (r == ABX_ECANCELED)
			return abx_fail_canceled(call);
		if (r != ABX_OK)
			return abx_fail_timed_out(call);
		if (abx_plugin_host->now_ms(abx_plugin_host->ctx) > end)
			return abx_fail(call, ABX_ESTATE, NULL,
					"box %s: it is running, out of sight of this process",
					b->id);
	}
	return ABX_OK;
}

/* Whoever was giving the box a new root died, or could not; it may be at it yet. */
static int32_t end_swap(struct abx_call *call, const struct local_box *b)
{
	abx_autoclose int fd = openat(b->dir_fd, LOCAL_SWAP, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int32_t r;

	if (fd < 0)
		return errno == ENOENT ? ABX_OK
				       : abx_fail_errno(call, errno, "box %s: its lock", b->id);
	r = await_lock(call, b, fd);
	if (r == ABX_OK && ftruncate(fd, 0) < 0)
		r = abx_fail_errno(call, errno, "box %s: its lock", b->id);
	return r;
}

/* The lock of a running box, taken for the process that is about to be its first.  One that
 * its dead client never let go ends by itself within moments. */
int32_t local_live_take(struct abx_call *call, const struct local_box *b, int *ret_fd)
{
	abx_autoclose int fd =
		openat(b->dir_fd, "live", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int32_t r;

	if (fd < 0)
		return abx_fail_errno(call, errno, "box %s: its lock", b->id);
	r = await_lock(call, b, fd);
	if (r == ABX_OK)
		r = end_swap(call, b);
	if (r == ABX_OK)
		*ret_fd = abx_steal_fd(&fd);
	return r;
}

int32_t local_box_plan(const struct abx_session *s, struct abx_call *call,
		       const struct local_box *b, const char *seal, struct local_plan *plan)
{
	struct local_chain chain;
	int r = local_chain_read(s, b, &chain);

	if (r < 0)
		return r == -EPROTO ? abx_fail(call, ABX_EPROTO, LOCAL_DAMAGED_REMEDY,
					       "box %s: store/boxes/%s/chain.json: damaged", b->id,
					       b->id)
				    : abx_fail_errno(call, -r, "box %s: its layers", b->id);
	if (seal) {
		local_plan_add(plan, LB_PLAN_SEAL, "layers/%s", seal);
		local_plan_add(plan, LB_PLAN_LAYER, "layers/%s", seal);
	}
	if (b->image)
		local_plan_add(plan, LB_PLAN_IMAGE, "images/%s/root", b->image);
	for (size_t i = 0; i < chain.n; i++)
		local_plan_add(plan, LB_PLAN_LAYER, "layers/%s", chain.lid[i]);
	r = local_mounts_plan(b, plan);
	if (r < 0)
		return abx_fail_errno(call, -r, "box %s: its mounts", b->id);
	return plan->failed ? abx_fail(call, ABX_ENOMEM, NULL, "out of memory") : ABX_OK;
}

int32_t local_start_again(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			  struct local_start *st, struct local_run *run)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_START};
	struct local_helper h = LOCAL_HELPER_INIT;
	struct local_plan plan = {0};
	char layers[LOCAL_ID_MAX + 32];
	int32_t r;

	(void)snprintf(layers, sizeof(layers), "boxes/%s/layers", b->id);
	st->flags &= ~LB_F_NO_SET_ID;
	if (local_mounts_are_open(b))
		st->flags |= LB_F_NO_SET_ID;
	a.program = s->box_helper;
	a.path = layers;
	a.name = b->hostname;
	a.req.flags = st->flags;
	a.req.expires_at_ms = st->expires_at_ms;
	if (b->image)
		a.req.flags |= LB_F_IMAGE;
	a.fd_box = s->store_fd;
	if (local_net_is_host(b))
		a.req.flags |= LB_F_HOST_NET;
	/* In this order: the helper of a dead client may still be sealing a layer. */
	r = local_live_take(call, b, &a.fd_live);
	if (r == ABX_OK)
		r = local_box_plan(s, call, b, st->seal, &plan);
	a.argv = (const char *const *)plan.argv;
	if (r == ABX_OK)
		r = local_limits_start(s, call, b, a.fd_cgroup);
	if (r == ABX_OK) {
		local_limits_make_room(b, true);
		r = local_helper_start(s, call, &a, &h);
	}
	abx_cleanup_close(&a.fd_live);
	for (size_t i = 0; i < LB_CGROUPS_MAX; i++)
		abx_cleanup_close(&a.fd_cgroup[i]);
	local_plan_release(&plan);
	if (r != ABX_OK) {
		local_limits_make_room(b, false);
		return r;
	}
	r = follow_start(s, call, b, &h, st, run);
	local_limits_make_room(b, false);
	if (r == ABX_OK && st->in_use) {
		local_helper_wait(&h);
		return local_stop_locked(call, b, run, 0);
	}
	if (r == ABX_OK) {
		local_helper_wait(&h);
		return local_net_start(s, call, b, run);
	}
	if (run->pidfd >= 0)
		(void)send_signal(run->pidfd, SIGKILL);
	local_helper_kill(&h);
	if (run->pidfd >= 0)
		await_killed(run->pidfd);
	local_run_release(run);
	return r;
}

int32_t local_start_locked(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			   uint32_t flags, int64_t timeout_ms, struct local_run *run)
{
	struct local_start st = {
		.flags = flags,
		.expires_at_ms = timeout_ms > 0 ? abx_realtime_ms() + timeout_ms : 0,
	};
	int32_t r;

	(void)local_run_open(s, b, run);
	if (local_box_state(b, run) == ABX_STATE_PAUSED)
		return abx_fail(call, ABX_ESTATE, "resume it", "box %s: it is paused", b->id);
	if (run->pidfd >= 0 && run->ready) {
		return ABX_OK;
	}
	r = local_ids_check(s, call, "box %s", b->id);
	if (r != ABX_OK)
		return r;
	/* Whoever started this one held our lock, and died. */
	r = local_stop_locked(call, b, run, 0);
	local_run_release(run);
	return r == ABX_OK ? local_start_again(s, call, b, &st, run) : r;
}

int32_t local_start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_start_req *req)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	uint32_t flags = 0;
	int32_t r;

	if (req && (req->flags & ~ABX_START_READ_ONLY))
		return abx_fail(call, ABX_ENOTSUP, NULL, "start: unknown flags %#x", req->flags);
	if (req && (req->flags & ABX_START_READ_ONLY))
		flags |= LB_F_READ_ONLY;
	r = local_open(s, call, sb->id, &b);
	if (r == ABX_OK)
		r = local_lock(s, call, &b);
	if (r == ABX_OK)
		r = local_ports_assign(call, &b);
	if (r == ABX_OK)
		r = local_start_locked(s, call, &b, flags, req ? req->timeout_ms : 0, &run);
	if (r == ABX_OK)
		r = local_box_emit(s, call, &b, &run, ABX_STATE_RUNNING);
	local_run_release(&run);
	local_box_release(&b);
	return r;
}

/* A box whose record is damaged can still be stopped and removed. */
static int32_t open_for_end(struct abx_session *s, struct abx_call *call, const char *id,
			    struct local_box *b)
{
	int r = local_box_open(s, id, b);

	if (r == -ENOENT)
		return ABX_ENOTFOUND;
	if (r == 0)
		return ABX_OK;
	*b = (struct local_box)LOCAL_BOX_INIT;
	b->id = id;
	b->dir_fd = openat(s->boxes_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (b->dir_fd < 0)
		return errno == ENOENT ? ABX_ENOTFOUND : abx_fail_errno(call, errno, "box %s", id);
	return ABX_OK;
}

int32_t local_stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_stop_req *req)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	int32_t r = open_for_end(s, call, sb->id, &b);

	if (r == ABX_ENOTFOUND)
		r = abx_fail(call, r, NULL, "box %s: there is no such box", sb->id);
	if (r == ABX_OK)
		r = local_lock(s, call, &b);
	if (r == ABX_OK) {
		(void)local_run_open(s, &b, &run);
		r = local_stop_locked(call, &b, &run, req ? req->grace_ms : 0);
	}
	if (r == ABX_OK)
		r = local_box_emit(s, call, &b, NULL, ABX_STATE_STOPPED);
	local_run_release(&run);
	local_box_release(&b);
	return r;
}

int32_t local_destroy(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_stop_req *req)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	struct local_chain chain;
	bool shares = false;
	int live = -1;
	int32_t r = open_for_end(s, call, sb->id, &b);

	if (r == ABX_OK)
		r = local_box_lock(s, call, &b);
	if (r == ABX_OK) {
		(void)local_run_open(s, &b, &run);
		if (run.pidfd >= 0)
			r = end_processes(call, &b, &run, req ? req->grace_ms : 0);
	}
	if (r == ABX_OK)
		r = local_live_take(call, &b, &live);
	if (r == ABX_OK)
		r = clean_up(call, &b);
	/* It could not be removed, and is left in sight. */
	if (r == ABX_OK && geteuid() != 0)
		r = local_ids_check(s, call, "box %s", sb->id);
	if (r == ABX_OK && b.doc)
		shares = local_chain_named(s, &b, &chain) < 0 || chain.n;
	if (r == ABX_OK) {
		/* From here on it is gone; what is left is swept by anybody if we die.  The
		 * lock moves along with the directory. */
		if (renameat(s->boxes_fd, sb->id, s->tmp_fd, sb->id) < 0)
			r = abx_fail_errno(call, errno, "box %s: remove", sb->id);
		else
			r = local_remove_tree(s, call, s->tmp_fd, sb->id, "layers");
	}
	abx_cleanup_close(&live);
	/* A damaged record may have named layers. */
	if (r == ABX_OK && (shares || !b.doc))
		local_layers_collect(s, call);
	local_run_release(&run);
	local_box_release(&b);
	return r == ABX_ENOTFOUND ? ABX_OK : r;
}

/* Looking. */

int32_t local_get(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	int32_t r = local_open(s, call, sb->id, &b);

	if (r == ABX_OK) {
		(void)local_run_open(s, &b, &run);
		r = local_box_emit(s, call, &b, &run, local_box_state(&b, &run));
	}
	local_run_release(&run);
	local_box_release(&b);
	return r;
}

static int32_t list_one(struct abx_session *s, struct abx_call *call, const char *id,
			const struct abx_list_req *req)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	int e = local_box_open(s, id, &b);
	int32_t r = ABX_OK;

	if (e == -EPROTO) {
		/* Damaged: it has no labels any more, yet it must be found. */
		b.id = id;
		if (!req || !req->n_labels)
			r = local_box_emit(s, call, &b, NULL, ABX_STATE_FAILED);
	} else if (e == 0 && local_labels_match(b.labels, req)) {
		(void)local_run_open(s, &b, &run);
		r = local_box_emit(s, call, &b, &run, local_box_state(&b, &run));
	} else if (e < 0 && e != -ENOENT) {
		r = abx_fail_errno(call, -e, "box %s", id);
	}
	local_run_release(&run);
	local_box_release(&b);
	return r;
}

int32_t local_list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	DIR *d = abx_fs_opendir(s->boxes_fd, ".");
	struct dirent *e;
	int32_t r;

	if (!d)
		return abx_fail_errno(call, errno, "state directory");
	r = local_sweep(s, call);
	while (r == ABX_OK && (e = readdir(d)))
		if (local_id_valid(e->d_name))
			r = list_one(s, call, e->d_name, req);
	(void)closedir(d);
	return r;
}
