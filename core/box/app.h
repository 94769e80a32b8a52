/* SPDX-License-Identifier: MIT */
/*
 * core/box/app.h: what a command works with: the install, its database, the clouds in use.
 *
 * Everything is opened on first use, so `version` and `help` touch nothing.  One app a
 * process; not thread-safe.
 */
#ifndef ABX_APP_H
#define ABX_APP_H

#include "core/host/cloud.h"
#include "core/state/boxes.h"

struct abx_app {
	struct abx_home home;
	struct abx_db *db;
	char *notes;		  /* of abx_landing: what is under way in directories of the user */
	struct abx_host_ctx host; /* cancel_fd and the callbacks are set by the program */
	struct abx_app_cloud {
		char *provider;
		struct abx_cloud *cloud;
	} * clouds;
	size_t n_clouds;
};

void abx_app_init(struct abx_app *app);
void abx_app_release(struct abx_app *app);

/* Home and database are there afterwards. */
int abx_app_open(struct abx_app *app, struct abx_err *err);

/* The cloud of a provider, opened once a process.  `config` may be NULL.  The cloud belongs
 * to the app. */
int abx_app_cloud(struct abx_app *app, const char *provider, struct abx_config *config,
		  struct abx_cloud **ret, struct abx_err *err);
/* The same for a box that exists: its provider, with its project's configuration. */
int abx_app_cloud_of(struct abx_app *app, const struct abx_box *box, struct abx_cloud **ret,
		     struct abx_err *err);

/* Did the user give up? */
bool abx_app_cancelled(const struct abx_app *app);

#endif
