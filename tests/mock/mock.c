/* SPDX-License-Identifier: MIT */
/* The mock provider: its table and sessions. */
#include "mock.h"

#include <stdarg.h>
#include <string.h>

#define EXEC_CAPS                                                                              \
	(ABX_CAP_EXEC_STDIN | ABX_CAP_EXEC_SPLIT | ABX_CAP_EXEC_BINARY | ABX_CAP_EXEC_SIGNAL | \
	 ABX_CAP_EXEC_TREE_KILL)

#if defined(MOCK_FAR) && defined(MOCK_BARE)
#define MOCK_NAME "mockfarbare"
#define MOCK_CAPS ABX_CAP_EXEC_STDIN
#elif defined(MOCK_FAR) && defined(MOCK_NO_TAR)
#define MOCK_NAME "mockfarexec"
#define MOCK_CAPS EXEC_CAPS
#elif defined(MOCK_FAR) && defined(MOCK_NO_ZSTD)
#define MOCK_NAME "mockfarplain"
#define MOCK_CAPS EXEC_CAPS
#elif defined(MOCK_FAR)
#define MOCK_NAME "mockfar"
#define MOCK_CAPS (EXEC_CAPS | ABX_CAP_PUT_ZSTD)
#elif defined(MOCK_BARE) && MOCK_HAS_STDIN
#define MOCK_NAME "mockbare"
#define MOCK_CAPS (ABX_CAP_EXEC_STDIN | ABX_CAP_LOCAL)
#elif defined(MOCK_BARE)
#define MOCK_NAME "mockpoor"
#define MOCK_CAPS ABX_CAP_LOCAL
#else
#define MOCK_CAPS (EXEC_CAPS | ABX_CAP_LOCAL)
#define MOCK_NAME "mock"
#endif

const struct abx_host *mock_host;

int32_t mock_fail(struct abx_call *call, int32_t code, const char *fmt, ...)
{
	char text[512];
	struct abx_failure f = {ABX_INIT(struct abx_failure), .code = code, .retry_after_ms = -1,
				.text = text};
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return mock_host->fail(call, &f);
}

int32_t mock_fail_errno(struct abx_call *call, int errnum, const char *what)
{
	if (errnum < 0)
		errnum = -errnum;
	return mock_fail(call, errnum == ENOENT ? ABX_ENOTFOUND : ABX_EIO, "%s: %s", what,
			 strerror(errnum));
}

static int32_t init(const struct abx_host *host)
{
	mock_host = host;
	return ABX_OK;
}

static char *option(const struct abx_session_args *args, const char *name)
{
	for (uint32_t i = 0; i < args->n_options; i++)
		if (strcmp(args->options[i].key, name) == 0)
			return strdup(args->options[i].value);
	return NULL;
}

static void session_close(struct abx_session *s)
{
	free(s->state_dir);
	free(s->faults);
	free(s->token);
	free(s);
}

static int32_t session_open(struct abx_call *call, const struct abx_session_args *args,
			    struct abx_session **ret)
{
	struct abx_session *s = calloc(1, sizeof(*s));
	int32_t r;

	if (!s)
		return mock_fail(call, ABX_ENOMEM, "out of memory");
	s->state_dir = strdup(args->state_dir);
	s->faults = option(args, "faults");
	s->token = option(args, "token");
	r = mock_fault_before(s, call, "session_open");
	if (r < 0) {
		session_close(s);
		return r;
	}
	*ret = s;
	return ABX_OK;
}

#ifndef MOCK_BARE
static int32_t verify(struct abx_session *s, struct abx_call *call)
{
	const struct abx_kv cells[] = {{"account", "mock-account"}};
	int32_t r = mock_fault_before(s, call, "verify");

	mock_host->trace(call, "GET", "/account", 200, 10);
	if (r == ABX_OK && s->token && strcmp(s->token, "wrong-token") == 0)
		r = mock_fail(call, ABX_EAUTH, "the token %s was refused", s->token);
	return r == ABX_OK ? mock_host->emit_row(call, cells, 1) : r;
}

