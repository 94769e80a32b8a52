/* SPDX-License-Identifier: MIT */
/*
 * Images that boxes boot from: what the host's context makes of a root.
 *
 * That root is an image that the engine has or gets, or is made on this machine and imported.
 * Everything on the way has the label of the attempt: the root by its import, what the builder
 * makes of it by the Dockerfile.  What the host asked to be called so has all labels, so nothing
 * that was half made is ever taken for it.
 */
#include <string.h>

#include "abxsdk/fs.h"
#include "abxsdk/suite.h"
#include "abxsdk/tar.h"
#include "providers/docker/docker.h"
#include "providers/docker/lines.h"

#define QUERY_MAX_BYTES ((size_t)1 << 20)
#define REPOSITORY "agentbox"
/* How the context says that nothing can be installed in the root. */
#define CODE_AS_IT_IS 43

struct making {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_prepare *p;
	const char *install, *attempt; /* labels */
	char root[320];		       /* what it is put on */
	char id[80];		       /* what came of it */
	bool imported;
};

/* Labels by which it is found again, quoted in a way that values cannot leave. */
static int32_t take_labels(struct making *m)
{
	const struct abx_prepare *p = m->p;

	m->install = m->attempt = "";
	for (uint32_t i = 0; i < p->n_labels; i++) {
		const struct abx_kv *kv = &p->labels[i];

		if (strpbrk(kv->key, "\"\\$= \r\n") || strpbrk(kv->value, "\"\\$\r\n"))
			return abx_fail(m->call, ABX_EINVAL, NULL, "label %.100s: not plain text",
					kv->key);
		if (strcmp(kv->key, "agentbox.install") == 0)
			m->install = kv->value;
		if (strcmp(kv->key, "agentbox.attempt") == 0)
			m->attempt = kv->value;
	}
	return ABX_OK;
}

static int32_t refuse(const struct making *m)
{
	const struct abx_prepare *p = m->p;
	const char *what = p->n_steps			 ? "build steps"
			   : p->script && *p->script	 ? "scripts"
			   : p->size && *p->size	 ? "sizes"
			   : p->location && *p->location ? "locations"
							 : NULL;

	if (what)
		return abx_fail(m->call, ABX_ENOTSUP, "docker build, and create --image NAME",
				"prepare: %s: not supported", what);
	if (p->from_fd < 0 && !(p->from && (abx_suite_is(p->from) || docker_is_word(p->from))))
		return abx_fail(m->call, ABX_EINVAL,
				"debian:SUITE, ubuntu:SUITE, the name of an image, or a tar file",
				"prepare: %.200s: not something to prepare from",
				p->from ? p->from : "(nothing)");
	return ABX_OK;
}

static const char *arg(const struct abx_prepare *p, const char *key)
{
	for (uint32_t i = 0; i < p->n_args; i++)
		if (strcmp(p->args[i].key, key) == 0)
			return p->args[i].value;
	return NULL;
}

static int32_t import(struct making *m, int fd)
{
	const struct abx_kv labels[] = {{"agentbox", "true"},
					{"agentbox.install", m->install},
					{"agentbox.attempt", m->attempt}};
	int32_t r;

	(void)snprintf(m->root, sizeof(m->root), REPOSITORY "/root:%.100s",
		       *m->attempt ? m->attempt : "latest");
	r = docker_import(m->s, m->call, fd, m->root, labels, ABX_N_ELEMENTS(labels), "", m->id);
	m->imported = r == ABX_OK;
	return r;
}

static int32_t need_image(struct making *m, const char *image)
{
	(void)snprintf(m->root, sizeof(m->root), "%s", image);
	return docker_image_there(m->s, m->call, image) ? ABX_OK
							: docker_pull(m->s, m->call, image);
}

/* A suite is made here when this machine has what it takes: its archive is signed, and it may
 * be that only a mirror of it is reached. */
static int32_t find_root(struct making *m)
{
	const struct abx_prepare *p = m->p;
	abx_autoclose int made = -1;
	int32_t r;

	if (p->from_fd >= 0)
		return import(m, p->from_fd);
	if (!abx_suite_is(p->from))
		return need_image(m, p->from);
	(void)abx_plugin_host->progress(m->call, 0, 0, p->from);
	r = docker_bootstrap(m->s, m->call, p->from, arg(p, "PACKAGES"), &made);
	if (r == ABX_OK)
		return import(m, made);
	return r == ABX_EBROKEN ? need_image(m, p->from) : r;
}

/* Any name, as one that the engine takes; tags distinguish names, not images.  The image that all
 * boxes boot from has one of its own, lest another install takes it away. */
