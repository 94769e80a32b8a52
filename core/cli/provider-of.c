/* SPDX-License-Identifier: MIT */
/* The provider that a command is about which has no box. */
#include "core/cli/provider-of.h"

#include "core/box/select.h"

int abx_cli_cloud_config(struct abx_cli *cli, struct abx_cloud **ret,
			 struct abx_config **ret_config, struct abx_err *err)
{
	abx_autofree char *path = NULL, *key = NULL;
	struct abx_config *config = NULL;
	int r = abx_select_project(&cli->app, &path, &key, err);

	if (r == 0)
		r = abx_config_open(&cli->app.home, key, path, &config, err);
	if (r == 0)
		r = abx_app_cloud(&cli->app,
				  cli->provider ? cli->provider
						: abx_config_get(config, "box.provider", NULL),
				  config, ret, err);
	if (r == 0)
		*ret_config = config;
	else
		abx_config_close(config);
	return r;
}

int abx_cli_cloud(struct abx_cli *cli, struct abx_cloud **ret, struct abx_err *err)
{
	struct abx_config *config = NULL;
	int r = abx_cli_cloud_config(cli, ret, &config, err);

	abx_config_close(config);
	return r;
}
