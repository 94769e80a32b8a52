/* SPDX-License-Identifier: MIT */
/*
 * Commands in a sandbox: a stream of process.Process, whose other direction is envd-input.c.
 *
 * envd ends the process that it started and nothing else, and lets it run when the stream is
 * gone.  Ending whole trees without a word from here is agentbox-ctl's, which the host runs by
 * this; what is ended here is ended by TERM, which agentbox-ctl passes on.
 */
#include <signal.h>
#include <string.h>
#include <sys/random.h>

#include "abxsdk/clock.h"
#include "abxsdk/number.h"
#include "abxsdk/words.h"
#include "providers/e2b/envd.h"

/* How long a network may be away before its command is given up. */
#define AWAY_MS 60000
#define AGAIN_MS 250
#define AGAIN_MAX_MS 2000

struct running {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_sandbox *sb;
	const struct e2b_envd *envd;
	const struct abx_exec *req;
	struct abx_exit *exit;
	struct e2b_input in;
	struct e2b_rpc rpc;
	char tag[24];
	uint32_t pid;
	bool told; /* that it has started */
	bool over; /* and how it ended */
	bool gave_up;
};

/* What is asked for. */

void e2b_put_pty(struct abx_buf *msg, uint16_t rows, uint16_t cols)
{
	abx_auto(abx_buf) struct abx_buf size = ABX_BUF_INIT(64), pty = ABX_BUF_INIT(64);

	e2b_pb_put_uint(&size, 1, cols);
	e2b_pb_put_uint(&size, 2, rows);
	e2b_pb_put_bytes(&pty, 1, abx_buf_str(&size), size.len);
	e2b_pb_put_bytes(msg, 2, abx_buf_str(&pty), pty.len);
}

static void put_env(struct abx_buf *config, const char *key, const char *value)
{
	abx_auto(abx_buf) struct abx_buf pair = ABX_BUF_INIT(E2B_MESSAGE_MAX);

	e2b_pb_put_str(&pair, 1, key);
	e2b_pb_put_str(&pair, 2, value);
	e2b_pb_put_bytes(config, 3, abx_buf_str(&pair), pair.len);
	if (pair.data)
		explicit_bzero(pair.data, pair.len);
}

static bool has_env(const struct abx_exec *req, const char *key)
{
	for (uint32_t i = 0; i < req->n_env; i++)
		if (strcmp(req->env[i].key, key) == 0)
			return true;
	return false;
}

static void put_words(struct abx_buf *config, const char *const *argv)
{
	abx_auto(abx_buf) struct abx_buf script = ABX_BUF_INIT(ABX_WORDS_SCRIPT_MAX);

	if (abx_words_are_utf8(argv)) {
		e2b_pb_put_str(config, 1, argv[0]);
		for (size_t i = 1; argv[i]; i++)
			e2b_pb_put_str(config, 2, argv[i]);
		return;
	}
	abx_words_script(argv, &script);
	e2b_pb_put_str(config, 1, "/bin/sh");
	e2b_pb_put_str(config, 2, "-c");
	e2b_pb_put_str(config, 2, abx_buf_str(&script));
	config->failed = config->failed || script.failed;
}

static const char *cwd_of(const struct running *x)
{
	return x->req->cwd ? x->req->cwd : x->s->cwd ? x->s->cwd : E2B_WORKSPACE;
}

static int32_t put_config(const struct running *x, struct abx_buf *config)
{
	const struct abx_exec *req = x->req;

	put_words(config, req->argv);
	for (uint32_t i = 0; i < req->n_env; i++) {
		if (!abx_is_utf8(req->env[i].key) || !abx_is_utf8(req->env[i].value))
			return abx_fail(x->call, ABX_EINVAL, NULL,
					"environment: %s: E2B takes valid UTF-8 only",
					abx_is_utf8(req->env[i].key) ? req->env[i].key : "a name");
		put_env(config, req->env[i].key, req->env[i].value);
	}
	if (req->flags & ABX_EXEC_PTY) {
		if (!has_env(req, "TERM"))
			put_env(config, "TERM", "xterm-256color");
		if (!has_env(req, "LANG"))
			put_env(config, "LANG", "C.UTF-8");
	}
	e2b_pb_put_str(config, 4, cwd_of(x));
	return ABX_OK;
}

