/* SPDX-License-Identifier: MIT */
/* core/box/create-io.h: what the files of create share.  Only they include it. */
#ifndef ABX_CREATE_IO_H
#define ABX_CREATE_IO_H

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
	char *workspace, *subdir, *image;
	struct abx_box box;
	struct abx_origin origin;
	struct abx_inspection look;
	struct abx_seed_options how;
	struct abx_strv included;
	struct abx_seed *seed;
	struct abx_env env;
	struct abx_box_spec spec;
	struct abx_strv volume_ids;
	int64_t timeout_ms;
	enum abx_box_zstd zstd;
	int lock;
	bool reserved;
};

/* create-asked.c: all that can be refused before anything exists. */
int abx_create_prepare(struct abx_creating *c, struct abx_err *err);

#endif
