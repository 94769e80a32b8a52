/* SPDX-License-Identifier: MIT */
/* What a git index file says. */
#include "core/seed/index.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/util/sha1.h"

#define INDEX_MAX_BYTES ((size_t)1 << 30)
#define HEADER_BYTES 12
#define ENTRY_FIXED_BYTES 62
#define ENTRY_SIZE_AT 36
#define FLAG_ASSUME_VALID 0x8000
#define FLAG_EXTENDED 0x4000
#define EXTENDED_SKIP_WORKTREE 0x4000
#define EXTENDED_INTENT_TO_ADD 0x2000

struct reader {
	const unsigned char *at, *end; /* the checksum is behind the end */
	uint32_t version;
	struct abx_index *index;
	struct abx_buf path; /* version 4: the previous entry's */
};

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static unsigned int be16(const unsigned char *p)
{
	return (unsigned int)(p[0] << 8 | p[1]);
}

static size_t left(const struct reader *r)
{
	return (size_t)(r->end - r->at);
}

/* A NUL-terminated string that must end within the entries. */
static const char *take_string(struct reader *r)
{
	const unsigned char *nul = memchr(r->at, '\0', left(r));
	const char *s = (const char *)r->at;

	if (!nul)
		return NULL;
	r->at = nul + 1;
	return s;
}

/* Version 4: how many bytes of the previous path to drop, then what follows. */
static const char *take_delta_path(struct reader *r)
{
	uint64_t drop = 0;
	const char *tail;
	unsigned char c;
	int n = 0;

	do {
		if (!left(r) || n++ > 4)
			return NULL;
		c = *r->at++;
		drop = (n == 1 ? 0 : (drop + 1) << 7) | (c & 127U);
	} while (c & 128U);
	tail = take_string(r);
	if (!tail || drop > r->path.len)
		return NULL;
	r->path.len -= (size_t)drop;
	abx_buf_adds(&r->path, tail);
	if (r->path.failed)
		return NULL;
	abx_strv_add(&r->index->paths, abx_buf_str(&r->path));
	return r->index->paths.items[r->index->paths.len - 1];
}

static bool take_entry(struct reader *r, struct abx_index_entry *e)
{
	const unsigned char *start = r->at;
	unsigned int flags, extended = 0;
	size_t used;

	if (left(r) < ENTRY_FIXED_BYTES)
		return false;
	e->at = (size_t)(start - (const unsigned char *)r->index->bytes.data);
	e->mode = be32(r->at + 24);
	memcpy(e->oid, r->at + 40, ABX_OID_BYTES);
	flags = be16(r->at + 60);
	r->at += ENTRY_FIXED_BYTES;
	if (flags & FLAG_EXTENDED) {
		if (r->version < 3 || left(r) < 2)
			return false;
		extended = be16(r->at);
		r->at += 2;
	}
	e->stage = (uint8_t)(flags >> 12 & 3);
	e->assume_valid = flags & FLAG_ASSUME_VALID;
	e->skip_worktree = extended & EXTENDED_SKIP_WORKTREE;
	e->intent_to_add = extended & EXTENDED_INTENT_TO_ADD;
	if (r->version == 4) {
		e->path = take_delta_path(r);
		return e->path != NULL;
	}
	e->path = take_string(r);
	if (!e->path)
		return false;
	/* Padded with NULs to a multiple of eight, at least one. */
	used = (size_t)(r->at - start);
	used = (used + 7) & ~(size_t)7;
	if (used > (size_t)(r->end - start))
		return false;
	r->at = start + used;
	return true;
}

/* "TREE": a line about each directory, the root first: its name, which the root has none of, a NUL,
 * "ENTRIES SUBTREES\n", its tree.  Where something has changed, the entries are -1. */
static void take_tree(struct abx_index *index, const unsigned char *at, size_t size)
{
	const unsigned char *line = size && !*at ? memchr(at, '\n', size) : NULL;
	char own[32];
	int n = snprintf(own, sizeof(own), "%zu ", index->len);

	if (!line || size - (size_t)(line + 1 - at) < ABX_OID_BYTES || line - at < 1 + n ||
	    memcmp(at + 1, own, (size_t)n) != 0)
		return;
	memcpy(index->tree, line + 1, ABX_OID_BYTES);
	index->has_tree = true;
}

static bool take_extensions(struct reader *r)
{
	while (left(r)) {
		uint32_t size;

		if (left(r) < 8)
			return false;
		size = be32(r->at + 4);
		if (size > left(r) - 8)
			return false;
		if (memcmp(r->at, "link", 4) == 0)
			r->index->split = true;
		else if (memcmp(r->at, "TREE", 4) == 0)
			take_tree(r->index, r->at + 8, size);
		else if (memcmp(r->at, "sdir", 4) == 0)
			r->index->sparse = true;
		else if (memcmp(r->at, "UNTR", 4) == 0)
			r->index->untracked_cache = true;
		else if (memcmp(r->at, "FSMN", 4) == 0)
			r->index->fsmonitor = true;
		r->at += 8 + size;
	}
	return true;
}

