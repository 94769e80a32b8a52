/* SPDX-License-Identifier: MIT */
/* agentbox config: read and write settings. */
#include <string.h>

#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/host/loader.h"
#include "core/state/config.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define MASK "***"

struct config_cmd {
	struct abx_cli *cli;
	struct abx_config *config;
	bool global, project, repository; /* the options */
	const char *pos[3];		  /* subcommand and its arguments */
	int n_pos;
};

/* Options of a provider become settings once its plugin is loaded. */
static int declare_file(struct config_cmd *c, const struct abx_provider_file *f,
			struct abx_err *err)
{
	struct abx_plugin *plugin = NULL;
	int r = abx_plugin_get(f, &c->cli->app.home, &plugin, err);

	if (r < 0)
		return r;
	abx_config_declare_provider(c->config, plugin->table.name, plugin->table.options);
	return 0;
}

static bool is_declared(const struct config_cmd *c, const char *section, size_t len)
{
	const struct abx_config_key *keys;
	size_t n = abx_config_keys(c->config, &keys);

	for (size_t i = 0; i < n; i++)
		if (strncmp(keys[i].name, section, len) == 0 && keys[i].name[len] == '.')
			return true;
	return false;
}

/* The provider that a key belongs to, if it is one.  Without it the key is unknown, which is
 * said where the key is used. */
static int declare_for_key(struct config_cmd *c, const char *key, struct abx_err *err)
{
	size_t len = strcspn(key, ".");
	abx_autofree char *section = abx_xstrndup(key, len);
	struct abx_provider_file file = {0};
	int r;

	if (!key[len] || strchr(section, '/') || is_declared(c, section, len))
		return 0;
	if (abx_registry_find(section, &file, NULL) < 0)
		return 0;
	r = declare_file(c, &file, err);
	abx_provider_file_release(&file);
	return r;
}

static void declare_all(struct config_cmd *c)
{
	struct abx_provider_files files = {0};
	struct abx_err why = ABX_ERR_INIT;

	if (abx_registry_scan(&files, &why) < 0) {
		abx_warn("%s", why.text);
		return;
	}
	for (size_t i = 0; i < files.len; i++) {
		const struct abx_provider_file *f = &files.items[i];

		if (f->shadowed)
			continue;
		if (f->problem.code)
			abx_warn("%s", f->problem.text);
		else if (declare_file(c, f, &why) < 0)
			abx_warn("%s", why.text);
	}
	abx_provider_files_release(&files);
}

