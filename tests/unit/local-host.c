/* SPDX-License-Identifier: MIT */
/* The least host that the provider `local` can run under. */
#include "tests/unit/local-host.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <time.h>

#include "abxsdk/clock.h"

#define BOX_LIFE_MS 300000

struct abx_call {
	int cancel_fd;
	int64_t deadline;
	char text[1024], log[1024], url[256];
	struct abx_buf results;
	uint32_t state;
	int emitted;
	char ref[64];
};

static struct abx_call the_call = {
	.cancel_fd = -1, .deadline = INT64_MAX, .results = ABX_BUF_INIT(1 << 20)};
const struct abx_cloud_backend *lh_backend;
struct abx_session *lh_session;
struct abx_call *lh_call = &the_call;

static int64_t now_ms(void *ctx)
{
	(void)ctx;
	return abx_monotonic_ms();
}

static int32_t note_failure(struct abx_call *call, const struct abx_failure *f)
{
	(void)snprintf(call->text, sizeof(call->text), "%s", f->text);
	return f->code;
}

static int32_t cancel_fd(struct abx_call *call)
{
	return call->cancel_fd;
}

static int64_t time_left_ms(struct abx_call *call)
{
	return call->deadline == INT64_MAX ? INT64_MAX : call->deadline - now_ms(NULL);
}

static int32_t wait_ms(struct abx_call *call, int64_t ms)
{
	struct pollfd p = {.fd = call->cancel_fd, .events = POLLIN};

	if (time_left_ms(call) <= 0)
		return ABX_ETIMEDOUT;
	return poll(&p, 1, (int)ms) > 0 ? ABX_ECANCELED : ABX_OK;
}

static int32_t emit_sandbox(struct abx_call *call, const struct abx_sandbox *sb)
{
	__atomic_store_n(&call->state, sb->state, __ATOMIC_SEQ_CST);
	call->emitted++;
	return 0;
}

static int32_t emit_url(struct abx_call *call, const struct abx_url *u)
{
	(void)snprintf(call->url, sizeof(call->url), "%s", u->url);
	return 0;
}

static int32_t emit_file(struct abx_call *call, const struct abx_file *f)
{
	(void)f;
	call->emitted++;
	return 0;
}

#define ROWS_MAX 256
static struct {
	char kind[32], key[32], value[256];
} rows[ROWS_MAX * 10];
static size_t n_rows;

static void keep_row(const struct abx_kv *cells, uint32_t n)
{
	const char *kind = "";

	for (uint32_t i = 0; i < n; i++) {
		if (strcmp(cells[i].key, "kind") == 0)
			kind = cells[i].value;
		if (n_rows == ABX_N_ELEMENTS(rows))
			return;
		(void)snprintf(rows[n_rows].kind, sizeof(rows[0].kind), "%s", kind);
		(void)snprintf(rows[n_rows].key, sizeof(rows[0].key), "%s", cells[i].key);
		(void)snprintf(rows[n_rows].value, sizeof(rows[0].value), "%.255s", cells[i].value);
		n_rows++;
	}
}

void lh_rows_clear(void)
{
	n_rows = 0;
}

const char *lh_row(const char *kind, const char *key, const char *value)
{
	for (size_t i = 0; i < n_rows; i++)
		if (strcmp(rows[i].kind, kind) == 0 && strcmp(rows[i].key, key) == 0 &&
		    (!value || strcmp(rows[i].value, value) == 0))
			return rows[i].value;
	return NULL;
}

static int32_t emit_row(struct abx_call *call, const struct abx_kv *cells, uint32_t n)
{
	keep_row(cells, n);
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(cells[i].key, "status") == 0 && strcmp(cells[i].value, "fail") == 0)
			call->emitted++;
	return 0;
}

static void note_log(void *ctx, int32_t level, const char *topic, const char *msg)
{
	(void)ctx;
	(void)level;
	(void)topic;
	(void)snprintf(the_call.log, sizeof(the_call.log), "%s", msg);
}

static void note_result(struct abx_call *call, const char *name, const char *state,
			const struct abx_kv *labels, uint32_t n)
{
	abx_buf_addf(&call->results, "%s %s", name, state);
	for (uint32_t i = 0; i < n; i++)
		abx_buf_addf(&call->results, " %s=%s", labels[i].key, labels[i].value);
	abx_buf_addc(&call->results, '\n');
}

static int32_t emit_resource(struct abx_call *call, const struct abx_resource *r, uint32_t phase)
{
	static const char *const names[] = {"", "intent", "exists", "gone"};

	note_result(call, r->name, names[phase], r->labels, r->n_labels);
	return 0;
}

static int32_t emit_snapshot(struct abx_call *call, const struct abx_snapshot *sn)
{
	note_result(call, sn->ref, sn->state, sn->labels, sn->n_labels);
	(void)snprintf(call->ref, sizeof(call->ref), "%s", sn->ref);
	call->emitted++;
	return 0;
}

