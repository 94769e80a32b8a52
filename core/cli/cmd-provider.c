/* SPDX-License-Identifier: MIT */
/* agentbox provider: which providers there are, and what one of them can do. */
#include <string.h>

#include "abxsdk/buf.h"
#include "core/cli/cmd.h"
#include "core/host/elfnote.h"
#include "core/host/probe.h"
#include "core/host/registry.h"
#include "core/host/trust.h"
#include "core/util/mem.h"

#define ABI_TEXT_BYTES 32

static void abi_text(const struct abx_provider_file *f, char text[ABI_TEXT_BYTES])
{
	/* Unknown when the note could not be read. */
	(void)snprintf(text, ABI_TEXT_BYTES, f->version ? "%u.%u" : "-", f->abi_major,
		       f->abi_minor);
}

static const char *status_of(const struct abx_provider_file *f)
{
	if (f->problem.code)
		return "broken";
	return f->shadowed ? "shadowed" : "ok";
}

static cJSON *file_json(const struct abx_provider_file *f)
{
	cJSON *o = cJSON_CreateObject();
	char abi[ABI_TEXT_BYTES];

	abi_text(f, abi);
	abx_json_text(o, "name", f->name);
	abx_json_text(o, "version", f->version);
	abx_json_text(o, "abi", f->version ? abi : NULL);
	abx_json_text(o, "path", f->path);
	abx_json_text(o, "status", status_of(f));
	(void)cJSON_AddBoolToObject(o, "shadowed", f->shadowed);
	abx_json_text(o, "reason", f->problem.code ? f->problem.text : NULL);
	abx_json_text(o, "remedy", f->problem.remedy[0] ? f->problem.remedy : NULL);
	return o;
}

static int list_json(const struct abx_provider_files *files, struct abx_err *err)
{
	cJSON *list = cJSON_CreateArray();

	for (size_t i = 0; i < files->len; i++)
		(void)cJSON_AddItemToArray(list, file_json(&files->items[i]));
	return abx_out_json(list, err);
}

static int list_table(const struct abx_provider_files *files, struct abx_err *err)
{
	enum { COLUMNS = 5 };
	const size_t n_rows = files->len + 1;
	abx_autofree const char **cells = abx_xcalloc(n_rows * COLUMNS, sizeof(*cells));
	abx_autofree char(*abis)[ABI_TEXT_BYTES] = abx_xcalloc(n_rows, sizeof(*abis));
	static const char *const head[COLUMNS] = {"NAME", "VERSION", "ABI", "STATUS", "PATH"};

	memcpy(cells, head, sizeof(head));
	for (size_t i = 0; i < files->len; i++) {
		const struct abx_provider_file *f = &files->items[i];
		const char **row = cells + (i + 1) * COLUMNS;

		abi_text(f, abis[i]);
		row[0] = f->name;
		row[1] = f->version;
		row[2] = abis[i];
		row[3] = status_of(f);
		/* The reason begins with the path. */
		row[4] = f->problem.code ? f->problem.text : f->path;
	}
	return abx_out_table(cells, n_rows, COLUMNS, err);
}

static int run_list(struct abx_cli *cli, struct abx_err *err)
{
	struct abx_provider_files files;
	int r = abx_registry_scan(&files, err);

	if (r < 0)
		return r;
	r = cli->json ? list_json(&files, err) : list_table(&files, err);
	abx_provider_files_release(&files);
	return r;
}

/* What the probe's child says about a file; nothing of it runs here. */
static int probe(const char *name, cJSON **ret, struct abx_err *err)
{
	struct abx_provider_file file;
	abx_autoclose int fd = -1;
	int r = abx_registry_find(name, &file, err);

	if (r < 0)
		return r;
	r = abx_trust_open(file.path, &fd, err);
	if (r == 0)
		r = abx_probe_run(fd, file.path, file.name, ret, err);
	abx_provider_file_release(&file);
	return r;
}