static const struct abx_config_key *find_key(const struct config_cmd *c, const char *name)
{
	const struct abx_config_key *keys;
	size_t n = abx_config_keys(c->config, &keys);

	for (size_t i = 0; i < n; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

static const char *shown_value(const struct abx_config_key *key, const char *value)
{
	return value && key && (key->flags & ABX_OPT_SECRET) ? MASK : value;
}

static cJSON *key_json(const char *key, const char *value, const char *source)
{
	cJSON *o = cJSON_CreateObject();

	abx_json_text(o, "key", key);
	abx_json_text(o, "value", value);
	abx_json_text(o, "source", source);
	return o;
}

/* What is wrong with the files does not hinder showing and mending them. */
static void warn_problem(const struct config_cmd *c)
{
	struct abx_err problem = ABX_ERR_INIT;

	if (abx_config_problem(c->config, &problem) < 0)
		abx_warn("%s", problem.text);
}

static int run_get(struct config_cmd *c, struct abx_err *err)
{
	const char *name = c->pos[1], *source = NULL, *value;
	const struct abx_config_key *key;
	int r = declare_for_key(c, name, err);

	if (r < 0)
		return r;
	warn_problem(c);
	key = find_key(c, name);
	if (!key)
		return abx_config_check(c->config, name, "", err);
	value = shown_value(key, abx_config_get(c->config, name, &source));
	if (!value) {
		(void)abx_err_set(err, ABX_ENOTFOUND, "%s: not set", name);
		(void)abx_err_remedy(err, "agentbox config set %s ...", name);
		return ABX_ENOTFOUND;
	}
	if (c->cli->json)
		return abx_out_json(key_json(name, value, source), err);
	return abx_out_line(err, "%s", value);
}

static int show_stored(struct config_cmd *c, const char *name, struct abx_err *err)
{
	const char *source = NULL, *value = abx_config_get(c->config, name, &source);

	return abx_out_json(key_json(name, shown_value(find_key(c, name), value), source), err);
}

static int run_set(struct config_cmd *c, struct abx_err *err)
{
	const char *name = c->pos[1], *source = NULL, *now;
	int r = declare_for_key(c, name, err);

	if (r == 0)
		r = abx_config_store(c->config, c->global, name, c->pos[2], err);
	if (r < 0)
		return r;
	now = abx_config_get(c->config, name, &source);
	if (now && source && strcmp(source, c->global ? "global" : "project") != 0 &&
	    strcmp(source, "secrets") != 0)
		abx_warn("%s is stored, but what is set by %s comes first", name,
			 strcmp(source, "env") == 0 ? "the environment" : source);
	return c->cli->json ? show_stored(c, name, err) : 0;
}

static int run_unset(struct config_cmd *c, struct abx_err *err)
{
	const char *name = c->pos[1];
	int r;

	/* A key of a provider that is gone can go too. */
	if (declare_for_key(c, name, err) < 0)
		abx_log(ABX_LOG_INFO, "config", "%s: its provider cannot be loaded", name);
	r = abx_config_store(c->config, c->global, name, NULL, err);
	if (r < 0)
		return r;
	return c->cli->json ? show_stored(c, name, err) : 0;
}

/* Rows of key, value, source. */
struct rows {
	const char **cells;
	size_t n, cap;
};

static void add_row(struct rows *t, const char *key, const char *value, const char *source)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 32;
		t->cells = abx_xreallocarray(t->cells, t->cap * 3, sizeof(*t->cells));
	}
	t->cells[3 * t->n] = key;
	t->cells[3 * t->n + 1] = value;
	t->cells[3 * t->n++ + 2] = source;
}

static void collect_rows(struct config_cmd *c, struct rows *t)
{
	const struct abx_config_key *keys;
	size_t n = abx_config_keys(c->config, &keys);
	const char *name, *value = NULL, *source = NULL;

	for (size_t i = 0; i < n; i++) {
		source = NULL;
		value = abx_config_get(c->config, keys[i].name, &source);
		add_row(t, keys[i].name, shown_value(&keys[i], value), value ? source : NULL);
	}
	for (size_t i = 0; (name = abx_config_undeclared(c->config, i, &value, &source)); i++)
		add_row(t, name, value, source);
}

static int list_json(const struct rows *t, struct abx_err *err)
{
	cJSON *doc = cJSON_CreateArray();

	for (size_t i = 0; i < t->n; i++)
		(void)cJSON_AddItemToArray(
			doc, key_json(t->cells[3 * i], t->cells[3 * i + 1], t->cells[3 * i + 2]));
	return abx_out_json(doc, err);
}

static int list_table(struct rows *t, struct abx_err *err)
{
	struct rows shown = {0};
	int r;

	add_row(&shown, "KEY", "VALUE", "SOURCE");
	for (size_t i = 0; i < t->n; i++)
		add_row(&shown, t->cells[3 * i], t->cells[3 * i + 1], t->cells[3 * i + 2]);
	r = abx_out_table(shown.cells, shown.n, 3, err);
	free(shown.cells);
	return r;
}

static int run_list(struct config_cmd *c, struct abx_err *err)
{
	struct rows t = {0};
	int r;

	declare_all(c);
	warn_problem(c);
	collect_rows(c, &t);
	r = c->cli->json ? list_json(&t, err) : list_table(&t, err);
	free(t.cells);
	return r;
}

