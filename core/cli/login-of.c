/* SPDX-License-Identifier: MIT */
/* The credential that login and logout are about. */
#include "core/cli/login-of.h"

#include "core/box/select.h"

int abx_cli_login_open(struct abx_cli *cli, const char *option, struct abx_cli_login *ret,
		       struct abx_err *err)
{
	abx_autofree char *path = NULL, *key = NULL;
	int r = abx_select_project(&cli->app, &path, &key, err);

	if (r == 0)
		r = abx_config_open(&cli->app.home, key, path, &ret->config, err);
	if (r < 0)
		return r;
	return abx_login_find(cli->provider ? cli->provider
					    : abx_config_get(ret->config, "box.provider", NULL),
			      option, &cli->app.home, ret->config, &ret->login, err);
}
