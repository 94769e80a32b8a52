/* SPDX-License-Identifier: MIT */
/* The provider `docker`: boxes as containers of a Docker engine. */
#include "providers/docker/docker.h"

#include <string.h>
#include <sys/utsname.h>

#include "abxsdk/number.h"

#define DOCKER_VERSION "0.1.0"
#define TIMEOUT_MAX_MS UINT64_C(86400000)

static int32_t docker_init(const struct abx_host *host)
{
	abx_plugin_host = host;
	return ABX_OK;
}

static void docker_session_close(struct abx_session *s)
{
	if (!s)
		return;
	abx_http_close(s->http);
	(void)pthread_mutex_destroy(&s->lock);
	free(s->state_dir);
	free(s->user_agent);
	free(s->ca_file);
	free(s->proxy);
	free(s->no_proxy);
	free(s->host);
	free(s->context);
	free(s->cert_path);
	free(s->tls_verify);
	free(s->image);
	free(s);
}

static int take_option(struct abx_session *s, const struct abx_kv *o)
{
	const struct {
		const char *key;
		char **to;
	} options[] = {{"host", &s->host},
		       {"context", &s->context},
		       {"cert_path", &s->cert_path},
		       {"tls_verify", &s->tls_verify},
		       {"image", &s->image}};
	uint64_t ms;

	/* It was checked when it was read. */
	if (strcmp(o->key, "timeout") == 0 && abx_parse_u64(o->value, TIMEOUT_MAX_MS, &ms))
		s->timeout_ms = (int64_t)ms;
	if (strcmp(o->key, "start_dockerd") == 0)
		s->start_dockerd = strcmp(o->value, "true") == 0;
	for (size_t i = 0; i < ABX_N_ELEMENTS(options); i++)
		if (strcmp(o->key, options[i].key) == 0)
			return abx_take_text(options[i].to, o->value);
	return 0;
}

static int32_t docker_session_open(struct abx_call *call, const struct abx_session_args *args,
				   struct abx_session **ret)
{
	struct abx_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return abx_fail_no_memory(call);
	(void)pthread_mutex_init(&s->lock, NULL);
	r = abx_take_text(&s->state_dir, args->state_dir);
	if (r == 0)
		r = abx_take_text(&s->user_agent, args->user_agent);
	if (r == 0)
		r = abx_take_text(&s->ca_file, args->ca_file);
	if (r == 0)
		r = abx_take_text(&s->proxy, args->proxy);
	if (r == 0)
		r = abx_take_text(&s->no_proxy, args->no_proxy);
	for (uint32_t i = 0; i < args->n_options && r == 0; i++)
		r = take_option(s, &args->options[i]);
	if (r < 0) {
		docker_session_close(s);
		return abx_fail_no_memory(call);
	}
	*ret = s;
	return ABX_OK;
}

/* What tells one engine from another, whatever address it is reached at. */
static int32_t engine(struct abx_session *s, struct abx_call *call, cJSON **ret)
{
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	int32_t r = docker_ask(s, call, &q, &a, "/info");

	if (r == ABX_OK)
		r = docker_expect(call, &a, "Docker engine");
	if (r == ABX_OK)
		*ret = abx_steal_ptr(&a.doc);
	docker_answer_release(&a);
	return r;
}

int32_t docker_verify(struct abx_session *s, struct abx_call *call)
{
	const char *id = NULL;
	cJSON *doc = NULL;
	int32_t r = engine(s, call, &doc);

	if (r == ABX_OK) {
		struct abx_kv row = {"account", s->where};

		if (abx_json_str(doc, "ID", 200, &id) == 0 && id && *id)
			row.value = id;
		r = abx_plugin_host->emit_row(call, &row, 1);
	}
	cJSON_Delete(doc);
	return r;
}

int32_t docker_is_here(struct abx_session *s, struct abx_call *call, bool *ret)
{
	struct utsname u;
	cJSON *doc = NULL;
	int32_t r = engine(s, call, &doc);

	/* A socket may lead anywhere; a container with the engine's socket has its own name. */
	if (r == ABX_OK)
		*ret = uname(&u) == 0 && strcmp(u.nodename, abx_json_get_text(doc, "Name")) == 0 &&
		       strcmp(u.release, abx_json_get_text(doc, "KernelVersion")) == 0;
	cJSON_Delete(doc);
	return r;
}

static int32_t row(struct abx_call *call, const char *check, const char *status, const char *detail,
		   const char *remedy)
{
	const struct abx_kv cells[] = {
		{"check", check}, {"status", status}, {"detail", detail}, {"remedy", remedy}};

	return abx_plugin_host->emit_row(call, cells, ABX_N_ELEMENTS(cells));
}

