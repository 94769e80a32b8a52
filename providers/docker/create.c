/* SPDX-License-Identifier: MIT */
/* Making a box: a container, its first start, and its workspace. */
#include <string.h>

#include "abxsdk/text.h"
#include "providers/docker/docker.h"

#define NAME_MAX_BYTES 200
#define LABEL_WORKSPACE "agentbox.workspace" /* of an image: whose its workspace is */
#define ADOPT_WAIT_MS 100
#define ADOPT_ROUNDS 50

/*
 * The first process of a box: it does nothing, ends when it is told to or when its time ($1
 * seconds) is over, and then tells all others first, which the engine would only kill.  Two
 * processes remain: the engine's init, and this one.
 */
static const char first_process[] = "end() {\n"
				    "	trap '' TERM\n"
				    "	kill -TERM -1 2>/dev/null\n"
				    "	while :; do\n"
				    "		n=0\n"
				    "		for p in /proc/[0-9]*; do n=$((n + 1)); done\n"
				    "		[ $n -gt 2 ] || exit 0\n"
				    "		sleep 0.05\n"
				    "	done\n"
				    "}\n"
				    "trap end TERM\n"
				    "sleep \"$1\" & wait $!\n"
				    "end\n";
#define FOR_EVER "2147483647"

/* What cannot be done is refused by name, never ignored. */
static int32_t refuse(struct abx_call *call, const struct abx_provision *p)
{
	if (p->size && *p->size)
		return abx_fail(call, ABX_ENOTSUP, "use --cpu, --memory and --pids",
				"--size: an engine has no sizes with a name");
	if (p->location && *p->location)
		return abx_fail(call, ABX_ENOTSUP, "leave it out; DOCKER_HOST says where",
				"--location: a box is where its engine is");
	if (p->inbound && *p->inbound)
		return abx_fail(call, ABX_ENOTSUP, "leave it out",
				"who may connect to a box cannot be restricted: its ports are at "
				"loopback ports of the engine's machine");
	if (p->egress_deny && *p->egress_deny)
		return abx_fail(call, ABX_ENOTSUP, "--egress all or --egress none",
				"egress: single addresses cannot be refused");
	if (p->egress_allow && *p->egress_allow)
		return abx_fail(call, ABX_ENOTSUP, "--egress all or --egress none",
				"egress: single addresses cannot be allowed");
	if (p->n_ports > DOCKER_PORTS_MAX)
		return abx_fail(call, ABX_EINVAL, NULL, "--port: more than %d of them",
				DOCKER_PORTS_MAX);
	if (p->flags & ABX_PROV_PRIVATE_URLS)
		return abx_fail(call, ABX_ENOTSUP, "leave it out, or publish no port",
				"--private-urls: every user of this machine can connect to its "
				"loopback ports");
	if (p->flags)
		return abx_fail(call, ABX_ENOTSUP, NULL, "unknown flags %#x", p->flags);
	if (p->n_ports && p->egress_allow && !*p->egress_allow)
		return abx_fail(call, ABX_ENOTSUP, "leave out one of the two",
				"--port: a box without a network has no ports that could be "
				"reached");
	return ABX_OK;
}

/* A directory of this machine is in no engine elsewhere, nor in one in a virtual machine. */
static int32_t check_mounts(struct abx_session *s, struct abx_call *call,
			    const struct abx_provision *p)
{
	bool here = true;
	int32_t r = p->n_mounts ? docker_is_here(s, call, &here) : ABX_OK;

	if (r == ABX_OK && !here)
		r = abx_fail(call, ABX_ENOTSUP,
			     "copy it (agentbox cp), or keep it in a volume (--volume)",
			     "--mount: the Docker engine at %s is not on this machine, and has "
			     "none of its directories",
			     s->where);
	for (uint32_t i = 0; i < p->n_volumes && r == ABX_OK; i++)
		r = docker_volume_check(s, call, p->volumes[i].key);
	return r;
}

static int32_t choose_name(struct abx_call *call, const struct abx_provision *p,
			   char name[NAME_MAX_BYTES])
{
	char box[64];

	abx_plain_name(p->name, box, sizeof(box));
	if (!p->idempotency_key || !docker_is_word(p->idempotency_key) ||
	    strpbrk(p->idempotency_key, "/:@") || strlen(p->idempotency_key) > 100)
		return abx_fail(call, ABX_EINVAL, NULL, "idempotency key: not of [0-9a-z-]");
	(void)snprintf(name, NAME_MAX_BYTES, "agentbox-%s-%s", box, p->idempotency_key);
	return ABX_OK;
}

