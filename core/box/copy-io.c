/* SPDX-License-Identifier: MIT */
/* What copies of files and streams share. */
#include "core/box/copy-io.h"

#include <fcntl.h>
#include <string.h>

#include "core/box/exec.h"
#include "core/box/running.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define WORKSPACE_IN_BOX "/workspace"
#define PROBE_TIMEOUT_MS 60000

int abx_copier_open(struct abx_app *app, struct abx_box *box, struct abx_copier *ret,
		    struct abx_err *err)
{
	int r = abx_box_reach(app, box, &ret->cloud, &ret->sandbox, err);

	if (r < 0)
		return r;
	ret->app = app;
	ret->opts.box_id = box->id;
	return 0;
}

char *abx_copy_box_path(const char *path)
{
	return path[0] == '/' ? abx_xstrdup(path) : abx_xasprintf(WORKSPACE_IN_BOX "/%s", path);
}

char *abx_copy_last_name(const char *path)
{
	size_t end = strlen(path), start;

	while (end > 1 && path[end - 1] == '/')
		end--;
	start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	return abx_xstrndup(path + start, end - start);
}

bool abx_copy_has_no_name(const char *name)
{
	return !*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* "-rwxr-xr-x 1 0 0 1234 ...": in every box the same. */
static void take_listing(char *text, mode_t *ret_mode, uint64_t *ret_size)
{
	const char *field = text;

	*ret_size = 0;
	*ret_mode = strlen(text) > 10 ? 0 : 0644;
	for (int bit = 0; strlen(text) > 10 && bit < 9; bit++)
		if (strchr("rwxst", text[1 + bit]))
			*ret_mode |= (mode_t)0400 >> bit;
	for (int i = 0; i < 4; i++) {
		field += strcspn(field, " ");
		field += strspn(field, " ");
	}
	text[(size_t)(field - text) + strcspn(field, " ")] = '\0';
	(void)abx_parse_u64(field, INT64_MAX, ret_size);
}

/* Is it a directory, a file, something else, or nothing?  'd', 'f', 'o' or '-'; of a file
 * also the permission bits and the size, by what `ls -l` says in every box. */
int abx_copy_kind(struct abx_copier *c, const char *path, char *ret_kind, mode_t *ret_mode,
		  uint64_t *ret_size, struct abx_err *err)
{
	static const char script[] =
		"[ ! -d \"$1\" ] || exit 10\n"
		"if [ -f \"$1\" ]; then LC_ALL=C ls -ldnL \"$1\" 2>/dev/null | "
		"head -c 80; exit 11; fi\n"
		"if [ -e \"$1\" ] || [ -L \"$1\" ]; then exit 12; fi\n"
		"exit 13\n";
	const char *const argv[] = {"/bin/sh", "-c", script, "sh", path, NULL};
	struct abx_exec_request req = {.argv = argv,
				       .cwd = "/",
				       .fd_in = -1,
				       .fd_err = -1,
				       .timeout_ms = PROBE_TIMEOUT_MS};
	char text[100] = "";
	int code = 0, out[2], r;

	/* So few bytes fit into any pipe. */
	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0)
		return abx_err_errno(err, errno, "make a pipe");
	req.fd_out = out[1];
	r = abx_exec_on(c->cloud, &c->opts, &c->sandbox, &req, &code, err);
	if (r == 0 && read(out[0], text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	(void)close(out[0]);
	(void)close(out[1]);
	if (r < 0)
		return r;
	if (code < 10 || code > 13)
		return abx_err_set(err, ABX_EREMOTE,
				   "the box could not look at '%s' (exit code %d)", path, code);
	*ret_kind = "dfo-"[code - 10];
	take_listing(text, ret_mode, ret_size);
	return 0;
}

int abx_copy_check_slash(const char *target, bool is_directory, struct abx_err *err)
{
	size_t len = strlen(target);
	char shown[256];

	if (is_directory || !len || target[len - 1] != '/')
		return 0;
	abx_quote_text(target, shown, sizeof(shown));
	return abx_err_set(err, ABX_EINVAL, "'%s' is not a directory", shown);
}
