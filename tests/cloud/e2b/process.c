/* SPDX-License-Identifier: MIT */
/* The emulated E2B: processes of a sandbox, and who listens to them. */
#include "tests/cloud/e2b/process.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "tests/cloud/command.h"

#define LISTENERS_MAX 64
#define EVENT_MAX ((size_t)8 << 20)

static void listener_free(struct listener *l)
{
	emu_feed_put(l->feed);
	free(l);
}

void proc_cut(struct e2b_proc *p)
{
	(void)pthread_mutex_lock(&p->lock);
	while (p->listeners) {
		struct listener *l = p->listeners;

		p->listeners = l->next;
		emu_feed_end(l->feed, true);
		listener_free(l);
	}
	(void)pthread_mutex_unlock(&p->lock);
}

void proc_put(struct e2b_proc *p)
{
	struct e2b *e = p->box->e;
	bool last;

	(void)pthread_mutex_lock(&e->lock);
	last = --p->refs == 0;
	(void)pthread_mutex_unlock(&e->lock);
	if (!last)
		return;
	proc_cut(p);
	abx_cleanup_close(&p->in_fd);
	abx_cleanup_close(&p->in_end);
	abx_buf_release(&p->frames);
	cJSON_Delete(p->request);
	cJSON_Delete(p->end);
	(void)pthread_mutex_destroy(&p->lock);
	(void)pthread_mutex_destroy(&p->in_lock);
	free(p->user);
	free(p->tag);
	free(p);
}

/* References to whoever listens. */
static size_t listeners(struct e2b_proc *p, struct listener *ret)
{
	size_t n = 0;

	(void)pthread_mutex_lock(&p->lock);
	for (struct listener **at = &p->listeners; *at && n < LISTENERS_MAX;) {
		struct listener *l = *at;

		if (emu_feed_left(l->feed)) {
			*at = l->next;
			listener_free(l);
			continue;
		}
		ret[n] = *l;
		(void)emu_feed_get(ret[n++].feed);
		at = &l->next;
	}
	(void)pthread_mutex_unlock(&p->lock);
	return n;
}

/* Says it to all; one that is slow makes the process wait.  Deletes `event`. */
static void tell(struct e2b_proc *p, const char *kind, cJSON *event)
{
	struct listener all[LISTENERS_MAX];
	size_t n = listeners(p, all);
	cJSON *doc = cJSON_CreateObject(), *o = cJSON_AddObjectToObject(doc, "event");

	(void)cJSON_AddItemToObject(o, kind, event);
	for (size_t i = 0; i < n; i++) {
		abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(EVENT_MAX);

		connect_envelope(&all[i].kind, &proto_event, doc, &b);
		(void)emu_feed_push(all[i].feed, b.data, b.len);
		emu_feed_put(all[i].feed);
	}
	cJSON_Delete(doc);
}

/* Nobody listens from now on; code NULL: it ended as it should. */
static void tell_end(struct e2b_proc *p, const char *code, const char *text)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);
	struct listener *l;

	connect_end(code, text, &b);
	(void)pthread_mutex_lock(&p->lock);
	p->ended_ms = abx_now_ms();
	p->state = PROC_ENDED;
	l = p->listeners;
	p->listeners = NULL;
	(void)pthread_mutex_unlock(&p->lock);
	while (l) {
		struct listener *next = l->next;

		emu_feed_push_now(l->feed, b.data, b.len);
		emu_feed_end(l->feed, false);
		listener_free(l);
		l = next;
	}
}

static cJSON *pid_event(const struct e2b_proc *p)
{
	cJSON *o = cJSON_CreateObject();

	(void)abx_json_add_i64(o, "pid", p->pid);
	return o;
}

/* As Go calls them. */
static void signal_text(long signo, char *to, size_t size)
{
	static const char *const names[] = {"",
					    "hangup",
					    "interrupt",
					    "quit",
					    "illegal instruction",
					    "trace/breakpoint trap",
					    "aborted",
					    "bus error",
					    "floating point exception",
					    "killed",
					    "user defined signal 1",
					    "segmentation fault",
					    "user defined signal 2",
					    "broken pipe",
					    "alarm clock",
					    "terminated"};

	if (signo > 0 && (size_t)signo < ABX_N_ELEMENTS(names))
		(void)snprintf(to, size, "%s", names[signo]);
	else
		(void)snprintf(to, size, "signal %ld", signo);
}

