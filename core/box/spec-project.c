/* SPDX-License-Identifier: MIT */
/* Mounts and volumes inside of the workspace. */
#include <string.h>
#include <sys/stat.h>

#include "core/box/spec.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

/* Does the project have something at `rel`, or something else than a directory above it? */
static bool is_taken(const char *workspace, const char *rel)
{
	abx_autofree char *path = abx_xasprintf("%s/%s", workspace, rel);
	struct stat st;

	for (char *at = path + strlen(workspace) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		if (lstat(path, &st) < 0)
			return false;
		if (!S_ISDIR(st.st_mode))
			return true;
	}
	return lstat(path, &st) == 0;
}

static bool is_git(const char *rel)
{
	return strncasecmp(rel, ".git", 4) == 0 && (rel[4] == '/' || !rel[4]);
}

static int check(const char *target, const char *workspace, const char *dir, struct abx_err *err)
{
	const size_t len = strlen(dir);
	const char *rel = target + len + 1;
	char shown[256];

	if (strncmp(target, dir, len) != 0 || target[len] != '/')
		return 0;
	if (!is_git(rel) && !is_taken(workspace, rel))
		return 0;
	abx_quote_text(target, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EUSAGE,
			  "'%s' in the box: the project has something there, which would be "
			  "written into what is mounted",
			  shown);
	return abx_err_remedy(err, "mount it at a place that the project does not have");
}

int abx_box_spec_check_project(const struct abx_box_spec *s, const char *workspace,
			       const char *dir_in_box, struct abx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < s->mounts.len && r == 0; i++)
		r = check(s->mounts.items[i].target, workspace, dir_in_box, err);
	for (size_t i = 0; i < s->volumes.len && r == 0; i++)
		r = check(s->volumes.items[i].target, workspace, dir_in_box, err);
	return r;
}
