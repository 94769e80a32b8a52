/* SPDX-License-Identifier: MIT */
/*
 * Making a snapshot.
 *
 * Where a box has no process but its first one, nothing is copied: what the box has written
 * becomes a shared layer by a rename, and that process gets a new root over it (box-swap.c).
 * Where it cannot, it ends, and the box starts again.
 * A layer that anything can still write to is never shared; where something can, as where
 * there are processes, those are stopped and what the box has written is copied.
 */
#include "providers/local/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>

#include "abxsdk/fs.h"
#include "providers/local/limits.h"
#include "providers/local/pause.h"
#include "providers/local/print.h"

/* More layers than this become one: a look-up of a name asks each of them. */
#define CHAIN_LIMIT 32
#define STOP_GRACE_MS 5000
#define SIZE_UNKNOWN (-1)

struct making {
	struct abx_session *s;
	struct abx_call *call;
	struct local_box b;
	struct local_run run;
	struct local_chain chain;
	/* A locked directory in tmp/: for what is being made, and so that the next sweep looks
	 * for a layer without a record if we die. */
	int dir_fd;
	char dir[32];
	int layers_lock, live; /* live: -1 where the box runs */
	char lid[LOCAL_LID_SIZE];
	int64_t size_bytes;
	uint32_t flags;
};

static int make_id(char id[LOCAL_LID_SIZE])
{
	uint64_t nonce;

	if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return -EIO;
	(void)snprintf(id, LOCAL_LID_SIZE, "%016llx", (unsigned long long)nonce);
	return 0;
}

/* The box's own /proc lists its processes and nobody else's. */
static int open_proc(const struct local_run *run)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%lld/root/proc", (long long)run->pid);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Run LB_OP_MERGE to its end. */
static int32_t merge(struct making *m, struct local_helper_args *a, const char *lid)
{
	struct local_helper h = LOCAL_HELPER_INIT;
	struct lb_msg answer;
	char path[64];
	int32_t r;
	int e = local_make_box_dir(m->s, m->dir_fd, "layers");

	if (e < 0)
		return abx_fail_errno(m->call, -e, "state directory");
	(void)snprintf(path, sizeof(path), "layers/%s", lid);
	a->req.op = LB_OP_MERGE;
	a->program = m->s->box_helper;
	a->path = path;
	a->fd_out = m->s->store_fd;
	a->fd_live = m->dir_fd;
	if (a->fd_box < 0)
		a->fd_box = m->s->store_fd;
	r = local_helper_start(m->s, m->call, a, &h);
	if (r != ABX_OK)
		return r;
	r = local_helper_next(m->call, &h, &answer);
	if (r == ABX_OK) {
		local_helper_wait(&h);
		m->size_bytes = answer.value;
	} else {
		local_helper_kill(&h);
	}
	return r;
}