static int32_t make_start(struct running *x, struct abx_buf *msg)
{
	abx_auto(abx_buf) struct abx_buf config = ABX_BUF_INIT(E2B_MESSAGE_MAX);
	const struct abx_exec *req = x->req;
	uint64_t random = 0;
	int32_t r = put_config(x, &config);

	if (r != ABX_OK)
		return r;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return abx_fail_errno(x->call, errno, "random numbers");
	(void)snprintf(x->tag, sizeof(x->tag), "abx-%016llx", (unsigned long long)random);
	e2b_pb_put_bytes(msg, 1, abx_buf_str(&config), config.len);
	if (req->flags & ABX_EXEC_PTY)
		e2b_put_pty(msg, req->rows ? req->rows : 24, req->cols ? req->cols : 80);
	e2b_pb_put_str(msg, 3, x->tag);
	e2b_pb_put_uint(msg, 4, req->stdin_fd >= 0);
	if (config.data)
		explicit_bzero(config.data, config.len);
	return config.failed || msg->failed
		       ? abx_fail(x->call, ABX_EINVAL, NULL,
				  "arguments and environment are more than %zu bytes",
				  E2B_MESSAGE_MAX)
		       : ABX_OK;
}

/* What is said. */

static int32_t take_start(struct running *x, const struct e2b_pb_field *event)
{
	struct e2b_pb m = {event->data, event->len};
	struct e2b_pb_field f;
	char id[64];

	while (e2b_pb_next(&m, &f) > 0)
		if (f.number == 1)
			x->pid = (uint32_t)f.value;
	if (!x->pid)
		return ABX_EPROTO;
	if (x->told)
		return ABX_OK;
	x->told = true;
	x->in.pid = x->pid;
	(void)snprintf(id, sizeof(id), "%u.%s", x->pid, x->tag);
	if (*x->tag && x->req->started && x->req->started(x->req->io, id)) {
		x->gave_up = true;
		return ABX_ECANCELED;
	}
	return e2b_input_begin(&x->in, x->call);
}

static int32_t take_output(struct running *x, const struct e2b_pb_field *event)
{
	struct e2b_pb m = {event->data, event->len};
	struct e2b_pb_field f;
	int r;

	while ((r = e2b_pb_next(&m, &f)) > 0) {
		const int32_t stream = f.number == 2 ? ABX_STREAM_STDERR : ABX_STREAM_STDOUT;

		if (f.number < 1 || f.number > 3 || !f.data || !f.len || !x->req->output)
			continue;
		if (x->req->output(x->req->io, stream, f.data, f.len)) {
			x->gave_up = true;
			return ABX_ECANCELED;
		}
	}
	return r < 0 ? ABX_EPROTO : ABX_OK;
}

/* As Go calls them. */
static int signal_of(const char *name)
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
	const size_t len = strcspn(name, "(");
	uint64_t number;

	for (size_t i = 1; i < ABX_N_ELEMENTS(names); i++) {
		const size_t n = strlen(names[i]);

		if (strncmp(name, names[i], n) == 0 && strspn(name + n, " ") + n == len)
			return (int)i;
	}
	if (strncmp(name, "signal ", 7) == 0) {
		const char *at = name + 7;

		if (abx_parse_digits(&at, 64, &number) && number)
			return (int)number;
	}
	return SIGKILL;
}

static int32_t take_end(struct running *x, const struct e2b_pb_field *event)
{
	struct e2b_pb m = {event->data, event->len};
	struct e2b_pb_field f;
	char status[100] = "";
	bool exited = false;
	int r;

	/* What is not said is zero: a command that went well has no code. */
	while ((r = e2b_pb_next(&m, &f)) > 0) {
		if (f.number == 1 && !f.data)
			x->exit->code = e2b_pb_sint32(f.value);
		else if (f.number == 2 && !f.data)
			exited = f.value;
		else if (f.number == 3 && f.data)
			e2b_pb_text(&f, status, sizeof(status));
	}
	if (r < 0)
		return ABX_EPROTO;
	x->over = true;
	if (!exited) {
		const char *name = strstr(status, "signal: ");

		x->exit->code = 0;
		x->exit->signo = signal_of(name ? name + strlen("signal: ") : "");
	}
	return ABX_OK;
}

