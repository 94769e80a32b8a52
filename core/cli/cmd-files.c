/* SPDX-License-Identifier: MIT */
/* agentbox files */
#include <sys/stat.h>

#include "core/box/files.h"
#include "core/box/select.h"
#include "core/cli/cmd.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define N_COLUMNS 5
#define NAME_SHOWN_BYTES 1100 /* 255 bytes, each four characters at most */

static const char *type_of(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "link";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
	case S_IFBLK:
		return "device";
	default:
		return "other";
	}
}

static bool is_utf8(const char *s)
{
	while (*s) {
		size_t n = abx_utf8_len((const unsigned char *)s);

		if (!n)
			return false;
		s += n;
	}
	return true;
}

/* What JSON cannot hold as text is there as numbers as well. */
static void add_exact_name(cJSON *o, const char *name)
{
	cJSON *bytes;

	abx_json_text(o, "name", name);
	if (is_utf8(name))
		return;
	bytes = cJSON_AddArrayToObject(o, "name_bytes");
	for (; *name; name++)
		(void)cJSON_AddItemToArray(bytes, cJSON_CreateNumber((unsigned char)*name));
}

static int print_json(const struct abx_file_list *files, struct abx_err *err)
{
	cJSON *doc = cJSON_CreateArray();

	for (size_t i = 0; i < files->len; i++) {
		const struct abx_file *f = &files->items[i].f;
		cJSON *o = cJSON_CreateObject();

		add_exact_name(o, f->name);
		abx_json_text(o, "type", type_of(f->mode));
		(void)cJSON_AddNumberToObject(o, "mode", f->mode & 07777);
		(void)cJSON_AddNumberToObject(o, "size_bytes", (double)f->size_bytes);
		abx_json_time(o, "mtime", f->mtime_s * 1000);
		(void)cJSON_AddItemToArray(doc, o);
	}
	return abx_out_json(doc, err);
}

static int print_table(const struct abx_file_list *files, struct abx_err *err)
{
	abx_autofree const char **cells = abx_xcalloc(files->len * N_COLUMNS, sizeof(*cells));
	struct abx_strv texts = {0};
	size_t at = 0;
	int r;

	for (size_t i = 0; i < files->len; i++) {
		const struct abx_file *f = &files->items[i].f;
		char name[NAME_SHOWN_BYTES], when[ABX_TIME_TEXT_BYTES];

		abx_quote_text(f->name, name, sizeof(name));
		abx_time_text(f->mtime_s * 1000, when);
		abx_strv_take(&texts, abx_xasprintf("%04o", f->mode & 07777));
		abx_strv_take(&texts, abx_xasprintf("%llu", (unsigned long long)f->size_bytes));
		abx_strv_add(&texts, when);
		abx_strv_add(&texts, name);
		cells[at++] = type_of(f->mode);
		for (size_t k = texts.len - 4; k < texts.len; k++)
			cells[at++] = texts.items[k];
	}
	r = abx_out_table(cells, files->len, N_COLUMNS, err);
	abx_strv_release(&texts);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_file_list files = {0};
	struct abx_box box = {0};
	struct abx_args args;
	int r = abx_opts_parse(cli, NULL, argc, argv, &args, err);

	if (r != ABX_OPTS_GO)
		return r;
	if (args.n_pos < 1 || args.n_pos > 2 || args.n_rest)
		return abx_usage(cli, err, "files takes a box and a directory");
	r = abx_select_box(&cli->app, args.n_pos > 1 ? args.pos[0] : NULL, &box, err);
	if (r == 0)
		r = abx_box_files(&cli->app, &box, args.pos[args.n_pos - 1], &files, err);
	if (r == 0 && cli->json)
		r = print_json(&files, err);
	else if (r == 0 && files.len)
		r = print_table(&files, err);
	abx_file_list_release(&files);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_files = {
	.name = "files",
	.usage = "[BOX] DIR [--json]",
	.summary = "List a directory of a box.",
	.help = "DIR is relative to /workspace.  A name that is no UTF-8 has its bytes in the "
		"JSON\n"
		"document as well, as name_bytes.\n",
	.run = run,
};
