/* SPDX-License-Identifier: MIT */
/* What exec and shell share. */
#include "core/cli/run-in-box.h"

#include <string.h>

#include "core/box/exec.h"
#include "core/box/select.h"
#include "core/cli/signals.h"
#include "core/cli/tty.h"
#include "core/util/clock.h"
#include "core/util/mem.h"

#define WORKSPACE "/workspace"

struct run_options {
	struct abx_strv vars, files;
	const char *cwd, *user;
	int64_t timeout_ms;
	uint64_t max_output;
	bool no_stdin, detach, interactive, tty, no_tty;
};

/* No word: an interactive shell.  One is a script; several are a command whose words stay as
 * they are. */
static void shell_argv(const struct abx_args *args, struct abx_strv *ret)
{
	abx_strv_add(ret, "/bin/sh");
	abx_strv_add(ret, "-c");
	abx_strv_add(ret, "s=${SHELL:-/bin/sh}; [ -x \"$s\" ] || s=/bin/sh; "
			  "[ $# -gt 0 ] || exec \"$s\" -l; "
			  "if [ $# -eq 1 ]; then exec \"$s\" -lc \"$1\"; fi; "
			  "exec \"$s\" -lc '\"$@\"' \"$s\" \"$@\"");
	abx_strv_add(ret, "sh");
	for (int i = 0; i < args->n_rest; i++)
		abx_strv_add(ret, args->rest[i]);
}

static bool wants_terminal(const struct run_options *o)
{
	if (o->tty || o->no_tty || o->detach)
		return o->tty;
	return !o->no_stdin && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* What the box's programs have to know about this terminal. */
static void add_terminal(struct abx_exec_request *req, struct abx_env *env)
{
	const char *term = abx_tty_term();

	abx_tty_size(&req->rows, &req->cols);
	if (term && !abx_env_get(env, "TERM"))
		abx_env_set(env, "TERM", term);
}

static void on_started(void *ctx)
{
	(void)ctx;
	abx_signals_forward();
}

/* stdout is the command's, unless that has none. */
static int print_result(const struct abx_box *box, const struct abx_exec_request *req, int code,
			int64_t begun_ms, struct abx_err *err)
{
	const struct abx_exec_result *got = req->result;
	cJSON *o = cJSON_CreateObject();
	char *text;

	abx_json_text(o, "box", box->id);
	abx_json_text(o, "exec_id", got->exec_id[0] ? got->exec_id : NULL);
	(void)cJSON_AddBoolToObject(o, "detached", got->detached);
	if (got->detached)
		(void)cJSON_AddNullToObject(o, "exit_code");
	else
		(void)cJSON_AddNumberToObject(o, "exit_code", code);
	if (got->signo)
		(void)cJSON_AddNumberToObject(o, "signal", got->signo);
	else
		(void)cJSON_AddNullToObject(o, "signal");
	(void)cJSON_AddBoolToObject(o, "timed_out", got->timed_out);
	(void)cJSON_AddBoolToObject(o, "truncated", got->truncated);
	(void)cJSON_AddNumberToObject(o, "output_bytes", (double)got->bytes_out);
	(void)cJSON_AddNumberToObject(o, "duration_ms", (double)(abx_now_ms() - begun_ms));
	if (got->detached)
		return abx_out_json(o, err);
	text = cJSON_PrintUnformatted(o);
	(void)fprintf(stderr, "%s\n", text ? text : "{}");
	free(text);
	cJSON_Delete(o);
	return 0;
}

static int report(const struct abx_cli *cli, const struct abx_box *box,
		  const struct abx_exec_request *req, int code, int64_t begun_ms,
		  struct abx_err *err)
{
	if (cli->json)
		return print_result(box, req, code, begun_ms, err);
	if (req->result->detached)
		return abx_out_line(err, "%s", req->result->exec_id);
	if (req->result->truncated)
		(void)fprintf(stderr,
			      "agentbox: exec: more than %llu bytes of output: the command was "
			      "ended (--max-output)\n",
			      (unsigned long long)req->max_output);
	return 0;
}

static int run_on_box(struct abx_cli *cli, struct abx_box *box, struct abx_exec_request *req,
		      int *ret_code, struct abx_err *err)
{
	const int64_t begun_ms = abx_now_ms();
	int control_fd = -1, r;

	if (!req->detached) {
		control_fd = abx_signals_open_control(req->tty);
		if (control_fd < 0)
			return abx_err_errno(err, errno, "make a pipe");
		req->control_fd = &control_fd;
		req->started = on_started;
	}
	if (req->tty && req->fd_in >= 0)
		abx_tty_raw();
	r = abx_box_exec(&cli->app, box, req, ret_code, err);
	abx_signals_close_control();
	abx_tty_restore();
	return r < 0 ? r : report(cli, box, req, *ret_code, begun_ms, err);
}

static int run_command(struct abx_cli *cli, const struct abx_args *args,
		       const struct run_options *o, bool login_shell, struct abx_err *err)
{
	struct abx_exec_result result = {0};
	struct abx_exec_request req = {.user = o->user,
				       .fd_in = o->no_stdin || o->detach ? -1 : STDIN_FILENO,
				       .fd_out = STDOUT_FILENO,
				       .fd_err = STDERR_FILENO,
				       .timeout_ms = o->timeout_ms,
				       .max_output = o->max_output,
				       .detached = o->detach,
				       .tty = wants_terminal(o),
				       .result = &result};
	abx_autofree char *cwd = NULL;
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
		if (o->cwd)
			cwd = *o->cwd == '/' ? abx_xstrdup(o->cwd)
					     : abx_xasprintf(WORKSPACE "/%s", o->cwd);
		if (req.tty)
			add_terminal(&req, &env);
		req.cwd = cwd;
		req.argv = login_shell ? (const char *const *)words.items
				       : (const char *const *)args->rest;
		req.env = &env;
		r = run_on_box(cli, &box, &req, &code, err);
	}
	abx_strv_release(&words);
	abx_env_release(&env);
	abx_box_release(&box);
	return r < 0 ? r : code;
}

