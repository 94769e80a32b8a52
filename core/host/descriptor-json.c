/* SPDX-License-Identifier: MIT */
/* A plugin's table as JSON, for `agentbox provider info`. */
#include <string.h>

#include "core/host/descriptor.h"
#include "core/host/text.h"

static const struct {
	uint64_t bit;
	const char *name;
} caps[] = {
	{ABX_CAP_EXEC_STDIN, "exec_stdin"},
	{ABX_CAP_EXEC_SPLIT, "exec_split"},
	{ABX_CAP_EXEC_BINARY, "exec_binary"},
	{ABX_CAP_EXEC_SIGNAL, "exec_signal"},
	{ABX_CAP_EXEC_TREE_KILL, "exec_tree_kill"},
	{ABX_CAP_EXEC_REATTACH, "exec_reattach"},
	{ABX_CAP_EXEC_PTY, "exec_pty"},
	{ABX_CAP_PUT_GZIP, "put_gzip"},
	{ABX_CAP_PUT_ZSTD, "put_zstd"},
	{ABX_CAP_LOCAL, "local"},
	{ABX_CAP_MEMORY_PAUSE, "memory_pause"},
	{ABX_CAP_TIMEOUT_ADDS, "timeout_adds"},
	{ABX_CAP_TIMEOUT_IDLE, "timeout_idle"},
	{ABX_CAP_NEEDS_BASE, "needs_base"},
	{ABX_CAP_BASE_ASKED, "base_asked"},
	{ABX_CAP_READ_ONLY, "read_only"},
	{ABX_CAP_HOST_REACHED, "host_reached"},
	{ABX_CAP_READY, "ready"},
};

static const char *const option_types[] = {"", "string", "int", "bool", "duration", "size", "list"};

/* A line of text; the plugin's own may hold anything. */
static void add_text(cJSON *o, const char *key, const char *text)
{
	char line[1100];

	if (!text) {
		(void)cJSON_AddNullToObject(o, key);
		return;
	}
	abx_text_line(text, sizeof(line), line, sizeof(line));
	(void)cJSON_AddStringToObject(o, key, line);
}

static const char *thread_model_name(uint32_t model)
{
	if (model < ABX_THREADS_SESSION)
		return "serial";
	return model < ABX_THREADS_PARALLEL ? "session" : "parallel";
}

static void add_options(cJSON *doc, const struct abx_cloud_backend *t)
{
	cJSON *list = cJSON_AddArrayToObject(doc, "options");

	for (size_t i = 0; t->options && t->options[i]; i++) {
		const struct abx_option *o = t->options[i];
		cJSON *item = cJSON_CreateObject();
		char key[128];

		(void)snprintf(key, sizeof(key), "%s.%s", t->name, o->name);
		add_text(item, "key", key);
		add_text(item, "type", option_types[o->type]);
		add_text(item, "env", o->env);
		add_text(item, "default", o->dflt);
		(void)cJSON_AddBoolToObject(item, "required", o->flags & ABX_OPT_REQUIRED);
		(void)cJSON_AddBoolToObject(item, "secret", o->flags & ABX_OPT_SECRET);
		(void)cJSON_AddBoolToObject(item, "per_box", o->flags & ABX_OPT_PER_BOX);
		(void)cJSON_AddBoolToObject(item, "workspace_ok", o->flags & ABX_OPT_WORKSPACE_OK);
		add_text(item, "help", o->help);
		(void)cJSON_AddItemToArray(list, item);
	}
}

static void add_commands(cJSON *doc, const struct abx_cloud_backend *t)
{
	cJSON *list = cJSON_AddArrayToObject(doc, "commands");

	for (size_t i = 0; t->commands && t->commands[i]; i++) {
		cJSON *item = cJSON_CreateObject();

		add_text(item, "name", t->commands[i]->name);
		add_text(item, "usage", t->commands[i]->usage);
		add_text(item, "help", t->commands[i]->help);
		(void)cJSON_AddItemToArray(list, item);
	}
}

cJSON *abx_descriptor_json(const struct abx_cloud_backend *theirs,
			   const struct abx_cloud_backend *table, const char *path)
{
	cJSON *doc = cJSON_CreateObject(), *list;
	char abi[32];

	add_text(doc, "name", table->name);
	add_text(doc, "version", table->version);
	add_text(doc, "path", path);
	add_text(doc, "summary", table->summary);
	add_text(doc, "homepage", table->homepage);
	(void)snprintf(abi, sizeof(abi), "%u.%u", table->abi_major, table->abi_minor);
	add_text(doc, "abi", abi);
	(void)snprintf(abi, sizeof(abi), "%u.%u", table->abi_major, table->abi_minor_min);
	add_text(doc, "abi_min", abi);
	(void)cJSON_AddNumberToObject(doc, "struct_size", theirs->struct_size);
	(void)cJSON_AddNumberToObject(doc, "host_struct_size", sizeof(*table));
	add_text(doc, "thread_model", thread_model_name(table->thread_model));
	list = cJSON_AddArrayToObject(doc, "caps");
	for (size_t i = 0; i < ABX_N_ELEMENTS(caps); i++)
		if (table->caps & caps[i].bit)
			(void)cJSON_AddItemToArray(list, cJSON_CreateString(caps[i].name));
	for (const struct abx_op_info *op = abx_op_infos; op->name; op++) {
		char key[64];

		(void)snprintf(key, sizeof(key), "has_%s", op->name);
		(void)cJSON_AddBoolToObject(doc, key, abx_descriptor_has(table, op));
	}
	/* A cloud that knows no other way to stop than to pause. */
	(void)cJSON_AddBoolToObject(doc, "stop_is_pause",
				    table->pause && table->stop == table->pause);
	add_options(doc, table);
	add_commands(doc, table);
	return doc;
}
