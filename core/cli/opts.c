/* SPDX-License-Identifier: MIT */
/* Options of a command, and the help made from them. */
#include <string.h>

#include "core/cli/cmd.h"
#include "core/host/registry.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

int abx_usage(struct abx_cli *cli, struct abx_err *err, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)abx_err_set(err, ABX_EUSAGE, "%s", text);
	return abx_err_remedy(err, "usage: agentbox %s %s", cli->cmd->name, cli->cmd->usage);
}

static void print_option(const struct abx_opt *o)
{
	char left[64];

	(void)snprintf(left, sizeof(left), "%c%c%s--%s%s%s", o->short_name ? '-' : ' ',
		       o->short_name ? o->short_name : ' ', o->short_name ? ", " : "  ",
		       o->long_name, o->arg ? " " : "", o->arg ? o->arg : "");
	(void)printf("  %-26s %s\n", left, o->help);
}

#define N_COMMON 5

/* What every command understands. */
static void common_options(struct abx_cli *cli, bool *help, struct abx_opt ret[N_COMMON + 1])
{
	const struct abx_opt common[N_COMMON + 1] = {
		{0, "provider", ABX_OPT_KIND_TEXT, &cli->provider, "NAME", "where boxes live"},
		{0, "json", ABX_OPT_KIND_FLAG, &cli->json, NULL, "one JSON document on stdout"},
		{'y', "yes", ABX_OPT_KIND_FLAG, &cli->yes, NULL, "answer yes to every question"},
		{'v', "verbose", ABX_OPT_KIND_FLAG, &cli->verbose, NULL, "say what happens"},
		{'h', "help", ABX_OPT_KIND_FLAG, help, NULL, "this text"},
		{0},
	};

	memcpy(ret, common, sizeof(common));
}

static void print_help(const struct abx_cmd *cmd, const struct abx_opt *opts,
		       const struct abx_opt *common)
{
	(void)printf("agentbox %s %s\n\n%s\n", cmd->name, cmd->usage, cmd->summary);
	if (cmd->alias)
		(void)printf("Also: agentbox %s\n", cmd->alias);
	if (cmd->help)
		(void)printf("\n%s", cmd->help);
	(void)printf("\nOptions:\n");
	for (; opts->long_name; opts++)
		print_option(opts);
	for (; common->long_name; common++)
		print_option(common);
}

struct parser {
	struct abx_cli *cli;
	const struct abx_opt *opts;
	struct abx_opt common[N_COMMON + 1];
	int argc, at;
	char **argv;
};

static const struct abx_opt *find_long(const struct abx_opt *opts, const char *name, size_t len)
{
	for (; opts->long_name; opts++)
		if (strncmp(opts->long_name, name, len) == 0 && !opts->long_name[len])
			return opts;
	return NULL;
}

static const struct abx_opt *find_short(const struct abx_opt *opts, char c)
{
	for (; opts->long_name; opts++)
		if (opts->short_name == c)
			return opts;
	return NULL;
}

static int store(struct parser *p, const struct abx_opt *o, const char *value, struct abx_err *err)
{
	int r;

	switch (o->kind) {
	case ABX_OPT_KIND_FLAG:
		*(bool *)o->target = true;
		return 0;
	case ABX_OPT_KIND_TEXT:
		/* Mostly a variable of a script that was not set. */
		if (!*value)
			return abx_usage(p->cli, err, "--%s: the value is empty", o->long_name);
		*(const char **)o->target = value;
		return 0;
	case ABX_OPT_KIND_LIST:
		abx_strv_add(o->target, value);
		return 0;
	case ABX_OPT_KIND_DURATION:
		r = abx_parse_duration_ms(value, o->target, err);
		return r < 0 ? abx_usage(p->cli, err, "--%s: '%.40s' is not a duration",
					 o->long_name, value)
			     : 0;
	case ABX_OPT_KIND_SIZE:
		r = abx_parse_size_bytes(value, o->target, err);
		return r < 0 ? abx_usage(p->cli, err, "--%s: '%.40s' is not a size", o->long_name,
					 value)
			     : 0;
	}
	return 0;
}