/* The chain of the box as one layer; the same chain is made one only once. */
static int32_t flatten(struct making *m)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(4096);
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.flags = LB_F_LINK};
	struct local_print print = LOCAL_PRINT_INIT;
	const struct stat nothing = {.st_mode = 0};
	struct local_plan plan = {0};
	char id[LOCAL_PRINT_TEXT];
	int32_t r = ABX_OK;

	(void)local_chain_text(&m->chain, &text);
	local_print_add(&print, abx_buf_str(&text), &nothing);
	local_print_text(&print, id);
	id[LOCAL_LID_SIZE - 1] = '\0';
	for (size_t i = 0; i < m->chain.n; i++)
		local_plan_add(&plan, "layers", "%s", m->chain.lid[i]);
	if (plan.failed)
		r = abx_fail(m->call, ABX_ENOMEM, NULL, "out of memory");
	for (size_t i = 0; i < plan.n; i++)
		*strchr(plan.argv[i], ':') = '/';
	a.argv = (const char *const *)plan.argv;
	if (r == ABX_OK && faccessat(m->s->layers_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		r = merge(m, &a, id);
	/* Somebody else may have made the same one. */
	if (r != ABX_OK && faccessat(m->s->layers_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		r = ABX_OK;
	local_plan_release(&plan);
	if (r == ABX_OK) {
		m->chain.n = 0;
		(void)local_chain_push(&m->chain, id);
	}
	return r;
}

/* By copying. */

static int32_t copy_running(struct making *m, struct local_helper_args *a)
{
	struct local_freeze f;
	int32_t r = local_freeze(m->s, m->call, &m->b, &m->run, &f), thawed;

	if (r != ABX_OK)
		return r;
	a->fd_box = m->run.pidfd;
	a->req.flags |= LB_F_INSIDE;
	r = merge(m, a, m->lid);
	thawed = local_thaw(m->s, m->call, &m->b, &m->run, &f);
	return r == ABX_OK ? thawed : r;
}

static int32_t copy(struct making *m)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT};
	char upper[LOCAL_ID_MAX + 32];
	const char *const argv[] = {upper, NULL};

	(void)snprintf(upper, sizeof(upper), "boxes/%s/layers/upper", m->b.id);
	a.argv = argv;
	return m->run.pidfd >= 0 ? copy_running(m, &a) : merge(m, &a, m->lid);
}

/* By renaming. */

/* Takes the descriptor. */
static size_t count_processes(int proc_fd)
{
	DIR *d = fdopendir(proc_fd);
	struct dirent *e;
	size_t n = 0;

	if (!d)
		(void)close(proc_fd);
	while (d && (e = readdir(d)))
		n += e->d_name[0] >= '0' && e->d_name[0] <= '9';
	if (d)
		(void)closedir(d);
	return n;
}

/* Nobody but the first process?  Where that cannot be seen: no. */
static bool is_alone(const struct local_run *run)
{
	int fd = open_proc(run);
	bool alone = false;

	if (fd >= 0)
		alone = count_processes(fd) == 1;
	return alone;
}

static int32_t seal_stopped(struct making *m, bool *ret_done)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_SEAL};
	struct local_helper h = LOCAL_HELPER_INIT;
	struct local_plan plan = {0};
	char own[LOCAL_ID_MAX + 32];
	struct lb_msg answer;
	int32_t r = ABX_OK;

	(void)snprintf(own, sizeof(own), "boxes/%s/layers", m->b.id);
	local_plan_add(&plan, LB_PLAN_SEAL, "layers/%s", m->lid);
	if (r == ABX_OK && plan.failed)
		r = abx_fail(m->call, ABX_ENOMEM, NULL, "out of memory");
	a.program = m->s->box_helper;
	a.path = own;
	a.argv = (const char *const *)plan.argv;
	a.fd_box = m->s->store_fd;
	a.fd_live = m->live;
	if (r == ABX_OK)
		r = local_helper_start(m->s, m->call, &a, &h);
	local_plan_release(&plan);
	if (r != ABX_OK)
		return r;
	r = local_helper_next(m->call, &h, &answer);
	*ret_done = r == ABX_OK && answer.kind == LB_MSG_DONE;
	if (r == ABX_OK)
		local_helper_wait(&h);
	else
		local_helper_kill(&h);
	return r;
}

/* What the helper that swaps needs.  From here on the box is in between. */
static int32_t open_swap(struct making *m, struct local_helper_args *a, struct local_plan *plan)
{
	char path[64];
	int32_t r = local_box_plan(m->s, m->call, &m->b, m->lid, plan);

	if (r != ABX_OK)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%lld/mountinfo", (long long)m->run.pid);
	a->fd_in = open(path, O_RDONLY | O_CLOEXEC);
	/* Who has the ids of the box may not look for it any more. */
	(void)snprintf(path, sizeof(path), "/proc/%lld/ns/mnt", (long long)m->run.pid);
	a->fd_out = open(path, O_RDONLY | O_CLOEXEC);
	a->fd_live =
		openat(m->b.dir_fd, LOCAL_SWAP, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (a->fd_in < 0 || a->fd_out < 0 || a->fd_live < 0 ||
	    flock(a->fd_live, LOCK_EX | LOCK_NB) < 0 || pwrite(a->fd_live, "\n", 1, 0) != 1)
		return abx_fail_errno(m->call, errno, "snapshot of box %s", m->b.id);
	a->program = m->s->box_helper;
	a->argv = (const char *const *)plan->argv;
	a->fd_box = m->run.pidfd;
	a->fd_control = m->s->store_fd;
	return ABX_OK;
}

/* The first process goes on, over a new layer.  When it is not done, the box has to start
 * again: it may be without a root. */
static int32_t swap_running(struct making *m, bool *ret_done)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_SWAP};
	struct local_helper h = LOCAL_HELPER_INIT;
	struct local_plan plan = {0};
	char own[LOCAL_ID_MAX + 32];
	struct lb_msg answer = {.kind = LB_MSG_FAIL};
	int32_t r;

	(void)snprintf(own, sizeof(own), "boxes/%s/layers", m->b.id);
	a.path = own;
	r = open_swap(m, &a, &plan);
	if (r == ABX_OK)
		r = local_helper_start(m->s, m->call, &a, &h);
	local_plan_release(&plan);
	/* The first holds the root that is to be replaced. */
	abx_cleanup_close(&a.fd_in);
	abx_cleanup_close(&a.fd_out);
	if (r == ABX_OK)
		r = local_helper_any(m->call, &h, &answer);
	*ret_done = r == ABX_OK && answer.kind == LB_MSG_DONE;
	/* What it still has to do is to let go of its own namespace. */
	if (*ret_done)
		local_helper_leave(&h);
	else
		local_helper_kill(&h);
	abx_cleanup_close(&a.fd_live);
	return r;
}

