/* SPDX-License-Identifier: MIT */
/* A provider in use: opening, closing, and what is known about it. */
#include "core/host/cloud.h"

#include <string.h>

#include "config.h"
#include "core/host/run.h"
#include "core/util/mem.h"

#define CLOSE_LIMIT_MS 5000

static int32_t invoke_open(const struct abx_cloud_backend *t,
			   struct abx_session *session ABX_UNUSED, struct abx_call *call)
{
	return t->session_open(call, call->session_args, &call->session);
}

static int32_t invoke_close(const struct abx_cloud_backend *t, struct abx_session *session,
			    struct abx_call *call ABX_UNUSED)
{
	t->session_close(session);
	return ABX_OK;
}

static const char *env_any(const char *a, const char *b)
{
	const char *value = secure_getenv(a);

	return value && *value ? value : secure_getenv(b);
}

/* The certificates that connections to the service trust. */
static const char *choose_ca(struct abx_cloud *c, const struct abx_config *config)
{
	const char *own = config ? abx_config_get(config, "box.ca_file", NULL) : NULL;

	if (!own || !*own)
		return env_any("SSL_CERT_FILE", "CURL_CA_BUNDLE");
	c->ca_file = abx_xstrdup(own);
	return c->ca_file;
}

static int fill_args(struct abx_cloud *c, const struct abx_config *config, struct abx_err *err)
{
	int r = abx_home_dir(c->ctx->home, &c->state_dir, err, "providers/%s",
			     c->plugin->table.name);

	if (r < 0)
		return r;
	c->args = (struct abx_session_args){
		ABX_INIT(struct abx_session_args),
		.n_options = c->options.n_all,
		.options = c->options.all,
		.state_dir = c->state_dir,
		.user_agent = "agentbox/" PACKAGE_VERSION,
		.ca_file = choose_ca(c, config),
		.proxy = env_any("https_proxy", "HTTPS_PROXY"),
		.no_proxy = env_any("no_proxy", "NO_PROXY"),
	};
	return 0;
}

static int open_session(struct abx_cloud *c, struct abx_err *err)
{
	static const struct abx_op op = {"session_open", invoke_open, false, false, false};
	static const struct abx_call_opts opts = {.timeout_ms = 30000};
	const struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_call *call;
	int r = abx_run(c, &opts, &op, &args, &call, err);

	if (r < 0)
		return r;
	c->session = call->session;
	c->session_open = true;
	abx_call_unref(call);
	return 0;
}

static void close_session(struct abx_cloud *c)
{
	static const struct abx_op op = {"session_close", invoke_close, false, false, false};
	static const struct abx_call_opts opts = {.timeout_ms = CLOSE_LIMIT_MS, .cleanup = true};
	const struct abx_op_args args = ABX_OP_ARGS_INIT;
	struct abx_call *call;

	if (c->session_open && abx_run(c, &opts, &op, &args, &call, NULL) == 0)
		abx_call_unref(call);
	c->session_open = false;
}

/* A provider that never came back may still read its options. */
static void keep_for_ever(struct abx_cloud *c)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct abx_cloud *lost;

	(void)pthread_mutex_lock(&lock);
	c->next_lost = lost;
	lost = c;
	(void)pthread_mutex_unlock(&lock);
}

void abx_cloud_close(struct abx_cloud *c)
{
	if (!c)
		return;
	close_session(c);
	if (atomic_load(&c->lost)) {
		keep_for_ever(c);
		return;
	}
	abx_worker_pool_clear(&c->pool);
	abx_gate_close(&c->gate);
	abx_options_release(&c->options);
	free(c->state_dir);
	free(c->ca_file);
	free(c);
}

int abx_cloud_open(const char *provider, const struct abx_host_ctx *ctx, struct abx_config *config,
		   struct abx_cloud **ret, struct abx_err *err)
{
	const struct abx_gate no_gate = ABX_GATE_INIT;
	struct abx_provider_file file = {0};
	struct abx_cloud *c;
	int r = abx_registry_find(provider, &file, err);

	if (r < 0)
		return r;
	c = abx_xcalloc(1, sizeof(*c));
	c->ctx = ctx;
	c->gate = no_gate;
	abx_worker_pool_init(&c->pool);
	r = abx_plugin_get(&file, ctx->home, &c->plugin, err);
	abx_provider_file_release(&file);
	if (r == 0 && c->plugin->table.thread_model >= ABX_THREADS_SESSION &&
	    c->plugin->table.thread_model < ABX_THREADS_PARALLEL)
		r = abx_gate_open(&c->gate, err);
	if (r == 0)
		r = abx_options_resolve(&c->plugin->table, config, &c->options, err);
	if (r == 0)
		r = fill_args(c, config, err);
	if (r == 0)
		r = open_session(c, err);
	if (r < 0) {
		abx_cloud_close(c);
		return r;
	}
	*ret = c;
	return 0;
}

const char *abx_cloud_name(const struct abx_cloud *c)
{
	return c->plugin->table.name;
}

uint64_t abx_cloud_caps(const struct abx_cloud *c)
{
	return c->plugin->table.caps;
}

const struct abx_cloud_backend *abx_cloud_table(const struct abx_cloud *c)
{
	return &c->plugin->table;
}

const struct abx_kv *abx_cloud_box_options(const struct abx_cloud *c, uint32_t *ret_n)
{
	*ret_n = c->options.n_per_box;
	return c->options.per_box;
}

uint64_t abx_cloud_round_trips(const struct abx_cloud *c)
{
	return atomic_load(&c->round_trips);
}

struct abx_sandbox abx_cloud_sandbox(const struct abx_box *box)
{
	struct abx_sandbox s = {ABX_INIT(struct abx_sandbox)};

	s.id = box->sandbox_id;
	s.name = box->name;
	s.provider_data = box->provider_data;
	s.account = box->account;
	s.expires_at_ms = box->expires_at_ms;
	return s;
}
