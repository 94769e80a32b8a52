/* SPDX-License-Identifier: MIT */
/* The emulated E2B: building a template: its beginning, its files, and how it is going. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "abxsdk/number.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/template.h"

#define HASH_LEN 64
#define PAGE_MAX 100
#define CPUS_MAX 64
#define MEMORY_MAX_MB (1 << 20)
#define ENTRY_MAX ((size_t)1 << 20)
#define UPLOAD_PATH "/_upload/"

struct e2b_file {
	struct e2b_file *next;
	char hash[HASH_LEN + 1];
	int fd;
};

/* NULL, or what is wrong. */
static const char *take_size(const cJSON *doc, struct e2b_boot *boot)
{
	int64_t cpus = 2, mb = 1024;
	int r = abx_json_i64(doc, "cpuCount", &cpus);

	if ((r < 0 && r != -ENOENT) || cpus < 1 || cpus > CPUS_MAX)
		return "CPU count must be between 1 and 64";
	r = abx_json_i64(doc, "memoryMB", &mb);
	if ((r < 0 && r != -ENOENT) || mb < 128 || mb > MEMORY_MAX_MB || mb % 2)
		return "Memory must be at least 128 MB, and divisible by 2";
	boot->cpus = cpus;
	boot->memory_mb = mb;
	return NULL;
}

/* The tags of the build: the name's own, and those beside it; NULL: one cannot be. */
static cJSON *take_tags(const cJSON *doc, const char *name, const char *tag)
{
	const cJSON *more = cJSON_GetObjectItemCaseSensitive(doc, "tags"), *i;
	cJSON *tags = cJSON_CreateArray();

	if (strchr(name, ':') || !more || !more->child)
		(void)cJSON_AddItemToArray(tags, cJSON_CreateString(tag));
	cJSON_ArrayForEach(i, more) {
		if (!cJSON_IsString(i) || !e2b_is_tag(i->valuestring)) {
			cJSON_Delete(tags);
			return NULL;
		}
		(void)cJSON_AddItemToArray(tags, cJSON_CreateString(i->valuestring));
	}
	return tags;
}

static cJSON *register_build(struct e2b *e, const char *name, const struct e2b_boot *boot,
			     cJSON *tags)
{
	cJSON *doc = cJSON_CreateObject();
	struct e2b_template *t;
	struct e2b_build *b;

	(void)pthread_mutex_lock(&e->lock);
	t = e2b_template_named(e, name);
	b = e2b_build_new(t);
	b->boot.cpus = boot->cpus;
	b->boot.memory_mb = boot->memory_mb;
	b->request = cJSON_CreateObject();
	(void)cJSON_AddItemToObject(b->request, "tags", tags);
	(void)abx_json_add_str(doc, "templateID", t->id);
	(void)abx_json_add_str(doc, "buildID", b->id);
	(void)abx_json_add_bool(doc, "public", t->public);
	(void)cJSON_AddItemToObject(doc, "names", e2b_template_names(t, true));
	(void)cJSON_AddItemToObject(doc, "aliases", e2b_template_names(t, false));
	(void)cJSON_AddItemToObject(doc, "tags", cJSON_Duplicate(tags, true));
	(void)pthread_mutex_unlock(&e->lock);
	return doc;
}

void e2b_post_template(struct emu_request *req)
{
	char name[E2B_NAME_BYTES], tag[E2B_NAME_BYTES];
	cJSON *doc = emu_body_json(req), *tags = NULL;
	const char *text = NULL, *wrong = NULL;
	struct e2b_boot boot = {.cpus = 0};

	if (!doc || abx_json_str(doc, "name", 256, &text) < 0 ||
	    (!text && abx_json_str(doc, "alias", 256, &text) < 0))
		wrong = "validation error: name";
	else if (!text || !*text)
		wrong = "Name is required";
	else if (!e2b_split_name(text, name, tag))
		wrong = "Invalid template name or tag";
	else if (!(tags = take_tags(doc, text, tag)))
		wrong = "Invalid tag";
	else
		wrong = take_size(doc, &boot);
	if (!wrong && strcmp(name, "base") == 0) {
		e2b_error(req, 403, "Alias 'base' is already used");
		cJSON_Delete(tags);
	} else if (wrong) {
		e2b_error(req, 400, "%s", wrong);
		cJSON_Delete(tags);
	} else {
		emu_reply_json(req, 202, register_build(req->service, name, &boot, tags), NULL);
	}
	cJSON_Delete(doc);
}

/* The caller has the lock. */
static struct e2b_file *find_file(struct e2b *e, const char *hash)
{
	struct e2b_file *f = e->files;

	while (f && strcmp(f->hash, hash) != 0)
		f = f->next;
	return f;
}