static int check(struct abx_cli *cli, const struct abx_args *args, const struct run_options *o,
		 bool login_shell, struct abx_err *err)
{
	if (!args->n_rest && (!login_shell || o->detach))
		return abx_usage(cli, err, "no command: it goes behind `--`");
	if (args->n_pos > 1)
		return abx_usage(cli, err, "one box, and the command behind `--`");
	if (o->tty && o->no_tty)
		return abx_usage(cli, err, "-t and -T exclude each other");
	if (o->tty && o->detach)
		return abx_usage(cli, err, "-t and -d exclude each other: who would type?");
	return 0;
}

int abx_run_in_box(struct abx_cli *cli, int argc, char **argv, bool login_shell,
		   struct abx_err *err)
{
	struct run_options o = {0};
	const struct abx_opt opts[] = {
		{'e', "env", ABX_OPT_KIND_LIST, &o.vars, "K[=V]",
		 "environment; without =V from yours"},
		{0, "env-file", ABX_OPT_KIND_LIST, &o.files, "FILE", "the same, from a file"},
		{0, "cwd", ABX_OPT_KIND_TEXT, &o.cwd, "DIR", "in the box, from /workspace"},
		{0, "user", ABX_OPT_KIND_TEXT, &o.user, "USER", "in the box (default: its own)"},
		{'t', "tty", ABX_OPT_KIND_FLAG, &o.tty, NULL, "on a terminal of its own"},
		{'T', "no-tty", ABX_OPT_KIND_FLAG, &o.no_tty, NULL, "never on a terminal"},
		{0, "timeout", ABX_OPT_KIND_DURATION, &o.timeout_ms, "T",
		 "end it and all it started after T; exit code 124"},
		{0, "max-output", ABX_OPT_KIND_SIZE, &o.max_output, "N",
		 "end it after N bytes of output; exit code 141"},
		{'n', "no-stdin", ABX_OPT_KIND_FLAG, &o.no_stdin, NULL, "nothing to read"},
		{'i', "interactive", ABX_OPT_KIND_FLAG, &o.interactive, NULL,
		 "accepted: stdin is always forwarded"},
		{'d', "detach", ABX_OPT_KIND_FLAG, &o.detach, NULL,
		 "leave it running, and print its id; see logs"},
		{0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r == ABX_OPTS_GO) {
		r = check(cli, &args, &o, login_shell, err);
		if (r == 0)
			r = run_command(cli, &args, &o, login_shell, err);
	}
	abx_strv_release(&o.vars);
	abx_strv_release(&o.files);
	return r;
}