int32_t docker_doctor(struct abx_session *s, struct abx_call *call)
{
	const char *version = NULL, *storage = NULL, *system = NULL;
	cJSON *doc = NULL;
	char text[700];
	int32_t r;

	/* Nothing that was true once is believed. */
	docker_known_forget(s);
	r = engine(s, call, &doc);
	if (r != ABX_OK)
		return r;
	(void)abx_json_str(doc, "ServerVersion", 100, &version);
	(void)abx_json_str(doc, "Driver", 100, &storage);
	(void)abx_json_str(doc, "OperatingSystem", 200, &system);
	(void)snprintf(text, sizeof(text), "%s at %s, API 1.%d, storage %s, on %s",
		       version ? version : "?", s->where, atomic_load(&s->api_minor),
		       storage ? storage : "?", system ? system : "?");
	r = row(call, "engine", "ok", text, "");
	if (r == ABX_OK)
		r = row(call, "network", "warn",
			"boxes with a network reach the machine that the engine runs on, at the "
			"address of their gateway",
			"--egress none, or a firewall on that machine");
	cJSON_Delete(doc);
	return r;
}

static const struct abx_option option_host = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.name = "host",
	.env = "DOCKER_HOST",
	.help = "where the engine is: unix:///PATH or tcp://HOST:PORT (default: the docker "
		"program's context, else its usual places)",
};

static const struct abx_option option_context = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.name = "context",
	.env = "DOCKER_CONTEXT",
	.help = "a context of the docker program, unless docker.host is given",
};

static const struct abx_option option_cert_path = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.name = "cert_path",
	.env = "DOCKER_CERT_PATH",
	.help = "directory of ca.pem, cert.pem and key.pem for TLS",
};

static const struct abx_option option_tls_verify = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.name = "tls_verify",
	.env = "DOCKER_TLS_VERIFY",
	.help = "not empty: TLS to a tcp:// engine",
};

static const struct abx_option option_image = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.name = "image",
	.env = "AGENTBOX_DOCKER_IMAGE",
	.help = "image of boxes that ask for none (default: what prepare made, or makes when it is "
		"first needed)",
};

static const struct abx_option option_packages = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_LIST,
	.name = "packages",
	.env = "AGENTBOX_DOCKER_PACKAGES",
	.help = "Debian packages of images that prepare makes (default: what an agent needs)",
};

static const struct abx_option option_start_dockerd = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_BOOL,
	.name = "start_dockerd",
	.env = "AGENTBOX_DOCKER_START_DOCKERD",
	.help = "is a Docker engine started in new boxes; root in them can then get at the machine "
		"that their own engine runs on",
};

static const struct abx_option option_compose = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.name = "compose",
	.env = "AGENTBOX_DOCKER_COMPOSE",
	.help = "the plugin docker-compose for images that prepare makes: /PATH@sha256:HASH",
};

static const struct abx_option option_buildx = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.name = "buildx",
	.env = "AGENTBOX_DOCKER_BUILDX",
	.help = "the plugin docker-buildx for images that prepare makes: /PATH@sha256:HASH",
};

static const struct abx_option option_timeout = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_DURATION,
	.name = "timeout",
	.env = "AGENTBOX_DOCKER_TIMEOUT",
	.help = "how long the engine may take to answer (default: 1m, and for what takes long as "
		"long as the operation may)",
};

static const struct abx_option *const options[] = {&option_host,
						   &option_context,
						   &option_cert_path,
						   &option_tls_verify,
						   &option_image,
						   &option_packages,
						   &option_timeout,
						   &option_start_dockerd,
						   &option_compose,
						   &option_buildx,
						   NULL};

static const struct abx_cloud_backend backend = {
	ABX_BACKEND_PREFIX("docker", DOCKER_VERSION),
	.summary = "Boxes as containers of a Docker engine",
	.caps = ABX_CAP_EXEC_STDIN | ABX_CAP_EXEC_SPLIT | ABX_CAP_EXEC_BINARY |
		ABX_CAP_MEMORY_PAUSE | ABX_CAP_NEEDS_BASE | ABX_CAP_HOST_REACHED |
		ABX_CAP_READ_ONLY | ABX_CAP_READY,
	.thread_model = ABX_THREADS_PARALLEL,
	.options = options,
	.init = docker_init,
	.session_open = docker_session_open,
	.session_close = docker_session_close,
	.verify = docker_verify,
	.doctor = docker_doctor,
	.prepare = docker_prepare,
	.image_list = docker_image_list,
	.image_delete = docker_image_delete,
	.provision = docker_provision,
	.get = docker_get,
	.list = docker_list,
	.start = docker_start,
	.stop = docker_stop,
	.pause = docker_pause,
	.resume = docker_resume,
	.destroy = docker_destroy,
	.exec = docker_exec,
	.upload = docker_upload,
	.download = docker_download,
	.put_tar = docker_put_tar,
	.get_tar = docker_get_tar,
	.url = docker_url,
	.stats = docker_stats,
	.snapshot_create = docker_snapshot_create,
	.snapshot_list = docker_snapshot_list,
	.snapshot_exists = docker_snapshot_exists,
	.snapshot_delete = docker_snapshot_delete,
	.volume_ensure = docker_volume_ensure,
	.volume_list = docker_volume_list,
	.volume_delete = docker_volume_delete,
	.watch = docker_watch,
};

ABX_PROVIDER_NOTE("docker", DOCKER_VERSION);

const struct abx_cloud_backend *agentbox_cloud_backend(void)
{
	return &backend;
}
