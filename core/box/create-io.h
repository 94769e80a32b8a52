/* SPDX-License-Identifier: MIT */
/* core/box/create-io.h: what the files of create share.  Only they include it. */
#ifndef ABX_CREATE_IO_H
#define ABX_CREATE_IO_H

#include "core/base/ca.h"
#include "core/base/prepared.h"
#include "core/box/create.h"
#include "core/box/exec.h"
#include "core/box/inspection.h"
#include "core/box/origin.h"

#define WORKSPACE_IN_BOX "/workspace"

/* Everything a create has in its hands. */
struct abx_creating {
	struct abx_app *app;
	const struct abx_create *req;
	struct abx_config *config;
	struct abx_cloud *cloud;
	const char *provider;
	char *elsewhere; /* the provider, when it is that of the checkpoint */
	char *workspace, *subdir, *image;
	char *base_from; /* of the image on record that boxes boot from: what it was made of */
	struct abx_box box;
	struct abx_origin origin;
	struct abx_inspection look;
	struct abx_seed_options how;
	struct abx_strv included;
	struct abx_seed *seed;
	struct abx_env env;
	struct abx_buf ca; /* certificates that the box is to trust */
	struct abx_box_spec spec;
	struct abx_strv volume_ids;
	int64_t timeout_ms;
	enum abx_box_zstd zstd;
	int lock;
	bool reserved;
};

/* create-asked.c: all that can be refused before anything exists. */
int abx_create_prepare(struct abx_creating *c, struct abx_err *err);

/* create-ca.c: certificates that the box is to trust beside its own: what is configured, told to
 * programs by variables that are nobody else's yet; and, in the box, the files that these name. */
int abx_create_load_ca(struct abx_creating *c, struct abx_err *err);
int abx_create_send_ca(struct abx_creating *c, struct abx_err *err);

/* create-base.c: the image of boxes for which nobody named one.  Has the provider an option that
 * names one? */
/* For provision; free it. */
struct abx_kv *abx_create_options(const struct abx_creating *c, uint32_t *ret_n);
bool abx_create_has_own_image(const struct abx_creating *c);
/* Say so when the one there is was made of something else than one would be now. */
void abx_create_judge_base(const struct abx_creating *c, const struct abx_prepared *base);
/* Make it, once, where the provider needs one and there is none. */
int abx_create_make_base(struct abx_creating *c, struct abx_err *err);
/* Nothing came of a box: 1 when that was because the image on record is gone, and there is
 * another one now; 0 when it was not. */
int abx_create_replace_base(struct abx_creating *c, struct abx_err *err);

/* create.c */
void abx_creating_release(struct abx_creating *c);

/* create-look.c: the workspace as it was looked at for all; `spool` is this box's own. */
int abx_create_borrow(struct abx_create_look *look, const char *spool, struct abx_seed **ret,
		      struct abx_err *err);

#endif
