/* SPDX-License-Identifier: MIT */
/* Limits of a box: can they be kept, and the control groups that keep them. */
#include "providers/local/limits.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "abxsdk/json.h"
#include "providers/local/cgroup.h"

#define CPU_PERIOD_US 100000
/* The kernel gives no less than 1 ms of each period. */
#define CPU_MILLI_MIN 10
/* Below these a box cannot even run a shell. */
#define MEM_MIN_BYTES (UINT64_C(16) << 20)
#define PIDS_MIN 16
#define DISK_MIN_BYTES (UINT64_C(1) << 20)
#define ROOM_BYTES (UINT64_C(4) << 20)
#define MIB(bytes) ((unsigned long long)((bytes) >> 20))

enum { CPU, MEMORY, PIDS, CONTROLLERS };
static const char *const controllers[] = {"cpu", "memory", "pids"};
static const char *const limit_names[] = {"cpu limit", "memory limit", "process limit"};

static bool wanted(const struct local_limits *l, int controller)
{
	switch (controller) {
	case CPU:
		return l->cpu_milli;
	case MEMORY:
		return l->mem_bytes;
	default:
		return l->max_pids;
	}
}

static uint64_t memory_of_machine(void)
{
	struct sysinfo si;

	return sysinfo(&si) < 0 ? UINT64_MAX : (uint64_t)si.totalram * si.mem_unit;
}

static int32_t check_amounts(struct abx_call *call, const struct abx_provision *p)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t memory = memory_of_machine();

	if (p->cpu_milli && n > 0 && p->cpu_milli > (uint64_t)n * 1000)
		return abx_fail(call, ABX_EINVAL, "ask for no more than there are",
				"cpu limit: %u.%03u processors asked for, this machine has %ld",
				p->cpu_milli / 1000, p->cpu_milli % 1000, n);
	if (p->cpu_milli && p->cpu_milli < CPU_MILLI_MIN)
		return abx_fail(call, ABX_EINVAL, NULL,
				"cpu limit: 0.%03u processors: the least is 0.%03u", p->cpu_milli,
				CPU_MILLI_MIN);
	if (p->mem_bytes > memory)
		return abx_fail(call, ABX_EINVAL, "ask for no more than there is",
				"memory limit: %llu MiB asked for, this machine has %llu",
				MIB(p->mem_bytes), MIB(memory));
	if (p->mem_bytes && p->mem_bytes < MEM_MIN_BYTES)
		return abx_fail(call, ABX_EINVAL, NULL,
				"memory limit: %llu bytes: the least is %llu MiB",
				(unsigned long long)p->mem_bytes, MIB(MEM_MIN_BYTES));
	if (p->max_pids && p->max_pids < PIDS_MIN)
		return abx_fail(call, ABX_EINVAL, NULL, "process limit: %u: the least is %d",
				p->max_pids, PIDS_MIN);
	if (p->disk_bytes && p->disk_bytes < DISK_MIN_BYTES)
		return abx_fail(call, ABX_EINVAL, NULL,
				"disk limit: %llu bytes: the least is %llu MiB",
				(unsigned long long)p->disk_bytes, MIB(DISK_MIN_BYTES));
	return ABX_OK;
}

static int32_t refuse_cgroup(struct abx_call *call, const char *what, const char *controller, int e)
{
	if (e == -ENOENT)
		return abx_fail(call, ABX_ENOTSUP,
				"mount it (cgroup2, or cgroup with that option), or leave the "
				"limit out",
				"%s: this machine has no cgroup controller '%s'", what, controller);
	if (e == -EBUSY)
		return abx_fail(call, ABX_ENOTSUP,
				"move the processes of this container into a cgroup of their "
				"own, or leave the limit out",
				"%s: the cgroup of this container has processes in it, so it "
				"cannot hand '%s' down",
				what, controller);
	if (geteuid() == 0)
		return abx_fail(call, ABX_ENOTSUP,
				"mount cgroups writable (docker run --privileged), or leave the "
				"limit out",
				"%s: the cgroup controller '%s' is read-only here", what,
				controller);
	return abx_fail(call, ABX_ENOTSUP,
			"start with systemd-run --user --scope -p Delegate=yes, run as root, or "
			"leave the limit out",
			"%s: the cgroup controller '%s' is not delegated to you", what, controller);
}

static int32_t choose_project(const struct abx_session *s, struct abx_call *call,
			      struct local_limits *l)
{
	int e = local_quota_choose(s->boxes_fd, &l->project);

	if (e == -EPERM)
		return abx_fail(call, ABX_ENOTSUP, "run as root, or leave the limit out",
				"disk limit: only root may set a project quota");
	if (e < 0)
		return abx_fail(call, ABX_ENOTSUP,
				"put AGENTBOX_HOME on ext4 (mkfs -O quota,project) or xfs, mounted "
				"with prjquota, or leave the limit out",
				"disk limit: the file system of the state directory has no "
				"project quota that is on");
	return ABX_OK;
}

