/* SPDX-License-Identifier: MIT */
/* What a box takes of this machine. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "providers/local/cgroup.h"
#include "providers/local/limits.h"
#include "providers/local/local.h"
#include "providers/local/pause.h"

#define NUMBER 24

struct totals {
	uint64_t cpu_ms, mem_bytes, pids, disk_bytes;
};

static const char *number(char text[NUMBER], uint64_t n)
{
	(void)snprintf(text, NUMBER, "%llu", (unsigned long long)n);
	return text;
}

static int32_t emit_process(struct abx_call *call, const struct lb_process *p)
{
	char pid[NUMBER], parent[NUMBER], cpu[NUMBER], rss[NUMBER];
	char state[2] = {p->state, '\0'}, user[sizeof(p->user)], command[sizeof(p->command)];
	const struct abx_kv row[] = {
		{"kind", "process"},
		{"pid", number(pid, (uint64_t)p->pid)},
		{"parent", number(parent, (uint64_t)p->parent)},
		{"user", user},
		{"state", state},
		{"cpu_ms", number(cpu, p->cpu_ms)},
		{"mem_bytes", number(rss, p->rss_bytes)},
		{"command", command},
	};

	/* It comes out of the box: it ends where we say. */
	(void)snprintf(user, sizeof(user), "%.*s", (int)sizeof(user) - 1, p->user);
	(void)snprintf(command, sizeof(command), "%.*s", (int)sizeof(command) - 1, p->command);
	return abx_plugin_host->emit_row(call, row, ABX_N_ELEMENTS(row));
}

/* Records from the helper, whole ones. */
static int32_t read_processes(struct abx_call *call, int fd, struct totals *t)
{
	struct lb_process p;
	size_t have = 0;
	int32_t r = ABX_OK;

	while (r == ABX_OK) {
		struct pollfd w = {.fd = fd, .events = POLLIN};
		ssize_t n;

		r = abx_call_poll(call, &w, 1, -1);
		if (r != ABX_OK)
			break;
		n = read(fd, (char *)&p + have, sizeof(p) - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ABX_OK;
		have += (size_t)n;
		if (have < sizeof(p))
			continue;
		have = 0;
		t->cpu_ms += p.cpu_ms;
		t->mem_bytes += p.rss_bytes;
		t->pids++;
		r = emit_process(call, &p);
	}
	return r;
}

static int32_t processes(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			 const struct local_run *run, struct totals *t)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_STATS};
	struct local_helper h = LOCAL_HELPER_INIT;
	int p[2], gate = -1;
	struct lb_msg m;
	int32_t r = local_pause_gate(call, b, &gate);

	if (r != ABX_OK)
		return r;
	if (pipe2(p, O_CLOEXEC) < 0) {
		abx_cleanup_close(&gate);
		return abx_fail_errno(call, errno, "stats: pipe");
	}
	a.program = s->box_helper;
	a.fd_box = run->pidfd;
	a.fd_gate = gate;
	a.fd_out = p[1];
	if (b->image)
		a.req.flags |= LB_F_IMAGE;
	if (local_net_is_host(b))
		a.req.flags |= LB_F_HOST_NET;
	r = local_helper_start(s, call, &a, &h);
	(void)close(p[1]);
	if (r == ABX_OK)
		r = read_processes(call, p[0], t);
	if (r == ABX_OK)
		r = local_helper_next(call, &h, &m);
	if (r == ABX_OK)
		local_helper_wait(&h);
	else
		local_helper_kill(&h);
	(void)close(p[0]);
	abx_cleanup_close(&gate);
	return r;
}

static int32_t disk(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		    const struct local_limits *l, struct totals *t)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_USAGE};
	struct local_helper h = LOCAL_HELPER_INIT;
	struct lb_msg m;
	int32_t r;

	if (l->project && local_quota_used(b->dir_fd, l->project, &t->disk_bytes) == 0)
		return ABX_OK;
	a.fd_box = openat(b->dir_fd, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (a.fd_box < 0)
		return abx_fail_errno(call, errno, "box %s: its layers", b->id);
	a.program = s->box_helper;
	r = local_helper_start(s, call, &a, &h);
	if (r == ABX_OK)
		r = local_helper_next(call, &h, &m);
	if (r == ABX_OK) {
		t->disk_bytes = (uint64_t)m.value;
		local_helper_wait(&h);
	} else {
		local_helper_kill(&h);
	}
	(void)close(a.fd_box);
	return r;
}

/* What the control group counts is nearer the truth than a sum over processes, which counts
 * shared memory several times: the cgroup's figure is the one that its limit is about. */
static int read_memory(void *ctx, const char *dir)
{
	struct totals *t = ctx;
	char text[64];

	if (local_cgroup_read(dir, "memory.current", text, sizeof(text)) < 0 &&
	    local_cgroup_read(dir, "memory.usage_in_bytes", text, sizeof(text)) < 0)
		return 0;
	t->mem_bytes = strtoull(text, NULL, 10);
	return 0;
}

static int32_t emit_box(struct abx_call *call, const struct totals *t, const struct local_limits *l)
{
	char text[8][NUMBER];
	const struct abx_kv row[] = {
		{"kind", "box"},
		{"cpu_ms", number(text[0], t->cpu_ms)},
		{"mem_bytes", number(text[1], t->mem_bytes)},
		{"mem_limit_bytes", number(text[2], l->mem_bytes)},
		{"pids", number(text[3], t->pids)},
		{"pids_limit", number(text[4], l->max_pids)},
		{"cpu_limit_milli", number(text[5], l->cpu_milli)},
		{"disk_bytes", number(text[6], t->disk_bytes)},
		{"disk_limit_bytes", number(text[7], l->disk_bytes)},
	};

	return abx_plugin_host->emit_row(call, row, ABX_N_ELEMENTS(row));
}

int32_t local_stats(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	struct local_limits l;
	struct totals t = {0};
	int32_t r = local_open(s, call, sb->id, &b);
	int e;

	if (r == ABX_OK) {
		e = local_limits_read(b.doc, &l);
		if (e < 0)
			r = abx_fail_errno(call, -e, "box %s: its limits", b.id);
	}
	if (r == ABX_OK) {
		(void)local_run_open(s, &b, &run);
		if (run.pidfd >= 0 && run.ready)
			r = processes(s, call, &b, &run, &t);
	}
	if (r == ABX_OK && l.mem_bytes)
		(void)local_cgroup_each(&b, read_memory, &t);
	if (r == ABX_OK)
		r = disk(s, call, &b, &l, &t);
	if (r == ABX_OK)
		r = emit_box(call, &t, &l);
	local_run_release(&run);
	local_box_release(&b);
	return r;
}
