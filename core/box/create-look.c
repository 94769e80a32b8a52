/* SPDX-License-Identifier: MIT */
/* One look at the workspace for all boxes of one command. */
#include <pthread.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/box/create-io.h"
#include "core/state/lock.h"
#include "core/util/log.h"
#include "core/util/mem.h"

struct abx_create_look {
	struct abx_creating c; /* what is asked for */
	char id[17]; /* of its temporary directory, which prune finds as it finds a box's */
	pthread_mutex_t lock;
	bool known; /* ends with `result` and `err`, and `seed` or not */
	int result;
	struct abx_err err;
	struct abx_seed *seed;
};

static int begin(struct abx_create_look *l, struct abx_err *err)
{
	struct abx_home *home = &l->c.app->home;
	abx_autofree char *spool = NULL;
	int r;

	if (l->c.origin.point.ref)
		return 0;
	abx_box_new_id(l->id);
	/* Whoever finds the directory finds the lock taken. */
	r = abx_lock_box(home, l->id, 0, &l->c.lock, err);
	if (r == 0)
		r = abx_home_dir(home, &spool, err, "tmp/%s", l->id);
	if (r == 0)
		r = abx_inspection_start(&l->c.look, l->c.workspace, spool, &l->c.how, err);
	return r;
}

int abx_create_look(struct abx_app *app, const struct abx_create *req, struct abx_create_look **ret,
		    struct abx_err *err)
{
	struct abx_create_look *l = abx_xcalloc(1, sizeof(*l));
	const struct abx_creating c = {
		.app = app, .req = req, .look = ABX_INSPECTION_INIT, .lock = -1};
	int r;

	l->c = c;
	(void)pthread_mutex_init(&l->lock, NULL);
	r = abx_create_prepare(&l->c, err);
	if (r == 0)
		r = begin(l, err);
	if (r < 0)
		abx_create_look_free(l);
	else
		*ret = l;
	return r;
}

/* The pack belongs to it: nobody finishes what is lent. */
static void end(struct abx_create_look *l)
{
	const struct abx_err none = ABX_ERR_INIT;

	l->err = none;
	l->result = abx_inspection_finish(&l->c.look, &l->seed, &l->err);
	if (l->result == 0)
		l->result = abx_seed_weigh(l->seed, l->c.app->host.cancel_fd, &l->err);
	l->known = true;
}

int abx_create_borrow(struct abx_create_look *l, const char *spool, struct abx_seed **ret,
		      struct abx_err *err)
{
	(void)pthread_mutex_lock(&l->lock);
	if (!l->known)
		end(l);
	(void)pthread_mutex_unlock(&l->lock);
	if (l->result < 0) {
		if (err)
			*err = l->err;
		return l->result;
	}
	if (!abx_seed_may_lend(l->seed))
		return abx_seed_inspect(l->c.workspace, spool, &l->c.how, ret, err);
	*ret = abx_seed_borrow(l->seed, spool);
	return 0;
}

static void remove_spool(const struct abx_create_look *l)
{
	const struct abx_home *home = &l->c.app->home;
	abx_autofree char *spool = abx_xasprintf("tmp/%s", l->id);
	const int r = abx_fs_remove_tree(home->fd, spool);

	if (r < 0)
		abx_warn("'%s/%s' could not be removed: %s (agentbox prune tries again)",
			 home->path, spool, strerror(-r));
	else
		abx_lock_forget(home, l->id);
}

bool abx_create_look_is_here(const struct abx_create_look *l)
{
	return abx_cloud_caps(l->c.cloud) & ABX_CAP_LOCAL;
}

void abx_create_look_free(struct abx_create_look *l)
{
	if (!l)
		return;
	abx_inspection_release(&l->c.look);
	abx_seed_free(l->seed);
	if (l->c.lock >= 0)
		remove_spool(l);
	abx_creating_release(&l->c);
	(void)pthread_mutex_destroy(&l->lock);
	free(l);
}
