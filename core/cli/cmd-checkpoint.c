/* SPDX-License-Identifier: MIT */
/* agentbox checkpoint */
#include <string.h>

#include "core/box/checkpoint.h"
#include "core/box/select.h"
#include "core/checkpoint/store.h"
#include "core/cli/cmd.h"
#include "core/util/mem.h"

#define N_COLUMNS 6

struct checkpoint_options {
	const char *name;
	bool stop, all;
};

static cJSON *checkpoint_json(const struct abx_checkpoint *c)
{
	cJSON *o = cJSON_CreateObject(), *spec;

	abx_json_text(o, "name", c->name);
	abx_json_text(o, "provider", c->provider);
	abx_json_text(o, "account", c->account);
	abx_json_text(o, "snapshot", c->ref);
	abx_json_text(o, "created_at", c->created_at);
	abx_json_text(o, "box_id", c->box_id);
	abx_json_text(o, "box_name", c->box_name);
	abx_json_text(o, "project", c->project);
	abx_json_text(o, "workspace", c->workspace);
	abx_json_text(o, "branch", c->branch);
	abx_json_text(o, "base_commit", c->base_commit);
	abx_json_text(o, "image", c->image);
	(void)cJSON_AddItemToObject(o, "size_bytes",
				    c->size_bytes ? cJSON_CreateNumber((double)c->size_bytes)
						  : cJSON_CreateNull());
	(void)cJSON_AddBoolToObject(o, "memory", c->memory);
	spec = c->spec ? cJSON_Parse(c->spec) : NULL;
	(void)cJSON_AddItemToObject(o, "spec", spec ? spec : cJSON_CreateNull());
	return o;
}

static int create(struct abx_cli *cli, const char *what, const struct checkpoint_options *o,
		  struct abx_err *err)
{
	struct abx_checkpoint c = {0};
	struct abx_box box = {0};
	int r = abx_select_box(&cli->app, what, &box, err);

	if (r == 0)
		r = abx_box_checkpoint(&cli->app, &box, o->name, o->stop, &c, err);
	abx_progress_end(cli);
	if (r == 0 && cli->json) {
		r = abx_out_json(checkpoint_json(&c), err);
	} else if (r == 0) {
		r = abx_out_line(err, "checkpoint '%s' of box '%s', which is %s", c.name, box.name,
				 abx_box_state_name(box.state));
		if (r == 0)
			r = abx_out_line(err, "next: agentbox create --snapshot %s", c.name);
	}
	abx_checkpoint_release(&c);
	abx_box_release(&box);
	return r;
}

/* Of the current directory's project, or of all. */
static int find(struct abx_cli *cli, bool all, char **ret_key, struct abx_checkpoint_list *ret,
		struct abx_err *err)
{
	abx_autofree char *path = NULL, *key = NULL;
	int r = all ? abx_app_open(&cli->app, err)
		    : abx_select_project(&cli->app, &path, &key, err);

	if (r < 0)
		return r;
	abx_checkpoints_list(&cli->app.home, cli->provider, key, ret);
	*ret_key = abx_steal_ptr(&key);
	return 0;
}

static int print_table(const struct abx_checkpoint_list *list, bool all, struct abx_err *err)
{
	static const char *const head[N_COLUMNS] = {"NAME", "PROVIDER", "BOX",
						    "BASE", "CREATED",	"WORKSPACE"};
	abx_autofree const char **cells = abx_xcalloc((list->len + 1) * N_COLUMNS, sizeof(*cells));
	abx_autofree char(*bases)[16] = abx_xcalloc(list->len + 1, sizeof(*bases));
	size_t n_columns = all ? N_COLUMNS : N_COLUMNS - 1, at = 0;

	for (size_t i = 0; i < n_columns; i++)
		cells[at++] = head[i];
	for (size_t i = 0; i < list->len; i++) {
		const struct abx_checkpoint *c = &list->items[i];

		(void)snprintf(bases[i], sizeof(bases[i]), "%.12s",
			       c->base_commit ? c->base_commit : "");
		cells[at++] = c->name;
		cells[at++] = c->provider;
		cells[at++] = c->box_name;
		cells[at++] = bases[i];
		cells[at++] = c->created_at;
		if (all)
			cells[at++] = c->workspace;
	}
	return abx_out_table(cells, list->len + 1, n_columns, err);
}