int32_t local_limits_check(const struct abx_session *s, struct abx_call *call,
			   const struct abx_provision *p, struct local_limits *ret)
{
	struct local_limits l = {
		.cpu_milli = p->cpu_milli,
		.max_pids = p->max_pids,
		.mem_bytes = p->mem_bytes,
		.disk_bytes = p->disk_bytes,
	};
	int32_t r = check_amounts(call, p);

	for (int i = 0; r == ABX_OK && i < CONTROLLERS; i++) {
		struct local_place place;
		int e = wanted(&l, i) ? local_cgroup_find(controllers[i], &place) : 0;

		if (e < 0)
			r = refuse_cgroup(call, limit_names[i], controllers[i], e);
	}
	if (r == ABX_OK && l.disk_bytes)
		r = choose_project(s, call, &l);
	if (r == ABX_OK)
		*ret = l;
	return r;
}

int local_limits_record(cJSON *doc, const struct local_limits *l)
{
	cJSON *o;
	int r;

	if (!l->cpu_milli && !l->max_pids && !l->mem_bytes && !l->disk_bytes)
		return 0;
	o = cJSON_AddObjectToObject(doc, "limits");
	r = o ? 0 : -ENOMEM;
	if (r == 0)
		r = abx_json_add_i64(o, "cpu_milli", l->cpu_milli);
	if (r == 0)
		r = abx_json_add_i64(o, "max_pids", l->max_pids);
	if (r == 0)
		r = abx_json_add_i64(o, "mem_bytes", (int64_t)l->mem_bytes);
	if (r == 0)
		r = abx_json_add_i64(o, "disk_bytes", (int64_t)l->disk_bytes);
	if (r == 0)
		r = abx_json_add_i64(o, "project", l->project);
	return r;
}

static int read_number(const cJSON *o, const char *key, uint64_t max, uint64_t *ret)
{
	int64_t v = 0;
	int r = abx_json_i64(o, key, &v);

	if (r == -ENOENT)
		v = r = 0;
	if (r == 0 && (v < 0 || (uint64_t)v > max))
		r = -EPROTO;
	if (r == 0)
		*ret = (uint64_t)v;
	return r;
}

int local_limits_read(const cJSON *doc, struct local_limits *ret)
{
	const cJSON *o = NULL;
	uint64_t cpu = 0, pids = 0, memory = 0, disk = 0, project = 0;
	int r = abx_json_obj(doc, "limits", &o);

	*ret = (struct local_limits){0};
	if (r < 0 || !o)
		return r;
	r = read_number(o, "cpu_milli", UINT32_MAX, &cpu);
	if (r == 0)
		r = read_number(o, "max_pids", UINT32_MAX, &pids);
	if (r == 0)
		r = read_number(o, "mem_bytes", INT64_MAX, &memory);
	if (r == 0)
		r = read_number(o, "disk_bytes", INT64_MAX, &disk);
	if (r == 0)
		r = read_number(o, "project", UINT32_MAX, &project);
	if (r == 0)
		*ret = (struct local_limits){(uint32_t)cpu, (uint32_t)pids, memory, disk,
					     (uint32_t)project};
	return r;
}

/* Control groups. */

static int write_number(const char *dir, const char *file, uint64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return local_cgroup_write(dir, file, text);
}

static int set_cpu(const char *dir, bool v2, uint32_t milli)
{
	uint64_t quota = (uint64_t)milli * CPU_PERIOD_US / 1000;
	char text[64];
	int r;

	if (v2) {
		(void)snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota,
			       CPU_PERIOD_US);
		return local_cgroup_write(dir, "cpu.max", text);
	}
	r = write_number(dir, "cpu.cfs_period_us", CPU_PERIOD_US);
	return r < 0 ? r : write_number(dir, "cpu.cfs_quota_us", quota);
}

/* Memory and swap together: what is swapped out is not gone.  Where the kernel does not
 * count swap, there is no file for it. */
static int set_memory(const char *dir, bool v2, uint64_t bytes)
{
	int r = write_number(dir, v2 ? "memory.max" : "memory.limit_in_bytes", bytes), swap;

	if (r < 0)
		return r;
	swap = write_number(dir, v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
			    v2 ? 0 : bytes);
	return swap == -ENOENT ? 0 : swap;
}

static int set_limit(const struct local_limits *l, int controller, const char *dir, bool v2)
{
	switch (controller) {
	case CPU:
		return set_cpu(dir, v2, l->cpu_milli);
	case MEMORY:
		return set_memory(dir, v2, l->mem_bytes);
	default:
		return write_number(dir, "pids.max", l->max_pids);
	}
}

