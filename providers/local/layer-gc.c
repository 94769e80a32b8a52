/* SPDX-License-Identifier: MIT */
/*
 * Layers that no box and no snapshot needs any more.
 *
 * layers.lock is held shared by whoever is about to name a layer in a record, from before it
 * reads or makes that layer; and alone while it is found out which layers nobody names.
 */
#include "providers/local/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "abxsdk/fs.h"

#define LOCK_POLL_MS 2
#define DEAD "dead-"

struct named {
	const struct abx_session *session;
	char (*lid)[LOCAL_LID_SIZE];
	size_t n, cap;
};

static int add_chain(struct named *v, const struct local_chain *c)
{
	if (c->n == 0)
		return 0;
	if (v->n + c->n > v->cap) {
		size_t cap = 2 * v->cap + LOCAL_CHAIN_MAX;
		void *p = reallocarray(v->lid, cap, sizeof(*v->lid));

		if (!p)
			return -ENOMEM;
		v->lid = p;
		v->cap = cap;
	}
	memcpy(v->lid + v->n, c->lid, c->n * sizeof(*v->lid));
	v->n += c->n;
	return 0;
}

/* A record that cannot be read may name any layer: an error, and all are kept. */
static int add_snapshot(void *ctx, const char *ref, const struct local_snapshot *n)
{
	(void)ref;
	return n ? add_chain(ctx, &n->chain) : -EPROTO;
}

static int add_box(void *ctx, const char *id, const struct local_box *b)
{
	struct named *v = ctx;
	struct local_chain chain;
	int r = b ? local_chain_named(v->session, b, &chain) : -EPROTO;

	(void)id;
	return r == 0 ? add_chain(v, &chain) : r == -ENOENT ? 0 : r;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Give another name to each layer that nobody names, and remove what has such a name. */
static void each_entry(const struct abx_session *s, struct abx_call *call, const struct named *v)
{
	DIR *d = abx_fs_opendir(s->layers_fd, ".");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char dead[LOCAL_LID_SIZE + sizeof(DEAD)];

		if (!v && strncmp(e->d_name, DEAD, strlen(DEAD)) == 0) {
			(void)local_remove_tree(s, call, s->layers_fd, e->d_name, ".");
		} else if (v && strlen(e->d_name) == LOCAL_LID_SIZE - 1 &&
			   !(v->n && bsearch(e->d_name, v->lid, v->n, sizeof(*v->lid), compare))) {
			(void)snprintf(dead, sizeof(dead), DEAD "%.16s", e->d_name);
			(void)renameat(s->layers_fd, e->d_name, s->layers_fd, dead);
		}
	}
	if (d)
		(void)closedir(d);
}

/* Records that a dead writer has not given their name. */
static void remove_half_written(const struct abx_session *s)
{
	DIR *d = abx_fs_opendir(s->snapshots_fd, ".");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strstr(e->d_name, ".json.tmp-"))
			(void)unlinkat(s->snapshots_fd, e->d_name, 0);
	if (d)
		(void)closedir(d);
}

static int open_lock(const struct abx_session *s)
{
	return openat(s->store_fd, "layers.lock", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		      0600);
}

int32_t local_layers_hold(const struct abx_session *s, struct abx_call *call, int *ret_lock)
{
	abx_autoclose int fd = open_lock(s);

	if (fd < 0)
		return abx_fail_errno(call, errno, "state directory: layers.lock");
	while (flock(fd, LOCK_SH | LOCK_NB) < 0) {
		int32_t r = abx_plugin_host->wait_ms(call, LOCK_POLL_MS);

		if (r == ABX_ECANCELED)
			return abx_fail_canceled(call);
		if (r != ABX_OK)
			return abx_fail_timed_out(call);
	}
	*ret_lock = abx_steal_fd(&fd);
	return ABX_OK;
}

/* What nobody holds a lock on is found by the next sweep, which comes here again. */
static void come_again(const struct abx_session *s)
{
	abx_autoclose int fd = -1;
	char name[32];

	(void)local_make_locked_dir(s, "gone-", name, sizeof(name), &fd);
}

void local_layers_collect(const struct abx_session *s, struct abx_call *call)
{
	struct named v = {.session = s};
	int lock = open_lock(s);
	int r = -1;

	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
		remove_half_written(s);
		r = local_snapshot_each(s, add_snapshot, &v);
		if (r == 0)
			r = local_box_each(s, add_box, &v);
		if (r == 0) {
			if (v.n)
				qsort(v.lid, v.n, sizeof(*v.lid), compare);
			each_entry(s, call, &v);
		}
	} else if (lock >= 0) {
		come_again(s);
	}
	abx_cleanup_close(&lock);
	free(v.lid);
	if (r == 0)
		each_entry(s, call, NULL);
}