static void add_labels(cJSON *body, const struct abx_session *s, const struct abx_provision *p,
		       const char *name)
{
	abx_auto(abx_buf) struct abx_buf ports = ABX_BUF_INIT(8 * DOCKER_PORTS_MAX);
	cJSON *labels = cJSON_AddObjectToObject(body, "Labels");
	char seconds[32];

	for (uint32_t i = 0; i < p->n_labels; i++)
		(void)abx_json_add_str(labels, p->labels[i].key, p->labels[i].value);
	(void)abx_json_add_str(labels, DOCKER_LABEL_NAME, name);
	(void)snprintf(seconds, sizeof(seconds), "%lld", (long long)(p->timeout_ms + 999) / 1000);
	/* Also over what an image may have of it. */
	(void)abx_json_add_str(labels, DOCKER_LABEL_TIMEOUT, seconds);
	for (uint32_t i = 0; i < p->n_ports; i++)
		abx_buf_addf(&ports, "%s%u", i ? "," : "", p->ports[i]);
	(void)abx_json_add_str(labels, DOCKER_LABEL_PORTS, ports.len ? ports.data : "");
	(void)abx_json_add_str(labels, DOCKER_LABEL_INSIDE, s->start_dockerd ? "1" : "0");
	(void)abx_json_add_str(labels, DOCKER_LABEL_READ_ONLY, "0");
}

static void add_command(cJSON *body, const struct abx_provision *p)
{
	cJSON *words = cJSON_AddArrayToObject(body, "Entrypoint");
	char seconds[32] = FOR_EVER;

	if (p->timeout_ms > 0)
		(void)snprintf(seconds, sizeof(seconds), "%lld",
			       (long long)(p->timeout_ms + 999) / 1000);
	(void)cJSON_AddItemToArray(words, cJSON_CreateString("/bin/sh"));
	(void)cJSON_AddItemToArray(words, cJSON_CreateString("-c"));
	(void)cJSON_AddItemToArray(words, cJSON_CreateString(first_process));
	(void)cJSON_AddItemToArray(words, cJSON_CreateString("agentbox"));
	(void)cJSON_AddItemToArray(words, cJSON_CreateString(seconds));
	(void)cJSON_AddArrayToObject(body, "Cmd");
}

/* A port is only published when it is exposed too, and on no address but this. */
static void add_ports(cJSON *body, cJSON *host, const struct abx_provision *p)
{
	cJSON *exposed = cJSON_AddObjectToObject(body, "ExposedPorts");
	cJSON *bound = cJSON_AddObjectToObject(host, "PortBindings");

	for (uint32_t i = 0; i < p->n_ports; i++) {
		cJSON *one = cJSON_CreateObject(), *list;
		char key[16];

		(void)snprintf(key, sizeof(key), "%u/tcp", DOCKER_FIRST_PORT + i);
		(void)cJSON_AddObjectToObject(exposed, key);
		list = cJSON_AddArrayToObject(bound, key);
		(void)abx_json_add_str(one, "HostIp", "127.0.0.1");
		(void)abx_json_add_str(one, "HostPort", "");
		(void)cJSON_AddItemToArray(list, one);
	}
}

void docker_add_mount(cJSON *list, const char *type, const char *source, const char *target,
		      bool read_only)
{
	cJSON *one = cJSON_CreateObject();

	(void)abx_json_add_str(one, "Type", type);
	(void)abx_json_add_str(one, "Source", source);
	(void)abx_json_add_str(one, "Target", target);
	(void)abx_json_add_bool(one, "ReadOnly", read_only);
	(void)cJSON_AddItemToArray(list, one);
}

static void add_mounts(cJSON *host, const struct abx_provision *p)
{
	cJSON *list = cJSON_AddArrayToObject(host, "Mounts");

	for (uint32_t i = 0; i < p->n_mounts; i++)
		docker_add_mount(list, "bind", p->mounts[i]->source, p->mounts[i]->target,
				 p->mounts[i]->flags & ABX_MOUNT_READ_ONLY);
	for (uint32_t i = 0; i < p->n_volumes; i++)
		docker_add_mount(list, "volume", p->volumes[i].key, p->volumes[i].value,
				 /* read_only= */ false);
}

static void add_limits(cJSON *host, const struct abx_provision *p)
{
	char size[32];

	if (p->mem_bytes) {
		(void)abx_json_add_i64(host, "Memory", (int64_t)p->mem_bytes);
		(void)abx_json_add_i64(host, "MemorySwap", (int64_t)p->mem_bytes);
	}
	if (p->cpu_milli)
		(void)abx_json_add_i64(host, "NanoCpus", (int64_t)p->cpu_milli * 1000000);
	if (p->max_pids)
		(void)abx_json_add_i64(host, "PidsLimit", p->max_pids);
	if (p->disk_bytes) {
		(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)p->disk_bytes);
		(void)abx_json_add_str(cJSON_AddObjectToObject(host, "StorageOpt"), "size", size);
	}
}