static void tag_for(const struct making *m, char *out, size_t size)
{
	const char *name = m->p->name ? m->p->name : "default";
	size_t n;

	if (strcmp(name, "default") == 0 && *m->attempt) {
		(void)snprintf(out, size, REPOSITORY "/base:%s", m->attempt);
		return;
	}
	n = (size_t)snprintf(out, size, REPOSITORY "/prepared:");
	for (; *name && n + 1 < size; name++)
		out[n++] = strchr("abcdefghijklmnopqrstuvwxyz0123456789._-", *name) ? *name : '-';
	out[n] = '\0';
}

static void add_json(struct abx_buf *query, const char *key, cJSON *doc)
{
	char *text = cJSON_PrintUnformatted(doc);

	abx_buf_addf(query, "&%s=", key);
	abx_http_escape(query, text ? text : "{}");
	cJSON_free(text);
	cJSON_Delete(doc);
}

/* A proxy at this machine's loopback is the builder's too only in this machine's network. */
static bool needs_host_network(const struct making *m)
{
	static const char *const loopback[] = {"127.", "localhost", "[::1]"};

	if (m->s->where[0] != '/')
		return false;
	for (uint32_t i = 0; i < m->p->n_args; i++) {
		const char *at = strstr(m->p->args[i].value, "://");

		if (!strcasestr(m->p->args[i].key, "_proxy") ||
		    !strncasecmp(m->p->args[i].key, "no_", 3))
			continue;
		at = at ? at + 3 : m->p->args[i].value;
		at = strrchr(at, '@') ? strrchr(at, '@') + 1 : at;
		for (size_t k = 0; k < ABX_N_ELEMENTS(loopback); k++)
			if (strncmp(at, loopback[k], strlen(loopback[k])) == 0)
				return true;
	}
	return false;
}

static void describe(const struct making *m, const char *ref, struct abx_buf *query)
{
	const struct abx_prepare *p = m->p;
	cJSON *args = cJSON_CreateObject(), *labels = cJSON_CreateObject();

	/* Podman may give what is imported another name than was asked for. */
	(void)abx_json_add_str(args, "BASE", m->imported ? m->id : m->root);
	(void)abx_json_add_str(args, "AGENTBOX_INSTALL", m->install);
	(void)abx_json_add_str(args, "AGENTBOX_ATTEMPT", m->attempt);
	for (uint32_t i = 0; i < p->n_args; i++)
		(void)abx_json_add_str(args, p->args[i].key, p->args[i].value);
	for (uint32_t i = 0; i < p->n_labels; i++)
		(void)abx_json_add_str(labels, p->labels[i].key, p->labels[i].value);
	abx_buf_addf(query, "/build?t=%s&rm=1&forcerm=1&nocache=1", ref);
	add_json(query, "buildargs", args);
	add_json(query, "labels", labels);
	if (needs_host_network(m))
		abx_buf_adds(query, "&networkmode=host");
}

/* Which step, and what it said last. */
static int32_t judge(struct making *m, struct docker_lines *l)
{
	char what[sizeof(l->step) + 20];
	int32_t r = docker_lines_judge(l, "build");

	(void)snprintf(what, sizeof(what), "build: %s", l->step);
	if (r == ABX_EINVAL && l->code)
		return abx_fail(m->call, ABX_EINVAL,
				"agentbox prepare -v shows all that the build says",
				"%s: exit code %lld: %s", what, (long long)l->code,
				*l->out ? l->out : "nothing was said");
	if (r == ABX_EINVAL)
		return abx_fail(m->call, ABX_EINVAL, NULL, "%s: %s", what, l->error);
	if (r == ABX_OK && !*l->id)
		return abx_fail(m->call, ABX_ENETWORK, NULL,
				"%s: the engine broke off before the image was made", what);
	return r;
}

/* *ret_code: with which the build's own programs ended. */
static int32_t build(struct making *m, int context_fd, int64_t *ret_code)
{
	struct docker_lines l = DOCKER_LINES_INIT(m->call);
	const struct docker_request q = {.method = "POST",
					 .sink = docker_lines_feed,
					 .sink_ctx = &l,
					 .body_fd = context_fd,
					 .content_type = "application/x-tar",
					 .slow = true,
					 .outcome_matters = true};
	abx_auto(abx_buf) struct abx_buf query = ABX_BUF_INIT(QUERY_MAX_BYTES);
	struct docker_answer a = {.status = 0};
	char ref[160];
	int32_t r;

	tag_for(m, ref, sizeof(ref));
	describe(m, ref, &query);
	if (query.failed)
		return abx_fail_no_memory(m->call);
	r = docker_ask(m->s, m->call, &q, &a, "%s", query.data);
	if (r == ABX_OK)
		r = docker_expect(m->call, &a, "build");
	if (r == ABX_OK)
		r = judge(m, &l);
	*ret_code = l.code;
	if (r == ABX_OK)
		(void)snprintf(m->id, sizeof(m->id), "%s", l.id);
	docker_lines_release(&l);
	docker_answer_release(&a);
	return r;
}

