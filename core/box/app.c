/* SPDX-License-Identifier: MIT */
/* What a command works with: the install, its database, the clouds in use. */
#include "core/box/app.h"

#include <poll.h>
#include <string.h>

#include "core/util/landing.h"
#include "core/util/mem.h"

void abx_app_init(struct abx_app *app)
{
	const struct abx_home none = ABX_HOME_INIT;

	memset(app, 0, sizeof(*app));
	app->home = none;
	app->host.cancel_fd = -1;
}

void abx_app_release(struct abx_app *app)
{
	for (size_t i = 0; i < app->n_clouds; i++) {
		abx_cloud_close(app->clouds[i].cloud);
		free(app->clouds[i].provider);
	}
	free(app->clouds);
	app->clouds = NULL;
	app->n_clouds = 0;
	abx_db_close(app->db);
	app->db = NULL;
	free(app->notes);
	app->notes = NULL;
	abx_home_release(&app->home);
}

int abx_app_open(struct abx_app *app, struct abx_err *err)
{
	int r;

	if (app->db)
		return 0;
	if (app->home.fd < 0) {
		r = abx_home_open(&app->home, err);
		if (r < 0)
			return r;
	}
	r = abx_db_open(&app->home, &app->db, err);
	if (r < 0)
		return r;
	app->notes = abx_home_path(&app->home, "landing");
	abx_landing_sweep(app->notes);
	app->host.home = &app->home;
	app->host.db = app->db;
	return 0;
}

int abx_app_cloud(struct abx_app *app, const char *provider, struct abx_config *config,
		  struct abx_cloud **ret, struct abx_err *err)
{
	struct abx_cloud *cloud;
	int r;

	for (size_t i = 0; i < app->n_clouds; i++) {
		if (strcmp(app->clouds[i].provider, provider) == 0) {
			*ret = app->clouds[i].cloud;
			return 0;
		}
	}
	r = abx_cloud_open(provider, &app->host, config, &cloud, err);
	if (r < 0)
		return r;
	app->clouds = abx_xreallocarray(app->clouds, app->n_clouds + 1, sizeof(*app->clouds));
	app->clouds[app->n_clouds].provider = abx_xstrdup(provider);
	app->clouds[app->n_clouds++].cloud = cloud;
	/* Boxes elsewhere go on billing after a power cut; what is known of them must not go. */
	r = abx_db_set_durable(app->db, !(abx_cloud_caps(cloud) & ABX_CAP_LOCAL), err);
	if (r < 0)
		return r;
	*ret = cloud;
	return 0;
}

int abx_app_cloud_of(struct abx_app *app, const struct abx_box *box, struct abx_cloud **ret,
		     struct abx_err *err)
{
	struct abx_config *config = NULL;
	int r = abx_config_open(&app->home, box->project, /* workspace= */ NULL, &config, err);

	if (r == 0)
		r = abx_app_cloud(app, box->provider, config, ret, err);
	abx_config_close(config);
	return r;
}

bool abx_app_cancelled(const struct abx_app *app)
{
	struct pollfd fd = {app->host.cancel_fd, POLLIN, 0};

	return app->host.cancel_fd >= 0 && poll(&fd, 1, 0) > 0;
}