static int32_t doctor(struct abx_session *s, struct abx_call *call)
{
	const struct abx_kv cells[] = {
		{"check", "processes"}, {"status", "ok"}, {"detail", "can be started"}};
	int32_t r = mock_fault_before(s, call, "doctor");

	return r == ABX_OK ? mock_host->emit_row(call, cells, ABX_N_ELEMENTS(cells)) : r;
}

static int32_t set_inbound(struct abx_session *s, struct abx_call *call,
			   const struct abx_sandbox *sb ABX_UNUSED,
			   const struct abx_policy *req ABX_UNUSED)
{
	return mock_fault_before(s, call, "set_inbound");
}

static int32_t repair(struct abx_session *s, struct abx_call *call,
		      const struct abx_sandbox *sb ABX_UNUSED)
{
	return mock_fault_before(s, call, "repair");
}
#endif

static const struct abx_option opt_faults = {ABX_INIT(struct abx_option), .type = ABX_OPT_STRING,
					     .name = "faults", .env = "AGENTBOX_MOCK_FAULTS",
					     .help = "how to misbehave"};
static const struct abx_option opt_token = {
	ABX_INIT(struct abx_option),  .type = ABX_OPT_STRING,
	.flags = ABX_OPT_SECRET,      .name = "token",
	.env = "AGENTBOX_MOCK_TOKEN", .help = "a credential; \"wrong-token\" is refused"};
static const struct abx_option opt_idle = {ABX_INIT(struct abx_option),
					   .type = ABX_OPT_DURATION,
					   .flags = ABX_OPT_PER_BOX | ABX_OPT_WORKSPACE_OK,
					   .name = "idle",
					   .dflt = "5m",
					   .help = "kept with the box, of no effect"};
static const struct abx_option *const options[] = {&opt_faults, &opt_token, &opt_idle, NULL};

static const struct abx_cloud_backend backend = {
	ABX_BACKEND_PREFIX(MOCK_NAME, "1.0.0"),
	.summary = "Directories and processes of this machine, for tests",
	.caps = MOCK_CAPS | ABX_CAP_READ_ONLY,
	.options = options,
	.init = init,
	.session_open = session_open,
	.session_close = session_close,
#if defined(MOCK_BARE) && MOCK_HAS_STDIN
	.thread_model = ABX_THREADS_SERIAL,
#else
	.thread_model = ABX_THREADS_PARALLEL,
#endif
#ifndef MOCK_BARE
	.verify = verify,
	.doctor = doctor,
	.choices = mock_choices,
	.command = mock_command,
	.prepare = mock_prepare,
	.image_list = mock_image_list,
	.image_delete = mock_image_delete,
	.pause = mock_pause,
	.resume = mock_resume,
	.renew = mock_renew,
	.watch = mock_watch,
	.stats = mock_stats,
	.logs = mock_logs,
	.rates = mock_rates,
	.usage = mock_usage,
	.exec_signal = mock_exec_signal,
	.list_files = mock_list_files,
	.url = mock_url,
	.set_egress = mock_set_egress,
	.set_inbound = set_inbound,
	.repair = repair,
	.snapshot_create = mock_snapshot_create,
	.snapshot_list = mock_snapshot_list,
	.snapshot_exists = mock_snapshot_exists,
	.snapshot_delete = mock_snapshot_delete,
	.volume_ensure = mock_volume_ensure,
	.volume_list = mock_volume_list,
	.volume_delete = mock_volume_delete,
	.resource_list = mock_resource_list,
	.resource_delete = mock_resource_delete,
#ifndef MOCK_NO_TAR
	.put_tar = mock_put_tar,
	.get_tar = mock_get_tar,
#endif
#endif
	.provision = mock_provision,
	.get = mock_get,
	.list = mock_list,
	.start = mock_start,
	.stop = mock_stop,
	.destroy = mock_destroy,
	.exec = mock_exec,
	.upload = mock_upload,
	.download = mock_download,
};

ABX_PROVIDER_NOTE(MOCK_NAME, "1.0.0");

const struct abx_cloud_backend *agentbox_cloud_backend(void)
{
	return &backend;
}