static int32_t emit_log(struct abx_call *call, int32_t stream, const void *data, size_t len)
{
	(void)call;
	(void)stream;
	(void)data;
	(void)len;
	return 0;
}

static int32_t progress(struct abx_call *call, uint64_t done, uint64_t total, const char *what)
{
	(void)call;
	(void)done;
	(void)total;
	(void)what;
	return 0;
}

static const struct abx_host host = {
	ABX_INIT(struct abx_host),
	.abi_major = ABX_ABI_MAJOR,
	.version = "test",
	.log = note_log,
	.now_ms = now_ms,
	.fail = note_failure,
	.cancel_fd = cancel_fd,
	.time_left_ms = time_left_ms,
	.wait_ms = wait_ms,
	.emit_sandbox = emit_sandbox,
	.emit_file = emit_file,
	.emit_url = emit_url,
	.emit_row = emit_row,
	.emit_resource = emit_resource,
	.emit_snapshot = emit_snapshot,
	.emit_log = emit_log,
	.progress = progress,
};

/* NULL, or why not: this is used outside of tests too. */
static const char *open_session(const char *dir)
{
	const char *build = getenv("AGENTBOX_TEST_BUILDDIR");
	const struct abx_session_args args = {ABX_INIT(struct abx_session_args), .state_dir = dir};
	const struct abx_cloud_backend *(*entry)(void);
	char path[4096];
	void *so;

	(void)snprintf(path, sizeof(path), "%s/providers/local", build ? build : ".");
	(void)setenv("AGENTBOX_LIBEXEC_PATH", path, 1);
	(void)snprintf(path, sizeof(path), "%s/providers/local/.libs/agentbox-local.so",
		       build ? build : ".");
	so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return dlerror();
	*(void **)&entry = dlsym(so, "agentbox_cloud_backend");
	if (!entry)
		return "no entry";
	lh_backend = entry();
	the_call.cancel_fd = eventfd(0, EFD_CLOEXEC);
	the_call.deadline = INT64_MAX;
	if (lh_backend->init(&host) != ABX_OK ||
	    lh_backend->session_open(lh_call, &args, &lh_session) != ABX_OK)
		return the_call.text;
	return NULL;
}

const char *lh_open(const char *dir)
{
	return open_session(dir);
}

const char *lh_url(void)
{
	return the_call.url;
}

static void close_session(void)
{
	lh_backend->session_close(lh_session);
	(void)close(the_call.cancel_fd);
}

void lh_setup(void)
{
	const char *why;

	unit_dir_setup();
	why = open_session(unit_dir());
	ck_assert_msg(why == NULL, "%s", why);
}

static void destroy_all(void)
{
	struct dirent *e;
	DIR *d = opendir(unit_path("store/boxes"));

	ck_assert_ptr_ne(d, NULL);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			ck_assert_msg(lh_destroy(e->d_name) == ABX_OK, "%s", the_call.text);
	(void)closedir(d);
}

void lh_teardown(void)
{
	the_call.deadline = INT64_MAX;
	lh_emitted_clear();
	destroy_all();
	close_session();
	unit_dir_teardown();
}

const char *lh_unable(void)
{
	char dir[] = "/tmp/abx-unit-XXXXXX";
	const char *why;

	if (!mkdtemp(dir))
		return "no temporary directory";
	why = open_session(dir);
	if (why) {
		(void)printf("Bail out! %s\n", why);
		exit(1);
	}
	the_call.emitted = 0;
	if (lh_backend->doctor(lh_session, lh_call) != ABX_OK || the_call.emitted)
		why = "this machine cannot hold boxes";
	close_session();
	(void)abx_fs_remove_tree(AT_FDCWD, dir);
	return why;
}

static void on_alarm(int signo)
{
	const uint64_t one = 1;

	(void)signo;
	(void)!write(the_call.cancel_fd, &one, sizeof(one));
}

void lh_cancel_in(unsigned int ms)
{
	const struct itimerval t = {.it_value = {ms / 1000, (suseconds_t)(ms % 1000) * 1000}};

	unit_signal(SIGALRM, on_alarm);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &t, NULL), 0);
}

void lh_cancel_clear(void)
{
	uint64_t n;

	ck_assert_int_eq(read(the_call.cancel_fd, &n, sizeof(n)), sizeof(n));
}

void lh_deadline_in(int64_t ms)
{
	the_call.deadline = ms == INT64_MAX ? ms : now_ms(NULL) + ms;
}

const char *lh_fail_text(void)
{
	return the_call.text;
}

const char *lh_log_text(void)
{
	return the_call.log;
}

const char *lh_emitted(void)
{
	return abx_buf_str(&the_call.results);
}

void lh_emitted_clear(void)
{
	abx_buf_reset(&the_call.results);
}

int32_t lh_provision(const char *id)
{
	const struct abx_provision p = {ABX_INIT(struct abx_provision)};

	return lh_provision_with(id, &p);
}

int32_t lh_provision_from(const char *id, const char *snapshot)
{
	const struct abx_provision p = {ABX_INIT(struct abx_provision), .snapshot = snapshot};

	return lh_provision_with(id, &p);
}

