/* SPDX-License-Identifier: MIT */
/*
 * core/box/origin.h: what a new box starts from when that is not the project but a snapshot.
 *
 * Of a checkpoint of ours it is known what its box was seeded with, so diff and download work
 * in the new one; of a provider's own snapshot nothing is known.
 */
#ifndef ABX_ORIGIN_H
#define ABX_ORIGIN_H

#include "core/box/create.h"

struct abx_origin {
	struct abx_checkpoint point; /* ref NULL: it starts from the project */
	char *seed;		     /* file that says what was sent; or NULL */
};
void abx_origin_release(struct abx_origin *o);

/* What `req` asks for.  ABX_ENOBOX when there is neither a checkpoint of that name in the
 * project nor a snapshot of that name at the provider. */
int abx_origin_find(struct abx_app *app, struct abx_cloud *cloud, const char *project,
		    const struct abx_create *req, struct abx_origin *ret, struct abx_err *err);

/* Where the project has a checkpoint of that name, when it has none at `provider` and it is clear
 * where; free it.  NULL: it is a matter for `provider`. */
char *abx_origin_elsewhere(struct abx_app *app, const char *provider, const char *project,
			   const char *name);

/* Fill in the box's record, in memory, and give it its own copy of the file. */
int abx_origin_adopt(struct abx_app *app, const struct abx_origin *o, struct abx_box *box,
		     struct abx_err *err);

/* What is set in every command of a box, for its forks: in a file of the box alone that goes with
 * it, for there may be secrets in it.  Loading adds nothing where there is none. */
int abx_origin_env_save(const struct abx_app *app, const char *box_id, const struct abx_env *env,
			struct abx_err *err);
int abx_origin_env_load(const struct abx_app *app, const char *box_id, struct abx_env *env,
			struct abx_err *err);

/* Why it could not be provisioned, when it is not there any more. */
int abx_origin_explain(const struct abx_origin *o, int code, struct abx_err *err);

#endif
