/* SPDX-License-Identifier: MIT */
/*
 * core/cli/cmd.h: what a command is.
 *
 * One file a command, cmd-<name>.c, with one `const struct abx_cmd abx_cmd_<name>`, listed in
 * commands.c.  run() returns the exit code (0 or more), or a negative code with `err` filled,
 * which the program prints and maps to an exit code.
 *
 *	static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
 *	{
 *		const struct abx_opt opts[] = {
 *			{'g', "global", ABX_OPT_KIND_FLAG, &global, NULL, "all projects"},
 *			{0}};
 *		struct abx_args args;
 *		int r = abx_opts_parse(cli, opts, argc, argv, &args, err);
 *
 *		if (r != ABX_OPTS_GO)
 *			return r;
 */
#ifndef ABX_CMD_H
#define ABX_CMD_H

#include <cjson/cJSON.h>

#include "core/box/app.h"

struct abx_cmd;

struct abx_cli {
	const struct abx_cmd *cmd;
	const char *provider; /* from `agentbox <provider> <command>` or --provider; or NULL */
	bool json, yes, verbose;
	struct abx_app app;
};

struct abx_cmd {
	const char *name, *alias; /* alias may be NULL */
	const char *usage;	  /* what follows the name: "[BOX] [--stat]" */
	const char *summary;	  /* one line, for the list of commands */
	const char *help;	  /* further text for --help; may be NULL */
	int (*run)(struct abx_cli *cli, int argc, char **argv, struct abx_err *err);
	bool hidden;
	bool own_exit_code; /* exec, shell: every failure of ours is 125 */
};

extern const struct abx_cmd *const abx_commands[]; /* NULL-terminated */
const struct abx_cmd *abx_cmd_find(const char *name);
void abx_cmd_print_help(const struct abx_cmd *cmd);

/* opts.c: options.  -h/--help, --json, -y/--yes, -v/--verbose and --provider are understood
 * by every command and need not be listed. */
enum abx_opt_kind {
	ABX_OPT_KIND_FLAG,     /* bool * */
	ABX_OPT_KIND_TEXT,     /* const char ** */
	ABX_OPT_KIND_LIST,     /* struct abx_strv *, may be given several times */
	ABX_OPT_KIND_DURATION, /* int64_t *, milliseconds */
	ABX_OPT_KIND_SIZE,     /* uint64_t *, bytes */
};
struct abx_opt {
	char short_name; /* 0 = none */
	const char *long_name;
	enum abx_opt_kind kind;
	void *target;
	const char *arg; /* name of its value in the help */
	const char *help;
};
struct abx_args {
	char **pos; /* what is neither an option nor behind `--` */
	int n_pos;
	char **rest; /* behind `--`; NULL when there was none */
	int n_rest;
};

#define ABX_OPTS_GO INT32_MAX /* parsed: carry on.  Anything else is run()'s result. */
int abx_opts_parse(struct abx_cli *cli, const struct abx_opt *opts, int argc, char **argv,
		   struct abx_args *ret, struct abx_err *err);
/* The options of a command that takes one box or none; *ret_what is NULL for none. */
int abx_opts_one_box(struct abx_cli *cli, const struct abx_opt *opts, int argc, char **argv,
		     const char **ret_what, struct abx_err *err);
/* ABX_EUSAGE with the usage line as remedy. */
int abx_usage(struct abx_cli *cli, struct abx_err *err, const char *fmt, ...) ABX_PRINTF(3, 4);

/* out.c: what goes to stdout. */
/* One JSON document; takes ownership. */
int abx_out_json(cJSON *doc, struct abx_err *err);
/* A table: rows of n_columns cells each (NULL cell = "-"), header first; aligned. */
int abx_out_table(const char *const *cells, size_t n_rows, size_t n_columns, struct abx_err *err);
/* "KIND 'NAME' is removed", or its name as JSON. */
int abx_out_removed(const struct abx_cli *cli, const char *kind, const char *name,
		    struct abx_err *err);
int abx_out_line(struct abx_err *err, const char *fmt, ...) ABX_PRINTF(2, 3);
/* cJSON_AddStringToObject for text from outside: invalid UTF-8 is escaped; NULL = null. */
void abx_json_text(cJSON *object, const char *key, const char *text);
void abx_json_time(cJSON *object, const char *key, int64_t wall_ms);
cJSON *abx_json_box(const struct abx_box *box);
/* What stands behind "error"; provider and box may be NULL. */
cJSON *abx_json_error(const struct abx_err *err, const char *provider, const char *box);

/* ask.c: one question on the terminal; -y answers yes; no terminal is ABX_EUSAGE with the
 * remedy -y; end of input, Ctrl-C and ESC are ABX_ECANCELED. */
int abx_ask(struct abx_cli *cli, struct abx_err *err, const char *fmt, ...) ABX_PRINTF(3, 4);

/* A credential, typed without being shown or all of stdin; ABX_ECANCELED as above. */
int abx_ask_secret(struct abx_cli *cli, bool from_stdin, const char *question, char *text,
		   size_t size, struct abx_err *err);

/* progress.c: a line on stderr for work of more than a second; plain lines without a
 * terminal; nothing with --json. */
int abx_progress_show(void *cli, uint64_t done, uint64_t total, const char *what);
void abx_progress_end(struct abx_cli *cli);

#endif
