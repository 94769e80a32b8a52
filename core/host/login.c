/* SPDX-License-Identifier: MIT */
/* The credential of a provider. */
#include "core/host/login.h"

#include <string.h>

#include "core/host/loader.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/redact.h"

#define VERIFY_TIMEOUT_MS 20000

static bool is_secret(const struct abx_option *o)
{
	return (o->flags & ABX_OPT_SECRET) != 0;
}

static int find_option(struct abx_login *l, const char *name, struct abx_err *err)
{
	const struct abx_option *const *o = l->table->options;
	char shown[64];

	for (; o && *o && !l->option; o++)
		if (is_secret(*o) && (!name || strcmp((*o)->name, name) == 0))
			l->option = *o;
	if (l->option || !name)
		return 0;
	abx_quote_text(name, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EUSAGE, "provider '%s' has no credential '%s'", l->provider,
			  shown);
	return abx_err_remedy(err, "agentbox provider info %s shows its options", l->provider);
}

int abx_login_find(const char *provider, const char *option, const struct abx_home *home,
		   struct abx_config *config, struct abx_login *ret, struct abx_err *err)
{
	struct abx_login l = {.option = NULL};
	struct abx_provider_file file = {0};
	struct abx_plugin *plugin = NULL;
	int r = abx_registry_find(provider, &file, err);

	if (r < 0)
		return r;
	r = abx_plugin_get(&file, home, &plugin, err);
	abx_provider_file_release(&file);
	if (r < 0)
		return r;
	l.table = &plugin->table;
	l.provider = l.table->name;
	r = find_option(&l, option, err);
	if (r < 0)
		return r;
	abx_config_declare_provider(config, l.provider, l.table->options);
	if (l.option)
		(void)snprintf(l.key, sizeof(l.key), "%s.%s", l.provider, l.option->name);
	*ret = l;
	return 0;
}

int abx_login_trim(char *token, struct abx_err *err)
{
	size_t len = strlen(token), from = strspn(token, " \t\r\n");

	while (len > from && strchr(" \t\r\n", token[len - 1]))
		len--;
	memmove(token, token + from, len - from);
	token[len - from] = '\0';
	if (!*token)
		return abx_err_set(err, ABX_EUSAGE, "the credential is empty");
	for (const char *at = token; *at; at++)
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			return abx_err_set(err, ABX_EUSAGE,
					   "the credential is not one line without blanks");
	return 0;
}

/* Nobody could tell what the service thinks of it. */
static bool is_unsure(int code)
{
	return abx_err_retryable(code);
}

/* What else is set must not speak in its place. */
static int set_alone(const struct abx_login *l, struct abx_config *config, const char *token,
		     struct abx_err *err)
{
	int r = 0;

	for (const struct abx_option *const *o = l->table->options; *o && r == 0; o++) {
		abx_autofree char *key = abx_xasprintf("%s.%s", l->provider, (*o)->name);

		if (*o == l->option)
			r = abx_config_set_flag(config, key, token, err);
		else if (is_secret(*o) && !((*o)->flags & ABX_OPT_REQUIRED))
			r = abx_config_set_flag(config, key, "", err);
	}
	return r;
}

int abx_login_try(const struct abx_login *l, const struct abx_host_ctx *ctx,
		  struct abx_config *config, const char *token, char **ret_account,
		  char **ret_unsure, struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = VERIFY_TIMEOUT_MS};
	struct abx_err why = ABX_ERR_INIT;
	struct abx_cloud *cloud = NULL;
	char *account = NULL, *unsure = NULL;
	int r = set_alone(l, config, token, &why);

	if (r == 0)
		r = abx_cloud_open(l->provider, ctx, config, &cloud, &why);
	if (r == 0)
		r = abx_cloud_verify(cloud, &o, &account, &why);
	abx_cloud_close(cloud);
	if (r == 0 && !l->table->verify)
		unsure = abx_xasprintf("provider '%s' cannot check it", l->provider);
	if (is_unsure(r)) {
		abx_redact(why.text);
		unsure = abx_xstrdup(why.text);
		r = 0;
	}
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	*ret_account = account;
	*ret_unsure = unsure;
	return 0;
}
