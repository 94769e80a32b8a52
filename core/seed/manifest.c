/* SPDX-License-Identifier: MIT */
/* What was sent into a box. */
#include "core/seed/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "core/seed/index.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define CHUNK_BYTES ((size_t)64 << 10)
#define ENTRY_MAX_BYTES ((size_t)64 << 10)
#define NAMES_BYTES ((size_t)64 << 10)
#define MAGIC "agentbox-manifest 1"
#define N_NUMBERS 7
#define BROUGHT "brought "
#define NO_OID "0000000000000000000000000000000000000000"

/* Of very many short paths, each with an allocation of its own would take twice as much. */
struct abx_manifest_names {
	struct abx_manifest_names *next;
	size_t len, cap;
	char text[];
};

static const char *keep(struct abx_manifest *m, const char *path)
{
	const size_t len = strlen(path) + 1;
	struct abx_manifest_names *n = m->names;
	char *at;

	if (!n || n->cap - n->len < len) {
		const size_t cap = len > NAMES_BYTES ? len : NAMES_BYTES;

		n = abx_xcalloc(1, sizeof(*n) + cap);
		n->cap = cap;
		n->next = m->names;
		m->names = n;
	}
	at = n->text + n->len;
	memcpy(at, path, len);
	n->len += len;
	return at;
}

void abx_manifest_add(struct abx_manifest *m, const char *path, const struct stat *st,
		      const char *oid)
{
	struct abx_manifest_entry *e;

	if (m->len == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 256;
		m->items = abx_xreallocarray(m->items, m->cap, sizeof(*m->items));
	}
	e = &m->items[m->len++];
	*e = (struct abx_manifest_entry){.path = keep(m, path),
					 .mode = st->st_mode,
					 .size = (uint64_t)st->st_size,
					 .inode = st->st_ino,
					 .mtime = st->st_mtim,
					 .ctime = st->st_ctim};
	(void)snprintf(e->oid, sizeof(e->oid), "%s", oid);
}

void abx_manifest_release(struct abx_manifest *m)
{
	for (struct abx_manifest_names *n = m->names, *next; n; n = next) {
		next = n->next;
		free(n);
	}
	free(m->items);
	free(m->brought);
	memset(m, 0, sizeof(*m));
}

