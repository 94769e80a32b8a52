/* SPDX-License-Identifier: MIT */
/* How much is sent, and which directories of a workspace are the large ones. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"

#include "core/seed/seed-state.h"
#include "core/util/parse.h"

#define NAMED 3U
#define TEXT_MAX 512

struct part {
	const char *name; /* the first component of a path */
	size_t len;
	uint64_t bytes;
};

struct parts {
	struct part *items;
	size_t len;
};

/* What lies in one directory mostly comes together. */
static struct part *part_of(struct parts *p, const char *path)
{
	const size_t len = strcspn(path, "/");

	for (size_t i = p->len; i > 0; i--)
		if (p->items[i - 1].len == len && memcmp(p->items[i - 1].name, path, len) == 0)
			return &p->items[i - 1];
	p->items = abx_xreallocarray(p->items, p->len + 1, sizeof(*p->items));
	p->items[p->len] = (struct part){path, len, 0};
	return &p->items[p->len++];
}

static int larger_first(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

char *abx_seed_largest(const struct abx_seed *seed)
{
	struct abx_buf text = ABX_BUF_INIT(TEXT_MAX);
	struct parts p = {NULL, 0};
	char *ret;

	for (size_t i = 0; i < seed->files.len; i++)
		if (seed->files.items[i].size)
			part_of(&p, seed->files.items[i].path)->bytes += seed->files.items[i].size;
	if (seed->info.pack_bytes)
		part_of(&p, ".git")->bytes += seed->info.pack_bytes;
	if (p.len)
		qsort(p.items, p.len, sizeof(*p.items), larger_first);
	for (size_t i = 0; i < p.len && i < NAMED; i++) {
		abx_autofree char *name = abx_xstrndup(p.items[i].name, p.items[i].len);
		char shown[100];

		abx_quote_text(name, shown, sizeof(shown));
		abx_buf_addf(&text, "%s%s (%.1f MiB)", i ? ", " : "", shown,
			     (double)p.items[i].bytes / (1 << 20));
	}
	ret = abx_xstrdup(abx_buf_str(&text));
	abx_buf_release(&text);
	free(p.items);
	return ret;
}

/* The pack, and what else git made for the box. */
static uint64_t spooled_bytes(const struct abx_seed_repo *r)
{
	DIR *d = abx_fs_opendir(AT_FDCWD, r->spool);
	const struct dirent *e;
	uint64_t sum = 0;
	struct stat st;

	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, ABX_SEED_PACK "-", sizeof(ABX_SEED_PACK)) == 0 &&
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			sum += (uint64_t)st.st_size;
	if (d)
		(void)closedir(d);
	return sum;
}

static int weigh(struct abx_seed *seed, int stop_fd, struct abx_err *err)
{
	int r = 0;

	seed->info.pack_bytes = 0;
	for (size_t i = 0; i < seed->n_repos && r == 0; i++) {
		r = abx_seed_pack_finish(seed->repos[i], stop_fd, err);
		if (r == 0)
			seed->info.pack_bytes += spooled_bytes(seed->repos[i]);
	}
	return r;
}

/* What git reads may have changed since it was looked at. */
int abx_seed_weigh(struct abx_seed *seed, int stop_fd, struct abx_err *err)
{
	int r = weigh(seed, stop_fd, err);

	for (int i = 2;
	     i <= ABX_SEED_ROUNDS && r < 0 && r != ABX_ECANCELED && abx_seed_is_outdated(seed);
	     i++) {
		r = abx_seed_look_again(seed, err);
		if (r == 0)
			r = weigh(seed, stop_fd, err);
	}
	return r;
}
