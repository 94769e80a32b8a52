/* SPDX-License-Identifier: MIT */
/* envd of the emulated E2B: GET /files. */
#include <inttypes.h>
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
	const char *range;	    /* what was asked for; NULL: all of it */
	uint64_t size, from, count; /* of it: what is wanted */
	uint64_t first, left;	    /* what is still to be passed over, and given */
	enum { RANGE_NONE, RANGE_PART, RANGE_NEVER } part;
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

/* "bytes=A-B", "bytes=A-", "bytes=-N"; several of them are not emulated, which answers with all. */
static void take_range(struct download *d)
{
	const char *at = d->range;
	uint64_t first = 0, last = UINT64_MAX;
	bool tail;

	d->first = 0;
	d->left = d->size;
	if (!at || strncmp(at, "bytes=", 6) != 0 || strchr(at, ','))
		return;
	at += 6;
	tail = *at == '-';
	if (!tail && !abx_parse_digits(&at, INT64_MAX, &first))
		return;
	if (*at++ != '-' || (*at && !abx_parse_digits(&at, INT64_MAX, &last)) || *at)
		return;
	if (tail) {
		first = last < d->size ? d->size - last : 0;
		last = d->size - 1;
	}
	d->part = first >= d->size || last < first ? RANGE_NEVER : RANGE_PART;
	if (d->part == RANGE_NEVER)
		return;
	d->first = first;
	d->left = (last < d->size - 1 ? last : d->size - 1) - first + 1;
}

/* What was asked for of it; false: there is no more of that, or nobody wants it. */
static bool push(struct download *d, const char *data, size_t len)
{
	uint64_t skip = d->first < len ? d->first : len;

	d->first -= skip;
	data += skip;
	len -= skip;
	if (len > d->left)
		len = (size_t)d->left;
	d->left -= len;
	return emu_feed_push(d->feed, data, len) && (d->left || d->part != RANGE_PART);
}

/* The size, behind "ok". */
static void parse_head(struct download *d)
{
	const char *rest;

	(void)envd_answer(&d->head, &rest);
	if (!abx_parse_digits(&rest, INT64_MAX, &d->size))
		d->size = 0;
	take_range(d);
	d->from = d->first;
	d->count = d->left;
}

static int32_t on_output(void *ctx, const void *data, size_t len)
{
	struct download *d = ctx;
	size_t before, n;

	if (d->head_whole)
		return push(d, data, len) ? 0 : ABX_ECANCELED;
	(void)pthread_mutex_lock(&d->lock);
	before = d->head.len;
	abx_buf_add(&d->head, data, len < HEAD_MAX - before ? len : HEAD_MAX - before);
	n = strncmp(abx_buf_str(&d->head), "ok", 3) == 0 ? head_len(&d->head) : 0;
	if (n)
		parse_head(d);
	d->head_whole = n > 0;
	if (n)
		(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
	if (n && n - before < len)
		return push(d, (const char *)data + (n - before), len - (n - before))
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
	emu_feed_end(d->feed, d->left > 0 || (d->part != RANGE_PART && (r < 0 || code != 0)));
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

/* The head is there: of what the client takes, what it wants. */
static void answer_file(struct emu_request *req, struct download *d)
{
	const char *takes = emu_header(req, "Accept-Encoding");
	struct emu_header_pair headers[] = {{"Content-Disposition", "inline"},
					    {"Vary", "Accept-Encoding"},
					    {"Accept-Ranges", "bytes"},
					    {NULL, NULL},
					    {NULL, NULL}};
	char range[80];

	if (d->part == RANGE_NEVER) {
		(void)snprintf(range, sizeof(range), "bytes */%" PRIu64, d->size);
		headers[3] = (struct emu_header_pair){"Content-Range", range};
		emu_reply(req, 416, "text/plain; charset=utf-8", "invalid range\n", 14, headers);
	} else if (d->part == RANGE_PART) {
		(void)snprintf(range, sizeof(range), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
			       d->from, d->from + d->count - 1, d->size);
		headers[3] = (struct emu_header_pair){"Content-Range", range};
		emu_reply_feed(req, 206, type_of(d->path), d->count, emu_feed_get(d->feed),
			       headers);
	} else if (takes && strstr(takes, "gzip") && !d->range) {
		headers[2] = (struct emu_header_pair){"Content-Encoding", "gzip"};
		emu_reply_gzip(req, 200, type_of(d->path), emu_feed_get(d->feed), headers);
	} else {
		emu_reply_feed(req, 200, type_of(d->path), d->count, emu_feed_get(d->feed),
			       headers);
	}
}

static void answer(struct emu_request *req, struct download *d)
{
	const char *rest, *kind;
	bool ok;

	(void)pthread_mutex_lock(&d->lock);
	while (!d->head_whole && !d->over)
		(void)pthread_cond_wait(&d->changed, &d->lock);
	ok = d->head_whole;
	(void)pthread_mutex_unlock(&d->lock);
	kind = envd_answer(&d->head, &rest);
	if (ok)
		answer_file(req, d);
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
	d->range = emu_header(req, "Range");
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
