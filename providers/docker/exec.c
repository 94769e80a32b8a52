/* SPDX-License-Identifier: MIT */
/*
 * Commands in a box: an exec of the engine's, whose connection carries stdin one way and both
 * outputs, in frames, the other.
 *
 * The engine forgets about a command whose connection is gone, but lets it run: ending whole
 * trees, terminals and deaths by signals are agentbox-ctl's, which the host runs by this.
 */
#include <poll.h>
#include <string.h>

#include "abxsdk/words.h"
#include "providers/docker/docker.h"
#include "providers/docker/frames.h"

#define CHUNK_BYTES 65536
#define HELD_BYTES 2048
/* A stream that is silent is compared with what the engine says of its command, less and less
 * often; what is still on its way when that has ended gets so long. */
#define LOOK_FIRST_MS 1000
#define REST_MS 2000
#define ENDED_WAIT_MS 10
#define ENDED_WAIT_MAX_MS 200

struct running {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_exec *req;
	char id[80]; /* of the exec */
	struct abx_http_stream *stream;
	struct docker_frames frames;
	char in[CHUNK_BYTES];
	size_t in_at, in_len;
	int64_t in_left;
	bool in_ended, told_end;
	bool only_code; /* what it was given is there as a whole when it says so */
	int64_t end_ms, look_at_ms, look_ms;
	bool ended; /* the engine says so; only what is still on its way is waited for */
	/* The first words, while they may be the engine's about a command that did not start. */
	char held[HELD_BYTES + 1];
	size_t n_held;
	bool passed; /* they were the command's */
};

static int add_env(const struct abx_session *s, const char *id, const struct abx_exec *req,
		   cJSON *body)
{
	abx_auto(abx_buf) struct abx_buf pair = ABX_BUF_INIT(8 << 20);
	cJSON *env = cJSON_AddArrayToObject(body, "Env");
	const cJSON *item;
	int r;

	for (uint32_t i = 0; i < req->n_env; i++) {
		abx_buf_reset(&pair);
		abx_buf_addf(&pair, "%s=%s", req->env[i].key, req->env[i].value);
		if (pair.failed || !cJSON_AddItemToArray(env, cJSON_CreateString(pair.data)))
			return -ENOMEM;
	}
	r = docker_env_add(s, id, env);
	/* Without a value it is taken out: the engine sets one in every container. */
	if (r == 0 && !atomic_load(&s->cannot_unset) && !docker_env_has(env, "HOSTNAME="))
		(void)cJSON_AddItemToArray(env, cJSON_CreateString("HOSTNAME"));
	cJSON_ArrayForEach(item, env)
		if (r == 0 && !abx_is_utf8(item->valuestring))
			r = -EILSEQ;
	return r;
}

static cJSON *words_of(const char *const *argv)
{
	abx_auto(abx_buf) struct abx_buf script = ABX_BUF_INIT(ABX_WORDS_SCRIPT_MAX);
	const char *const by_shell[] = {"/bin/sh", "-c", NULL};
	const bool plain = abx_words_are_utf8(argv);
	const char *const *words = plain ? argv : by_shell;
	cJSON *array = cJSON_CreateArray();

	for (size_t i = 0; words[i]; i++)
		(void)cJSON_AddItemToArray(array, cJSON_CreateString(words[i]));
	if (plain)
		return array;
	abx_words_script(argv, &script);
	if (!script.failed) {
		(void)cJSON_AddItemToArray(array, cJSON_CreateString(script.data));
		return array;
	}
	cJSON_Delete(array);
	return NULL;
}