static bool is_sealed(const struct making *m)
{
	return faccessat(m->s->layers_fd, m->lid, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The box is down from the first line to the last but one. */
static int32_t seal_by_restart(struct making *m, int64_t grace_ms, bool *ret_done)
{
	struct local_start again = {
		.flags = m->run.flags & ~LB_F_FIRST,
		.expires_at_ms = m->run.expires_at_ms,
		.seal = m->lid,
	};
	int32_t r = local_stop_locked(m->call, &m->b, &m->run, grace_ms);

	if (r != ABX_OK)
		return r;
	local_run_release(&m->run);
	/* A swap may have come that far. */
	if (is_sealed(m))
		again.seal = NULL;
	r = local_start_again(m->s, m->call, &m->b, &again, &m->run);
	*ret_done = r == ABX_OK && !again.in_use;
	if (r == ABX_OK && again.in_use) {
		again.seal = NULL;
		r = local_start_again(m->s, m->call, &m->b, &again, &m->run);
	}
	return r;
}

static int32_t seal_running(struct making *m, bool alone, bool *ret_done)
{
	int32_t r = ABX_OK;
	int e = local_chain_write(&m->b, &m->chain, m->lid);

	if (e < 0)
		return abx_fail_errno(m->call, -e, "box %s: write chain.json", m->b.id);
	if (alone && !(m->run.flags & LB_F_READ_ONLY))
		r = swap_running(m, ret_done);
	if (r == ABX_OK && !*ret_done)
		r = seal_by_restart(m, alone ? 0 : STOP_GRACE_MS, ret_done);
	return r;
}

/* With all new commands kept out. */
static int32_t seal_or_copy_running(struct making *m, bool may_stop)
{
	bool done = false, alone = is_alone(&m->run);
	int gate = -1;
	int32_t r = ABX_OK;

	/* What is paused is kept as it is, memory included. */
	if (local_box_state(&m->b, &m->run) == ABX_STATE_RUNNING && (alone || may_stop)) {
		r = local_gate_close(m->call, &m->b, &gate);
		alone = r == ABX_OK && is_alone(&m->run);
		if (alone || (r == ABX_OK && may_stop)) {
			if (!alone)
				m->flags |= ABX_SNAP_SOURCE_STOPPED;
			r = seal_running(m, alone, &done);
		}
		abx_cleanup_close(&gate);
	}
	return r == ABX_OK && !done ? copy(m) : r;
}

static int32_t make_layer(struct making *m, bool may_stop)
{
	bool done = false;
	int32_t r;
	int e;

	if (m->run.pidfd >= 0 && m->run.ready)
		return seal_or_copy_running(m, may_stop);
	m->flags |= ABX_SNAP_SOURCE_STOPPED;
	e = local_chain_write(&m->b, &m->chain, m->lid);
	if (e < 0)
		return abx_fail_errno(m->call, -e, "box %s: write chain.json", m->b.id);
	r = seal_stopped(m, &done);
	return r == ABX_OK && !done ? copy(m) : r;
}

static int32_t record(struct making *m, const struct abx_snapshot_req *req,
		      char ref[LOCAL_LID_SIZE])
{
	struct local_snapshot n = {
		.ref = ref,
		.name = req->name,
		.sandbox_id = m->b.id,
		.image = m->b.image,
		.flags = m->flags,
		.size_bytes = m->size_bytes,
	};
	char created[32];
	int e = make_id(ref);

	local_time_text(created, sizeof(created));
	n.created_at = created;
	n.chain = m->chain;
	if (e == 0)
		e = local_chain_push(&n.chain, m->lid);
	/* A record names what is on disk. */
	if (e == 0 && syncfs(m->s->store_fd) < 0)
		e = -errno;
	if (e == 0)
		e = local_snapshot_write(m->s, &n, req->labels, req->n_labels);
	return e < 0 ? abx_fail_errno(m->call, -e, "snapshot of box %s", m->b.id) : ABX_OK;
}

/* Whoever began to start it held our lock, and died. */
static int32_t hold_stopped(struct making *m)
{
	int32_t r = local_stop_locked(m->call, &m->b, &m->run, 0);

	local_run_release(&m->run);
	return r == ABX_OK ? local_live_take(m->call, &m->b, &m->live) : r;
}

static int32_t begin(struct making *m, const char *id)
{
	int32_t r = local_open(m->s, m->call, id, &m->b);
	int e;

	if (r == ABX_OK)
		r = local_sweep(m->s, m->call);
	if (r == ABX_OK)
		r = local_lock(m->s, m->call, &m->b);
	if (r == ABX_OK)
		r = local_layers_hold(m->s, m->call, &m->layers_lock);
	if (r != ABX_OK)
		return r;
	e = local_make_locked_dir(m->s, "snap-", m->dir, sizeof(m->dir), &m->dir_fd);
	if (e == 0)
		e = make_id(m->lid);
	if (e == 0)
		e = local_run_open(m->s, &m->b, &m->run);
	if (e == 0 && !(m->run.pidfd >= 0 && m->run.ready))
		r = hold_stopped(m);
	/* It may be started again, and nobody knows how. */
	if (e == 0 && m->run.lost)
		r = abx_fail(m->call, ABX_ESTATE, "stop and start it",
			     "box %s: run.json is damaged or missing", m->b.id);
	if (r != ABX_OK)
		return r;
	if (e == 0)
		e = local_chain_read(m->s, &m->b, &m->chain);
	if (e < 0)
		return abx_fail_errno(m->call, -e, "snapshot of box %s", m->b.id);
	return m->chain.n >= CHAIN_LIMIT ? flatten(m) : ABX_OK;
}

/* What was made in vain goes; what was made is named by a record. */
static void end(struct making *m, bool made)
{
	if (m->dir_fd >= 0)
		(void)local_remove_tree(m->s, m->call, m->s->tmp_fd, m->dir, "layers");
	abx_cleanup_close(&m->dir_fd);
	abx_cleanup_close(&m->layers_lock);
	abx_cleanup_close(&m->live);
	if (!made && m->b.doc)
		local_layers_collect(m->s, m->call);
	local_run_release(&m->run);
	local_box_release(&m->b);
}

int32_t local_snapshot_create(struct abx_session *s, struct abx_call *call,
			      const struct abx_sandbox *sb, const struct abx_snapshot_req *req)
{
	struct making m = {
		.s = s,
		.call = call,
		.b = LOCAL_BOX_INIT,
		.run = LOCAL_RUN_INIT,
		.dir_fd = -1,
		.layers_lock = -1,
		.live = -1,
		.size_bytes = SIZE_UNKNOWN,
	};
	char ref[LOCAL_LID_SIZE];
	int32_t r;

	if (req->flags & ~(ABX_SNAPREQ_DISK_ONLY | ABX_SNAPREQ_STOP))
		return abx_fail(call, ABX_ENOTSUP, NULL, "snapshot: unknown flags %#x", req->flags);
	r = begin(&m, sb->id);
	if (r == ABX_OK) {
		local_limits_make_room(&m.b, true);
		r = make_layer(&m, req->flags & ABX_SNAPREQ_STOP);
		local_limits_make_room(&m.b, false);
	}
	if (r == ABX_OK)
		r = record(&m, req, ref);
	if (r == ABX_OK)
		r = local_snapshot_emit(s, call, ref);
	end(&m, r == ABX_OK);
	return r;
}
