/* SPDX-License-Identifier: MIT */
/*
 * core/box/volumes.h: volumes, which outlive boxes.
 *
 * A volume is known by its name at its provider.  It is made on first use, belongs to no box,
 * and goes only when somebody says so.
 */
#ifndef ABX_VOLUMES_H
#define ABX_VOLUMES_H

#include "core/box/app.h"
#include "core/box/spec.h"

/* All of them are there afterwards; ret_ids[i] is the provider's id of wanted->items[i]. */
int abx_volumes_ensure(struct abx_app *app, struct abx_cloud *cloud,
		       const struct abx_spec_mounts *wanted, struct abx_strv *ret_ids,
		       struct abx_err *err);

/* Those of this install. */
int abx_volumes_list(struct abx_app *app, struct abx_cloud *cloud, struct abx_resource_list *ret,
		     struct abx_err *err);
/* Its provider's id; ABX_ENOBOX when this install has none of that name. */
int abx_volumes_find(struct abx_app *app, struct abx_cloud *cloud, const char *name, char **ret_id,
		     struct abx_err *err);
/* ABX_ESTATE while a box has it. */
int abx_volumes_remove(struct abx_app *app, struct abx_cloud *cloud, const char *name,
		       const char *id, struct abx_err *err);

#endif
