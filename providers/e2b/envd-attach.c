/* SPDX-License-Identifier: MIT */
/* Finding a command of a sandbox again, by the id that exec() gave it: "PID.TAG". */
#include <string.h>

#include "abxsdk/number.h"
#include "providers/e2b/envd.h"

/* A pid is given to another process sooner or later, and to every clone of a sandbox. */
static bool split(const char *exec_id, uint32_t *ret_pid, const char **ret_tag)
{
	const char *at = exec_id;
	uint64_t pid;

	if (!abx_parse_digits(&at, UINT32_MAX, &pid) || *at != '.' || !pid)
		return false;
	*ret_pid = (uint32_t)pid;
	*ret_tag = at + 1;
	return true;
}

/* ProcessInfo: {config: 1, pid: 2, tag: 3}. */
static bool is_other(const struct e2b_pb_field *info, uint32_t pid, const char *tag)
{
	struct e2b_pb m = {info->data, info->len};
	struct e2b_pb_field f;
	char its_tag[64] = "";
	uint64_t its_pid = 0;

	while (e2b_pb_next(&m, &f) > 0) {
		if (f.number == 2 && !f.data)
			its_pid = f.value;
		else if (f.number == 3 && f.data)
			e2b_pb_text(&f, its_tag, sizeof(its_tag));
	}
	return its_pid == pid && strcmp(its_tag, tag) != 0;
}

/* Does the pid belong to another one that envd has started?  One that ended is in no list. */
static int32_t look(const struct e2b_envd *envd, struct abx_call *call, uint32_t pid,
		    const char *tag, bool *ret_other)
{
	abx_auto(abx_buf) struct abx_buf answer = ABX_BUF_INIT(E2B_MESSAGE_MAX);
	const struct abx_buf nothing = ABX_BUF_INIT(1);
	struct e2b_rpc rpc = {.http = envd->http,
			      .call = call,
			      .method = "process.Process/List",
			      .answer = &answer,
			      .body_fd = -1};
	int32_t r = e2b_rpc_call(envd, &rpc, &nothing);
	struct e2b_pb m = {(const unsigned char *)abx_buf_str(&answer), answer.len};
	struct e2b_pb_field f;

	if (r != ABX_OK)
		return e2b_rpc_fail(call, r, &rpc, "the list of commands");
	*ret_other = false;
	while (e2b_pb_next(&m, &f) > 0)
		if (f.number == 1 && f.data && is_other(&f, pid, tag))
			*ret_other = true;
	return ABX_OK;
}

static int32_t find(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const char *exec_id, struct e2b_envd *envd, uint32_t *ret_pid, bool *ret_lost)
{
	const char *tag;
	int32_t r;

	if (!split(exec_id, ret_pid, &tag))
		return abx_fail(call, ABX_EINVAL, NULL, "%.60s: not the id of a command", exec_id);
	r = e2b_envd_of(s, call, sb, envd);
	if (r != ABX_OK)
		return r;
	r = look(envd, call, *ret_pid, tag, ret_lost);
	if (r != ABX_OK)
		e2b_envd_release(envd);
	return r;
}

int32_t e2b_exec_attach(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const char *exec_id, uint64_t offset, const struct abx_exec *req,
			struct abx_exit *ret)
{
	struct e2b_envd envd;
	bool lost = false;
	uint32_t pid = 0;
	int32_t r = find(s, call, sb, exec_id, &envd, &pid, &lost);

	/* envd keeps nothing: whatever was said since then is gone. */
	(void)offset;
	if (r != ABX_OK)
		return r;
	e2b_envd_release(&envd);
	if (lost) {
		ret->flags = ABX_EXIT_LOST;
		return ABX_OK;
	}
	if (req->gap && req->gap(req->io, ABX_STREAM_STDOUT, UINT64_MAX))
		return abx_fail(call, ABX_ECANCELED, NULL, "given up");
	return e2b_exec_again(s, call, sb, req, pid, ret);
}

int32_t e2b_exec_signal(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const char *exec_id, int32_t signo)
{
	struct e2b_aside *a = NULL;
	struct e2b_envd envd;
	bool lost = false;
	uint32_t pid = 0;
	int32_t r = find(s, call, sb, exec_id, &envd, &pid, &lost);

	if (r != ABX_OK)
		return r;
	if (!lost)
		r = e2b_aside_open(&envd, call, abx_plugin_host->cancel_fd(call), E2B_ANSWER_MS,
				   &a);
	if (a) {
		r = e2b_signal(&envd, a, pid, signo);
		if (r != ABX_OK)
			(void)abx_fail(call, r, NULL, "signal %d: envd does not take it", signo);
	}
	e2b_aside_close(a, call);
	e2b_envd_release(&envd);
	return r;
}
