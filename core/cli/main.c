/* SPDX-License-Identifier: MIT */
/* The agentbox program: finds the command, runs it, prints its error, once. */
#include <string.h>
#include <sys/stat.h>

#include "core/cli/cmd.h"
#include "core/cli/signals.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/redact.h"

static void print_json_error(const struct abx_cli *cli, const struct abx_err *err)
{
	char *text;
	cJSON *doc = cJSON_CreateObject();

	(void)cJSON_AddItemToObject(doc, "error", abx_json_error(err, cli->provider, NULL));
	/* stdout of exec and shell is the command's own. */
	if (!cli->cmd->own_exit_code) {
		(void)abx_out_json(doc, NULL);
		return;
	}
	text = cJSON_PrintUnformatted(doc);
	(void)fprintf(stderr, "%s\n", text ? text : "{}");
	free(text);
	cJSON_Delete(doc);
}

static void print_error(struct abx_cli *cli, struct abx_err *err)
{
	abx_progress_end(cli);
	abx_redact(err->text);
	abx_redact(err->remedy);
	if (cli->json) {
		print_json_error(cli, err);
		return;
	}
	if (err->remedy[0])
		(void)fprintf(stderr, "agentbox: %s (%s)\n", err->text, err->remedy);
	else
		(void)fprintf(stderr, "agentbox: %s\n", err->text);
}

/* Also the error of an option before it has to be a document; behind `--`, or with a command
 * that runs another, it may be anything. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

static int run_command(struct abx_cli *cli, int argc, char **argv)
{
	struct abx_err err = ABX_ERR_INIT;
	int r;

	if (!cli->cmd->own_exit_code)
		cli->json = wants_json(argc, argv);
	abx_app_init(&cli->app);
	cli->app.host.cancel_fd = abx_signals_cancel_fd();
	cli->app.host.progress = abx_progress_show;
	cli->app.host.progress_ctx = cli;
	r = cli->cmd->run(cli, argc, argv, &err);
	abx_progress_end(cli);
	if (r < 0) {
		if (!err.code)
			(void)abx_err_set(&err, r, "%s failed", cli->cmd->name);
		print_error(cli, &err);
		r = cli->cmd->own_exit_code && r != ABX_ECANCELED ? 125 : abx_err_exit_code(r);
	}
	abx_app_release(&cli->app);
	abx_redact_forget_all();
	return r;
}

/* `agentbox <provider> <command>` is short for `--provider`. */
static const struct abx_cmd *find_command(struct abx_cli *cli, int *argc, char ***argv)
{
	const struct abx_cmd *cmd = abx_cmd_find((*argv)[1]);

	if (cmd || *argc < 3 || !abx_is_provider_name((*argv)[1]))
		return cmd;
	cmd = abx_cmd_find((*argv)[2]);
	if (!cmd)
		return NULL;
	cli->provider = (*argv)[1];
	(*argv)++;
	(*argc)--;
	return cmd;
}

/* `agentbox --json list`, `agentbox -v e2b login`: an option that every command takes may come
 * first.  It goes behind the command. */
static void move_options_back(int argc, char **argv)
{
	static const char *const flags[] = {"--json", "-v", "--verbose", "-y", "--yes"};
	int first = 1, n;

	for (size_t i = 0; first < argc && i < ABX_N_ELEMENTS(flags); i++) {
		if (strcmp(argv[first], flags[i]) == 0) {
			first++;
			i = SIZE_MAX;
		}
	}
	n = first + 1 < argc && !abx_cmd_find(argv[first]) && abx_cmd_find(argv[first + 1]) ? 2 : 1;
	if (first > 1 && first + n <= argc) {
		char *words[2] = {argv[first], n == 2 ? argv[first + 1] : NULL};

		memmove(argv + 1 + n, argv + 1, (size_t)(first - 1) * sizeof(*argv));
		memcpy(argv + 1, words, (size_t)n * sizeof(*argv));
	}
}

/* What is made here has to be usable by who made it, whatever the caller's umask. */
static void keep_owner_bits(void)
{
	mode_t mask = umask(077);

	(void)umask(mask & ~(mode_t)0700);
}

static bool is_help(const char *arg)
{
	return strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0;
}

/* Of agentbox itself, also as `agentbox <provider> --help`. */
static bool wants_help(int argc, char **argv)
{
	return argc < 2 || is_help(argv[1]) ||
	       (argc == 3 && is_help(argv[2]) && !abx_cmd_find(argv[1]) &&
		abx_is_provider_name(argv[1]));
}

int main(int argc, char **argv)
{
	struct abx_cli cli = {0};
	char shown[64];

	if (abx_signals_install() < 0) {
		(void)fprintf(stderr, "agentbox: cannot set up signals: %s\n", strerror(errno));
		return 1;
	}
	keep_owner_bits();
	abx_log_init(false);
	move_options_back(argc, argv);
	if (wants_help(argc, argv)) {
		static char help[] = "help";
		char *help_argv[] = {help, NULL};

		cli.cmd = abx_cmd_find("help");
		(void)run_command(&cli, 1, help_argv);
		return argc < 2 ? 2 : 0;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		cli.cmd = abx_cmd_find("version");
	else
		cli.cmd = find_command(&cli, &argc, &argv);
	if (!cli.cmd) {
		struct abx_err err = ABX_ERR_INIT;

		abx_quote_text(argv[1], shown, sizeof(shown));
		(void)abx_err_set(&err, ABX_EUSAGE, "unknown command '%s'", shown);
		(void)abx_err_remedy(&err, "agentbox help lists them");
		cli.cmd = abx_cmd_find("help");
		cli.json = wants_json(argc, argv);
		print_error(&cli, &err);
		return 2;
	}
	return run_command(&cli, argc - 1, argv + 1);
}
