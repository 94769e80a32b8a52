/* SPDX-License-Identifier: MIT */
/* agentbox doctor */
#include <string.h>
#include <sys/utsname.h>

#include "abxsdk/spawn.h"
#include "core/cli/cmd.h"
#include "core/host/registry.h"
#include "core/util/mem.h"

#define DOCTOR_TIMEOUT_MS 30000

struct report {
	struct abx_strv cells; /* four a row: what, status, detail, remedy */
	size_t n_fail;
};

static void add(struct report *rep, const char *what, const char *status, const char *detail,
		const char *remedy)
{
	abx_strv_add(&rep->cells, what);
	abx_strv_add(&rep->cells, status);
	abx_strv_add(&rep->cells, detail ? detail : "");
	abx_strv_add(&rep->cells, remedy ? remedy : "");
	rep->n_fail += strcmp(status, "fail") == 0;
}

static void add_error(struct report *rep, const char *what, const struct abx_err *why)
{
	add(rep, what, "fail", why->text, why->remedy);
}

static void check_git(struct report *rep)
{
	static const char *const argv[] = {"git", "--version", NULL};
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(256);
	int status = 0, r = abx_spawn_collect(&s, NULL, &out, NULL, &status);

	if (r < 0 || status) {
		add(rep, "git", "fail", "git does not run here", "install git");
		return;
	}
	out.data[strcspn(out.data, "\n")] = '\0';
	add(rep, "git", "ok", out.data, NULL);
}

static void check_home(struct abx_cli *cli, struct report *rep)
{
	struct abx_err why = ABX_ERR_INIT;

	if (abx_app_open(&cli->app, &why) < 0) {
		add_error(rep, "home", &why);
		return;
	}
	add(rep, "home", "ok", cli->app.home.path, NULL);
	if (abx_db_check(cli->app.db, &why) < 0)
		add_error(rep, "database", &why);
	else
		add(rep, "database", "ok", "intact", NULL);
}

static void check_provider(struct abx_cli *cli, struct report *rep, const char *name)
{
	struct abx_call_opts o = {.timeout_ms = DOCTOR_TIMEOUT_MS};
	struct abx_err why = ABX_ERR_INIT;
	struct abx_config *config = NULL;
	struct abx_row_list rows = {0};
	struct abx_cloud *cloud;
	int r;

	if (!cli->app.db)
		return;
	r = abx_config_open(&cli->app.home, NULL, NULL, &config, &why);
	if (r == 0)
		r = abx_app_cloud(&cli->app, name, config, &cloud, &why);
	if (r == 0 && !abx_cloud_table(cloud)->doctor)
		add(rep, name, "ok", "has no checks of its own", NULL);
	else if (r == 0)
		r = abx_cloud_doctor(cloud, &o, &rows, &why);
	if (r < 0)
		add_error(rep, name, &why);
	for (size_t i = 0; i < rows.len; i++) {
		const struct abx_row *row = &rows.items[i];
		const char *check = abx_row_get(row, "check"), *status = abx_row_get(row, "status");
		abx_autofree char *what = abx_xasprintf("%s: %s", name, check ? check : "?");

		add(rep, what, status ? status : "warn", abx_row_get(row, "detail"),
		    abx_row_get(row, "remedy"));
	}
	abx_row_list_release(&rows);
	abx_config_close(config);
}

static void check_providers(struct abx_cli *cli, struct report *rep)
{
	struct abx_provider_files files = {0};
	struct abx_err why = ABX_ERR_INIT;

	if (abx_registry_scan(&files, &why) < 0) {
		add_error(rep, "providers", &why);
		return;
	}
	for (size_t i = 0; i < files.len; i++) {
		const struct abx_provider_file *f = &files.items[i];

		if (f->shadowed || (cli->provider && strcmp(cli->provider, f->name) != 0))
			continue;
		if (f->problem.code)
			add_error(rep, f->name, &f->problem);
		else
			check_provider(cli, rep, f->name);
	}
	if (!files.len)
		add(rep, "providers", "fail", "no provider is installed",
		    "install a package agentbox-provider-...");
	abx_provider_files_release(&files);
}

static int print_report(struct abx_cli *cli, const struct report *rep, struct abx_err *err)
{
	static const char *const keys[] = {"check", "status", "detail", "remedy"};
	cJSON *doc;

	if (!cli->json)
		return abx_out_table((const char *const *)rep->cells.items, rep->cells.len / 4, 4,
				     err);
	doc = cJSON_CreateArray();
	for (size_t i = 0; i < rep->cells.len; i += 4) {
		cJSON *o = cJSON_CreateObject();

		for (size_t k = 0; k < ABX_N_ELEMENTS(keys); k++)
			abx_json_text(o, keys[k], rep->cells.items[i + k]);
		(void)cJSON_AddItemToArray(doc, o);
	}
	return abx_out_json(doc, err);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct report rep = {0};
	struct utsname os;
	struct abx_args args;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos || args.n_rest)
		return abx_usage(cli, err, "doctor takes no argument");
	if (uname(&os) == 0) {
		abx_autofree char *text =
			abx_xasprintf("%s %s %s", os.sysname, os.release, os.machine);

		add(&rep, "system", "ok", text, NULL);
	}
	check_git(&rep);
	check_home(cli, &rep);
	check_providers(cli, &rep);
	r = print_report(cli, &rep, err);
	if (r == 0 && rep.n_fail)
		r = 1;
	abx_strv_release(&rep.cells);
	return r;
}

const struct abx_cmd abx_cmd_doctor = {
	.name = "doctor",
	.usage = "[--provider P] [--json]",
	.summary = "Check this machine, the install and the providers.",
	.help = "Exits 1 when something that is needed does not work.\n",
	.run = run,
};