static void on_exit_frame(struct e2b_proc *p, const char *text)
{
	cJSON *end = cJSON_CreateObject();
	char status[128], name[64];
	long code, signo, core;
	char *at;

	code = strtol(text, &at, 10);
	signo = strtol(at, &at, 10);
	core = strtol(at, &at, 10);
	signal_text(signo, name, sizeof(name));
	if (signo)
		(void)snprintf(status, sizeof(status), "signal: %s%s", name,
			       core ? " (core dumped)" : "");
	else
		(void)snprintf(status, sizeof(status), "exit status %ld", code);
	if (signo || code)
		(void)abx_json_add_i64(end, "exitCode", signo ? -1 : code);
	if (!signo)
		(void)abx_json_add_bool(end, "exited", true);
	(void)abx_json_add_str(end, "status", status);
	if (signo || code)
		(void)abx_json_add_str(end, "error", status);
	(void)pthread_mutex_lock(&p->lock);
	p->end = cJSON_Duplicate(end, true);
	(void)pthread_mutex_unlock(&p->lock);
	tell(p, "end", end);
	tell_end(p, NULL, NULL);
}

static void on_data(struct e2b_proc *p, const char *stream, const char *data, size_t len)
{
	cJSON *o = cJSON_CreateObject();
	char *text = e2b_base64(data, len);

	(void)abx_json_add_str(o, stream, text);
	free(text);
	tell(p, "data", o);
}

static void on_frame(void *ctx, char kind, const char *data, size_t len)
{
	struct e2b_proc *p = ctx;
	char *text;

	switch (kind) {
	case AGENT_STDOUT:
		on_data(p, "stdout", data, len);
		return;
	case AGENT_STDERR:
		on_data(p, "stderr", data, len);
		return;
	case AGENT_SCREEN:
		on_data(p, "pty", data, len);
		return;
	default:
		break;
	}
	text = abx_xstrndup(data, len);
	if (kind == AGENT_PID) {
		(void)pthread_mutex_lock(&p->lock);
		p->pid = (uint32_t)strtoul(text, NULL, 10);
		p->state = PROC_RUNNING;
		(void)pthread_mutex_unlock(&p->lock);
		tell(p, "start", pid_event(p));
	} else if (kind == AGENT_FAIL) {
		size_t n = strlen(text);

		free(text);
		text = abx_xcalloc(1, len + 2);
		memcpy(text, data, len);
		tell_end(p, text, n < len ? text + n + 1 : "");
	} else if (kind == AGENT_EXIT) {
		on_exit_frame(p, text);
	}
	free(text);
}

static int32_t on_output(void *ctx, const void *data, size_t len)
{
	struct e2b_proc *p = ctx;

	return emu_frames_take(&p->frames, data, len, on_frame, p) ? 0 : ABX_EPROTO;
}

static void *run(void *arg)
{
	static const char *const args[] = {"run", NULL};
	struct e2b_proc *p = arg;
	struct e2b_box *b = p->box;
	struct e2b *e = b->e;
	const struct emu_exec x = {
		.args = args, .in_fd = p->in_end, .network = true, .output = on_output, .ctx = p};
	struct abx_err err = ABX_ERR_INIT;
	int code = 0;

	if (emu_engine_light(e->engine)) {
		on_frame(p, AGENT_PID, "2", 1);
		on_frame(p, AGENT_EXIT, "0 0 0", 5);
	} else if (emu_exec(e->engine, b->id, &x, &code, &err) < 0) {
		(void)fprintf(stderr, "agentbox-cloud-emulator: sandbox %s: %s\n", b->id, err.text);
	}
	/* Whoever writes to it sees that nobody reads. */
	abx_cleanup_close(&p->in_end);
	p->in_end = -1;
	if (p->state != PROC_ENDED)
		tell_end(p, "internal", *err.text ? err.text : "the process was lost");
	proc_put(p);
	e2b_box_put(b);
	e2b_thread_over(e);
	return NULL;
}

static int add_pair(void *ctx, const char *key, const char *value)
{
	emu_frame_add_env(ctx, key, value);
	return 0;
}