static bool take_all(struct reader *r)
{
	struct abx_index *index = r->index;
	uint32_t n;

	if (left(r) < HEADER_BYTES || memcmp(r->at, "DIRC", 4) != 0)
		return false;
	r->version = be32(r->at + 4);
	n = be32(r->at + 8);
	r->at += HEADER_BYTES;
	if (r->version < 2 || r->version > 4 || n > left(r) / ENTRY_FIXED_BYTES)
		return false;
	index->entries = abx_xcalloc(n, sizeof(*index->entries));
	for (; index->len < n; index->len++)
		if (!take_entry(r, &index->entries[index->len]))
			return false;
	if (!take_extensions(r))
		return false;
	/* Of a split one only half of the entries is here. */
	index->has_tree = index->has_tree && !index->split;
	/* In a split index the names of some entries are in the other half. */
	for (size_t i = 0; i < index->len; i++)
		if (!*index->entries[i].path && !index->split)
			return false;
	return true;
}

int abx_index_parse(struct abx_index *index, const char *path, struct abx_err *err)
{
	struct reader r = {.index = index, .path = ABX_BUF_INIT(4 * PATH_MAX)};
	bool good = index->bytes.len >= HEADER_BYTES + ABX_OID_BYTES;

	if (good) {
		r.at = (const unsigned char *)index->bytes.data;
		r.end = r.at + index->bytes.len - ABX_OID_BYTES;
		good = take_all(&r);
	}
	abx_buf_release(&r.path);
	if (good)
		return 0;
	return abx_err_set(err, ABX_ECORRUPT, "git index: '%s': damaged, or of a kind not known",
			   path);
}

int abx_index_read(const char *path, struct abx_index *ret, struct abx_err *err)
{
	struct abx_index index = {.bytes = ABX_BUF_INIT(INDEX_MAX_BYTES)};
	int r;

	/* The stat first: a newer file is then seen as a change at the end. */
	if (stat(path, &index.st) < 0) {
		if (errno != ENOENT)
			return abx_err_errno(err, errno, "git index: '%s'", path);
		index.missing = true;
		*ret = index;
		return 0;
	}
	r = abx_fs_read(AT_FDCWD, path, &index.bytes);
	if (r < 0)
		r = abx_err_errno(err, -r, "git index: '%s'", path);
	else
		r = abx_index_parse(&index, path, err);
	if (r < 0)
		abx_index_release(&index);
	else
		*ret = index;
	return r;
}

/* A size of zero is how git itself marks an entry that it must not believe. */
void abx_index_distrust(struct abx_index *index, size_t i)
{
	memset(index->bytes.data + index->entries[i].at + ENTRY_SIZE_AT, 0, 4);
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

int abx_index_sign(struct abx_index *index, struct abx_err *err)
{
	abx_auto(abx_sha1) struct abx_sha1 hash = ABX_SHA1_INIT;
	const size_t len = index->bytes.len - ABX_OID_BYTES;
	char hex[ABX_SHA1_HEX_BYTES];
	const int r = abx_sha1_open(err);

	if (r < 0)
		return r;
	abx_sha1_init(&hash);
	abx_sha1_update(&hash, index->bytes.data, len);
	abx_sha1_hex(&hash, hex);
	for (size_t i = 0; i < ABX_OID_BYTES; i++) {
		index->bytes.data[len + i] = (char)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	}
	return 0;
}

void abx_index_release(struct abx_index *index)
{
	abx_buf_release(&index->bytes);
	free(index->entries);
	abx_strv_release(&index->paths);
	index->entries = NULL;
	index->len = 0;
}

uint32_t abx_git_mode(mode_t mode)
{
	if (S_ISLNK(mode))
		return ABX_MODE_LINK;
	if (S_ISREG(mode))
		return mode & S_IXUSR ? ABX_MODE_EXEC : ABX_MODE_FILE;
	return 0;
}

void abx_oid_hex(const unsigned char oid[ABX_OID_BYTES], char text[2 * ABX_OID_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < ABX_OID_BYTES; i++) {
		text[2 * i] = digits[oid[i] >> 4];
		text[2 * i + 1] = digits[oid[i] & 15];
	}
	text[2 * ABX_OID_BYTES] = '\0';
}

bool abx_is_oid_hex(const char *text)
{
	return strspn(text, "0123456789abcdef") == 2 * ABX_OID_BYTES && !text[2 * ABX_OID_BYTES];
}