static cJSON *describe(const struct abx_session *s, const struct abx_provision *p, const char *name,
		       const char *image)
{
	cJSON *body = cJSON_CreateObject(), *host = cJSON_AddObjectToObject(body, "HostConfig");
	char hostname[64];

	abx_plain_name(p->name, hostname, sizeof(hostname));
	(void)abx_json_add_str(body, "Image", image);
	(void)abx_json_add_str(body, "Hostname", hostname);
	(void)abx_json_add_str(body, "WorkingDir", DOCKER_WORKSPACE);
	(void)abx_json_add_str(body, "StopSignal", "SIGTERM");
	add_labels(body, s, p, name);
	add_command(body, p);
	(void)abx_json_add_bool(host, "Init", true);
	(void)abx_json_add_str(host, "CgroupnsMode", "private");
	(void)abx_json_add_str(cJSON_AddObjectToObject(host, "RestartPolicy"), "Name", "no");
	if (p->egress_allow && !*p->egress_allow)
		(void)abx_json_add_str(host, "NetworkMode", "none");
	add_ports(body, host, p);
	add_mounts(host, p);
	add_limits(host, p);
	if (s->start_dockerd)
		docker_inside_ask(host);
	return body;
}

/* The container of this attempt is there already: made when the answer was lost.  Its name is
 * taken a moment before it can be found. */
static int32_t adopt(struct abx_session *s, struct abx_call *call, const char *name, char id[80])
{
	const char *found = NULL;
	cJSON *doc = NULL;
	int32_t r = docker_inspect(s, call, name, &doc);

	for (int i = 0; r == ABX_ENOTFOUND && i < ADOPT_ROUNDS; i++) {
		if (abx_plugin_host->wait_ms(call, ADOPT_WAIT_MS) != ABX_OK)
			break;
		r = docker_inspect(s, call, name, &doc);
	}
	if (r == ABX_OK && (abx_json_str(doc, "Id", 79, &found) < 0 || !docker_is_word(found)))
		r = abx_fail(call, ABX_EPROTO, NULL, "Docker engine: a container without id");
	if (r == ABX_OK)
		(void)snprintf(id, 80, "%s", found);
	cJSON_Delete(doc);
	return r;
}

static int32_t refused(struct abx_call *call, const struct docker_answer *a, const char *image)
{
	if (strstr(a->message, "storage-opt") || strstr(a->message, "storage driver"))
		return abx_fail(call, ABX_ENOTSUP, "leave out --disk",
				"--disk: the engine's storage cannot limit a box: %.300s",
				a->message);
	if (a->status == 404)
		return abx_fail(call, ABX_EINVAL, NULL, "image %.200s: %.300s", image, a->message);
	return docker_expect(call, a, "make a container");
}

int32_t docker_create(struct abx_session *s, struct abx_call *call, const cJSON *body,
		      const char *name, const char *image, char id[80], bool *ret_missing)
{
	const struct docker_request q = {
		.method = "POST", .body = body, .idempotent = true, .outcome_matters = true};
	struct docker_answer a = {.status = 0};
	const char *made = NULL;
	int32_t r = docker_ask(s, call, &q, &a, "/containers/create?name=%s", name);

	*ret_missing = r == ABX_OK && a.status == 404 && strstr(a.message, "o such image");
	if (r == ABX_OK && a.status == 409 && strstr(a.message, "already in use"))
		r = adopt(s, call, name, id);
	else if (r != ABX_OK && docker_may_have_happened(r, &a))
		r = adopt(s, call, name, id) == ABX_OK
			    ? ABX_OK
			    : abx_fail_unknown(call, r, DOCKER_REMEDY_LOST,
					       "Docker engine at %s: %s", s->where, a.message);
	else if (r == ABX_OK && a.status != 201)
		r = *ret_missing ? ABX_ENOTFOUND : refused(call, &a, image);
	else if (r == ABX_OK && (abx_json_str(a.doc, "Id", 79, &made) < 0 || !docker_is_word(made)))
		r = abx_fail(call, ABX_EPROTO, NULL, "Docker engine: a container without id");
	else if (r == ABX_OK)
		(void)snprintf(id, 80, "%s", made);
	docker_answer_release(&a);
	return r;
}

static int32_t create(struct abx_session *s, struct abx_call *call, const struct abx_provision *p,
		      const char *name, const char *image, char id[80], bool *ret_missing)
{
	cJSON *body = describe(s, p, name, image);
	int32_t r = docker_create(s, call, body, name, image, id, ret_missing);

	cJSON_Delete(body);
	return r;
}

