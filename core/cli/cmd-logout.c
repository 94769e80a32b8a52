/* SPDX-License-Identifier: MIT */
/* agentbox logout */
#include <string.h>

#include "core/cli/cmd.h"
#include "core/cli/login-of.h"
#include "core/util/log.h"
#include "core/util/mem.h"

/* Every credential of the provider that is kept; what the environment has stays. */
static int forget_all(const struct abx_cli_login *at, size_t *ret_n, struct abx_err *err)
{
	const struct abx_login *l = &at->login;
	int r = 0;

	*ret_n = 0;
	for (const struct abx_option *const *o = l->table->options; o && *o && r == 0; o++) {
		abx_autofree char *key = abx_xasprintf("%s.%s", l->provider, (*o)->name);
		const char *source = NULL;

		if (!((*o)->flags & ABX_OPT_SECRET) || !abx_config_get(at->config, key, &source))
			continue;
		if (source && strcmp(source, "env") == 0)
			abx_warn("%s is set by the environment as well, which stays so", key);
		++*ret_n;
		r = abx_config_store(at->config, /* global= */ true, key, NULL, err);
	}
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_cli_login at = {.config = NULL};
	struct abx_args args;
	size_t n = 0;
	cJSON *doc;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "logout takes no argument");
	r = abx_cli_login_open(cli, NULL, &at, err);
	if (r == 0)
		r = forget_all(&at, &n, err);
	if (r == 0 && cli->json) {
		doc = cJSON_CreateObject();
		abx_json_text(doc, "provider", at.login.provider);
		(void)cJSON_AddBoolToObject(doc, "forgotten", n > 0);
		r = abx_out_json(doc, err);
	} else if (r == 0) {
		r = abx_out_line(err,
				 n ? "the credentials of %s are forgotten"
				   : "there are no credentials of %s",
				 at.login.provider);
	}
	abx_config_close(at.config);
	return r;
}

const struct abx_cmd abx_cmd_logout = {
	.name = "logout",
	.usage = "[--provider P] [--json]",
	.summary = "Forget the credentials of a provider.",
	.help = "They go out of secrets.env; boxes stay as they are.\n",
	.run = run,
};
