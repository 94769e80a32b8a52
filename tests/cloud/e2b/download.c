/* SPDX-License-Identifier: MIT */
/* envd of the emulated E2B: GET /files. */
#include <string.h>

#include "abxsdk/number.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/envd.h"

#define FEED_BYTES ((size_t)2 << 20)
#define HEAD_MAX 65536

int envd_status(const char *kind)
{
	static const struct {
		const char *kind;
		int status;
	} all[] = {
		{"not_found", 404},	     {"invalid_argument", 400}, {"unauthenticated", 401},
		{"resource_exhausted", 507}, {"already_exists", 409},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(all); i++)
		if (strcmp(all[i].kind, kind) == 0)
			return all[i].status;
	return 500;
}

/* One file on its way out.  The head of what the agent says decides about the answer. */
struct download {
	struct e2b_box *box;
	struct emu_feed *feed;
	char user[ENVD_USER_BYTES];
	char *path;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int refs;
	struct abx_buf head;
	bool head_whole, over;
	struct abx_err err;
};

static void download_put(struct download *d)
{
	bool last;

	(void)pthread_mutex_lock(&d->lock);
	last = --d->refs == 0;
	(void)pthread_mutex_unlock(&d->lock);
	if (!last)
		return;
	emu_feed_put(d->feed);
	e2b_box_put(d->box);
	abx_buf_release(&d->head);
	(void)pthread_cond_destroy(&d->changed);
	(void)pthread_mutex_destroy(&d->lock);
	free(d->path);
	free(d);
}

/* Behind "ok", size and path; 0: they are not all there. */
static size_t head_len(const struct abx_buf *b)
{
	size_t at = 0;

	for (int i = 0; i < 3; i++) {
		const char *nul = at < b->len ? memchr(b->data + at, 0, b->len - at) : NULL;

		if (!nul)
			return 0;
		at = (size_t)(nul - b->data) + 1;
	}
	return at;
}

static int32_t on_output(void *ctx, const void *data, size_t len)
{
	struct download *d = ctx;
	size_t before, n;

	if (d->head_whole)
		return emu_feed_push(d->feed, data, len) ? 0 : ABX_ECANCELED;
	(void)pthread_mutex_lock(&d->lock);
	before = d->head.len;
	abx_buf_add(&d->head, data, len < HEAD_MAX - before ? len : HEAD_MAX - before);
	n = strncmp(abx_buf_str(&d->head), "ok", 3) == 0 ? head_len(&d->head) : 0;
	d->head_whole = n > 0;
	if (n)
		(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
	if (n && n - before < len)
		return emu_feed_push(d->feed, (const char *)data + (n - before), len - (n - before))
			       ? 0
			       : ABX_ECANCELED;
	return 0;
}

static void *run(void *arg)
{
	struct download *d = arg;
	struct e2b *e = d->box->e;
	const char *const args[] = {"get", d->user, d->path, NULL};
	const struct emu_exec x = {.args = args, .in_fd = -1, .output = on_output, .ctx = d};
	int code = 1, r = emu_exec(e->engine, d->box->id, &x, &code, &d->err);

	(void)pthread_mutex_lock(&d->lock);
	d->over = true;
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
	emu_feed_end(d->feed, r < 0 || code != 0);
	download_put(d);
	e2b_thread_over(e);
	return NULL;
}

static const char *type_of(const char *path)
{
	static const struct {
		const char *end, *type;
	} types[] = {
		{".txt", "text/plain; charset=utf-8"}, {".html", "text/html; charset=utf-8"},
		{".json", "application/json"},	       {".js", "text/javascript; charset=utf-8"},
		{".css", "text/css; charset=utf-8"},   {".png", "image/png"},
	};
	size_t n = strlen(path);

	for (size_t i = 0; i < ABX_N_ELEMENTS(types); i++) {
		size_t m = strlen(types[i].end);

		if (n > m && strcmp(path + n - m, types[i].end) == 0)
			return types[i].type;
	}
	return "application/octet-stream";
}

static void answer(struct emu_request *req, struct download *d)
{
	static const struct emu_header_pair inline_header[] = {{"Content-Disposition", "inline"},
							       {NULL, NULL}};
	const char *rest, *kind;
	uint64_t size = 0;
	bool ok;

	(void)pthread_mutex_lock(&d->lock);
	while (!d->head_whole && !d->over)
		(void)pthread_cond_wait(&d->changed, &d->lock);
	ok = d->head_whole;
	(void)pthread_mutex_unlock(&d->lock);
	kind = envd_answer(&d->head, &rest);
	if (ok && abx_parse_digits(&rest, INT64_MAX, &size))
		emu_reply_feed(req, 200, type_of(d->path), size, emu_feed_get(d->feed),
			       inline_header);
	else
		envd_error(req, envd_status(kind), "%s", *rest ? rest : d->err.text);
}

void envd_get_file(struct emu_request *req)
{
	const char *path = emu_query(req, "path"), *user = emu_query(req, "username");
	struct download *d = abx_xcalloc(1, sizeof(*d));

	d->box = e2b_box_get(envd_box(req));
	d->feed = emu_feed_new(FEED_BYTES);
	d->path = abx_xstrdup(path ? path : "");
	d->head = (struct abx_buf)ABX_BUF_INIT(HEAD_MAX);
	d->refs = 2;
	(void)snprintf(d->user, sizeof(d->user), "%s", user && *user ? user : d->box->user);
	(void)pthread_mutex_init(&d->lock, NULL);
	(void)pthread_cond_init(&d->changed, NULL);
	if (e2b_thread(d->box->e, run, d)) {
		answer(req, d);
	} else {
		envd_error(req, 500, "no thread is left");
		download_put(d);
	}
	download_put(d);
}
