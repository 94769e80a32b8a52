/* SPDX-License-Identifier: MIT */
/*
 * Templates: the host's context becomes one by the service's own build.
 *
 * A template has the labels in its name (names.h).  Registering it twice under that name makes a
 * second build of the same, so nothing that was lost is doubled.  One whose build failed goes.
 */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/number.h"
#include "providers/e2b/e2b.h"
#include "providers/e2b/names.h"
#include "providers/e2b/pick.h"
#include "providers/e2b/plan.h"

#define HASH_LEN 64
#define POLL_MS 500
#define UPLOAD_MS INT64_C(3600000)
#define FROM_TEMPLATE "template:"

struct building {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_prepare *p;
	struct e2b_plan plan;
	char name[132], id[E2B_ID_BYTES], build[E2B_ID_BYTES];
	uint64_t seen; /* entries of the log */
	char last[300];
};

static int32_t refuse(struct abx_call *call, const struct abx_prepare *p)
{
	const char *what = p->from_fd >= 0		 ? "a root file system as a file"
			   : p->n_steps			 ? "build steps"
			   : p->script && *p->script	 ? "scripts"
			   : p->location && *p->location ? "locations"
			   : p->disk_bytes		 ? "disk sizes"
							 : NULL;

	if (what)
		return abx_fail(call, ABX_ENOTSUP,
				"--from debian:bookworm, another image of a registry, or "
				"template:NAME",
				"prepare: %s: not supported by E2B", what);
	if (!p->from || !*p->from || strchr(p->from, ' '))
		return abx_fail(call, ABX_EINVAL, "--from debian:bookworm",
				"prepare: say from what");
	return ABX_OK;
}

/* "2-4": processors and GiB. */
static int32_t add_size(const struct building *b, cJSON *body)
{
	const struct abx_prepare *p = b->p;
	const char *size = p->size && *p->size ? p->size : b->s->size, *at = size;
	uint64_t cpus = (p->cpu_milli + 999) / 1000, gib = 0, mb = p->mem_bytes >> 20;

	if (size && (!abx_parse_digits(&at, 64, &cpus) || *at++ != '-' ||
		     !abx_parse_digits(&at, 1024, &gib) || *at || !cpus || !gib))
		return abx_fail(b->call, ABX_EINVAL, "2-4: 2 processors and 4 GiB",
				"e2b.size: '%.40s'", size);
	if (gib)
		mb = gib << 10;
	if (cpus)
		(void)abx_json_add_i64(body, "cpuCount", (int64_t)cpus);
	if (mb)
		(void)abx_json_add_i64(body, "memoryMB", (int64_t)mb);
	return ABX_OK;
}

static int32_t register_it(struct building *b)
{
	cJSON *body = cJSON_CreateObject();
	const struct e2b_request q = {.method = "POST", .body = body, .idempotent = true};
	struct e2b_answer a = {.status = 0};
	int32_t r = add_size(b, body);

	(void)abx_json_add_str(body, "name", b->name);
	if (r == ABX_OK)
		r = e2b_ask(b->s, b->call, &q, &a, "/v3/templates");
	if (r == ABX_OK)
		r = e2b_expect(b->call, &a, "register a template");
	if (r == ABX_OK) {
		(void)snprintf(b->id, sizeof(b->id), "%.79s",
			       abx_json_get_text(a.doc, "templateID"));
		(void)snprintf(b->build, sizeof(b->build), "%.79s",
			       abx_json_get_text(a.doc, "buildID"));
		if (!e2b_is_id(b->id) || !e2b_is_id(b->build))
			r = abx_fail(b->call, ABX_EPROTO, NULL,
				     "register a template: E2B answers without its id");
	}
	e2b_answer_release(&a);
	cJSON_Delete(body);
	return r;
}

/* Changes with what is copied; each step has its own. */
static int32_t hash_of(const struct building *b, int step, char out[HASH_LEN + 1])
{
	static const char hex[] = "0123456789abcdef";
	const char *print = b->p->fingerprint ? strchr(b->p->fingerprint, ':') : NULL;

	if (!print || strspn(print + 1, hex) < HASH_LEN)
		return abx_fail(b->call, ABX_EINVAL, NULL,
				"prepare: the context has no fingerprint");
	(void)snprintf(out, HASH_LEN + 1, "%.*s%02x", HASH_LEN - 2, print + 1, step & 0xff);
	return ABX_OK;
}