static int32_t take_event(struct running *x, const struct e2b_pb_field *event)
{
	switch (event->number) {
	case 1:
		return take_start(x, event);
	case 2:
		return take_output(x, event);
	case 3:
		return take_end(x, event);
	default:
		return ABX_OK;
	}
}

static int32_t on_message(void *ctx, const void *data, size_t len)
{
	struct running *x = ctx;
	struct e2b_pb m = {data, len};
	struct e2b_pb_field f, event;
	int32_t r = ABX_OK;
	int more;

	e2b_keep(x->s, x->call, x->sb);
	while (r == ABX_OK && (more = e2b_pb_next(&m, &f)) != 0) {
		struct e2b_pb inner = {f.data, f.len};

		if (more < 0)
			return ABX_EPROTO;
		if (f.number != 1 || !f.data)
			continue;
		while (r == ABX_OK && (more = e2b_pb_next(&inner, &event)) > 0)
			if (event.data)
				r = take_event(x, &event);
		if (more < 0)
			return ABX_EPROTO;
	}
	return r;
}

/* How it comes to an end. */

static void rpc_init(struct running *x, const char *method)
{
	x->rpc = (struct e2b_rpc){.http = x->envd->http,
				  .call = x->call,
				  .method = method,
				  .user = x->req->user,
				  .message = on_message,
				  .ctx = x,
				  .stop_fd = &x->in.give_up_fd,
				  .body_fd = -1};
}

static int32_t attach(struct running *x)
{
	abx_auto(abx_buf) struct abx_buf msg = ABX_BUF_INIT(64);

	rpc_init(x, "process.Process/Connect");
	e2b_rpc_put_pid(&msg, x->pid);
	return e2b_rpc_stream(x->envd, &x->rpc, &msg);
}

/* Output that nobody had is gone; can whoever waits for it live with that? */
static bool may_go_on(struct running *x)
{
	return !x->req->gap || x->req->gap(x->req->io, ABX_STREAM_STDOUT, UINT64_MAX) == 0;
}

static bool is_away(int32_t r, const struct e2b_rpc *rpc)
{
	return rpc->lost || r == ABX_ENETWORK || r == ABX_ETIMEDOUT ||
	       (r == ABX_EREMOTE && !*rpc->code);
}

/* The connection broke off, and the command goes on. */
static int32_t find_again(struct running *x, int32_t r)
{
	int64_t end = abx_monotonic_ms() + AWAY_MS, wait = AGAIN_MS;
	const struct e2b_rpc first = x->rpc;

	if (!may_go_on(x))
		return r;
	while (is_away(r, &x->rpc) && !x->over && abx_monotonic_ms() < end) {
		int32_t waited = abx_plugin_host->wait_ms(x->call, wait);

		if (waited != ABX_OK)
			return waited;
		wait = wait * 2 < AGAIN_MAX_MS ? wait * 2 : AGAIN_MAX_MS;
		r = attach(x);
		if (r == ABX_ENOTFOUND && *x->rpc.code) {
			x->exit->flags = ABX_EXIT_LOST;
			x->over = true;
			return ABX_OK;
		}
		/* It was there: the network may be away once more. */
		if (x->rpc.lost && x->rpc.status == 200)
			end = abx_monotonic_ms() + AWAY_MS;
	}
	if (is_away(r, &x->rpc))
		x->rpc = first;
	return r;
}

/* A tree of its own is a terminal's; another one is agentbox-ctl's, which is told. */
static void end_command(struct running *x)
{
	const bool pty = x->req->flags & ABX_EXEC_PTY;
	struct e2b_aside *a;

	if (!x->pid || x->over || x->req->flags & ABX_EXEC_LEAVE_RUNNING ||
	    e2b_aside_open(x->envd, x->call, -1, E2B_LAST_WORDS_MS, &a) != ABX_OK)
		return;
	if (pty)
		(void)e2b_kill_tree(x->envd, a, x->pid);
	else
		(void)e2b_signal(x->envd, a, x->pid, SIGTERM);
	e2b_aside_close(a, x->call);
}