/* "a, b, c" of an array of strings, or of the members `has_*` that are true. */
static char *join(const cJSON *list, bool operations)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);
	const cJSON *item;

	cJSON_ArrayForEach(item, list) {
		const char *text = operations ? item->string : item->valuestring;

		if (operations && (strncmp(text, "has_", 4) != 0 || !cJSON_IsTrue(item)))
			continue;
		abx_buf_addf(&b, "%s%s", b.len ? ", " : "", operations ? text + 4 : text);
	}
	return abx_xstrdup(b.len ? abx_buf_str(&b) : "-");
}

static int print_member(const cJSON *doc, const char *label, const char *key, struct abx_err *err)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(doc, key);

	if (cJSON_IsNumber(item))
		return abx_out_line(err, "%-14s %.0f", label, item->valuedouble);
	return abx_out_line(err, "%-14s %s", label, cJSON_IsString(item) ? item->valuestring : "-");
}

static const char *text_of(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

	return text ? text : "";
}

static int print_options(const cJSON *options, struct abx_err *err)
{
	const cJSON *o;
	int r = 0;

	cJSON_ArrayForEach(o, options) {
		const bool required = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "required"));
		const char *dflt = text_of(o, "default");

		r = abx_out_line(err, "\n%s (%s%s%s%s)%s%s\n    %s", text_of(o, "key"),
				 text_of(o, "type"), required ? ", required" : "",
				 *dflt ? ", default " : "", dflt, *text_of(o, "env") ? " $" : "",
				 text_of(o, "env"), text_of(o, "help"));
		if (r < 0)
			return r;
	}
	return r;
}

static int print_info(const cJSON *doc, struct abx_err *err)
{
	static const char *const members[][2] = {
		{"name", "name"},
		{"version", "version"},
		{"summary", "summary"},
		{"homepage", "homepage"},
		{"path", "path"},
		{"ABI", "abi"},
		{"table bytes", "struct_size"},
		{"our bytes", "host_struct_size"},
		{"threads", "thread_model"},
	};
	abx_autofree char *caps =
		join(cJSON_GetObjectItemCaseSensitive(doc, "caps"), /* operations= */ false);
	abx_autofree char *operations = join(doc, /* operations= */ true);
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(members) && r == 0; i++)
		r = print_member(doc, members[i][0], members[i][1], err);
	if (r == 0)
		r = abx_out_line(err, "%-14s %s", "capabilities", caps);
	if (r == 0)
		r = abx_out_line(err, "%-14s %s", "operations", operations);
	if (r == 0)
		r = print_options(cJSON_GetObjectItemCaseSensitive(doc, "options"), err);
	return r;
}

static int run_info(struct abx_cli *cli, const char *name, struct abx_err *err)
{
	cJSON *doc = NULL;
	int r = probe(name, &doc, err);

	if (r < 0)
		return r;
	if (cli->json)
		return abx_out_json(doc, err);
	r = print_info(doc, err);
	cJSON_Delete(doc);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_args args;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos == 1 && strcmp(args.pos[0], "list") == 0)
		return run_list(cli, err);
	if (args.n_pos == 2 && strcmp(args.pos[0], "info") == 0)
		return run_info(cli, args.pos[1], err);
	return abx_usage(cli, err, "provider: say list, or info and which");
}

extern const struct abx_cmd abx_cmd_provider, abx_cmd_provider_probe;

const struct abx_cmd abx_cmd_provider = {
	.name = "provider",
	.usage = "list | info NAME|/PATH/agentbox-NAME.so",
	.summary = "Which providers there are, and what one of them can do.",
	.help = "`list` reads no more than the note in each file; nothing of a provider runs.\n"
		"`info` loads the file in a process of its own and shows its table.\n",
	.run = run,
};

static int run_probe(struct abx_cli *cli ABX_UNUSED, int argc, char **argv,
		     struct abx_err *err ABX_UNUSED)
{
	return abx_probe_main(argc, argv);
}

const struct abx_cmd abx_cmd_provider_probe = {
	.name = ABX_PROBE_COMMAND,
	.usage = "PATH [FD]",
	.summary = "Load a provider to see whether it crashes",
	.run = run_probe,
	.hidden = true,
};