/* Headers of a service elsewhere, as it wants them; a length of its own is ours to say. */
static size_t take_headers(const cJSON *given, char (*texts)[512], const char **headers, size_t max)
{
	const cJSON *h;
	size_t n = 0;

	cJSON_ArrayForEach(h, given) {
		if (n == max || !cJSON_IsString(h) || strpbrk(h->valuestring, "\r\n") ||
		    strcasecmp(h->string, "Content-Length") == 0)
			continue;
		(void)snprintf(texts[n], sizeof(texts[n]), "%.100s: %.400s", h->string,
			       h->valuestring);
		headers[n] = texts[n];
		n++;
	}
	headers[n] = NULL;
	return n;
}

/* With its exact length: the stores behind such addresses take no chunks. */
static int32_t put_to(struct building *b, const char *url, const cJSON *given, int fd, int64_t size)
{
	const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
	char texts[8][512], base[300];
	const char *headers[9];
	const struct abx_http_request req = {.method = "PUT",
					     .path = path,
					     .body_fd = fd,
					     .body_size = size,
					     .headers = headers,
					     .quiet_ms = UPLOAD_MS};
	struct abx_http_reply reply;
	struct abx_http *http = NULL;
	int32_t r;

	if (!path || (size_t)(path - url) >= sizeof(base))
		return abx_fail(b->call, ABX_EPROTO, NULL,
				"upload for a template: E2B names no address");
	(void)snprintf(base, sizeof(base), "%.*s", (int)(path - url), url);
	(void)take_headers(given, texts, headers, 8);
	r = e2b_open_http(b->s, b->call, base, &http);
	if (r != ABX_OK)
		return r;
	r = abx_http_do(http, b->call, &req, &reply);
	if (r != ABX_OK)
		(void)abx_fail(b->call, r, E2B_REMEDY_LATER, "upload for a template to %s: %s",
			       base, reply.text);
	else if (reply.status / 100 != 2)
		r = abx_fail(b->call, ABX_EREMOTE, E2B_REMEDY_LATER,
			     "upload for a template to %s: HTTP %d", base, reply.status);
	abx_http_reply_release(&reply);
	abx_http_close(http);
	return r;
}

