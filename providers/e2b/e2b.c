/* SPDX-License-Identifier: MIT */
/* The provider `e2b`: its options, its sessions and its table. */
#include "providers/e2b/e2b.h"

#include <string.h>

#include "abxsdk/number.h"

#define E2B_VERSION "0.1.0"
#define DURATION_MAX_MS UINT64_C(86400000)

static int32_t e2b_init(const struct abx_host *host)
{
	abx_plugin_host = host;
	return ABX_OK;
}

static void forget(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

static void e2b_session_close(struct abx_session *s)
{
	if (!s)
		return;
	abx_http_close(s->http);
	e2b_hosts_free(s);
	e2b_kept_free(s);
	(void)pthread_mutex_destroy(&s->lock);
	forget(s->api_key);
	forget(s->access_token);
	free(s->state_dir);
	free(s->user_agent);
	free(s->ca_file);
	free(s->proxy);
	free(s->no_proxy);
	free(s->domain);
	free(s->api_url);
	free(s->sandbox_url);
	free(s->template_name);
	free(s->size);
	free(s->sandbox_id);
	free(s->cwd);
	free(s);
}

/* They were checked by type when they were read. */
static void take_flag(bool *to, const char *value)
{
	*to = strcmp(value, "true") == 0;
}

static void take_duration(int64_t *to, const char *value)
{
	uint64_t ms;

	if (abx_parse_u64(value, DURATION_MAX_MS, &ms))
		*to = (int64_t)ms;
}

static int take_option(struct abx_session *s, const struct abx_kv *o)
{
	const struct {
		const char *key;
		char **text;
		bool *flag;
		int64_t *ms;
	} options[] = {
		{"api_key", &s->api_key, NULL, NULL},
		{"access_token", &s->access_token, NULL, NULL},
		{"domain", &s->domain, NULL, NULL},
		{"api_url", &s->api_url, NULL, NULL},
		{"sandbox_url", &s->sandbox_url, NULL, NULL},
		{"template", &s->template_name, NULL, NULL},
		{"size", &s->size, NULL, NULL},
		{"sandbox_id", &s->sandbox_id, NULL, NULL},
		{"cwd", &s->cwd, NULL, NULL},
		{"auto_resume", NULL, &s->auto_resume, NULL},
		{"private_urls", NULL, &s->private_urls, NULL},
		{"debug", NULL, &s->debug, NULL},
		{"timeout", NULL, NULL, &s->timeout_ms},
		{"ready_timeout", NULL, NULL, &s->ready_ms},
		{"keep_alive", NULL, NULL, &s->keep_alive_ms},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(options); i++) {
		if (strcmp(o->key, options[i].key) != 0)
			continue;
		/* What is set to nothing is not set. */
		if (options[i].text && *o->value)
			return abx_take_text(options[i].text, o->value);
		if (options[i].flag)
			take_flag(options[i].flag, o->value);
		if (options[i].ms)
			take_duration(options[i].ms, o->value);
	}
	return 0;
}

/* Options of which only some words make sense. */
static int32_t take_word(struct abx_session *s, struct abx_call *call, const struct abx_kv *o)
{
	if (strcmp(o->key, "on_timeout") == 0) {
		s->kill_on_timeout = strcmp(o->value, "kill") == 0;
		if (!s->kill_on_timeout && strcmp(o->value, "pause") != 0)
			return abx_fail(call, ABX_EINVAL, "pause or kill",
					"e2b.on_timeout: '%.40s'", o->value);
	}
	if (strcmp(o->key, "on_destroy") == 0) {
		s->on_destroy = strcmp(o->value, "pause") == 0	 ? E2B_END_PAUSE
				: strcmp(o->value, "leave") == 0 ? E2B_END_LEAVE
								 : E2B_END_KILL;
		if (s->on_destroy == E2B_END_KILL && strcmp(o->value, "kill") != 0)
			return abx_fail(call, ABX_EINVAL, "kill, pause or leave",
					"e2b.on_destroy: '%.40s'", o->value);
	}
	return ABX_OK;
}

static char *joined(const char *before, const char *behind)
{
	size_t size = strlen(before) + strlen(behind) + 1;
	char *text = malloc(size);

	if (text)
		(void)snprintf(text, size, "%s%s", before, behind);
	return text;
}

/* A path is put behind an address: a slash at its end would stand twice. */
static void end_address(char *text)
{
	size_t len = text ? strlen(text) : 0;

	while (len && text[len - 1] == '/')
		text[--len] = '\0';
}

/* What follows from others, where it was not said. */
static int settle(struct abx_session *s)
{
	if (!s->domain && abx_take_text(&s->domain, E2B_DOMAIN) < 0)
		return -ENOMEM;
	if (!s->api_url)
		s->api_url = s->debug ? strdup("http://localhost:3000")
				      : joined("https://api.", s->domain);
	if (!s->cwd)
		s->cwd = strdup(E2B_WORKSPACE);
	end_address(s->api_url);
	end_address(s->sandbox_url);
	return s->api_url && s->cwd ? 0 : -ENOMEM;
}

static int take_all(struct abx_session *s, const struct abx_session_args *args)
{
	const struct {
		char **to;
		const char *text;
	} texts[] = {{&s->state_dir, args->state_dir},
		     {&s->user_agent, args->user_agent},
		     {&s->ca_file, args->ca_file},
		     {&s->proxy, args->proxy},
		     {&s->no_proxy, args->no_proxy}};
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(texts) && r == 0; i++)
		r = abx_take_text(texts[i].to, texts[i].text);
	for (uint32_t i = 0; i < args->n_options && r == 0; i++)
		r = take_option(s, &args->options[i]);
	return r < 0 ? r : settle(s);
}

