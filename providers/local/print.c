/* SPDX-License-Identifier: MIT */
/* The fingerprint of a directory tree. */
#include "providers/local/print.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/fs.h"

#define DEPTH_MAX 64

static uint64_t mix(uint64_t h, const void *data, size_t len, uint64_t k)
{
	const unsigned char *p = data;

	while (len) {
		uint64_t x = 0;
		size_t n = len < 8 ? len : 8;

		memcpy(&x, p, n);
		h = (h ^ x ^ n) * k;
		h ^= h >> 31;
		p += n;
		len -= n;
	}
	return h;
}

/* Entries are added up, so that the order of a directory does not matter. */
static struct local_print add(struct local_print *sum, struct local_print seed, const char *name,
			      const int64_t *facts, size_t n)
{
	struct local_print e = {
		.a = mix(mix(seed.a, name, strlen(name), UINT64_C(0x9e3779b97f4a7c15)), facts,
			 n * sizeof(*facts), UINT64_C(0xbf58476d1ce4e5b9)),
		.b = mix(mix(seed.b, name, strlen(name), UINT64_C(0xd6e8feb86659fd93)), facts,
			 n * sizeof(*facts), UINT64_C(0x94d049bb133111eb)),
	};

	sum->a += e.a;
	sum->b += e.b;
	return e;
}

static struct local_print print_add(struct local_print *sum, struct local_print seed,
				    const char *name, const struct stat *st)
{
	const int64_t facts[] = {S_ISLNK(st->st_mode) ? (int64_t)st->st_ino : 0,
				 (int64_t)st->st_mode, st->st_size, st->st_mtim.tv_sec,
				 st->st_mtim.tv_nsec};

	return add(sum, seed, name, facts, sizeof(facts) / sizeof(facts[0]));
}

struct walk {
	struct local_print *sum;
	local_print_visit visit;
	void *ctx;
	char path[PATH_MAX]; /* in the tree, with a slash at its end */
	size_t len;
};

static bool enter(struct walk *w, const char *name)
{
	size_t n = strlen(name);

	if (w->len + n + 2 > sizeof(w->path))
		return false;
	memcpy(w->path + w->len, name, n + 1);
	w->len += n;
	return true;
}

static void add_tree(struct walk *w, struct local_print seed, int at, const char *name, int depth)
{
	DIR *d = abx_fs_opendir(at, name);
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d))) {
		struct stat st = {.st_mode = S_IFLNK, .st_ino = e->d_ino};
		const size_t len = w->len;
		struct local_print own;

		/* A link cannot be changed, only replaced, which its directory's time tells: no
		 * look at each, and they are most of /etc. */
		if (abx_fs_is_dot(e->d_name) ||
		    (e->d_type != DT_LNK &&
		     fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0))
			continue;
		own = print_add(w->sum, seed, e->d_name, &st);
		if (e->d_type == DT_LNK)
			continue;
		if (enter(w, e->d_name)) {
			if (w->visit)
				w->visit(w->ctx, w->path, &st);
			w->path[w->len++] = '/';
		} else if (w->visit) {
			w->visit(w->ctx, NULL, &st);
		}
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			add_tree(w, own, dirfd(d), e->d_name, depth + 1);
		w->len = len;
	}
	(void)closedir(d);
}

void local_print_walk(struct local_print *p, int at, const char *name, local_print_visit visit,
		      void *ctx)
{
	const struct local_print seed = {1, 2};
	struct walk w = {.sum = p, .visit = visit, .ctx = ctx};
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		(void)print_add(p, seed, ".", &st);
		if (visit)
			visit(ctx, ".", &st);
	} else if (visit) {
		visit(ctx, NULL, &st);
	}
	add_tree(&w, seed, at, name, 0);
}

void local_print_exact(struct local_print *p, const char *name, const struct stat *st)
{
	const struct local_print seed = {5, 6};
	const int64_t facts[] = {(int64_t)st->st_dev, (int64_t)st->st_ino, (int64_t)st->st_mode,
				 st->st_size,	      st->st_ctim.tv_sec,  st->st_ctim.tv_nsec};

	(void)add(p, seed, name, facts, sizeof(facts) / sizeof(facts[0]));
}

void local_print_add(struct local_print *p, const char *name, const struct stat *st)
{
	const struct local_print seed = {3, 4};

	(void)print_add(p, seed, name, st);
}

void local_print_text(const struct local_print *p, char ret[LOCAL_PRINT_TEXT])
{
	(void)snprintf(ret, LOCAL_PRINT_TEXT, "%016llx%016llx", (unsigned long long)p->a,
		       (unsigned long long)p->b);
}