static int32_t upload_step(struct building *b, int step, const cJSON *link)
{
	abx_autoclose int fd =
		open(b->s->state_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
	off_t size;
	int r;

	if (fd < 0)
		return abx_fail_errno(b->call, errno, "a file in '%s'", b->s->state_dir);
	r = e2b_pick(b->p->context_fd, b->plan.sources[step], fd);
	size = lseek(fd, 0, SEEK_CUR);
	if (r == 0 && (size < 0 || lseek(fd, 0, SEEK_SET) < 0))
		r = -errno;
	if (r < 0)
		return abx_fail_errno(b->call, -r, "prepare: %.150s", b->plan.texts[step]);
	return put_to(b, abx_json_get_text(link, "url"), abx_json_get_part(link, "headers"), fd,
		      size);
}

/* Only what the service has not got yet. */
static int32_t give_files(struct building *b)
{
	const struct e2b_request q = {.method = "GET", .idempotent = true};
	int32_t r = ABX_OK;
	int i = 0;
	cJSON *step;

	cJSON_ArrayForEach(step, b->plan.steps) {
		char hash[HASH_LEN + 1];
		struct e2b_answer a;
		bool there = false;

		if (!b->plan.sources[i++])
			continue;
		r = hash_of(b, i - 1, hash);
		if (r != ABX_OK)
			return r;
		(void)abx_json_add_str(step, "filesHash", hash);
		r = e2b_ask(b->s, b->call, &q, &a, "/templates/%s/files/%s", b->id, hash);
		if (r == ABX_OK)
			r = e2b_expect(b->call, &a, "files of a template");
		if (r == ABX_OK)
			(void)abx_json_bool(a.doc, "present", false, &there);
		if (r == ABX_OK && !there)
			r = upload_step(b, i - 1, a.doc);
		e2b_answer_release(&a);
		if (r != ABX_OK)
			return r;
	}
	return r;
}

static int32_t start(struct building *b)
{
	const char *from = b->p->from;
	cJSON *body = cJSON_CreateObject();
	const struct e2b_request q = {.method = "POST", .body = body, .idempotent = true};
	struct e2b_answer a;
	int32_t r;

	if (strncmp(from, FROM_TEMPLATE, strlen(FROM_TEMPLATE)) == 0)
		(void)abx_json_add_str(body, "fromTemplate", from + strlen(FROM_TEMPLATE));
	else
		(void)abx_json_add_str(body, "fromImage", from);
	(void)abx_json_add_bool(body, "force", b->p->flags & ABX_PREPARE_FORCE);
	(void)cJSON_AddItemReferenceToObject(body, "steps", b->plan.steps);
	r = e2b_ask(b->s, b->call, &q, &a, "/v2/templates/%s/builds/%s", b->id, b->build);
	/* The answer to the first time was lost. */
	if (r == ABX_OK && !(a.status == 400 && strstr(a.message, "not in waiting state")))
		r = e2b_expect(b->call, &a, "build a template");
	e2b_answer_release(&a);
	cJSON_Delete(body);
	return r;
}

static void show(struct building *b, const cJSON *entries)
{
	const cJSON *e;

	cJSON_ArrayForEach(e, entries) {
		abx_auto(abx_buf) struct abx_buf line = ABX_BUF_INIT((size_t)128 << 10);

		b->seen++;
		(void)snprintf(b->last, sizeof(b->last), "%.290s", abx_json_get_text(e, "message"));
		abx_buf_addf(&line, "%s\n", abx_json_get_text(e, "message"));
		if (!line.failed)
			(void)abx_plugin_host->emit_log(b->call, ABX_STREAM_STDOUT, line.data,
							line.len);
	}
}

/* The step by its text, for its number is one of ours that nobody sees.  Nothing can be made of
 * such a template, so it goes; its failure is what is said last. */
static int32_t say_failed(const struct building *b, const cJSON *doc)
{
	const cJSON *reason = abx_json_get_part(doc, "reason");
	const char *step = abx_json_get_text(reason, "step");
	uint64_t n = 0;

	if (abx_parse_u64(step, E2B_STEPS_MAX, &n) && n && n <= (uint64_t)b->plan.n)
		step = b->plan.texts[n - 1];
	(void)e2b_remove(b->s, b->call, b->id);
	return abx_fail(b->call, ABX_EREMOTE, "what the build wrote says more",
			"template: the build failed%s%s: %.400s", *step ? " at " : "", step,
			abx_json_get_text(reason, "message"));
}

/* *ret_over: it is ready.  What came late is read to its end. */
static int32_t look(struct building *b, bool *ret_over)
{
	const struct e2b_request q = {.method = "GET", .idempotent = true};
	struct e2b_answer a;
	const cJSON *entries;
	const char *status;
	int32_t r = e2b_ask(b->s, b->call, &q, &a, "/templates/%s/builds/%s/status?logsOffset=%llu",
			    b->id, b->build, (unsigned long long)b->seen);

	if (r == ABX_OK)
		r = e2b_expect(b->call, &a, "build of a template");
	if (r == ABX_OK) {
		entries = cJSON_GetObjectItemCaseSensitive(a.doc, "logEntries");
		status = abx_json_get_text(a.doc, "status");
		show(b, entries);
		if (!(entries && entries->child)) {
			*ret_over = strcmp(status, "ready") == 0;
			if (strcmp(status, "error") == 0)
				r = say_failed(b, a.doc);
		}
	}
	e2b_answer_release(&a);
	return r;
}

static int32_t await(struct building *b)
{
	for (;;) {
		bool over = false;
		int32_t r = look(b, &over);

		if (r != ABX_OK || over)
			return r;
		(void)abx_plugin_host->progress(b->call, 0, 0, *b->last ? b->last : "building");
		r = abx_plugin_host->wait_ms(b->call, POLL_MS);
		if (r == ABX_ETIMEDOUT)
			return abx_fail(b->call, r, NULL,
					"template: its build does not come to an end; the last it "
					"wrote: %.200s",
					b->last);
		if (r != ABX_OK)
			return abx_fail_canceled(b->call);
	}
}

static int32_t emit_built(const struct building *b)
{
	char ref[E2B_NAME_BYTES];
	struct e2b_name n;
	const struct abx_snapshot snap = {ABX_INIT(struct abx_snapshot),
					  .ref = ref,
					  .name = n.name,
					  .state = "ready",
					  .labels = n.labels,
					  .n_labels = 4};

	if (!e2b_name_parse(E2B_TEMPLATE, b->name, &n))
		return abx_fail(b->call, ABX_EINTERNAL, NULL, "template: its name is lost");
	(void)snprintf(ref, sizeof(ref), "%s%s", b->id, strchr(b->name, ':'));
	return abx_plugin_host->emit_snapshot(b->call, &snap);
}

int32_t e2b_prepare(struct abx_session *s, struct abx_call *call, const struct abx_prepare *p)
{
	struct building b = {.s = s, .call = call, .p = p};
	int32_t r = refuse(call, p);
	int e;

	if (r != ABX_OK)
		return r;
	if (!e2b_name_make(E2B_TEMPLATE, p->labels, p->n_labels, b.name))
		return abx_fail(call, ABX_EINVAL, "choose a shorter name",
				"prepare: its name cannot be one at E2B");
	e = e2b_plan_make(&b.plan, p->dockerfile ? p->dockerfile : "", p->args, p->n_args);
	if (e == -EINVAL)
		return abx_fail(call, ABX_EINVAL, NULL, "prepare: Dockerfile: %s", b.plan.what);
	if (e < 0)
		return abx_fail_no_memory(call);
	r = register_it(&b);
	if (r == ABX_OK)
		r = give_files(&b);
	if (r == ABX_OK)
		r = start(&b);
	if (r == ABX_OK)
		r = await(&b);
	if (r == ABX_OK)
		r = emit_built(&b);
	e2b_plan_release(&b.plan);
	return r;
}

struct listing {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_list_req *req;
};

/* Of several names the one that is ours. */
static bool name_of(const cJSON *item, struct e2b_name *ret, char full[132])
{
	static const char *const lists[] = {"names", "aliases"};
	const cJSON *name;

	for (size_t i = 0; i < ABX_N_ELEMENTS(lists); i++)
		cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(item, lists[i])) {
			if (!cJSON_IsString(name) ||
			    !e2b_name_parse(E2B_TEMPLATE, name->valuestring, ret))
				continue;
			(void)snprintf(full, 132, "%.131s", name->valuestring);
			return true;
		}
	return false;
}