static int32_t e2b_session_open(struct abx_call *call, const struct abx_session_args *args,
				struct abx_session **ret)
{
	struct abx_session *s = calloc(1, sizeof(*s));
	int32_t r = ABX_OK;

	if (!s)
		return abx_fail_no_memory(call);
	(void)pthread_mutex_init(&s->lock, NULL);
	s->keep_alive_ms = -1;
	if (take_all(s, args) < 0)
		r = abx_fail_no_memory(call);
	for (uint32_t i = 0; i < args->n_options && r == ABX_OK; i++)
		r = take_word(s, call, &args->options[i]);
	if (r == ABX_OK && s->auto_resume && s->kill_on_timeout)
		r = abx_fail(call, ABX_EINVAL, "e2b.on_timeout pause, or leave out e2b.auto_resume",
			     "e2b.auto_resume: what was killed is not resumed");
	if (r != ABX_OK)
		e2b_session_close(s);
	else
		*ret = s;
	return r;
}

#define OPTION(id_, name_, type_, flags_, env_, dflt_, help_)                       \
	static const struct abx_option option_##id_ = {ABX_INIT(struct abx_option), \
						       .type = (type_),             \
						       .flags = (flags_),           \
						       .name = (name_),             \
						       .env = (env_),               \
						       .dflt = (dflt_),             \
						       .help = (help_)}

OPTION(api_key, "api_key", ABX_OPT_STRING, ABX_OPT_SECRET, "E2B_API_KEY", NULL,
       "key of the team whose sandboxes they are (https://e2b.dev/dashboard)");
OPTION(access_token, "access_token", ABX_OPT_STRING, ABX_OPT_SECRET, "E2B_ACCESS_TOKEN", NULL,
       "a user's token, where there is no key");
OPTION(domain, "domain", ABX_OPT_STRING, 0, "E2B_DOMAIN", E2B_DOMAIN,
       "of the cloud, or of a cluster of your own");
OPTION(api_url, "api_url", ABX_OPT_STRING, 0, "E2B_API_URL", NULL,
       "address of the control plane (default: https://api.DOMAIN)");
OPTION(sandbox_url, "sandbox_url", ABX_OPT_STRING, 0, "E2B_SANDBOX_URL", NULL,
       "address of all sandboxes, which are told apart by headers (default: one for each)");
OPTION(template, "template", ABX_OPT_STRING, ABX_OPT_PER_BOX | ABX_OPT_WORKSPACE_OK, "E2B_TEMPLATE",
       NULL, "template of boxes that ask for none (default: what prepare made)");
OPTION(size, "size", ABX_OPT_STRING, 0, "AGENTBOX_E2B_SIZE", NULL,
       "CPU-MEMORY of templates that prepare builds: 2-4 is 2 vCPUs and 4 GiB (default: what the "
       "service gives)");
OPTION(packages, "packages", ABX_OPT_LIST, 0, "AGENTBOX_E2B_PACKAGES", NULL,
       "Debian packages of templates that prepare builds (default: what an agent needs)");
OPTION(timeout, "timeout", ABX_OPT_DURATION, ABX_OPT_PER_BOX | ABX_OPT_WORKSPACE_OK,
       "AGENTBOX_E2B_TIMEOUT", "45m", "how long a box lives without being used");
OPTION(on_timeout, "on_timeout", ABX_OPT_STRING, ABX_OPT_PER_BOX, "AGENTBOX_E2B_ON_TIMEOUT",
       "pause", "what happens then: pause or kill");
