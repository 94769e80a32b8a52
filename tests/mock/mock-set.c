/* SPDX-License-Identifier: MIT */
/* The mock provider: changing a sandbox that is there. */
#include <signal.h>
#include <string.h>

#include "abxsdk/proc-stat.h"
#include "mock.h"

static int32_t move(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    uint32_t from, uint32_t to, int signo)
{
	struct mock_box b;
	int32_t r = mock_box_load(s, call, sb->id, &b);

	if (r != ABX_OK)
		return r;
	if (b.state != from && b.state != to) {
		mock_box_release(&b);
		return mock_fail(call, ABX_ESTATE, "the sandbox is not in the right state");
	}
	(void)mock_signal_all(s, b.id, signo);
	b.state = to;
	mock_note(s, b.id, to == ABX_STATE_PAUSED ? "paused" : "resumed");
	r = mock_box_save(s, call, &b);
	if (r == ABX_OK)
		r = mock_box_emit(s, call, &b);
	mock_box_release(&b);
	return r;
}

int32_t mock_pause(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_stop_req *req ABX_UNUSED)
{
	int32_t r = mock_fault_before(s, call, "pause");

	if (r == ABX_OK)
		r = move(s, call, sb, ABX_STATE_RUNNING, ABX_STATE_PAUSED, SIGSTOP);
	return r == ABX_OK ? mock_fault_after(s, call, "pause") : r;
}

int32_t mock_resume(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_start_req *req ABX_UNUSED)
{
	int32_t r = mock_fault_before(s, call, "resume");

	if (r == ABX_OK)
		r = move(s, call, sb, ABX_STATE_PAUSED, ABX_STATE_RUNNING, SIGCONT);
	return r == ABX_OK ? mock_fault_after(s, call, "resume") : r;
}

int32_t mock_renew(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   int64_t target_ms, int64_t current_ms ABX_UNUSED)
{
	struct mock_box b;
	int32_t r = mock_fault_before(s, call, "renew");

	if (r == ABX_OK)
		r = mock_box_load(s, call, sb->id, &b);
	if (r != ABX_OK)
		return r;
	b.expires_at_ms = target_ms;
	r = mock_box_save(s, call, &b);
	if (r == ABX_OK)
		r = mock_box_emit(s, call, &b);
	mock_box_release(&b);
	return r;
}

void mock_egress_text(const char *const *allow, const char *const *deny, char *text, size_t size)
{
	size_t at = 0;

	(void)snprintf(text, size, "%s",
		       !allow && !deny	     ? "all"
		       : !allow || !allow[0] ? "none"
					     : "");
	for (size_t i = 0; allow && allow[i] && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? "," : "", allow[i]);
}

int32_t mock_set_egress(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const struct abx_policy *req)
{
	struct mock_box b;
	int32_t r = mock_fault_before(s, call, "set_egress");

	if (r == ABX_OK)
		r = mock_box_load(s, call, sb->id, &b);
	if (r != ABX_OK)
		return r;
	mock_egress_text(req->allow, req->deny, b.egress, sizeof(b.egress));
	r = mock_box_save(s, call, &b);
	mock_box_release(&b);
	return r == ABX_OK ? mock_fault_after(s, call, "set_egress") : r;
}

int32_t mock_exec_signal(struct abx_session *s, struct abx_call *call,
			 const struct abx_sandbox *sb ABX_UNUSED, const char *exec_id,
			 int32_t signo)
{
	int32_t r = mock_fault_before(s, call, "exec_signal");
	pid_t pid = abx_parse_pid(exec_id);

	if (r != ABX_OK)
		return r;
	if (pid < 2 || kill(-pid, signo) < 0)
		return mock_fail(call, ABX_ENOTFOUND, "no such command: %s", exec_id);
	return ABX_OK;
}

int32_t mock_command(struct abx_session *s, struct abx_call *call,
		     const struct abx_sandbox *sb ABX_UNUSED, const char *const *argv)
{
	int32_t r = mock_fault_before(s, call, "command");

	if (r == ABX_OK && strcmp(argv[0], "echo") != 0)
		return mock_fail(call, ABX_EINVAL, "no such command: %s", argv[0]);
	for (size_t i = 1; r == ABX_OK && argv[i]; i++) {
		const struct abx_kv cells[] = {{"word", argv[i]}};

		r = mock_host->emit_row(call, cells, ABX_N_ELEMENTS(cells));
	}
	return r;
}