static int32_t emit_made(struct abx_call *call, const struct abx_provision *p, const char *name,
			 const char *id)
{
	const struct abx_sandbox sb = {
		ABX_INIT(struct abx_sandbox),
		.id = id,
		.name = name,
		.state = ABX_STATE_STOPPED,
		.labels = p->labels,
		.n_labels = p->n_labels,
	};

	return abx_plugin_host->emit_sandbox(call, &sb);
}

static int32_t quiet(void *io, int32_t stream, const void *data, size_t len)
{
	(void)io;
	(void)stream;
	(void)data;
	(void)len;
	return 0;
}

/* Is there nothing that the engine made for root and that is to be this user's? */
static bool is_given(const struct abx_provision *p, const cJSON *config, const char *user)
{
	const cJSON *labels = abx_json_get_part(config, "Labels");

	if (!*user || strcmp(user, "root") == 0 || strcmp(user, "0") == 0)
		return true;
	return !p->n_volumes && strcmp(abx_json_get_text(labels, LABEL_WORKSPACE), user) == 0;
}

/* Workspace and volumes are the user's whose commands run in the box. */
static int32_t give_to_user(struct abx_session *s, struct abx_call *call,
			    const struct abx_provision *p, const cJSON *box)
{
	const cJSON *config = abx_json_get_part(box, "Config");
	const char *user = abx_json_get_text(config, "User");
	const char **argv = calloc(p->n_volumes + 5, sizeof(*argv));
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox),
				       .id = abx_json_get_text(box, "Id")};
	const struct abx_exec chown = {ABX_INIT(struct abx_exec),
				       .argv = argv,
				       .user = "root",
				       .cwd = "/",
				       .stdin_fd = -1,
				       .control_fd = -1,
				       .output = quiet};
	struct abx_exit e = {ABX_INIT(struct abx_exit)};
	int32_t r = ABX_OK;
	size_t n = 0;

	if (!argv)
		return abx_fail_no_memory(call);
	argv[n++] = "chown";
	argv[n++] = "--";
	argv[n++] = user;
	argv[n++] = DOCKER_WORKSPACE;
	for (uint32_t i = 0; i < p->n_volumes; i++)
		argv[n++] = p->volumes[i].value;
	if (!is_given(p, config, user))
		r = docker_exec(s, call, &sb, &chown, &e);
	if (r == ABX_OK && e.code)
		r = abx_fail(call, ABX_EINVAL, "use an image whose user is in it",
			     "image: its user %.100s cannot be given the workspace", user);
	free(argv);
	return r;
}

static int32_t choose_image(const struct abx_session *s, struct abx_call *call,
			    const struct abx_provision *p, const char **ret)
{
	*ret = p->snapshot && *p->snapshot ? p->snapshot : p->image;
	if (*ret && **ret && !docker_is_word(*ret))
		return abx_fail(call, ABX_EINVAL,
				"the name of an image; agentbox prepare --from makes one of a "
				"root file system",
				"image %.200s: not a name of an image", *ret);
	if (!*ret || !**ret)
		*ret = s->image;
	return *ret && **ret ? ABX_OK
			     : abx_fail(call, ABX_EINVAL, "agentbox prepare --provider docker",
					"no image is named, and none is prepared");
}

int32_t docker_provision(struct abx_session *s, struct abx_call *call,
			 const struct abx_provision *p)
{
	const char *image = NULL;
	char name[NAME_MAX_BYTES], id[80] = "";
	bool missing = false;
	cJSON *box = NULL;
	int32_t r = refuse(call, p);
	int e;

	if (r == ABX_OK)
		r = choose_name(call, p, name);
	if (r == ABX_OK)
		r = check_mounts(s, call, p);
	if (r == ABX_OK)
		r = choose_image(s, call, p, &image);
	if (r == ABX_OK)
		r = create(s, call, p, name, image, id, &missing);
	if (missing) {
		r = docker_pull(s, call, image);
		missing = false;
		if (r == ABX_OK)
			r = create(s, call, p, name, image, id, &missing);
		if (missing)
			r = abx_fail(call, ABX_EINVAL, NULL, "image %.200s: there is none", image);
	}
	if (r == ABX_OK)
		r = emit_made(call, p, name, id);
	if (r == ABX_OK) {
		e = docker_env_write(s, id, p->env, p->n_env);
		if (e < 0)
			r = abx_fail_errno(call, -e, "box %.*s: keep its environment",
					   DOCKER_ID_SHOWN, id);
	}
	if (r == ABX_OK)
		r = docker_start_it(s, call, id, s->start_dockerd, &box);
	if (r == ABX_OK)
		r = give_to_user(s, call, p, box);
	if (r == ABX_OK && s->start_dockerd) {
		docker_inside_warn();
		r = docker_inside_start(s, call, id);
	}
	cJSON_Delete(box);
	return r;
}