OPTION(auto_resume, "auto_resume", ABX_OPT_BOOL, ABX_OPT_PER_BOX, "AGENTBOX_E2B_AUTO_RESUME",
       "false", "a paused box is resumed by whoever connects to one of its ports");
OPTION(on_destroy, "on_destroy", ABX_OPT_STRING, 0, "AGENTBOX_E2B_ON_DESTROY", "kill",
       "what destroy does with the sandbox: kill, pause or leave");
OPTION(ready_timeout, "ready_timeout", ABX_OPT_DURATION, 0, "AGENTBOX_E2B_READY_TIMEOUT", "60s",
       "how long a new sandbox may take until commands run in it; 0: not waited for");
OPTION(keep_alive, "keep_alive", ABX_OPT_DURATION, 0, "AGENTBOX_E2B_KEEP_ALIVE", NULL,
       "use of a box makes it live so long from then on (default: as long as it was made to "
       "live); 0: it ends when its time is over");
OPTION(cwd, "cwd", ABX_OPT_STRING, 0, "AGENTBOX_E2B_CWD", NULL,
       "directory of commands that name none (default: " E2B_WORKSPACE ")");
OPTION(private_urls, "private_urls", ABX_OPT_BOOL, ABX_OPT_PER_BOX, "AGENTBOX_E2B_PRIVATE_URLS",
       "false", "ports of boxes are reached with a header only, which url shows");
OPTION(sandbox_id, "sandbox_id", ABX_OPT_STRING, ABX_OPT_PER_BOX, "AGENTBOX_E2B_SANDBOX_ID", NULL,
       "use this sandbox, which is there already; it is never killed or paused by agentbox");
OPTION(debug, "debug", ABX_OPT_BOOL, 0, "E2B_DEBUG", "false",
       "control plane at localhost:3000 and envd at localhost:49983");

static const struct abx_option *const options[] = {&option_api_key,
						   &option_access_token,
						   &option_domain,
						   &option_api_url,
						   &option_sandbox_url,
						   &option_template,
						   &option_size,
						   &option_timeout,
						   &option_on_timeout,
						   &option_auto_resume,
						   &option_on_destroy,
						   &option_ready_timeout,
						   &option_keep_alive,
						   &option_cwd,
						   &option_private_urls,
						   &option_sandbox_id,
						   &option_packages,
						   &option_debug,
						   NULL};

static const struct abx_cloud_backend backend = {
	ABX_BACKEND_PREFIX("e2b", E2B_VERSION),
	.summary = "Boxes as sandboxes of E2B",
	.homepage = "https://e2b.dev",
	.caps = ABX_CAP_EXEC_STDIN | ABX_CAP_EXEC_SPLIT | ABX_CAP_EXEC_BINARY |
		ABX_CAP_EXEC_SIGNAL | ABX_CAP_EXEC_REATTACH | ABX_CAP_EXEC_PTY |
		ABX_CAP_MEMORY_PAUSE | ABX_CAP_NEEDS_BASE | ABX_CAP_BASE_ASKED |
		ABX_CAP_TIMEOUT_IDLE | ABX_CAP_READY,
	.thread_model = ABX_THREADS_PARALLEL,
	.options = options,
	.init = e2b_init,
	.session_open = e2b_session_open,
	.session_close = e2b_session_close,
	.verify = e2b_verify,
	.doctor = e2b_doctor,
	.prepare = e2b_prepare,
	.image_list = e2b_image_list,
	.image_delete = e2b_image_delete,
	.provision = e2b_provision,
	.get = e2b_get,
	.list = e2b_list,
	.start = e2b_start,
	.stop = e2b_stop,
	.pause = e2b_stop,
	.resume = e2b_start,
	.destroy = e2b_destroy,
	.renew = e2b_renew,
	.url = e2b_url,
	.set_egress = e2b_set_egress,
	.rates = e2b_rates,
	.usage = e2b_usage,
	.stats = e2b_stats,
	.exec = e2b_exec,
	.exec_attach = e2b_exec_attach,
	.exec_signal = e2b_exec_signal,
	.upload = e2b_upload,
	.download = e2b_download,
	.get_tar = e2b_get_tar,
	.snapshot_create = e2b_snapshot_create,
	.snapshot_list = e2b_snapshot_list,
	.snapshot_exists = e2b_snapshot_exists,
	.snapshot_delete = e2b_snapshot_delete,
};

ABX_PROVIDER_NOTE("e2b", E2B_VERSION);

const struct abx_cloud_backend *agentbox_cloud_backend(void)
{
	return &backend;
}
