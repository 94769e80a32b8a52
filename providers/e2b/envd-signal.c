/* SPDX-License-Identifier: MIT */
/* Signals for a command, and the end of all that it started. */
#include <signal.h>
#include <string.h>

#include "providers/e2b/envd.h"

/* Children first; what is started meanwhile belongs to one that is about to go. */
static const char kill_tree_script[] =
	"tree()\n"
	"{\n"
	"	for c in $(cat /proc/\"$1\"/task/*/children 2>/dev/null); do tree \"$c\"; done\n"
	"	echo \"$1\"\n"
	"}\n"
	"kill -KILL $(tree \"$1\") 2>/dev/null\n";

static int32_t nobody_listens(void *ctx, const void *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
	return ABX_OK;
}

/* As root: whose process it is makes no difference. */
static int32_t run(const struct e2b_envd *envd, struct e2b_aside *a, const char *const *argv)
{
	abx_auto(abx_buf) struct abx_buf msg = ABX_BUF_INIT(4096);
	abx_auto(abx_buf) struct abx_buf config = ABX_BUF_INIT(4096);
	struct e2b_rpc rpc = {.http = e2b_aside_http(a),
			      .call = e2b_aside_call(a),
			      .method = "process.Process/Start",
			      .user = "root",
			      .message = nobody_listens,
			      .body_fd = -1};

	e2b_pb_put_str(&config, 1, argv[0]);
	for (size_t i = 1; argv[i]; i++)
		e2b_pb_put_str(&config, 2, argv[i]);
	e2b_pb_put_str(&config, 4, "/");
	e2b_pb_put_bytes(&msg, 1, abx_buf_str(&config), config.len);
	e2b_pb_put_uint(&msg, 4, 0); /* no stdin */
	return e2b_rpc_stream(envd, &rpc, &msg);
}

int32_t e2b_kill_tree(const struct e2b_envd *envd, struct e2b_aside *a, uint32_t pid)
{
	char text[16];
	const char *const argv[] = {"/bin/sh", "-c", kill_tree_script, "sh", text, NULL};

	(void)snprintf(text, sizeof(text), "%u", pid);
	return run(envd, a, argv);
}

int32_t e2b_signal(const struct e2b_envd *envd, struct e2b_aside *a, uint32_t pid, int32_t signo)
{
	abx_auto(abx_buf) struct abx_buf msg = ABX_BUF_INIT(64);
	struct e2b_rpc rpc = {.http = e2b_aside_http(a),
			      .call = e2b_aside_call(a),
			      .method = "process.Process/SendSignal",
			      .body_fd = -1};
	char text[2][16];
	const char *const argv[] = {"/bin/sh", "-c", "kill -\"$0\" \"$1\"", text[0], text[1], NULL};
	int32_t r;

	/* There is no request for another one. */
	if (signo != SIGTERM && signo != SIGKILL) {
		(void)snprintf(text[0], sizeof(text[0]), "%d", signo);
		(void)snprintf(text[1], sizeof(text[1]), "%u", pid);
		return run(envd, a, argv);
	}
	e2b_rpc_put_pid(&msg, pid);
	e2b_pb_put_uint(&msg, 2, (uint64_t)signo);
	r = e2b_rpc_call(envd, &rpc, &msg);
	return r == ABX_ENOTFOUND ? ABX_OK : r;
}