static int list(struct abx_cli *cli, bool all, struct abx_err *err)
{
	struct abx_checkpoint_list found = {0};
	abx_autofree char *key = NULL;
	int r = find(cli, all, &key, &found, err);

	if (r == 0 && cli->json) {
		cJSON *doc = cJSON_CreateArray();

		for (size_t i = 0; i < found.len; i++)
			(void)cJSON_AddItemToArray(doc, checkpoint_json(&found.items[i]));
		r = abx_out_json(doc, err);
	} else if (r == 0 && found.len) {
		r = print_table(&found, all, err);
	} else if (r == 0) {
		r = abx_out_line(err, all ? "no checkpoints" : "no checkpoints of this project");
	}
	abx_checkpoint_list_release(&found);
	return r;
}

/* One whose manifest cannot be read is not in the list: then it is at the provider in use. */
static int provider_of(struct abx_cli *cli, const struct abx_checkpoint_list *found,
		       const char *key, const char *name, char **ret, struct abx_err *err)
{
	const struct abx_checkpoint *only = NULL;
	struct abx_config *config = NULL;
	int r;

	for (size_t i = 0; i < found->len; i++) {
		if (strcmp(found->items[i].name, name) != 0)
			continue;
		if (only)
			return abx_usage(cli, err,
					 "there is a checkpoint '%s' at %s and at %s: say "
					 "--provider",
					 name, only->provider, found->items[i].provider);
		only = &found->items[i];
	}
	if (only || cli->provider) {
		*ret = abx_xstrdup(only ? only->provider : cli->provider);
		return 0;
	}
	r = abx_config_open(&cli->app.home, key, /* workspace= */ NULL, &config, err);
	if (r == 0)
		*ret = abx_xstrdup(abx_config_get(config, "box.provider", NULL));
	abx_config_close(config);
	return r;
}

static int remove_one(struct abx_cli *cli, const char *name, struct abx_err *err)
{
	abx_autofree char *key = NULL, *provider = NULL;
	struct abx_checkpoint_list found = {0};
	int r = find(cli, /* all= */ false, &key, &found, err);

	if (r == 0)
		r = provider_of(cli, &found, key, name, &provider, err);
	abx_checkpoint_list_release(&found);
	if (r == 0)
		r = abx_box_checkpoint_remove(&cli->app, provider, key, name, err);
	return r < 0 ? r : abx_out_removed(cli, "checkpoint", name, err);
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct checkpoint_options o = {0};
	const struct abx_opt opts[] = {
		{'n', "name", ABX_OPT_KIND_TEXT, &o.name, "NAME", "create: what it is called"},
		{0, "stop", ABX_OPT_KIND_FLAG, &o.stop, NULL,
		 "create: processes may end, where that saves a copy"},
		{0, "all", ABX_OPT_KIND_FLAG, &o.all, NULL, "ls: those of every project"},
		{0}};
	struct abx_args args;
	const char *verb;
	int r = abx_opts_parse(cli, opts, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	verb = args.n_pos && !args.n_rest ? args.pos[0] : "";
	if (strcmp(verb, "create") == 0 && args.n_pos <= 2) {
		if (!o.name)
			return abx_usage(cli, err, "checkpoint create needs --name");
		return create(cli, args.n_pos > 1 ? args.pos[1] : NULL, &o, err);
	}
	if (strcmp(verb, "ls") == 0 && args.n_pos == 1)
		return list(cli, o.all, err);
	if (strcmp(verb, "rm") == 0 && args.n_pos == 2)
		return remove_one(cli, args.pos[1], err);
	return abx_usage(cli, err, "checkpoint: say create, ls, or rm and which");
}

const struct abx_cmd abx_cmd_checkpoint = {
	.name = "checkpoint",
	.usage = "create [BOX] --name NAME [--stop] | ls [--all] | rm NAME",
	.summary = "Keep the state of a box, so that new boxes can start from it.",
	.help = "A checkpoint outlives its box.  agentbox create --snapshot NAME starts from it;\n"
		"diff and download then go on from where the first box was made.\n",
	.run = run,
};
