/* SPDX-License-Identifier: MIT */
/* Which directory a box is made of. */
#include "core/box/workspace.h"

#include <string.h>
#include <sys/stat.h>

#include "core/seed/layout.h"
#include "core/state/home.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

static int find(const char *given, char **ret, struct abx_err *err)
{
	abx_autofree char *path = NULL;
	char shown[256];
	struct stat st;

	abx_quote_text(given, shown, sizeof(shown));
	if (!*given)
		return abx_err_set(err, ABX_EUSAGE, "workspace '': the path is empty");
	/* It may have a password in it. */
	if (strstr(given, "://") && access(given, F_OK) < 0) {
		(void)abx_err_set(err, ABX_EUSAGE,
				  "workspace: an address, and create takes a directory");
		return abx_err_remedy(err, "git clone it, and name the clone with -w");
	}
	path = realpath(given, NULL);
	if (!path || stat(path, &st) < 0)
		return abx_err_errno(err, errno, "workspace '%s'", shown);
	if (!S_ISDIR(st.st_mode))
		return abx_err_set(err, ABX_EINVAL, "workspace '%s': not a directory", shown);
	if (access(path, R_OK | X_OK) < 0)
		return abx_err_errno(err, errno, "workspace '%s'", shown);
	if (strcmp(path, "/") == 0) {
		(void)abx_err_set(err, ABX_EINVAL, "workspace '/': that is the whole machine");
		return abx_err_remedy(err, "name the project's directory with -w");
	}
	*ret = abx_steal_ptr(&path);
	return 0;
}

int abx_workspace_resolve(struct abx_app *app, const char *given, char **ret_path,
			  char **ret_subdir, struct abx_err *err)
{
	abx_autofree char *path = NULL, *top = NULL, *tmp = NULL;
	int r = find(given ? given : ".", &path, err);

	if (r == 0)
		r = abx_app_open(app, err);
	if (r == 0)
		r = abx_home_dir(&app->home, &tmp, err, "tmp");
	if (r == 0)
		r = abx_layout_top(path, tmp, &top, err);
	if (r < 0)
		return r;
	*ret_subdir = top ? abx_xstrdup(path + strlen(top) + 1) : NULL;
	*ret_path = top ? abx_steal_ptr(&top) : abx_steal_ptr(&path);
	return 0;
}