int32_t lh_provision_with(const char *id, const struct abx_provision *more)
{
	const struct abx_kv labels[] = {{"agentbox", "true"}, {"agentbox.box", id}};
	const struct abx_kv env[] = {{"FROM_BOX", "box value"}};
	const char *const no_egress[] = {NULL};
	struct abx_provision p = *more;

	p.name = "Test Box";
	p.idempotency_key = id;
	p.labels = labels;
	p.n_labels = ABX_N_ELEMENTS(labels);
	p.env = env;
	p.n_env = ABX_N_ELEMENTS(env);
	/* Not every machine that runs tests can give a box a network. */
	if (!p.egress_allow && !p.egress_deny)
		p.egress_allow = no_egress;
	/* No teardown follows a test that fails: its box ends by itself. */
	p.timeout_ms = BOX_LIFE_MS;
	return lh_backend->provision(lh_session, lh_call, &p);
}

int32_t lh_stop(const char *id)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	const struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};

	return lh_backend->stop(lh_session, lh_call, &sb, &req);
}

int32_t lh_start(const char *id, uint32_t flags)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	const struct abx_start_req req = {ABX_INIT(struct abx_start_req), .flags = flags,
					  .timeout_ms = BOX_LIFE_MS};

	return lh_backend->start(lh_session, lh_call, &sb, &req);
}

uint32_t lh_told(void)
{
	return __atomic_load_n(&the_call.state, __ATOMIC_SEQ_CST);
}

int32_t lh_destroy(const char *id)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	const struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};

	return lh_backend->destroy(lh_session, lh_call, &sb, &req);
}

int32_t lh_state(const char *id)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	int32_t r = lh_backend->get(lh_session, lh_call, &sb);

	return r == ABX_OK ? (int32_t)the_call.state : r;
}

int lh_count(const char *label)
{
	const struct abx_kv want = {"agentbox.box", label};
	const struct abx_list_req req = {
		ABX_INIT(struct abx_list_req),
		.labels = &want,
		.n_labels = label ? 1 : 0,
	};

	the_call.emitted = 0;
	ck_assert_int_eq(lh_backend->list(lh_session, lh_call, &req), ABX_OK);
	return the_call.emitted;
}

int32_t lh_snapshot(const char *id, uint32_t flags, char ref[64])
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	const struct abx_kv labels[] = {{"agentbox.box", id}};
	const struct abx_snapshot_req req = {
		ABX_INIT(struct abx_snapshot_req),
		.flags = flags,
		.name = "a name",
		.labels = labels,
		.n_labels = 1,
	};
	int32_t r = lh_backend->snapshot_create(lh_session, lh_call, &sb, &req);

	(void)snprintf(ref, sizeof(the_call.ref), "%s", r == ABX_OK ? the_call.ref : "");
	return r;
}

int lh_count_snapshots(const char *label)
{
	const struct abx_kv want = {"agentbox.box", label};
	const struct abx_list_req req = {
		ABX_INIT(struct abx_list_req),
		.labels = &want,
		.n_labels = label ? 1 : 0,
	};

	the_call.emitted = 0;
	ck_assert_int_eq(lh_backend->snapshot_list(lh_session, lh_call, &req), ABX_OK);
	return the_call.emitted;
}

static int32_t output(void *io, int32_t stream, const void *data, size_t len)
{
	struct lh_result *res = io;

	abx_buf_add(stream == ABX_STREAM_STDOUT ? &res->out : &res->err, data, len);
	return 0;
}

void lh_exec(const char *id, struct abx_exec *x, struct lh_result *res)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};

	abx_buf_reset(&res->out);
	abx_buf_reset(&res->err);
	x->struct_size = (uint32_t)sizeof(*x);
	x->io = res;
	x->output = output;
	res->exit = (struct abx_exit){ABX_INIT(struct abx_exit), .code = -1};
	res->r = lh_backend->exec(lh_session, lh_call, &sb, x, &res->exit);
}

void lh_sh(const char *id, const char *user, const char *script, struct lh_result *res)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct abx_exec x = {.argv = argv, .user = user, .stdin_fd = -1, .control_fd = -1};

	lh_exec(id, &x, res);
}

void lh_expect(const char *id, const char *user, const char *script, const char *out)
{
	struct lh_result res = LH_RESULT_INIT;

	lh_sh(id, user, script, &res);
	ck_assert_msg(res.r == ABX_OK, "%s: %s", script, lh_fail_text());
	ck_assert_msg(strcmp(abx_buf_str(&res.out), out) == 0, "%s: '%s'%s", script,
		      abx_buf_str(&res.out), abx_buf_str(&res.err));
	ck_assert_msg(res.exit.code == 0 && res.exit.signo == 0, "%s: exit %d signal %d", script,
		      res.exit.code, res.exit.signo);
	lh_result_release(&res);
}

void lh_result_release(struct lh_result *res)
{
	abx_buf_release(&res->out);
	abx_buf_release(&res->err);
}
