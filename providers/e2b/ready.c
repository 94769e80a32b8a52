/* SPDX-License-Identifier: MIT */
/*
 * Waiting until commands run in a new sandbox, and a workspace for them.
 *
 * A template that was not made for agentbox has no /workspace.  The command that proves that the
 * sandbox is ready finds that out, and says whose it is to be.
 */
#include <stdlib.h>
#include <string.h>

#include "abxsdk/clock.h"
#include "providers/e2b/e2b.h"

#define FIRST_WAIT_MS 100
#define LONGEST_WAIT_MS 1000
#define PROBE_MS INT64_C(5000)
#define SAID_BYTES 64

/* Exits with 3 where the workspace is not one that its user can write to. */
static const char probe_sh[] = "printf '%s:%s\\n' \"$(id -u)\" \"$(id -g)\"\n"
			       "[ -d \"$1\" ] && [ -w \"$1\" ] || exit 3\n";
static const char make_sh[] = "mkdir -p -- \"$1\" && chown -- \"$2\" \"$1\"\n";

struct said {
	char text[SAID_BYTES];
	size_t n;
};

static int32_t keep(void *io, int32_t stream, const void *data, size_t len)
{
	struct said *s = io;
	const size_t room = sizeof(s->text) - 1 - s->n;

	if (stream == ABX_STREAM_STDOUT) {
		len = len < room ? len : room;
		memcpy(s->text + s->n, data, len);
		s->n += len;
		s->text[s->n] = '\0';
	}
	return 0;
}

static int32_t run(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const char *const *argv, const char *user, struct said *said,
		   struct abx_exit *ret)
{
	const struct abx_exec req = {ABX_INIT(struct abx_exec),
				     .argv = argv,
				     .cwd = "/",
				     .user = user,
				     .stdin_fd = -1,
				     .control_fd = -1,
				     .timeout_ms = PROBE_MS,
				     .io = said,
				     .output = keep};

	*ret = (struct abx_exit){ABX_INIT(struct abx_exit)};
	memset(said, 0, sizeof(*said));
	return e2b_exec(s, call, sb, &req, ret);
}

/* "1000:1000", and nothing that could be taken for something else. */
static bool is_owner(struct said *said)
{
	said->text[strcspn(said->text, "\n")] = '\0';
	return *said->text && said->text[strspn(said->text, "0123456789:")] == '\0';
}

static int32_t make_workspace(struct abx_session *s, struct abx_call *call,
			      const struct abx_sandbox *sb, const char *owner)
{
	const char *const argv[] = {"/bin/sh",	   "-c",  make_sh, "agentbox",
				    E2B_WORKSPACE, owner, NULL};
	struct abx_exit e;
	struct said said;
	int32_t r = run(s, call, sb, argv, "root", &said, &e);

	if (r == ABX_OK && (e.code || e.signo || e.flags))
		r = abx_fail(call, ABX_EINVAL, "use a template whose root file system is writable",
			     "box %s: " E2B_WORKSPACE " cannot be made in it", sb->id);
	return r;
}

/* *ret_ready: commands run.  What is said otherwise may pass. */
static int32_t probe(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     bool *ret_ready)
{
	static const char *const argv[] = {"/bin/sh",  "-c",	      probe_sh,
					   "agentbox", E2B_WORKSPACE, NULL};
	struct abx_exit e;
	struct said said;
	int32_t r = run(s, call, sb, argv, NULL, &said, &e);

	*ret_ready = r == ABX_OK && !e.signo && !e.flags && !e.timed_out &&
		     (e.code == 0 || e.code == 3) && is_owner(&said);
	if (r == ABX_OK && !*ret_ready)
		return abx_fail(call, ABX_ENETWORK, NULL, "a command ended with %d", e.code);
	return *ret_ready && e.code == 3 ? make_workspace(s, call, sb, said.text) : r;
}

static bool may_pass(int32_t code)
{
	return code == ABX_ENETWORK || code == ABX_EREMOTE || code == ABX_ETIMEDOUT ||
	       code == ABX_EPROTO || code == ABX_ERATE;
}

int32_t e2b_ready(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	const int64_t begun_ms = abx_monotonic_ms();
	int64_t pause_ms = FIRST_WAIT_MS;

	if (s->ready_ms <= 0)
		return ABX_OK;
	for (;;) {
		bool ready = false;
		int32_t r = probe(s, call, sb, &ready);
		int64_t left_ms = begun_ms + s->ready_ms - abx_monotonic_ms();

		if (ready || !may_pass(r))
			return r;
		if (left_ms <= 0)
			return abx_fail(call, ABX_ETIMEDOUT,
					"try again, or with another template; e2b.ready_timeout "
					"says how long is waited",
					"box %s: commands do not run in it after %lld s", sb->id,
					(long long)s->ready_ms / 1000);
		r = abx_plugin_host->wait_ms(call, pause_ms < left_ms ? pause_ms : left_ms);
		if (r != ABX_OK)
			return r == ABX_ECANCELED ? abx_fail_canceled(call)
						  : abx_fail_timed_out(call);
		pause_ms += pause_ms / 2;
		pause_ms = pause_ms < LONGEST_WAIT_MS ? pause_ms : LONGEST_WAIT_MS;
	}
}
