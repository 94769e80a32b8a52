/* SPDX-License-Identifier: MIT */
/* Files that Git LFS keeps. */
#include "core/seed/lfs.h"

#include <string.h>
#include <sys/stat.h>

#include "core/util/mem.h"
#include "core/util/parse.h"

/* What git-lfs itself takes for one. */
#define POINTER_MAX 1024
#define FIRST_LINE "version https://git-lfs.github.com/spec/"

static bool parse_pointer(const char *text, struct abx_lfs_file *f)
{
	static const char oid[] = "\noid sha256:", size[] = "\nsize ";
	const char *at = strstr(text, oid), *number = strstr(text, size);
	char digits[24];
	size_t len;

	if (strncmp(text, FIRST_LINE, sizeof(FIRST_LINE) - 1) != 0 || !at || !number)
		return false;
	at += sizeof(oid) - 1;
	if (strspn(at, "0123456789abcdef") != ABX_LFS_OID_BYTES - 1 ||
	    at[ABX_LFS_OID_BYTES - 1] != '\n')
		return false;
	memcpy(f->oid, at, ABX_LFS_OID_BYTES - 1);
	number += sizeof(size) - 1;
	len = strcspn(number, "\n");
	if (len >= sizeof(digits))
		return false;
	memcpy(digits, number, len);
	digits[len] = '\0';
	return abx_parse_u64(digits, INT64_MAX, &f->size);
}

char *abx_lfs_place(const struct abx_lfs_file *f)
{
	return abx_xasprintf("lfs/objects/%.2s/%.2s/%s", f->oid, f->oid + 2, f->oid);
}

static bool is_here(const char *common_dir, const struct abx_lfs_file *f)
{
	abx_autofree char *place = abx_lfs_place(f);
	abx_autofree char *path = abx_xasprintf("%s/%s", common_dir, place);
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->size &&
	       access(path, R_OK) == 0;
}

static int ask(const struct abx_git *git, const char *const *args, const struct abx_buf *in,
	       struct abx_buf *out, struct abx_err *err)
{
	if (in->failed)
		return abx_err_set(err, ABX_ENOMEM, "git cat-file: too many files");
	return abx_git_run(git, args, in, out, err);
}

static int not_understood(struct abx_err *err)
{
	return abx_err_set(err, ABX_EIO, "git cat-file: its output is not understood");
}

/* The indexes of entries that are small enough for a pointer, into `entries`. */
static int find_small(const struct abx_git *git, const struct abx_index *index, const bool *is_lfs,
		      size_t *entries, size_t *ret_n, struct abx_err *err)
{
	static const char *const args[] = {"cat-file", "--batch-check=%(objectsize)", NULL};
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	size_t n = 0, kept = 0;
	const char *at;
	int r;

	for (size_t i = 0; i < index->len; i++) {
		char id[2 * ABX_OID_BYTES + 1];

		if (!is_lfs[i] || index->entries[i].stage ||
		    (index->entries[i].mode & S_IFMT) != S_IFREG)
			continue;
		abx_oid_hex(index->entries[i].oid, id);
		abx_buf_addf(&in, "%s\n", id);
		entries[n++] = i;
	}
	*ret_n = 0;
	if (!n)
		return 0;
	r = ask(git, args, &in, &out, err);
	at = abx_buf_str(&out);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const size_t len = strcspn(at, "\n");

		if (!at[len])
			return not_understood(err);
		/* "... missing" is none either. */
		if (len < 5 && strspn(at, "0123456789") == len && len)
			entries[kept++] = entries[i];
		at += len + 1;
	}
	*ret_n = kept;
	return r;
}

static void take_blob(struct abx_lfs *l, const char *common_dir, size_t entry, const char *text,
		      size_t len)
{
	struct abx_lfs_file f = {.entry = entry};
	char *pointer = abx_xstrndup(text, len);

	if (len > POINTER_MAX || !parse_pointer(pointer, &f)) {
		free(pointer);
		return;
	}
	f.pointer = pointer;
	f.here = is_here(common_dir, &f);
	l->items[l->len++] = f;
}

/* "ID blob SIZE\nCONTENT\n" for each. */
static int parse_blobs(const struct abx_buf *out, const char *common_dir, const size_t *entries,
		       size_t n, struct abx_lfs *l, struct abx_err *err)
{
	const char *at = abx_buf_str(out), *end = at + out->len;

	for (size_t i = 0; i < n; i++) {
		const char *line = memchr(at, '\n', (size_t)(end - at)), *size;
		abx_autofree char *head = NULL;
		uint64_t len;

		if (!line)
			return not_understood(err);
		head = abx_xstrndup(at, (size_t)(line - at));
		size = strrchr(head, ' ');
		if (!size || !abx_parse_u64(size + 1, (uint64_t)(end - line), &len) ||
		    (uint64_t)(end - line) < len + 2)
			return not_understood(err);
		take_blob(l, common_dir, entries[i], line + 1, (size_t)len);
		at = line + len + 2;
	}
	return 0;
}

int abx_lfs_find(const struct abx_git *git, const char *common_dir, const struct abx_index *index,
		 const bool *is_lfs, struct abx_lfs *ret, struct abx_err *err)
{
	static const char *const args[] = {"cat-file", "--batch", NULL};
	abx_autofree size_t *entries = abx_xcalloc(index->len + 1, sizeof(*entries));
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	struct abx_lfs l = {NULL, 0};
	size_t n;
	int r = find_small(git, index, is_lfs, entries, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		char id[2 * ABX_OID_BYTES + 1];

		abx_oid_hex(index->entries[entries[i]].oid, id);
		abx_buf_addf(&in, "%s\n", id);
	}
	l.items = abx_xcalloc(index->len + 1, sizeof(*l.items));
	if (r == 0 && n)
		r = ask(git, args, &in, &out, err);
	if (r == 0 && n)
		r = parse_blobs(&out, common_dir, entries, n, &l, err);
	if (r < 0)
		abx_lfs_release(&l);
	else
		*ret = l;
	return r;
}

void abx_lfs_release(struct abx_lfs *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->items[i].pointer);
	free(l->items);
	memset(l, 0, sizeof(*l));
}

static int by_entry(const void *a, const void *b)
{
	const struct abx_lfs_file *x = a, *y = b;

	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

struct abx_lfs_file *abx_lfs_of_entry(const struct abx_lfs *l, size_t entry)
{
	const struct abx_lfs_file key = {.entry = entry};

	return l->len ? bsearch(&key, l->items, l->len, sizeof(*l->items), by_entry) : NULL;
}
