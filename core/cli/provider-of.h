/* SPDX-License-Identifier: MIT */
/* core/cli/provider-of.h: the provider that a command is about which has no box. */
#ifndef ABX_PROVIDER_OF_H
#define ABX_PROVIDER_OF_H

#include "core/cli/cmd.h"

/* --provider, else as configured for the project here.  It belongs to the app. */
int abx_cli_cloud(struct abx_cli *cli, struct abx_cloud **ret, struct abx_err *err);
/* The same, and that configuration: close it. */
int abx_cli_cloud_config(struct abx_cli *cli, struct abx_cloud **ret,
			 struct abx_config **ret_config, struct abx_err *err);

#endif