void proc_pty_size(const cJSON *pty, unsigned char ret[4])
{
	const cJSON *size = cJSON_GetObjectItemCaseSensitive(pty, "size");
	int64_t rows = 0, cols = 0;

	(void)abx_json_i64(size, "rows", &rows);
	(void)abx_json_i64(size, "cols", &cols);
	ret[0] = (unsigned char)(rows >> 8);
	ret[1] = (unsigned char)rows;
	ret[2] = (unsigned char)(cols >> 8);
	ret[3] = (unsigned char)cols;
}

static bool add_size(struct abx_buf *to, const cJSON *pty)
{
	unsigned char b[4];

	proc_pty_size(pty, b);
	if (pty)
		emu_frame_add(to, AGENT_PTY, b, sizeof(b));
	return pty != NULL;
}

/* What the agent is to do. */
static void describe(struct e2b_proc *p, struct abx_buf *to)
{
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(p->request, "process"), *i;
	const cJSON *args = cJSON_GetObjectItemCaseSensitive(config, "args");
	const char *cmd = NULL, *cwd = NULL;
	const struct e2b_box *b = p->box;
	bool in = true;

	(void)abx_json_str(config, "cmd", EVENT_MAX, &cmd);
	(void)abx_json_str(config, "cwd", EVENT_MAX, &cwd);
	(void)abx_json_bool(p->request, "stdin", true, &in);
	emu_frame_add_text(to, AGENT_USER, p->user);
	if (cwd || b->cwd)
		emu_frame_add_text(to, AGENT_CWD, cwd ? cwd : b->cwd);
	emu_frame_add_text(to, AGENT_ARG, cmd ? cmd : "");
	cJSON_ArrayForEach(i, args) {
		if (cJSON_IsString(i))
			emu_frame_add_text(to, AGENT_ARG, i->valuestring);
	}
	(void)abx_json_each_str(b->envs, add_pair, to);
	emu_frame_add_env(to, "E2B_SANDBOX", "true");
	emu_frame_add_env(to, "E2B_SANDBOX_ID", b->id);
	emu_frame_add_env(to, "E2B_TEMPLATE_ID", b->template_id);
	(void)abx_json_each_str(cJSON_GetObjectItemCaseSensitive(config, "envs"), add_pair, to);
	p->pty = add_size(to, cJSON_GetObjectItemCaseSensitive(p->request, "pty"));
	if (!in && !p->pty)
		emu_frame_add(to, AGENT_NO_STDIN, "", 0);
	emu_frame_add(to, AGENT_GO, "", 0);
}

static void listen_in(struct e2b_proc *p, struct emu_feed *feed, const struct connect_kind *kind,
		      int64_t timeout_ms, bool kills)
{
	struct listener *l = abx_xcalloc(1, sizeof(*l));

	l->feed = emu_feed_get(feed);
	l->kind = *kind;
	l->until_ms = timeout_ms ? abx_now_ms() + timeout_ms : 0;
	l->kills = kills;
	l->next = p->listeners;
	p->listeners = l;
}

struct e2b_proc *proc_start(struct e2b_box *b, const char *user, const cJSON *request,
			    struct emu_feed *feed, const struct connect_kind *kind,
			    int64_t timeout_ms)
{
	abx_auto(abx_buf) struct abx_buf setup = ABX_BUF_INIT(4 * EVENT_MAX);
	struct e2b_proc *p = abx_xcalloc(1, sizeof(*p));
	const char *tag = NULL;
	int in[2] = {-1, -1};

	if (pipe2(in, O_CLOEXEC) < 0)
		in[0] = in[1] = -1;
	p->in_end = in[0];
	p->in_fd = in[1];
	p->box = b;
	p->refs = 3; /* the list's, the thread's, the caller's */
	p->user = abx_xstrdup(user);
	(void)abx_json_str(request, "tag", 256, &tag);
	p->tag = abx_xstrdup_null(tag);
	p->request = cJSON_Duplicate(request, true);
	p->frames = (struct abx_buf)ABX_BUF_INIT(2 * EVENT_MAX);
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_mutex_init(&p->in_lock, NULL);
	describe(p, &setup);
	if (feed)
		listen_in(p, feed, kind, timeout_ms, true);
	(void)pthread_mutex_lock(&b->e->lock);
	p->next = b->procs;
	b->procs = p;
	b->refs++;
	(void)pthread_mutex_unlock(&b->e->lock);
	if (in[0] < 0 || !e2b_thread(b->e, run, p)) {
		tell_end(p, "resource_exhausted", "no thread or pipe is left");
		proc_put(p);
		e2b_box_put(b);
		return p;
	}
	(void)pthread_mutex_lock(&p->in_lock);
	(void)abx_fs_write_all(p->in_fd, setup.data, setup.len);
	(void)pthread_mutex_unlock(&p->in_lock);
	return p;
}