static int by_path(const void *a, const void *b)
{
	const struct abx_manifest_entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int by_brought_path(const void *a, const void *b)
{
	const struct abx_manifest_brought *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void sort(struct abx_manifest *m)
{
	if (m->len)
		qsort(m->items, m->len, sizeof(*m->items), by_path);
	m->sorted = m->len;
	if (m->n_brought)
		qsort(m->brought, m->n_brought, sizeof(*m->brought), by_brought_path);
	m->brought_sorted = m->n_brought;
}

/* Entries that abx_manifest_set() and abx_manifest_unbring() emptied go. */
static void compact(struct abx_manifest *m)
{
	size_t n = 0, n_brought = 0;

	for (size_t i = 0; i < m->len; i++)
		if (m->items[i].mode)
			m->items[n++] = m->items[i];
	m->len = n;
	for (size_t i = 0; i < m->n_brought; i++)
		if (*m->brought[i].oid)
			m->brought[n_brought++] = m->brought[i];
	m->n_brought = n_brought;
}

static void add_entry(struct abx_buf *b, const struct abx_manifest_entry *e)
{
	const unsigned long long n[N_NUMBERS] = {e->mode,
						 e->size,
						 e->inode,
						 (unsigned long long)e->mtime.tv_sec,
						 (unsigned long long)e->mtime.tv_nsec,
						 (unsigned long long)e->ctime.tv_sec,
						 (unsigned long long)e->ctime.tv_nsec};

	for (size_t k = 0; k < N_NUMBERS; k++)
		abx_buf_addf(b, "%llu ", n[k]);
	abx_buf_add(b, e->oid, strlen(e->oid) + 1);
	abx_buf_add(b, e->path, strlen(e->path) + 1);
}

static void add_brought(struct abx_buf *b, const struct abx_manifest_brought *e)
{
	abx_buf_addf(b, BROUGHT "%o %s", e->mode, e->oid);
	abx_buf_addc(b, '\0');
	abx_buf_add(b, e->path, strlen(e->path) + 1);
}

/* Write out what has gathered, when it is as much as `enough`. */
static int flush(struct abx_buf *b, int fd, size_t enough)
{
	int r = b->failed ? -ENAMETOOLONG : 0;

	if (r == 0 && b->len >= enough) {
		r = abx_fs_write_all(fd, b->data, b->len);
		abx_buf_reset(b);
	}
	return r;
}

/* In pieces: of very many files the text is as large as all that is known of them. */
static int write_text(void *ctx, int fd)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(CHUNK_BYTES + ENTRY_MAX_BYTES);
	const struct abx_manifest *m = ctx;
	int r = 0;

	abx_buf_add(&b, MAGIC, sizeof(MAGIC));
	for (size_t i = 0; i < m->len && r == 0; i++) {
		add_entry(&b, &m->items[i]);
		r = flush(&b, fd, CHUNK_BYTES);
	}
	for (size_t i = 0; i < m->n_brought && r == 0; i++) {
		add_brought(&b, &m->brought[i]);
		r = flush(&b, fd, CHUNK_BYTES);
	}
	if (r < 0)
		return r;
	abx_buf_add(&b, "end", sizeof("end"));
	return flush(&b, fd, 0);
}

int abx_manifest_save(struct abx_manifest *m, const char *path, struct abx_err *err)
{
	int r;

	compact(m);
	sort(m);
	r = abx_fs_fill_atomic(AT_FDCWD, path, write_text, m, 0600, true);
	return r < 0 ? abx_err_errno(err, -r, "write '%s'", path) : 0;
}

static bool parse_numbers(const char *text, struct abx_manifest_entry *e)
{
	uint64_t n[N_NUMBERS];

	for (size_t k = 0; k < N_NUMBERS; k++) {
		const size_t len = strcspn(text, " ");
		char digits[24];

		if (!text[len] || len >= sizeof(digits))
			return false;
		memcpy(digits, text, len);
		digits[len] = '\0';
		if (!abx_parse_u64(digits, UINT64_MAX, &n[k]))
			return false;
		text += len + 1;
	}
	if (!abx_is_oid_hex(text))
		return false;
	memcpy(e->oid, text, sizeof(e->oid));
	e->mode = (mode_t)n[0];
	e->size = n[1];
	e->inode = n[2];
	e->mtime = (struct timespec){(time_t)n[3], (long)n[4]};
	e->ctime = (struct timespec){(time_t)n[5], (long)n[6]};
	return true;
}

/* "brought MODE OID" */
static bool parse_brought(const char *text, const char *path, struct abx_manifest *m)
{
	static const uint32_t known[] = {0, ABX_MODE_FILE, ABX_MODE_EXEC, ABX_MODE_LINK};
	char said[sizeof(BROUGHT) + 8];

	for (size_t i = 0; i < ABX_N_ELEMENTS(known); i++) {
		const size_t len = (size_t)snprintf(said, sizeof(said), BROUGHT "%o ", known[i]);

		if (strncmp(text, said, len) != 0 || !abx_is_oid_hex(text + len))
			continue;
		abx_manifest_bring(m, path, known[i], text + len);
		return true;
	}
	return false;
}

/* A file of strings, read in pieces: of very many files it is as large as all that is known. */
struct source {
	int fd;
	struct abx_buf piece;
	size_t at;
	bool all; /* the rest of the file is in the piece */
};

/* Before an entry: all of it is in the piece. */
static int refill(struct source *s)
{
	const size_t left = s->piece.len - s->at;
	char room[CHUNK_BYTES];
	ssize_t n = 1;

	if (s->all || left >= ENTRY_MAX_BYTES)
		return 0;
	if (left)
		memmove(s->piece.data, s->piece.data + s->at, left);
	s->piece.len = left;
	s->at = 0;
	while (n > 0 && s->piece.len < ENTRY_MAX_BYTES) {
		n = read(s->fd, room, sizeof(room));
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			abx_buf_add(&s->piece, room, (size_t)n);
	}
	s->all = n == 0;
	return n < 0 ? -errno : s->piece.failed ? -ENOMEM : 0;
}

/* The next NUL-terminated string of the piece, or NULL. */
static const char *next(struct source *s)
{
	const char *text = abx_buf_str(&s->piece) + s->at;
	const char *nul = memchr(text, '\0', s->piece.len - s->at);

	if (!nul)
		return NULL;
	s->at += (size_t)(nul - text) + 1;
	return text;
}

static bool parse_entry(const char *text, const char *path, struct abx_manifest *m)
{
	const struct stat none = {0};

	if (!path)
		return false;
	if (strncmp(text, BROUGHT, sizeof(BROUGHT) - 1) == 0)
		return parse_brought(text, path, m);
	abx_manifest_add(m, path, &none, "");
	return parse_numbers(text, &m->items[m->len - 1]);
}

/* -EBADMSG: it is damaged. */
static int parse(struct source *source, struct abx_manifest *m)
{
	int r = refill(source);
	const char *s = r == 0 ? next(source) : NULL;

	if (r == 0 && (!s || strcmp(s, MAGIC) != 0))
		r = -EBADMSG;
	while (r == 0 && (r = refill(source)) == 0) {
		s = next(source);
		if (s && strcmp(s, "end") == 0)
			return source->all && source->at == source->piece.len ? 0 : -EBADMSG;
		if (!s || !parse_entry(s, next(source), m))
			r = -EBADMSG;
	}
	return r;
}

int abx_manifest_load(const char *path, struct abx_manifest *ret, struct abx_err *err)
{
	struct source source = {-1, ABX_BUF_INIT(CHUNK_BYTES + 2 * ENTRY_MAX_BYTES), 0, false};
	struct abx_manifest m = {0};
	int r;

	source.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	r = source.fd < 0 ? -errno : parse(&source, &m);
	if (source.fd >= 0)
		(void)close(source.fd);
	abx_buf_release(&source.piece);
	if (r < 0) {
		abx_manifest_release(&m);
		if (r == -EBADMSG)
			return abx_err_set(err, ABX_ECORRUPT,
					   "the record of what was sent is damaged: '%s'", path);
		return abx_err_errno(err, -r, "read '%s'", path);
	}
	sort(&m);
	*ret = m;
	return 0;
}

struct abx_manifest_entry *abx_manifest_find(const struct abx_manifest *m, const char *path)
{
	const struct abx_manifest_entry key = {.path = path};

	return m->sorted ? bsearch(&key, m->items, m->sorted, sizeof(*m->items), by_path) : NULL;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool abx_manifest_untouched(const struct abx_manifest_entry *e, const struct stat *st)
{
	return e->mode == st->st_mode && e->size == (uint64_t)st->st_size &&
	       e->inode == st->st_ino && same_time(&e->mtime, &st->st_mtim) &&
	       same_time(&e->ctime, &st->st_ctim);
}

void abx_manifest_set(struct abx_manifest *m, const char *path, const struct stat *st,
		      const char *oid)
{
	struct abx_manifest_entry *e = abx_manifest_find(m, path);

	if (!e && st) {
		abx_manifest_add(m, path, st, oid);
		return;
	}
	if (!e)
		return;
	if (!st) {
		e->mode = 0;
		return;
	}
	e->mode = st->st_mode;
	e->size = (uint64_t)st->st_size;
	e->inode = st->st_ino;
	e->mtime = st->st_mtim;
	e->ctime = st->st_ctim;
	(void)snprintf(e->oid, sizeof(e->oid), "%s", oid);
}

static struct abx_manifest_brought *find_brought(const struct abx_manifest *m, const char *path)
{
	const struct abx_manifest_brought key = {.path = path};

	return m->brought_sorted ? bsearch(&key, m->brought, m->brought_sorted, sizeof(*m->brought),
					   by_brought_path)
				 : NULL;
}

void abx_manifest_bring(struct abx_manifest *m, const char *path, uint32_t mode, const char *oid)
{
	struct abx_manifest_brought *e = find_brought(m, path);

	if (!e) {
		if (m->n_brought == m->brought_cap) {
			m->brought_cap = m->brought_cap ? m->brought_cap * 2 : 64;
			m->brought =
				abx_xreallocarray(m->brought, m->brought_cap, sizeof(*m->brought));
		}
		e = &m->brought[m->n_brought++];
		e->path = keep(m, path);
	}
	e->mode = mode;
	(void)snprintf(e->oid, sizeof(e->oid), "%s", mode ? oid : NO_OID);
}

void abx_manifest_unbring(struct abx_manifest *m, const char *path)
{
	struct abx_manifest_brought *e = find_brought(m, path);

	if (e)
		e->oid[0] = '\0';
}