/* One controller after the other; with version 2 they share a directory. */
static int32_t make_groups(const struct abx_session *s, struct abx_call *call,
			   const struct local_box *b, const struct local_limits *l)
{
	for (int i = 0; i < CONTROLLERS; i++) {
		char dir[LOCAL_CGROUP_PATH_MAX];
		struct local_place place;
		int e;

		if (!wanted(l, i))
			continue;
		e = local_cgroup_find(controllers[i], &place);
		if (e < 0)
			return refuse_cgroup(call, limit_names[i], controllers[i], e);
		e = local_cgroup_make(s, b, &place, dir);
		if (e == 0)
			e = set_limit(l, i, dir, place.v2);
		if (e < 0)
			return abx_fail_errno(call, -e, "box %s: %s", b->id, limit_names[i]);
	}
	return ABX_OK;
}

static int open_procs(void *ctx, const char *dir)
{
	int *fds = ctx;
	char path[LOCAL_CGROUP_PATH_MAX + 16];
	size_t n = 0;

	while (n < LB_CGROUPS_MAX && fds[n] >= 0)
		n++;
	if (n == LB_CGROUPS_MAX)
		return -E2BIG;
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fds[n] = open(path, O_WRONLY | O_CLOEXEC);
	return fds[n] < 0 ? -errno : 0;
}

static bool has_groups(const struct local_limits *l)
{
	return l->cpu_milli || l->mem_bytes || l->max_pids;
}

int32_t local_limits_enter(struct abx_call *call, const struct local_box *b,
			   int fds[LB_CGROUPS_MAX])
{
	struct local_limits l;
	int e = local_limits_read(b->doc, &l);

	if (e == 0 && has_groups(&l))
		e = local_cgroup_each(b, open_procs, fds);
	return e < 0 ? abx_fail_errno(call, -e, "box %s: its limits", b->id) : ABX_OK;
}

int32_t local_limits_start(const struct abx_session *s, struct abx_call *call,
			   const struct local_box *b, int fds[LB_CGROUPS_MAX])
{
	struct local_limits l;
	int e = local_limits_read(b->doc, &l);
	int32_t r;

	if (e < 0)
		return abx_fail_errno(call, -e, "box %s: its limits", b->id);
	if (!has_groups(&l))
		return ABX_OK;
	r = make_groups(s, call, b, &l);
	return r == ABX_OK ? local_limits_enter(call, b, fds) : r;
}

/* "oom_kill 3" is a line of memory.events of version 2 and of memory.oom_control. */
static uint64_t count_kills(int fd)
{
	static const char key[] = "\noom_kill ";
	char text[512] = "\n";
	ssize_t n = pread(fd, text + 1, sizeof(text) - 2, 0);
	const char *at;

	if (n <= 0)
		return 0;
	text[n + 1] = '\0';
	at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static int open_kills(void *ctx, const char *dir)
{
	static const char *const files[] = {"memory.events", "memory.oom_control"};
	struct local_oom *o = ctx;

	for (size_t i = 0; o->fd < 0 && i < ABX_N_ELEMENTS(files); i++) {
		char path[LOCAL_CGROUP_PATH_MAX + 32];

		(void)snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		o->fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	return 0;
}

void local_oom_open(const struct local_box *b, struct local_oom *ret)
{
	struct local_oom o = LOCAL_OOM_INIT;
	struct local_limits l;

	if (local_limits_read(b->doc, &l) == 0 && l.mem_bytes) {
		(void)local_cgroup_each(b, open_kills, &o);
		o.mem_bytes = l.mem_bytes;
		if (o.fd >= 0)
			o.kills = count_kills(o.fd);
	}
	*ret = o;
}

void local_oom_tell(const struct local_oom *o)
{
	static const char units[] = "KMG";
	uint64_t n = o->mem_bytes;
	char text[128], unit[2] = "";

	if (o->fd < 0 || count_kills(o->fd) <= o->kills)
		return;
	for (size_t i = 0; i < strlen(units) && n % 1024 == 0; i++, n /= 1024)
		unit[0] = units[i];
	(void)snprintf(text, sizeof(text), "the memory limit of %llu%s ended a process",
		       (unsigned long long)n, unit);
	abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "local", text);
}

void local_oom_close(struct local_oom *o)
{
	abx_cleanup_close(&o->fd);
	*o = (struct local_oom)LOCAL_OOM_INIT;
}

/* A client that dies in between leaves the room until the next start: not much, and once. */
void local_limits_make_room(const struct local_box *b, bool on)
{
	struct local_limits l;

	if (local_limits_read(b->doc, &l) == 0 && l.project)
		(void)local_quota_limit(b->dir_fd, l.project, l.disk_bytes + (on ? ROOM_BYTES : 0));
}