/* The root itself, with the labels and the name of what was asked for. */
static int32_t build_nothing(struct making *m)
{
	static const char text[] = "ARG BASE\nFROM ${BASE}\n"
				   "ARG AGENTBOX_INSTALL\nARG AGENTBOX_ATTEMPT\nARG PACKAGES\n";
	const struct abx_tar_head head = {
		.type = ABX_TAR_FILE, .name = "Dockerfile", .mode = 0644, .size = sizeof(text) - 1};
	static const char zeros[3 * ABX_TAR_BLOCK];
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);
	abx_autoclose int fd = -1;
	int64_t code;
	int32_t r = docker_scratch(m->s, m->call, &fd);
	int e;

	if (r != ABX_OK)
		return r;
	abx_tar_head_add(&b, &head);
	abx_buf_add(&b, text, sizeof(text) - 1);
	abx_buf_add(&b, zeros, abx_tar_padding(sizeof(text) - 1) + 2 * ABX_TAR_BLOCK);
	e = b.failed ? -ENOMEM : abx_fs_write_all(fd, b.data, b.len);
	if (e == 0 && lseek(fd, 0, SEEK_SET) < 0)
		e = -errno;
	return e < 0 ? abx_fail_errno(m->call, -e, "build") : build(m, fd, &code);
}

static void untag(struct making *m)
{
	const struct docker_request q = {.method = "DELETE", .idempotent = true, .slow = true};
	struct docker_answer a = {.status = 0};

	(void)docker_ask(m->s, m->call, &q, &a, "/images/%s", m->root);
	docker_answer_release(&a);
}

static bool has_name(const cJSON *image)
{
	const cJSON *name =
		cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(image, "RepoTags"), 0);

	return cJSON_IsString(name) && strncmp(name->valuestring, "<none>", 6) != 0;
}

static int32_t drop_nameless(struct abx_session *s, struct abx_call *call, const cJSON *item)
{
	const struct docker_request q = {.method = "DELETE"};
	const char *id = abx_json_get_text(item, "Id");
	struct docker_answer a = {.status = 0};

	if (!has_name(item) && docker_is_word(id))
		(void)docker_ask(s, call, &q, &a, "/images/%s", id);
	docker_answer_release(&a);
	return ABX_OK;
}

/* The last step that was done, and with it those before it that have no name. */
static void undo(struct making *m)
{
	const struct abx_kv label = {"agentbox.attempt", m->attempt};
	const struct abx_list_req req = {ABX_INIT(struct abx_list_req), .n_labels = 1,
					 .labels = &label};
	const struct docker_list l = {.path = "/images/json?",
				      .what = "images",
				      .req = &req,
				      .own = "agentbox",
				      .each = drop_nameless,
				      .quiet = true};

	/* It failed already, and that is what is said. */
	if (*m->attempt)
		(void)docker_each(m->s, m->call, &l);
}

static int32_t make(struct making *m)
{
	int64_t code = 0;
	int32_t r = find_root(m);

	if (r != ABX_OK)
		return r;
	if (m->p->context_fd < 0)
		return build_nothing(m);
	r = build(m, m->p->context_fd, &code);
	if (r == ABX_OK || code != CODE_AS_IT_IS)
		return r;
	if (!m->imported)
		return abx_fail(m->call, ABX_EINVAL, "create --image takes it as it is",
				"image %.200s: nothing can be installed in it, for it has no "
				"apt-get",
				m->root);
	abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "docker",
			     "nothing can be installed in that root, for it has no apt-get: it is "
			     "taken as it is");
	undo(m);
	return build_nothing(m);
}

int32_t docker_prepare(struct abx_session *s, struct abx_call *call, const struct abx_prepare *p)
{
	struct making m = {.s = s, .call = call, .p = p};
	int32_t r = refuse(&m);

	if (r == ABX_OK)
		r = take_labels(&m);
	if (r == ABX_OK)
		r = make(&m);
	/* Interrupted, its label is what it is found by. */
	if (m.imported && r != ABX_ECANCELED)
		untag(&m);
	if (r != ABX_OK && r != ABX_ECANCELED)
		undo(&m);
	if (r == ABX_OK) {
		const struct abx_snapshot snap = {ABX_INIT(struct abx_snapshot), .ref = m.id,
						  .name = p->name, .labels = p->labels,
						  .n_labels = p->n_labels};

		r = abx_plugin_host->emit_snapshot(call, &snap);
	}
	return r;
}
