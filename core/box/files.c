/* SPDX-License-Identifier: MIT */
/* What is in a directory of a box. */
#include "core/box/files.h"

#include <string.h>

#include "core/box/copy-io.h"
#include "core/box/exec-text.h"
#include "core/box/running.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define LIST_TIMEOUT_MS 60000
#define LIST_BYTES_MAX ((size_t)64 << 20)

/* "mode size mtime", the mode in hexadecimal, a line end, the name, a NUL. */
static const char script[] = "cd -- \"$1\" || exit 10\n"
			     "for f in * .[!.]* ..?*; do\n"
			     "	[ -e \"$f\" ] || [ -L \"$f\" ] || continue\n"
			     "	stat -c '%f %s %Y' -- \"$f\" || continue\n"
			     "	printf '%s\\0' \"$f\"\n"
			     "done\n";

static bool hex(const char *text, uint32_t *ret)
{
	uint32_t n = 0;

	if (!*text || strlen(text) > 8)
		return false;
	for (; *text; text++) {
		const char *at = strchr("0123456789abcdef", *text);

		if (!at)
			return false;
		n = n * 16 + (uint32_t)(at - "0123456789abcdef");
	}
	*ret = n;
	return true;
}

/* Cuts `line` into its three numbers. */
static bool parse_numbers(char *line, struct abx_file *f)
{
	char *size = strchr(line, ' '), *mtime = size ? strchr(size + 1, ' ') : NULL;
	uint64_t seconds = 0;

	if (!mtime)
		return false;
	*size++ = '\0';
	*mtime++ = '\0';
	if (!hex(line, &f->mode) || !abx_parse_u64(size, UINT64_MAX, &f->size_bytes))
		return false;
	/* One before 1970 reads as 1970. */
	(void)abx_parse_u64(mtime, INT64_MAX, &seconds);
	f->mtime_s = (int64_t)seconds;
	return true;
}

static bool is_one_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Pieces that make no sense are the box's own doing, and are left out. */
static void parse_listing(struct abx_buf *text, struct abx_file_list *ret)
{
	char *at = text->data, *end = at ? at + text->len : NULL;

	while (at && at < end) {
		char *nul = memchr(at, '\0', (size_t)(end - at));
		char *name = nul ? memchr(at, '\n', (size_t)(nul - at)) : NULL;
		struct abx_file f = {ABX_INIT(struct abx_file)};

		if (name) {
			*name++ = '\0';
			if (parse_numbers(at, &f) && is_one_name(name)) {
				struct abx_file_copy *one;

				ret->items = abx_xreallocarray(ret->items, ret->len + 1,
							       sizeof(*ret->items));
				one = &ret->items[ret->len++];
				one->f = f;
				one->f.name = one->memory = abx_xstrdup(name);
			}
		}
		at = nul ? nul + 1 : NULL;
	}
}

static int ask_box(struct abx_copier *c, const char *dir, const char *shown,
		   struct abx_file_list *ret, struct abx_err *err)
{
	const char *const argv[] = {"/bin/sh", "-c", script, "sh", dir, NULL};
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(LIST_BYTES_MAX);
	int code = 0, r = abx_exec_text(c->cloud, &c->opts, &c->sandbox, argv, /* user= */ NULL,
					LIST_TIMEOUT_MS, &text, &code, err);

	if (r < 0)
		return r;
	if (code == 10)
		return abx_err_set(err, ABX_EINVAL,
				   "'%s' in the box '%s' is not a directory that can be read",
				   shown, c->sandbox.name);
	if (code)
		return abx_err_set(err, ABX_EREMOTE, "the box could not list '%s' (exit code %d)",
				   shown, code);
	parse_listing(&text, ret);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct abx_file_copy *x = a, *y = b;

	return strcmp(x->f.name, y->f.name);
}

struct question {
	struct abx_app *app;
	const char *path;
	struct abx_file_list *ret;
};

static int list(void *ctx, struct abx_box *box, struct abx_err *err)
{
	const struct question *q = ctx;
	struct abx_copier c = {0};
	char shown[256];
	int r = abx_copier_open(q->app, box, &c, err);

	if (r < 0)
		return r;
	abx_quote_text(q->path, shown, sizeof(shown));
	c.opts.timeout_ms = LIST_TIMEOUT_MS;
	if (!abx_cloud_table(c.cloud)->list_files)
		return ask_box(&c, q->path, shown, q->ret, err);
	r = abx_cloud_list_files(c.cloud, &c.opts, &c.sandbox, q->path, q->ret, err);
	if (r == ABX_ENOTFOUND)
		return abx_err_set(err, r, "there is no directory '%s' in the box '%s'", shown,
				   c.sandbox.name);
	return r;
}

int abx_box_files(struct abx_app *app, struct abx_box *box, const char *dir,
		  struct abx_file_list *ret, struct abx_err *err)
{
	abx_autofree char *path = abx_copy_box_path(dir);
	struct question q = {app, path, ret};
	int r = abx_box_work(app, box, list, &q, err);

	if (r == 0 && ret->len)
		qsort(ret->items, ret->len, sizeof(*ret->items), by_name);
	return r;
}
