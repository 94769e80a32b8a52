/* SPDX-License-Identifier: MIT */
/* What exec and shell share. */
#include "core/cli/run-in-box.h"

#include <string.h>

#include "core/box/exec.h"
#include "core/box/select.h"
#include "core/util/mem.h"

struct run_options {
	struct abx_strv vars, files;
	const char *cwd, *user;
	int64_t timeout_ms;
	bool no_stdin, detach, interactive;
};

/* One word is a script; several are a command whose words stay as they are. */
static void shell_argv(const struct abx_args *args, struct abx_strv *ret)
{
	abx_strv_add(ret, "/bin/sh");
	abx_strv_add(ret, "-c");
	abx_strv_add(ret, "s=${SHELL:-/bin/sh}; [ -x \"$s\" ] || s=/bin/sh; "
			  "if [ $# -eq 1 ]; then exec \"$s\" -lc \"$1\"; fi; "
			  "exec \"$s\" -lc '\"$@\"' \"$s\" \"$@\"");
	abx_strv_add(ret, "sh");
	for (int i = 0; i < args->n_rest; i++)
		abx_strv_add(ret, args->rest[i]);
}

static int run_command(struct abx_cli *cli, const struct abx_args *args,
		       const struct run_options *o, bool login_shell, struct abx_err *err)
{
	struct abx_exec_request req = {.cwd = o->cwd,
				       .user = o->user,
				       .fd_in = o->no_stdin ? -1 : STDIN_FILENO,
				       .fd_out = STDOUT_FILENO,
				       .fd_err = STDERR_FILENO,
				       .timeout_ms = o->timeout_ms,
				       .detached = o->detach};
	struct abx_env env = {0};
	struct abx_strv words = {0};
	struct abx_box box = {0};
	int code = 0;
	int r = abx_select_box(&cli->app, args->n_pos ? args->pos[0] : NULL, &box, err);

	if (r == 0)
		r = abx_env_collect(&env, &o->files, &o->vars, err);
	if (r == 0) {
		if (login_shell)
			shell_argv(args, &words);
		req.argv = login_shell ? (const char *const *)words.items
				       : (const char *const *)args->rest;
		req.env = &env;
		r = abx_box_exec(&cli->app, &box, &req, &code, err);
	}
	abx_strv_release(&words);
	abx_env_release(&env);
	abx_box_release(&box);
	return r < 0 ? r : code;
}

int abx_run_in_box(struct abx_cli *cli, int argc, char **argv, bool login_shell,
		   struct abx_err *err)
{
	struct run_options o = {0};
	const struct abx_opt opts[] = {
		{'e', "env", ABX_OPT_KIND_LIST, &o.vars, "K[=V]",
		 "environment; without =V from yours"},
		{0, "env-file", ABX_OPT_KIND_LIST, &o.files, "FILE", "the same, from a file"},
		{0, "cwd", ABX_OPT_KIND_TEXT, &o.cwd, "DIR", "in the box (default /workspace)"},
		{0, "user", ABX_OPT_KIND_TEXT, &o.user, "USER", "in the box (default: its own)"},
		{0, "timeout", ABX_OPT_KIND_DURATION, &o.timeout_ms, "T",
		 "end it and all it started after T; exit code 124"},
		{'n', "no-stdin", ABX_OPT_KIND_FLAG, &o.no_stdin, NULL, "nothing to read"},
		{'i', "interactive", ABX_OPT_KIND_FLAG, &o.interactive, NULL,
		 "accepted: stdin is always forwarded"},
		{'d', "detach", ABX_OPT_KIND_FLAG, &o.detach, NULL, "leave it running"},
		{0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r == ABX_OPTS_GO) {
		if (!args.n_rest)
			r = abx_usage(cli, err, "no command: it goes behind `--`");
		else if (args.n_pos > 1)
			r = abx_usage(cli, err, "one box, and the command behind `--`");
		else
			r = run_command(cli, &args, &o, login_shell, err);
	}
	abx_strv_release(&o.vars);
	abx_strv_release(&o.files);
	return r;
}