struct e2b_proc *proc_find(struct e2b_box *b, const cJSON *selector)
{
	const char *tag = NULL;
	int64_t pid = -1;
	struct e2b_proc *p;

	(void)abx_json_i64(selector, "pid", &pid);
	(void)abx_json_str(selector, "tag", 256, &tag);
	(void)pthread_mutex_lock(&b->e->lock);
	for (p = b->procs; p; p = p->next)
		if (p->pid && (tag ? p->tag && strcmp(p->tag, tag) == 0 : p->pid == pid))
			break;
	if (p)
		p->refs++;
	(void)pthread_mutex_unlock(&b->e->lock);
	return p;
}

void proc_listen(struct e2b_proc *p, struct emu_feed *feed, const struct connect_kind *kind,
		 int64_t timeout_ms)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);
	cJSON *doc = cJSON_CreateObject(), *o = cJSON_AddObjectToObject(doc, "event");
	bool ended;

	(void)pthread_mutex_lock(&p->lock);
	(void)cJSON_AddItemToObject(o, "start", pid_event(p));
	connect_envelope(kind, &proto_event, doc, &b);
	ended = p->state == PROC_ENDED;
	if (ended && p->end) {
		cJSON_DeleteItemFromObjectCaseSensitive(o, "start");
		(void)cJSON_AddItemToObject(o, "end", cJSON_Duplicate(p->end, true));
		connect_envelope(kind, &proto_event, doc, &b);
		connect_end(NULL, NULL, &b);
	}
	emu_feed_push_now(feed, b.data, b.len);
	if (ended)
		emu_feed_end(feed, p->end == NULL);
	else
		listen_in(p, feed, kind, timeout_ms, false);
	(void)pthread_mutex_unlock(&p->lock);
	cJSON_Delete(doc);
}

int proc_say(struct e2b_proc *p, char kind, const void *data, size_t len)
{
	unsigned char head[AGENT_HEAD_BYTES];
	int r = -EPIPE;

	agent_head(head, kind, len);
	(void)pthread_mutex_lock(&p->in_lock);
	if (!p->in_closed)
		r = abx_fs_write_all(p->in_fd, head, sizeof(head));
	if (r == 0)
		r = abx_fs_write_all(p->in_fd, data, len);
	if (kind == AGENT_END_INPUT)
		p->in_closed = true;
	(void)pthread_mutex_unlock(&p->in_lock);
	return r;
}

int proc_signal(struct e2b_proc *p, int signo)
{
	abx_auto(abx_buf) struct abx_buf answer = ABX_BUF_INIT(4096);
	char pid[16], number[16];
	const char *const args[] = {"kill", pid, number, NULL};
	struct abx_err err = ABX_ERR_INIT;

	if (p->state != PROC_RUNNING)
		return -ESRCH;
	(void)snprintf(pid, sizeof(pid), "%u", p->pid);
	(void)snprintf(number, sizeof(number), "%d", signo);
	if (emu_ask(p->box->e->engine, p->box->id, args, &answer, &err) < 0)
		return -ESRCH;
	return strcmp(abx_buf_str(&answer), "ok") == 0 ? 0 : -ESRCH;
}

bool proc_cut_late(struct e2b_proc *p, int64_t now_ms)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(4096);
	bool kill_it = false;

	connect_end("deadline_exceeded", "context deadline exceeded", &b);
	(void)pthread_mutex_lock(&p->lock);
	for (struct listener **at = &p->listeners; *at;) {
		struct listener *l = *at;

		if (!l->until_ms || l->until_ms > now_ms) {
			at = &l->next;
			continue;
		}
		kill_it = kill_it || l->kills;
		emu_feed_push_now(l->feed, b.data, b.len);
		emu_feed_end(l->feed, false);
		*at = l->next;
		listener_free(l);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return kill_it;
}
