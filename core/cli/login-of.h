/* SPDX-License-Identifier: MIT */
/* core/cli/login-of.h: the credential that login and logout are about. */
#ifndef ABX_LOGIN_OF_H
#define ABX_LOGIN_OF_H

#include "core/cli/cmd.h"
#include "core/host/login.h"

struct abx_cli_login {
	struct abx_login login;
	struct abx_config *config; /* close it, also after a failure */
};

/* Of --provider, else of the one that is configured here; no session is opened. */
int abx_cli_login_open(struct abx_cli *cli, const char *option, struct abx_cli_login *ret,
		       struct abx_err *err);

#endif
