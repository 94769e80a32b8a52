/* SPDX-License-Identifier: MIT */
/* What the host otherwise hides: structs of other sizes, texts before they are redacted. */
#include <stdalign.h>
#include <string.h>
#include <sys/wait.h>

#include "core/host/hostapi.h"
#include "core/util/clock.h"
#include "sdk/provider-check/check.h"

#define TAIL_BYTES 64
#define SENTINEL "abx-check-sentinel-0123456789"

/* A struct as a later minor has it: longer, with what this provider cannot know. */
struct longer {
	alignas(16) unsigned char bytes[1024 + TAIL_BYTES];
};

static void *make_longer(struct longer *l, const void *src, uint32_t size)
{
	const uint32_t longer_size = size + TAIL_BYTES;

	memset(l->bytes, 0xa5, sizeof(l->bytes));
	memcpy(l->bytes, src, size);
	memcpy(l->bytes, &longer_size, sizeof(longer_size));
	return l->bytes;
}

static struct abx_call *new_call(struct check *c, bool is_list)
{
	struct abx_call *call;

	if (abx_call_new(abx_now_ms() + c->timeout_ms, &call, &c->err) < 0)
		return NULL;
	call->sink.is_list = is_list;
	return call;
}

/* Every request that the suite makes, longer than the provider was built for. */
static void check_longer_requests(struct check *c)
{
	const struct abx_cloud_backend *t = abx_cloud_table(c->cloud);
	const struct abx_list_req list = {ABX_INIT(struct abx_list_req), 3, c->labels};
	const struct abx_start_req start = {ABX_INIT(struct abx_start_req)};
	struct longer l, s;
	struct abx_call *call = new_call(c, true);
	struct abx_session *session = c->cloud->session;
	void *sandbox = make_longer(&s, &c->box.s, (uint32_t)sizeof(c->box.s));

	if (!call)
		return;
	(void)tap_ok(c,
		     t->list(session, call, make_longer(&l, &list, sizeof(list))) == ABX_OK &&
			     call->n_results == 1 && !call->broken.code,
		     "list takes a longer request");
	(void)tap_ok(c, t->get(session, call, sandbox) == ABX_OK && call->n_results == 2,
		     "get takes a longer sandbox");
	(void)tap_ok(c,
		     t->start(session, call, sandbox, make_longer(&l, &start, sizeof(start))) ==
			     ABX_OK,
		     "start takes longer structs");
	abx_call_unref(call);
}

static int32_t no_output(void *io, int32_t stream, const void *data, size_t len)
{
	(void)io;
	(void)stream;
	(void)data;
	(void)len;
	return ABX_OK;
}

static void check_longer_exec(struct check *c)
{
	const char *const argv[] = {"true", NULL};
	const struct abx_exec exec = {ABX_INIT(struct abx_exec), .argv = argv, .stdin_fd = -1,
				      .control_fd = -1, .output = no_output};
	struct longer l, s, e;
	const struct abx_exit none = {.struct_size = (uint32_t)sizeof(none)};
	struct abx_call *call = new_call(c, false);
	struct abx_exit *result = make_longer(&e, &none, sizeof(none));
	int32_t r;

	if (!call)
		return;
	r = abx_cloud_table(c->cloud)->exec(c->cloud->session, call,
					    make_longer(&s, &c->box.s, (uint32_t)sizeof(c->box.s)),
					    make_longer(&l, &exec, (uint32_t)sizeof(exec)), result);
	(void)tap_ok(c, r == ABX_OK && result->code == 0, "exec takes longer structs");
	(void)tap_ok(c,
		     e.bytes[sizeof(none)] == 0xa5 &&
			     result->struct_size == sizeof(none) + TAIL_BYTES,
		     "exec leaves alone what it does not know of the result");
	abx_call_unref(call);
}

/* A later host's table, in a process of its own: init() is called once in each. */
static void check_longer_host(struct check *c)
{
	const struct abx_cloud_backend *t = abx_cloud_table(c->cloud);
	struct longer l, a;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct abx_session *session = NULL;
		struct abx_call *call = new_call(c, true);
		int32_t r;

		(void)alarm(20);
		r = call ? t->init(make_longer(&l, abx_hostapi(), abx_hostapi()->struct_size))
			 : ABX_ENOMEM;
		if (r == ABX_OK)
			r = t->session_open(
				call, make_longer(&a, &c->cloud->args, c->cloud->args.struct_size),
				&session);
		if (r == ABX_OK)
			t->session_close(session);
		_exit(r == ABX_OK ? 0 : 1);
	}
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	(void)tap_ok(c, status == 0, "it starts under a host with a longer table and arguments");
}

/* Sessions with a credential that nobody has: whatever they say must not repeat it. */
static bool leaks(struct check *c, const struct abx_kv *options, uint32_t n)
{
	const struct abx_cloud_backend *t = abx_cloud_table(c->cloud);
	struct abx_session_args args = c->cloud->args;
	struct abx_call *call = new_call(c, true);
	struct abx_session *session = NULL;
	bool leaked;

	if (!call)
		return true;
	args.options = options;
	args.n_options = n;
	if (t->session_open(call, &args, &session) == ABX_OK) {
		const struct abx_list_req list = {ABX_INIT(struct abx_list_req)};

		if (t->verify)
			(void)t->verify(session, call);
		leaked = strstr(call->failure.text, SENTINEL) != NULL;
		(void)t->list(session, call, &list);
		t->session_close(session);
	} else {
		leaked = false;
	}
	leaked = leaked || strstr(call->failure.text, SENTINEL) ||
		 strstr(call->failure.remedy, SENTINEL);
	abx_call_unref(call);
	return leaked;
}

static void check_secrets(struct check *c)
{
	const struct abx_option *const *options = abx_cloud_table(c->cloud)->options;
	struct abx_kv kv[64];
	uint32_t n = 0;
	bool any = false;

	for (uint32_t i = 0; i < c->cloud->options.n_all && n < ABX_N_ELEMENTS(kv) / 2; i++)
		kv[n++] = c->cloud->options.all[i];
	for (size_t i = 0; options && options[i] && n < ABX_N_ELEMENTS(kv); i++) {
		uint32_t at = 0;

		if (!(options[i]->flags & ABX_OPT_SECRET))
			continue;
		any = true;
		while (at < n && strcmp(kv[at].key, options[i]->name) != 0)
			at++;
		kv[at] = (struct abx_kv){options[i]->name, SENTINEL};
		n += at == n;
	}
	if (!any)
		tap_note(c, "it has no secret option");
	else
		(void)tap_ok(c, !leaks(c, kv, n), "a credential is in no text of its");
}

void check_raw(struct check *c)
{
	check_longer_host(c);
	check_longer_requests(c);
	check_longer_exec(c);
	check_secrets(c);
}