/* *ret_again: the engine refused what it is not asked for again. */
static int32_t create_once(struct running *x, const char *box, bool *ret_again)
{
	const struct abx_exec *req = x->req;
	cJSON *body = cJSON_CreateObject(), *words = words_of(req->argv);
	/* One that is made twice and never started is forgotten by the engine. */
	const struct docker_request q = {.method = "POST", .body = body, .idempotent = true};
	struct docker_answer a = {.status = 0};
	const char *id = NULL;
	int32_t r = ABX_OK;
	int e;

	if (!words) {
		cJSON_Delete(body);
		return abx_fail_no_memory(x->call);
	}
	(void)cJSON_AddItemToObject(body, "Cmd", words);
	(void)abx_json_add_bool(body, "AttachStdin", req->stdin_fd >= 0);
	(void)abx_json_add_bool(body, "AttachStdout", true);
	(void)abx_json_add_bool(body, "AttachStderr", true);
	(void)abx_json_add_bool(body, "Tty", false);
	(void)abx_json_add_str(body, "User", req->user);
	(void)abx_json_add_str(body, "WorkingDir", req->cwd ? req->cwd : DOCKER_WORKSPACE);
	e = add_env(x->s, box, req, body);
	if (e < 0)
		r = abx_fail_errno(x->call, -e, "box %.*s: its environment", DOCKER_ID_SHOWN, box);
	if (r == ABX_OK)
		r = docker_ask(x->s, x->call, &q, &a, "/containers/%s/exec", box);
	cJSON_Delete(body);
	*ret_again = r == ABX_OK && a.status >= 400 && strstr(a.message, "must be key=value") &&
		     !atomic_exchange(&x->s->cannot_unset, true);
	if (*ret_again)
		r = ABX_EINVAL;
	if (r == ABX_OK && a.status == 400 && strstr(a.message, "user"))
		r = abx_fail(x->call, ABX_EINVAL, NULL, "user %s: not in the box", req->user);
	if (r == ABX_OK)
		r = docker_expect(x->call, &a, "box %.*s", DOCKER_ID_SHOWN, box);
	if (r == ABX_OK &&
	    (abx_json_str(a.doc, "Id", sizeof(x->id) - 1, &id) < 0 || !docker_is_word(id)))
		r = abx_fail(x->call, ABX_EPROTO, NULL, "Docker engine: an exec without id");
	if (r == ABX_OK)
		(void)snprintf(x->id, sizeof(x->id), "%s", id);
	docker_answer_release(&a);
	return r;
}

static int32_t create(struct running *x, const char *box)
{
	bool again = false;
	int32_t r = create_once(x, box, &again);

	return again ? create_once(x, box, &again) : r;
}

/* What the engine says, on stdout, of a command that did not start. */
static bool may_be_engine(const char *text, size_t len)
{
	static const char *const words[] = {"OCI runtime exec failed", "unable to find user"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(words); i++) {
		size_t n = strlen(words[i]);

		if (memcmp(text, words[i], n < len ? n : len) == 0)
			return true;
	}
	return false;
}

static int32_t deliver(struct running *x, int32_t stream, const void *data, size_t len)
{
	return len && x->req->output && x->req->output(x->req->io, stream, data, len)
		       ? ABX_ECANCELED
		       : ABX_OK;
}

static int32_t pass_held(struct running *x)
{
	size_t n = x->n_held;

	x->passed = true;
	x->n_held = 0;
	return deliver(x, ABX_STREAM_STDOUT, x->held, n);
}

static int32_t on_output(void *ctx, int32_t stream, const void *data, size_t len)
{
	struct running *x = ctx;
	int32_t r = ABX_OK;

	if (!x->passed && stream == ABX_STREAM_STDOUT && x->n_held + len <= HELD_BYTES) {
		memcpy(x->held + x->n_held, data, len);
		x->n_held += len;
		x->held[x->n_held] = '\0';
		if (may_be_engine(x->held, x->n_held))
			return ABX_OK;
		return pass_held(x);
	}
	if (!x->passed)
		r = pass_held(x);
	return r == ABX_OK ? deliver(x, stream, data, len) : r;
}

static int32_t read_stdin(struct running *x)
{
	ssize_t n = read(x->req->stdin_fd, x->in,
			 x->in_left < CHUNK_BYTES ? (size_t)x->in_left : CHUNK_BYTES);

	if (n > 0) {
		x->in_at = 0;
		x->in_len = (size_t)n;
		x->in_left -= n;
		x->in_ended = !x->in_left;
	} else if (n == 0) {
		x->in_ended = true;
	} else if (errno != EINTR && errno != EAGAIN) {
		return abx_fail_errno(x->call, errno, "what the command is to read");
	}
	return ABX_OK;
}

static void send_stdin(struct running *x)
{
	ssize_t n;

	if (x->in_at < x->in_len) {
		n = abx_http_stream_send(x->stream, x->in + x->in_at, x->in_len - x->in_at);
		if (n > 0)
			x->in_at += (size_t)n;
		/* Nobody reads it any more; what the command still says is wanted. */
		else if (n != -EAGAIN)
			x->in_ended = true, x->in_at = x->in_len;
	}
	if (x->in_ended && x->in_at == x->in_len && !x->told_end) {
		x->told_end = true;
		abx_http_stream_end(x->stream);
	}
}