static int32_t say_why(struct running *x, int32_t r)
{
	const struct e2b_rpc *rpc = &x->rpc;

	if (x->gave_up)
		return abx_fail(x->call, r, NULL, "given up");
	if (r == ABX_ECANCELED && atomic_load(&x->in.lost))
		return abx_fail(
			x->call, ABX_ENETWORK, "see whether the box still runs, and try again",
			"what the command was to read did not reach it: %s", x->in.why_lost);
	if (r == ABX_ECANCELED)
		return abx_fail_canceled(x->call);
	if (r == ABX_ETIMEDOUT && abx_plugin_host->time_left_ms(x->call) <= 0)
		return abx_fail_timed_out(x->call);
	if (e2b_rpc_is_gone(r, rpc->status))
		return e2b_envd_gone(x->s, x->call, x->sb, rpc->text);
	if (r == ABX_EAUTH && strstr(rpc->text, "username"))
		return abx_fail(x->call, ABX_EINVAL, NULL, "user %s: not in the box",
				x->req->user ? x->req->user : "");
	if (r == ABX_EINVAL && strstr(rpc->text, "cwd"))
		return abx_fail(x->call, ABX_ENOTFOUND, NULL, "no such directory in the box: %s",
				cwd_of(x));
	if (rpc->lost)
		return abx_fail(x->call, ABX_ENETWORK,
				"see whether the box still runs, and try again",
				"the connection to the command broke off: %s", rpc->text);
	return e2b_rpc_fail(x->call, r, rpc, "the command");
}

static int32_t judge(struct running *x, int32_t r)
{
	const int32_t flags = x->exit->flags & ABX_EXIT_LOST ? ABX_EXIT_LOST : 0;

	if (atomic_load(&x->in.detached)) {
		*x->exit = (struct abx_exit){.struct_size = x->exit->struct_size,
					     .flags = ABX_EXIT_DETACHED};
		return ABX_OK;
	}
	if (atomic_load(&x->in.timed_out)) {
		*x->exit = (struct abx_exit){.struct_size = x->exit->struct_size, .timed_out = 1};
		return ABX_OK;
	}
	if (r == ABX_OK && x->over) {
		x->exit->flags |= (uint32_t)flags;
		return ABX_OK;
	}
	end_command(x);
	if (r == ABX_OK)
		return abx_fail(x->call, ABX_EPROTO, NULL,
				"the command's stream ended without the command's end");
	return say_why(x, r);
}

static int32_t run(struct running *x, uint32_t pid)
{
	abx_auto(abx_buf) struct abx_buf msg = ABX_BUF_INIT(E2B_MESSAGE_MAX);
	int32_t r = pid ? ABX_OK : make_start(x, &msg);

	if (r != ABX_OK)
		return r;
	x->pid = pid;
	if (pid) {
		r = attach(x);
	} else {
		rpc_init(x, "process.Process/Start");
		r = e2b_rpc_stream(x->envd, &x->rpc, &msg);
	}
	if (msg.data)
		explicit_bzero(msg.data, msg.len);
	if (x->rpc.lost && x->pid && !x->over)
		r = find_again(x, r);
	if (pid && r == ABX_ENOTFOUND && *x->rpc.code) {
		x->exit->flags = ABX_EXIT_LOST;
		return ABX_OK;
	}
	return judge(x, r);
}

static int32_t run_in(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_exec *req, int64_t in_bytes, uint32_t pid,
		      struct abx_exit *ret)
{
	struct e2b_envd envd;
	struct running x = {.s = s, .call = call, .sb = sb, .envd = &envd, .req = req, .exit = ret};
	int32_t r;

	if (req->flags & ABX_EXEC_DETACHED)
		return abx_fail(call, ABX_ENOTSUP, NULL,
				"no detached commands without agentbox-ctl");
	r = e2b_envd_of(s, call, sb, &envd);
	if (r != ABX_OK)
		return r;
	r = e2b_input_init(&x.in, call, &envd, req, in_bytes);
	if (r == ABX_OK)
		r = run(&x, pid);
	e2b_input_end(&x.in, call);
	e2b_envd_release(&envd);
	return r;
}

int32_t e2b_exec(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		 const struct abx_exec *req, struct abx_exit *ret)
{
	return run_in(s, call, sb, req, -1, 0, ret);
}

int32_t e2b_exec_some(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_exec *req, int64_t in_bytes, struct abx_exit *ret)
{
	return run_in(s, call, sb, req, in_bytes, 0, ret);
}

int32_t e2b_exec_again(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_exec *req, uint32_t pid, struct abx_exit *ret)
{
	return run_in(s, call, sb, req, -1, pid, ret);
}