int e2b_file_open(struct e2b *e, const char *hash)
{
	const struct e2b_file *f;
	char path[40];
	int fd = -1;

	(void)pthread_mutex_lock(&e->lock);
	f = find_file(e, hash);
	if (f) {
		/* Not a duplicate, which would share its position. */
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	(void)pthread_mutex_unlock(&e->lock);
	return fd;
}

void e2b_files_free(struct e2b *e)
{
	while (e->files) {
		struct e2b_file *f = e->files;

		e->files = f->next;
		(void)close(f->fd);
		free(f);
	}
}

static bool is_hash(const char *text)
{
	return strlen(text) == HASH_LEN && strspn(text, "0123456789abcdef") == HASH_LEN;
}

void e2b_get_file_link(struct emu_request *req)
{
	const char *hash = req->args[1], *host = emu_header(req, "Host");
	struct e2b *e = req->service;
	cJSON *doc;
	char *url, token[65];
	bool present;

	if (!is_hash(hash)) {
		e2b_error(req, 400, "Invalid files hash");
		return;
	}
	if (!e2b_named_template(req))
		return;
	present = find_file(e, hash) != NULL;
	(void)pthread_mutex_unlock(&e->lock);
	e2b_token(e, hash, token);
	url = abx_xasprintf("http://%s" UPLOAD_PATH "%s?signature=%s", host ? host : "127.0.0.1",
			    hash, token);
	doc = cJSON_CreateObject();
	(void)abx_json_add_bool(doc, "present", present);
	(void)abx_json_add_str(doc, "url", url);
	free(url);
	emu_reply_json(req, 201, doc, NULL);
}

/* A file on its way in. */
static int sink(struct emu_request *req, const void *data, size_t len)
{
	const struct e2b_file *f = req->data;

	return f && f->fd >= 0 && abx_fs_write_all(f->fd, data, len) == 0 ? 0 : -1;
}

static void file_free(void *data)
{
	struct e2b_file *f = data;

	if (f->fd >= 0)
		(void)close(f->fd);
	free(f);
}

void e2b_put_file_begin(struct emu_request *req)
{
	struct e2b_file *f = abx_xcalloc(1, sizeof(*f));

	f->fd = open(P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	req->data = f;
	req->data_free = file_free;
	req->sink = sink;
}

void e2b_put_file(struct emu_request *req)
{
	const char *hash = req->args[0], *have = emu_query(req, "signature");
	struct e2b_file *f = req->data, *old;
	struct e2b *e = req->service;
	char token[65];

	e2b_token(e, hash, token);
	if (!is_hash(hash) || !have || strcmp(have, token) != 0) {
		emu_reply(req, 403, "text/plain", "SignatureDoesNotMatch", 21, NULL);
	} else if (!emu_header(req, "Content-Length")) {
		/* As storage does that wants to know the length before. */
		emu_reply(req, 501, "text/plain", "NotImplemented", 14, NULL);
	} else if (f->fd < 0 || req->refused) {
		emu_reply(req, 500, "text/plain", "cannot keep it", 14, NULL);
	} else {
		(void)snprintf(f->hash, sizeof(f->hash), "%s", hash);
		(void)pthread_mutex_lock(&e->lock);
		old = find_file(e, hash);
		if (old) {
			int fd = old->fd;

			old->fd = f->fd;
			f->fd = fd;
		} else {
			f->next = e->files;
			e->files = f;
			req->data = NULL;
		}
		(void)pthread_mutex_unlock(&e->lock);
		emu_reply(req, 200, NULL, NULL, 0, NULL);
	}
}

/* The build that the path names, the lock taken; NULL: answered, without the lock. */
static struct e2b_build *named_build(struct emu_request *req, int status)
{
	struct e2b *e = req->service;
	struct e2b_template *t = e2b_named_template(req);
	struct e2b_build *b = t ? e2b_build_find(t, req->args[1]) : NULL;

	if (b || !t)
		return b;
	(void)pthread_mutex_unlock(&e->lock);
	e2b_error(req, status, "build '%.64s' not found", req->args[1]);
	return NULL;
}

/* NULL, or what is wrong. */
static const char *check_start(const cJSON *doc)
{
	const char *image = NULL, *template = NULL, *command = NULL, *type = NULL;
	const cJSON *steps = cJSON_GetObjectItemCaseSensitive(doc, "steps"), *i;

	if (abx_json_str(doc, "fromImage", 4096, &image) < 0 ||
	    abx_json_str(doc, "fromTemplate", 256, &template) < 0 ||
	    abx_json_str(doc, "startCmd", ENTRY_MAX, &command) < 0 ||
	    abx_json_str(doc, "readyCmd", ENTRY_MAX, &command) < 0)
		return "validation error: a member has the wrong type";
	if (!image == !template)
		return "must specify either fromImage or fromTemplate";
	cJSON_ArrayForEach(i, steps)
		if (abx_json_str(i, "type", 16, &type) < 0 || !type)
			return "validation error: steps";
	return NULL;
}

void e2b_post_build(struct emu_request *req)
{
	cJSON *doc = emu_body_json(req);
	const char *wrong = doc ? check_start(doc) : "validation error: the body is no object";
	struct e2b *e = req->service;
	struct e2b_build *b;
	bool waiting;

	if (wrong) {
		e2b_error(req, 400, "%s", wrong);
		cJSON_Delete(doc);
		return;
	}
	b = named_build(req, 404);
	if (!b) {
		cJSON_Delete(doc);
		return;
	}
	waiting = b->state == BUILD_WAITING;
	if (waiting) {
		cJSON_AddItemToObject(doc, "tags",
				      cJSON_DetachItemFromObjectCaseSensitive(b->request, "tags"));
		cJSON_Delete(b->request);
		b->request = doc;
		b->state = BUILD_BUILDING;
		b->changed_ms = abx_wall_ms();
		b->of->refs++;
	}
	(void)pthread_mutex_unlock(&e->lock);
	if (!waiting) {
		cJSON_Delete(doc);
		e2b_error(req, 400, "build is not in waiting state");
	} else if (!e2b_thread(e, e2b_build_run, b)) {
		struct e2b_template *t = b->of;

		(void)pthread_mutex_lock(&e->lock);
		b->state = BUILD_ERROR;
		(void)pthread_mutex_unlock(&e->lock);
		e2b_template_put(t);
		e2b_error(req, 503, "no thread is left");
	} else {
		emu_reply(req, 202, NULL, NULL, 0, NULL);
	}
}

static int rank(const char *level)
{
	static const char *const levels[] = {"debug", "info", "warn", "error"};

	for (int i = 0; i < (int)ABX_N_ELEMENTS(levels); i++)
		if (strcmp(levels[i], level) == 0)
			return i;
	return -1;
}

/* Entries of that level and above, so many of them from the `skip`-th on. */
static cJSON *entries(const struct e2b_build *b, uint64_t skip, uint64_t limit, int level)
{
	cJSON *list = cJSON_CreateArray();
	const cJSON *i;
	uint64_t n = 0;

	cJSON_ArrayForEach(i, b->log) {
		const char *have = "info";

		(void)abx_json_str(i, "level", 16, &have);
		if (rank(have) < level || n++ < skip)
			continue;
		if (n > skip + limit)
			break;
		(void)cJSON_AddItemToArray(list, cJSON_Duplicate(i, true));
	}
	return list;
}

/* False, and answered. */
static bool take_window(struct emu_request *req, uint64_t *ret_limit, int *ret_level)
{
	const char *limit = emu_query(req, "limit"), *level = emu_query(req, "level");

	*ret_limit = PAGE_MAX;
	*ret_level = level ? rank(level) : 0;
	if ((!limit || abx_parse_u64(limit, PAGE_MAX, ret_limit)) && *ret_level >= 0)
		return true;
	e2b_error(req, 400, "validation error: limit or level");
	return false;
}

static void add_texts(cJSON *doc, const cJSON *list)
{
	cJSON *texts = cJSON_AddArrayToObject(doc, "logs");
	const cJSON *i;

	cJSON_ArrayForEach(i, list) {
		const char *text = "";

		(void)abx_json_str(i, "message", ENTRY_MAX, &text);
		(void)cJSON_AddItemToArray(texts, cJSON_CreateString(text));
	}
}

void e2b_get_build_status(struct emu_request *req)
{
	const char *offset = emu_query(req, "logsOffset");
	struct e2b *e = req->service;
	uint64_t skip = 0, limit;
	const struct e2b_build *b;
	cJSON *doc, *list;
	int level;

	if (offset && !abx_parse_u64(offset, INT32_MAX, &skip)) {
		e2b_error(req, 400, "validation error: logsOffset");
		return;
	}
	if (!take_window(req, &limit, &level))
		return;
	b = named_build(req, 400);
	if (!b)
		return;
	doc = cJSON_CreateObject();
	list = entries(b, skip, limit, level);
	(void)abx_json_add_str(doc, "templateID", b->of->id);
	(void)abx_json_add_str(doc, "buildID", b->id);
	(void)abx_json_add_str(doc, "status", e2b_build_state_text(b));
	add_texts(doc, list);
	(void)cJSON_AddItemToObject(doc, "logEntries", list);
	if (b->reason)
		(void)cJSON_AddItemToObject(doc, "reason", cJSON_Duplicate(b->reason, true));
	(void)pthread_mutex_unlock(&e->lock);
	emu_reply_json(req, 200, doc, NULL);
}

/* All of one time: a cursor is not emulated beyond being taken. */
void e2b_get_build_logs(struct emu_request *req)
{
	struct e2b *e = req->service;
	const struct e2b_build *b;
	uint64_t limit;
	cJSON *doc;
	int level;

	if (!take_window(req, &limit, &level))
		return;
	b = named_build(req, 404);
	if (!b)
		return;
	doc = cJSON_CreateObject();
	(void)cJSON_AddItemToObject(doc, "logs", entries(b, 0, limit, level));
	(void)pthread_mutex_unlock(&e->lock);
	emu_reply_json(req, 200, doc, NULL);
}