int32_t docker_exec_look(struct abx_session *s, struct abx_call *call, const char *id, cJSON **ret,
			 bool *ret_running)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_ask(s, call, &q, &a, "/exec/%s/json", id);

	*ret = NULL;
	*ret_running = false;
	if (r == ABX_OK && a.status != 404) {
		r = docker_expect(call, &a, "the command");
		if (r == ABX_OK)
			(void)abx_json_bool(a.doc, "Running", false, ret_running);
		if (r == ABX_OK)
			*ret = abx_steal_ptr(&a.doc);
	}
	docker_answer_release(&a);
	return r;
}

static void note_movement(struct running *x, int64_t now)
{
	x->ended = false;
	x->look_ms = LOOK_FIRST_MS;
	x->look_at_ms = now + LOOK_FIRST_MS;
}

/* Nothing moved for a while.  A command may be silent as long as it runs, and an engine may forget
 * to end the stream of one that ended.  Who has to have all of an output looks for its end in what
 * came; here it is only told from one that was cut off.  1: as round_trip(). */
static int32_t look(struct running *x, int64_t now)
{
	const int64_t most = x->s->timeout_ms ? x->s->timeout_ms : DOCKER_QUIET_MS;
	bool running = false;
	cJSON *doc = NULL;
	int32_t r;

	if (x->ended) {
		abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_INFO, "docker",
				     "a command ended, but the engine does not end its output");
		return 1;
	}
	r = docker_exec_look(x->s, x->call, x->id, &doc, &running);
	cJSON_Delete(doc);
	if (r != ABX_OK)
		return r;
	if (!running && x->only_code && docker_frames_whole(&x->frames))
		return 1;
	x->ended = !running;
	x->look_ms = x->look_ms * 2 < most ? x->look_ms * 2 : most;
	x->look_at_ms = now + (x->ended ? REST_MS : x->look_ms);
	return ABX_OK;
}

/* How long to wait for something to happen. */
static int64_t patience(const struct running *x, int64_t now)
{
	const int64_t until = x->end_ms && x->end_ms < x->look_at_ms ? x->end_ms : x->look_at_ms;

	return until > now ? until - now : 0;
}

/* One round of the pump.  1: the outputs ended; 2: the command's own time is over. */
static int32_t round_trip(struct running *x, char *chunk)
{
	const bool has_in = x->in_at < x->in_len;
	const int64_t now = abx_plugin_host->now_ms(abx_plugin_host->ctx);
	const bool wants_in = x->req->stdin_fd >= 0 && !x->in_ended && !has_in;
	struct pollfd p[2] = {{.fd = abx_http_stream_fd(x->stream), .events = POLLIN},
			      {.fd = wants_in ? x->req->stdin_fd : -1, .events = POLLIN}};
	ssize_t n = abx_http_stream_recv(x->stream, chunk, CHUNK_BYTES);
	int32_t r = ABX_OK;

	if (n == 0)
		return 1;
	if (n < 0 && n != -EAGAIN)
		return abx_fail(x->call, ABX_ENETWORK, DOCKER_REMEDY_LOST,
				"the connection to the command was closed by the engine");
	if (n > 0)
		r = docker_frames_feed(&x->frames, chunk, (size_t)n);
	if (r == ABX_EPROTO)
		return abx_fail(x->call, r, NULL, "Docker engine: its stream is not in frames");
	if (r != ABX_OK)
		return abx_fail(x->call, r, NULL, "given up");
	if (x->end_ms && now >= x->end_ms)
		return 2;
	if (has_in)
		p[0].events |= POLLOUT;
	r = abx_call_poll(x->call, p, 2, n > 0 ? 0 : patience(x, now));
	if (r != ABX_OK)
		return r;
	if (n > 0 || p[0].revents || p[1].revents)
		note_movement(x, now);
	else if (now >= x->look_at_ms)
		return look(x, now);
	if (p[1].revents)
		r = read_stdin(x);
	if (r == ABX_OK)
		send_stdin(x);
	return r;
}

static int32_t pump(struct running *x, bool *ret_timed_out)
{
	char *chunk = malloc(CHUNK_BYTES);
	int32_t r = ABX_OK;

	if (!chunk)
		return abx_fail_no_memory(x->call);
	if (x->req->stdin_fd < 0)
		x->told_end = true;
	while (r == ABX_OK)
		r = round_trip(x, chunk);
	free(chunk);
	*ret_timed_out = r == 2;
	if (r == 1 && !docker_frames_whole(&x->frames))
		return abx_fail(x->call, ABX_ENETWORK, DOCKER_REMEDY_LOST,
				"the connection to the command broke off");
	return r > 0 ? ABX_OK : r;
}