/* What a list does not say; "": none. */
static int32_t tag_of(struct abx_session *s, struct abx_call *call, const char *id, char tag[80])
{
	const struct e2b_request q = {.method = "GET", .idempotent = true};
	struct e2b_answer a;
	int32_t r = e2b_ask(s, call, &q, &a, "/templates/%s/tags", id);

	tag[0] = '\0';
	if (r == ABX_OK && a.status != 404)
		r = e2b_expect(call, &a, "tags of a template");
	if (r == ABX_OK)
		(void)snprintf(tag, 80, "%.79s",
			       abx_json_get_text(cJSON_GetArrayItem(a.doc, 0), "tag"));
	e2b_answer_release(&a);
	return r;
}

static int32_t emit_listed(struct listing *l, const cJSON *item)
{
	const char *id = abx_json_get_text(item, "templateID");
	const char *created = abx_json_get_text(item, "createdAt");
	char full[132], text[220], tag[80], ref[E2B_NAME_BYTES];
	struct e2b_name n;
	struct abx_snapshot snap = {ABX_INIT(struct abx_snapshot), .ref = ref};
	int32_t r;

	if (!e2b_is_id(id) || !name_of(item, &n, full))
		return ABX_OK;
	r = tag_of(l->s, l->call, id, tag);
	if (r != ABX_OK)
		return r;
	(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)strcspn(full, ":"), full,
		       *tag ? ":" : "", tag);
	if (!e2b_name_parse(E2B_TEMPLATE, text, &n) || !e2b_name_has(&n, l->req))
		return ABX_OK;
	(void)snprintf(ref, sizeof(ref), "%s%s%s", id, *tag ? ":" : "", tag);
	if (e2b_removed_is(l->s, ref))
		return ABX_OK;
	snap.name = n.name;
	snap.labels = n.labels;
	snap.n_labels = n.n_labels;
	snap.state = abx_json_get_text(item, "buildStatus");
	snap.created_at = *created ? created : NULL;
	return abx_plugin_host->emit_snapshot(l->call, &snap);
}

static int32_t one_page(void *ctx, const cJSON *list)
{
	struct listing *l = ctx;
	const cJSON *item;
	int32_t r = ABX_OK;

	cJSON_ArrayForEach(item, list) {
		r = emit_listed(l, item);
		if (r != ABX_OK)
			break;
	}
	return r;
}

int32_t e2b_image_list(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	struct listing l = {s, call, req};

	return e2b_pages(s, call, "/v2/templates?limit=100", "list of templates", one_page, &l);
}

/* Of one by its id all tags go: of ours there is but one. */
int32_t e2b_image_delete(struct abx_session *s, struct abx_call *call, const char *ref)
{
	return e2b_remove(s, call, ref);
}