/* `inline_value`: what stood behind `=` or directly behind the letter; NULL = none. */
static int take(struct parser *p, const struct abx_opt *o, const char *inline_value,
		struct abx_err *err)
{
	if (o->kind == ABX_OPT_KIND_FLAG) {
		if (inline_value)
			return abx_usage(p->cli, err, "--%s takes no value", o->long_name);
		return store(p, o, NULL, err);
	}
	if (inline_value)
		return store(p, o, inline_value, err);
	if (p->at + 1 >= p->argc)
		return abx_usage(p->cli, err, "--%s needs a value", o->long_name);
	return store(p, o, p->argv[++p->at], err);
}

static int parse_long(struct parser *p, const char *text, struct abx_err *err)
{
	size_t len = strcspn(text, "=");
	const struct abx_opt *o = find_long(p->opts, text, len);
	char shown[64];

	if (!o)
		o = find_long(p->common, text, len);
	if (o)
		return take(p, o, text[len] ? text + len + 1 : NULL, err);
	abx_quote_text(text, shown, sizeof(shown));
	return abx_usage(p->cli, err, "unknown option --%s", shown);
}

static int parse_short(struct parser *p, const char *text, struct abx_err *err)
{
	char shown[16];

	for (; *text; text++) {
		const struct abx_opt *o = find_short(p->opts, *text);
		int r;

		if (!o)
			o = find_short(p->common, *text);
		if (!o) {
			const char one[2] = {*text, '\0'};

			abx_quote_text(one, shown, sizeof(shown));
			return abx_usage(p->cli, err, "unknown option -%s", shown);
		}
		if (o->kind != ABX_OPT_KIND_FLAG)
			return take(p, o, text[1] ? text + 1 : NULL, err);
		r = store(p, o, NULL, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse_all(struct parser *p, struct abx_args *args, struct abx_err *err)
{
	int r = 0;

	for (p->at = 1; p->at < p->argc && r == 0; p->at++) {
		char *arg = p->argv[p->at];

		if (strcmp(arg, "--") == 0) {
			args->rest = p->argv + p->at + 1;
			args->n_rest = p->argc - p->at - 1;
			return 0;
		}
		if (arg[0] == '-' && arg[1] == '-')
			r = parse_long(p, arg + 2, err);
		else if (arg[0] == '-' && arg[1])
			r = parse_short(p, arg + 1, err);
		else
			/* Positional arguments are gathered at the front, in their order. */
			p->argv[1 + args->n_pos++] = arg;
	}
	return r;
}

/* A provider that was named must be there, whatever the command makes of it. */
static int check_provider(const struct abx_cli *cli, struct abx_err *err)
{
	struct abx_provider_file file = {0};
	int r;

	if (!cli->provider)
		return 0;
	r = abx_registry_find(cli->provider, &file, err);
	abx_provider_file_release(&file);
	return r;
}

int abx_opts_parse(struct abx_cli *cli, const struct abx_opt *opts, int argc, char **argv,
		   struct abx_args *ret, struct abx_err *err)
{
	static const struct abx_opt none[] = {{0}};
	struct parser p = {.cli = cli, .opts = opts ? opts : none, .argc = argc, .argv = argv};
	struct abx_args args = {.pos = argv + 1};
	bool help = false;
	int r;

	common_options(cli, &help, p.common);
	r = parse_all(&p, &args, err);
	if (help) {
		print_help(cli->cmd, p.opts, p.common);
		return 0;
	}
	if (r < 0)
		return r;
	abx_log_init(cli->verbose);
	r = check_provider(cli, err);
	if (r < 0)
		return r;
	*ret = args;
	return ABX_OPTS_GO;
}

void abx_cmd_print_help(const struct abx_cmd *cmd)
{
	struct abx_cli cli = {.cmd = cmd};
	char name[] = "", help[] = "--help";
	char *argv[] = {name, help, NULL};

	(void)cmd->run(&cli, 2, argv, NULL);
}

int abx_opts_one_box(struct abx_cli *cli, const struct abx_opt *opts, int argc, char **argv,
		     const char **ret_what, struct abx_err *err)
{
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos > 1 || args.n_rest)
		return abx_usage(cli, err, "%s takes one box", cli->cmd->name);
	*ret_what = args.n_pos ? args.pos[0] : NULL;
	return ABX_OPTS_GO;
}
