/* SPDX-License-Identifier: MIT */
/*
 * core/host/login.h: the credential of a provider, before there is a session with it.
 *
 *	struct abx_login l;
 *
 *	r = abx_login_find("e2b", NULL, &home, config, &l, err);
 *	if (r == 0 && l.option)
 *		r = abx_login_try(&l, &host, config, token, &account, &unsure, err);
 *	if (r == 0)
 *		r = abx_config_store(config, true, l.key, token, err);
 */
#ifndef ABX_LOGIN_H
#define ABX_LOGIN_H

#include "core/host/cloud.h"

struct abx_login {
	const char *provider; /* as it calls itself */
	const struct abx_cloud_backend *table;
	const struct abx_option *option; /* NULL: it needs no credential */
	char key[256];			 /* the setting: "e2b.api_key" */
};

/* Which of its options is the credential: `option`, or the first secret one.  They are declared in
 * `config`.  Only loads the plugin. */
int abx_login_find(const char *provider, const char *option, const struct abx_home *home,
		   struct abx_config *config, struct abx_login *ret, struct abx_err *err);

/* One line without blanks, in place; ABX_EUSAGE says what it is, and never shows it. */
int abx_login_trim(char *token, struct abx_err *err);

/* Ask the service, with this token and no other.  0: it took it, *ret_account is who it is (NULL:
 * not said), or nobody could tell, and *ret_unsure is why.  Otherwise it must not be stored. */
int abx_login_try(const struct abx_login *l, const struct abx_host_ctx *ctx,
		  struct abx_config *config, const char *token, char **ret_account,
		  char **ret_unsure, struct abx_err *err);

#endif
