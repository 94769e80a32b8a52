/* SPDX-License-Identifier: MIT */
/* A plugin that misbehaves while it is loaded, in a way that a test writes into the file. */
#include <agentbox/cloud_backend.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tests look for this text in the file and change what stands behind the `=`. */
static const volatile char misbehaviour[32] = "misbehave=nothing-at-all";

static int is(const char *what)
{
	char text[sizeof(misbehaviour)];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = misbehaviour[i];
	return strcmp(text + strlen("misbehave="), what) == 0;
}

/* Proof that code of this file ran: a file in TMPDIR. */
static void leave_trace(void)
{
	const char *dir = getenv("TMPDIR");
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/fixture-ran", dir ? dir : "/tmp");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)close(fd);
}

__attribute__((constructor)) static void on_load(void)
{
	leave_trace();
	if (is("crash"))
		(void)raise(SIGSEGV);
	if (is("abort"))
		abort();
	if (is("exit"))
		exit(0);
	if (is("hang"))
		for (;;)
			(void)pause();
	if (is("noise"))
		(void)printf("{\"name\":\"somebody else\"}\n");
	if (is("close"))
		for (int fd = 0; fd < 256; fd++)
			(void)close(fd);
}

static int32_t init(const struct abx_host *host)
{
	if (is("initfail"))
		return ABX_EIO;
	if (is("initcrash"))
		(void)raise(SIGBUS);
	return host->struct_size >= sizeof(*host) ? ABX_OK : ABX_EINTERNAL;
}

static int32_t session_open(struct abx_call *call, const struct abx_session_args *args,
			    struct abx_session **ret)
{
	(void)call;
	(void)args;
	*ret = NULL;
	return ABX_OK;
}

static void session_close(struct abx_session *s)
{
	(void)s;
}

static int32_t provision(struct abx_session *s, struct abx_call *call,
			 const struct abx_provision *req)
{
	(void)s;
	(void)call;
	(void)req;
	return ABX_ENOTSUP;
}

static int32_t get(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	(void)s;
	(void)call;
	(void)sb;
	return ABX_ENOTFOUND;
}

static int32_t list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	(void)s;
	(void)call;
	(void)req;
	return ABX_OK;
}

static int32_t start(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_start_req *req)
{
	(void)req;
	return get(s, call, sb);
}

static int32_t stop(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_stop_req *req)
{
	(void)req;
	return get(s, call, sb);
}

static int32_t exec(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    const struct abx_exec *req, struct abx_exit *ret)
{
	(void)req;
	(void)ret;
	return get(s, call, sb);
}

static int32_t transfer(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const struct abx_transfer *req)
{
	(void)req;
	return get(s, call, sb);
}

static const struct abx_option bad_option = {ABX_INIT(struct abx_option), .type = 99,
					     .name = "odd"};
static const struct abx_option *const bad_options[] = {&bad_option, NULL};

static const struct abx_cloud_backend good = {
	ABX_BACKEND_PREFIX("fixture", "1.0.0"),
	.summary = "What tests make of it",
	.thread_model = ABX_THREADS_PARALLEL,
	.init = init,
	.session_open = session_open,
	.session_close = session_close,
	.provision = provision,
	.get = get,
	.list = list,
	.start = start,
	.stop = stop,
	.destroy = stop,
	.exec = exec,
	.upload = transfer,
	.download = transfer,
};

ABX_PROVIDER_NOTE("fixture", "1.0.0");

/* A host of a later minor has a longer table, and so may a plugin. */
struct longer {
	struct abx_cloud_backend table;
	void (*later[8])(void);
};

const struct abx_cloud_backend *agentbox_cloud_backend(void)
{
	static struct longer longer;
	struct abx_cloud_backend *bad = &longer.table;

	*bad = good;
	if (is("null"))
		return NULL;
	if (is("wild"))
		return (const struct abx_cloud_backend *)(uintptr_t)0x10;
	if (is("magic"))
		bad->magic = 7;
	if (is("size0"))
		bad->struct_size = 0;
	if (is("size8"))
		bad->struct_size = 8;
	if (is("sizehuge"))
		bad->struct_size = UINT32_MAX;
	if (is("sizelonger")) {
		bad->struct_size = (uint32_t)sizeof(longer);
		longer.later[0] = leave_trace;
	}
	if (is("othername"))
		bad->name = "other";
	if (is("otherversion"))
		bad->version = "9";
	if (is("otherminor"))
		bad->abi_minor = 9;
	if (is("noop"))
		bad->destroy = NULL;
	if (is("threads"))
		bad->thread_model = 1;
	if (is("nosummary"))
		bad->summary = NULL;
	if (is("hostcaps"))
		bad->host_caps_required = UINT64_C(1) << 40;
	if (is("option"))
		bad->options = bad_options;
	return bad;
}