/* As a shell would say it, or as what the request got wrong. */
static int32_t not_started(struct running *x, int64_t code, struct abx_exit *ret)
{
	const char *why = x->held;

	if (strstr(why, "unable to find user"))
		return abx_fail(x->call, ABX_EINVAL, NULL, "user %s: not in the box",
				x->req->user ? x->req->user : "");
	if (strstr(why, "chdir to cwd"))
		return abx_fail(x->call, ABX_ENOTFOUND, NULL, "no such directory in the box: %s",
				x->req->cwd ? x->req->cwd : DOCKER_WORKSPACE);
	if (strstr(why, "executable file not found") || strstr(why, "no such file or directory"))
		code = 127;
	ret->flags = ABX_EXIT_NOT_STARTED;
	ret->code = code == 127 ? 127 : 126;
	x->n_held = 0;
	return ABX_OK;
}

static int32_t judge(struct running *x, const cJSON *doc, struct abx_exit *ret)
{
	int64_t code = 0, pid = 0;

	if (abx_json_i64(doc, "ExitCode", &code) < 0)
		return abx_fail(x->call, ABX_EPROTO, NULL, "Docker engine: no exit code");
	(void)abx_json_i64(doc, "Pid", &pid);
	if (!pid && code >= 126)
		return not_started(x, code, ret);
	ret->code = (int32_t)code;
	return x->passed ? ABX_OK : pass_held(x);
}

/* The outputs ended; the command may go on without them. */
static int32_t finish(struct running *x, struct abx_exit *ret)
{
	int64_t wait = ENDED_WAIT_MS;

	for (;;) {
		bool running = false;
		cJSON *doc = NULL;
		int32_t r = docker_exec_look(x->s, x->call, x->id, &doc, &running);

		if (r == ABX_OK && !doc)
			ret->flags = ABX_EXIT_LOST;
		else if (r == ABX_OK && !running)
			r = judge(x, doc, ret);
		cJSON_Delete(doc);
		if (r != ABX_OK || !running)
			return r;
		r = abx_plugin_host->wait_ms(x->call, wait);
		if (r != ABX_OK)
			return r == ABX_ECANCELED ? abx_fail_canceled(x->call)
						  : abx_fail_timed_out(x->call);
		wait = wait * 2 < ENDED_WAIT_MAX_MS ? wait * 2 : ENDED_WAIT_MAX_MS;
	}
}

static int32_t run(struct running *x, const char *box, struct abx_exit *ret)
{
	cJSON *body = cJSON_CreateObject();
	char path[160];
	bool timed_out = false;
	int32_t r = create(x, box);

	(void)abx_json_add_bool(body, "Detach", false);
	(void)abx_json_add_bool(body, "Tty", false);
	if (r == ABX_OK) {
		(void)snprintf(path, sizeof(path), "/exec/%s/start", x->id);
		r = docker_upgrade(x->s, x->call, path, body, &x->stream);
	}
	cJSON_Delete(body);
	if (r == ABX_OK && x->req->started && x->req->started(x->req->io, x->id))
		r = abx_fail(x->call, ABX_ECANCELED, NULL, "given up");
	if (r == ABX_OK)
		r = pump(x, &timed_out);
	abx_http_stream_close(x->stream);
	if (r != ABX_OK)
		return r;
	if (timed_out) {
		ret->timed_out = 1;
		return ABX_OK;
	}
	return finish(x, ret);
}

int32_t docker_exec(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_exec *req, struct abx_exit *ret)
{
	return docker_exec_some(s, call, sb, req, -1, ret);
}

int32_t docker_exec_some(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			 const struct abx_exec *req, int64_t in_bytes, struct abx_exit *ret)
{
	struct running *x;
	int32_t r;

	if (req->flags & (ABX_EXEC_PTY | ABX_EXEC_DETACHED))
		return abx_fail(call, ABX_ENOTSUP, NULL,
				"neither terminals nor detached commands without agentbox-ctl");
	if (!docker_is_word(sb->id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	x = calloc(1, sizeof(*x));
	if (!x)
		return abx_fail_no_memory(call);
	x->s = s;
	x->call = call;
	x->req = req;
	x->in_left = in_bytes < 0 ? INT64_MAX : in_bytes;
	x->in_ended = in_bytes == 0;
	x->only_code = in_bytes >= 0;
	note_movement(x, abx_plugin_host->now_ms(abx_plugin_host->ctx));
	x->frames = (struct docker_frames){.output = on_output, .ctx = x};
	if (req->timeout_ms > 0)
		x->end_ms = abx_plugin_host->now_ms(abx_plugin_host->ctx) + req->timeout_ms;
	r = run(x, sb->id, ret);
	explicit_bzero(x->in, sizeof(x->in));
	free(x);
	return r;
}
