/* SPDX-License-Identifier: MIT */
/* agentbox login */
#include <string.h>

#include "core/base/prepared.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/cli/login-of.h"
#include "core/util/log.h"
#include "core/util/mem.h"

#define TOKEN_BYTES 16384
#define SHOWN_BYTES 12
/* The end of what is shorter would be too much of it. */
#define SHOW_END_FROM 16

struct login_cmd {
	struct abx_cli *cli;
	struct abx_cli_login at;
	const char *option;
	bool status, token_stdin;
};

static void mask(const char *value, char text[SHOWN_BYTES])
{
	const size_t len = strlen(value);

	(void)snprintf(text, SHOWN_BYTES, "****%s", len > SHOW_END_FROM ? value + len - 4 : "");
}

/* Secrets of the provider that are set, for JSON and as lines. */
static int show_credentials(struct login_cmd *c, cJSON *list, size_t *ret_n, struct abx_err *err)
{
	const struct abx_login *l = &c->at.login;
	int r = 0;

	*ret_n = 0;
	for (const struct abx_option *const *o = l->table->options; o && *o && r == 0; o++) {
		abx_autofree char *key = abx_xasprintf("%s.%s", l->provider, (*o)->name);
		const char *source = NULL, *value = abx_config_get(c->at.config, key, &source);
		char shown[SHOWN_BYTES];
		cJSON *one;

		if (!((*o)->flags & ABX_OPT_SECRET) || !value || !*value)
			continue;
		++*ret_n;
		mask(value, shown);
		if (!list) {
			r = abx_out_line(err, "%s: %s (%s)", key, shown, source);
			continue;
		}
		one = cJSON_CreateObject();
		abx_json_text(one, "key", key);
		abx_json_text(one, "value", shown);
		abx_json_text(one, "source", source);
		(void)cJSON_AddItemToArray(list, one);
	}
	return r;
}

static int show_status(struct login_cmd *c, struct abx_err *err)
{
	const struct abx_login *l = &c->at.login;
	cJSON *list = c->cli->json ? cJSON_CreateArray() : NULL, *doc;
	size_t n = 0;
	int r = show_credentials(c, list, &n, err);
	const bool good = n || !l->option;

	if (r < 0) {
		cJSON_Delete(list);
		return r;
	}
	if (list) {
		doc = cJSON_CreateObject();
		abx_json_text(doc, "provider", l->provider);
		(void)cJSON_AddBoolToObject(doc, "needs_login", l->option != NULL);
		(void)cJSON_AddBoolToObject(doc, "configured", good);
		(void)cJSON_AddItemToObject(doc, "credentials", list);
		r = abx_out_json(doc, err);
	} else if (!l->option) {
		r = abx_out_line(err, "provider '%s' needs no login", l->provider);
	} else if (!n) {
		r = abx_out_line(err, "%s: not configured (agentbox %s login)", l->key,
				 l->provider);
	}
	return r < 0 ? r : good ? 0 : abx_err_exit_code(ABX_EAUTH);
}

/* NULL, or the command that makes what boxes boot from. */
static char *next_step(struct login_cmd *c)
{
	const struct abx_login *l = &c->at.login;
	struct abx_prepared_list list = {NULL, 0};
	bool there = !l->table->prepare ||
		     abx_prepared_load(&c->cli->app.home, l->provider, &list, NULL) < 0 ||
		     abx_prepared_find(&list, ABX_PREPARED_DEFAULT);

	abx_prepared_list_release(&list);
	return there ? NULL : abx_xasprintf("agentbox %s prepare", l->provider);
}

static int report(struct login_cmd *c, const char *account, const char *unsure, struct abx_err *err)
{
	const struct abx_login *l = &c->at.login;
	abx_autofree char *next = next_step(c);
	cJSON *doc;
	int r;

	if (c->cli->json) {
		doc = cJSON_CreateObject();
		abx_json_text(doc, "provider", l->provider);
		(void)cJSON_AddBoolToObject(doc, "needs_login", true);
		(void)cJSON_AddBoolToObject(doc, "configured", true);
		(void)cJSON_AddBoolToObject(doc, "verified", !unsure);
		abx_json_text(doc, "account", account);
		abx_json_text(doc, "reason", unsure);
		abx_json_text(doc, "key", l->key);
		abx_json_text(doc, "next", next);
		return abx_out_json(doc, err);
	}
	if (unsure)
		r = abx_out_line(err, "%s is stored, not verified: %s", l->key, unsure);
	else
		r = abx_out_line(err, "logged in at %s%s%s", l->provider, account ? " as " : "",
				 account ? account : "");
	if (r == 0 && next)
		r = abx_out_line(err, "next: %s", next);
	return r;
}

static int read_token(struct login_cmd *c, char token[TOKEN_BYTES], struct abx_err *err)
{
	const struct abx_login *l = &c->at.login;
	const char *help = l->option->help;
	abx_autofree char *question =
		abx_xasprintf("%s%s%s (not shown)", l->key, help ? ": " : "", help ? help : "");
	int r = abx_ask_secret(c->cli, c->token_stdin, question, token, TOKEN_BYTES, err);

	return r < 0 ? r : abx_login_trim(token, err);
}

static int log_in(struct login_cmd *c, char token[TOKEN_BYTES], struct abx_err *err)
{
	const struct abx_login *l = &c->at.login;
	abx_autofree char *account = NULL, *unsure = NULL;
	const char *source = NULL;
	int r = read_token(c, token, err);

	if (r < 0)
		return r;
	(void)abx_config_get(c->at.config, l->key, &source);
	r = abx_login_try(l, &c->cli->app.host, c->at.config, token, &account, &unsure, err);
	if (r < 0)
		return abx_err_wrap(err, "%s is not stored", l->key);
	r = abx_config_store(c->at.config, /* global= */ true, l->key, token, err);
	if (r < 0)
		return r;
	if (source && strcmp(source, "env") == 0)
		abx_warn("%s is stored, but what is set by the environment (%s) comes first",
			 l->key, l->option->env ? l->option->env : "AGENTBOX_...");
	return report(c, account, unsure, err);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct login_cmd c = {.cli = cli};
	const struct abx_opt opts[] = {
		{0, "status", ABX_OPT_KIND_FLAG, &c.status, NULL, "only say what is configured"},
		{0, "token-stdin", ABX_OPT_KIND_FLAG, &c.token_stdin, NULL,
		 "read the credential from stdin"},
		{0, "option", ABX_OPT_KIND_TEXT, &c.option, "NAME",
		 "which credential of the provider, where it has several"},
		{0}};
	char token[TOKEN_BYTES];
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	/* It may be a token, which nobody is to see again. */
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "login takes no argument; a credential never is one");
	if (c.status && (c.token_stdin || c.option))
		return abx_usage(cli, err, "--status goes alone");
	r = abx_cli_login_open(cli, c.option, &c.at, err);
	if (r == 0 && (c.status || !c.at.login.option))
		r = show_status(&c, err);
	else if (r == 0)
		r = log_in(&c, token, err);
	explicit_bzero(token, sizeof(token));
	abx_config_close(c.at.config);
	return r;
}

const struct abx_cmd abx_cmd_login = {
	.name = "login",
	.usage = "[--provider P] [--token-stdin] [--option NAME] | --status [--json]",
	.summary = "Give agentbox the credential of a provider.",
	.help = "Also: agentbox P login.  It is asked for without being shown, checked by the\n"
		"service, and kept in secrets.env; one that is refused is not.  When the service\n"
		"cannot be reached it is kept, and that is said.  --status exits 4 when there is\n"
		"none.\n",
	.run = run,
};