static int run_path(struct config_cmd *c, struct abx_err *err)
{
	const char *layer = c->global ? "global" : c->repository ? "repository" : "project";
	const char *path = abx_config_path(c->config, layer);
	cJSON *doc;

	if (!c->cli->json)
		return abx_out_line(err, "%s", path);
	doc = cJSON_CreateObject();
	abx_json_text(doc, "layer", layer);
	abx_json_text(doc, "path", path);
	return abx_out_json(doc, err);
}

static const struct {
	const char *name;
	int n_args;
	int (*run)(struct config_cmd *c, struct abx_err *err);
} subcommands[] = {
	{"get", 1, run_get},   {"set", 2, run_set},   {"unset", 1, run_unset},
	{"list", 0, run_list}, {"path", 0, run_path},
};

static int take_args(struct config_cmd *c, const struct abx_args *args, struct abx_err *err)
{
	int n = args->n_pos + args->n_rest;

	if (n < 1 || n > (int)ABX_N_ELEMENTS(c->pos))
		return abx_usage(c->cli, err, n < 1 ? "say what to do" : "too many arguments");
	for (int i = 0; i < n; i++)
		c->pos[i] = i < args->n_pos ? args->pos[i] : args->rest[i - args->n_pos];
	c->n_pos = n;
	return 0;
}

static int open_config(struct config_cmd *c, bool all_layers, struct abx_err *err)
{
	abx_autofree char *path = NULL, *key = NULL;
	int r = abx_select_project(&c->cli->app, &path, &key, err);

	if (r < 0)
		return r;
	return abx_config_open_edit(&c->cli->app.home, all_layers ? key : NULL,
				    all_layers ? path : NULL, &c->config, err);
}

static int run_subcommand(struct config_cmd *c, struct abx_err *err)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(subcommands); i++) {
		bool is_path = subcommands[i].run == run_path;
		int r;

		if (strcmp(c->pos[0], subcommands[i].name) != 0)
			continue;
		if (c->n_pos - 1 != subcommands[i].n_args)
			return abx_usage(c->cli, err, "config %s takes %d argument%s", c->pos[0],
					 subcommands[i].n_args,
					 subcommands[i].n_args == 1 ? "" : "s");
		if ((c->project || c->repository) && !is_path)
			return abx_usage(c->cli, err, "--project and --repo are for config path");
		if (c->global + c->project + c->repository > 1)
			return abx_usage(c->cli, err, "one of --global, --project and --repo");
		r = open_config(c, is_path || !c->global, err);
		if (r == 0)
			r = subcommands[i].run(c, err);
		abx_config_close(c->config);
		return r;
	}
	return abx_usage(c->cli, err, "config has no '%.40s'", c->pos[0]);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct config_cmd c = {.cli = cli};
	const struct abx_opt opts[] = {
		{'g', "global", ABX_OPT_KIND_FLAG, &c.global, NULL, "for all projects"},
		{0, "project", ABX_OPT_KIND_FLAG, &c.project, NULL, "path: this project's file"},
		{0, "repo", ABX_OPT_KIND_FLAG, &c.repository, NULL, "path: the repository's file"},
		{0}};
	struct abx_args args;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	r = take_args(&c, &args, err);
	return r < 0 ? r : run_subcommand(&c, err);
}

const struct abx_cmd abx_cmd_config = {
	.name = "config",
	.usage = "get KEY | set KEY VALUE | unset KEY | list | path [-g] [--json]",
	.summary = "Read and write settings.",
	.help = "A setting comes from, highest first: an option, the environment, the project's\n"
		"file, `defaults:` in the repository's agentbox.yaml, the global file, a built-in\n"
		"value.  `set` and `unset` change the project's file, with -g the global one;\n"
		"secrets go to secrets.env and are shown as ***.\n",
	.run = run,
};
