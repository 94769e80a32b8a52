/* SPDX-License-Identifier: MIT */
/* Which providers there are, without loading any. */
#include "core/host/registry.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "core/host/elfnote.h"
#include "core/host/trust.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define PREFIX "agentbox-"
#define SUFFIX ".so"

void abx_provider_file_release(struct abx_provider_file *f)
{
	free(f->name);
	free(f->path);
	free(f->version);
	memset(f, 0, sizeof(*f));
}

void abx_provider_files_release(struct abx_provider_files *l)
{
	for (size_t i = 0; i < l->len; i++)
		abx_provider_file_release(&l->items[i]);
	free(l->items);
	l->items = NULL;
	l->len = 0;
}

/* The directories to look in, in order. */
static void search_path(struct abx_strv *dirs)
{
	const char *at = secure_getenv("AGENTBOX_PROVIDER_PATH");

	while (at && *at) {
		size_t n = strcspn(at, ":");
		abx_autofree char *dir = abx_xstrndup(at, n);

		if (dir[0] == '/')
			abx_strv_add(dirs, dir);
		else
			abx_warn("AGENTBOX_PROVIDER_PATH: '%s' is ignored (only absolute "
				 "directories are searched)",
				 dir);
		at += n;
		if (*at == ':' && !*++at)
			abx_warn("AGENTBOX_PROVIDER_PATH: '' is ignored (only absolute "
				 "directories are searched)");
	}
	abx_strv_add(dirs, ABX_PROVIDERDIR);
}

/* The name in `agentbox-<name>.so`, or NULL. */
static char *name_of_file(const char *base)
{
	const size_t fixed = sizeof(PREFIX) - 1 + sizeof(SUFFIX) - 1;
	size_t len = strlen(base);
	abx_autofree char *name = NULL;

	if (len <= fixed || strncmp(base, PREFIX, sizeof(PREFIX) - 1) != 0 ||
	    strcmp(base + len - (sizeof(SUFFIX) - 1), SUFFIX) != 0)
		return NULL;
	name = abx_xstrndup(base + sizeof(PREFIX) - 1, len - fixed);
	return abx_is_provider_name(name) ? abx_steal_ptr(&name) : NULL;
}

static int inspect(struct abx_provider_file *f, struct abx_err *err)
{
	abx_autoclose int fd = -1;
	struct abx_elfnote note;
	int r = abx_trust_open(f->path, &fd, err);

	if (r == 0)
		r = abx_elfnote_read(fd, f->path, &note, err);
	if (r < 0)
		return r;
	f->version = abx_xstrdup(note.version);
	f->abi_major = note.abi_major;
	f->abi_minor = note.abi_minor;
	f->abi_minor_min = note.abi_minor_min;
	if (strcmp(note.name, f->name) != 0) {
		(void)abx_err_set(err, ABX_EPROVIDER,
				  "%s: provider '%s' calls itself '%s' in its note", f->path,
				  f->name, note.name);
		return abx_err_remedy(err, "a provider's file is named agentbox-<name>.so");
	}
	return abx_elfnote_check_abi(&note, f->path, err);
}

static void fill(struct abx_provider_file *f, const char *name, const char *path)
{
	static const struct abx_err no_problem = ABX_ERR_INIT;

	memset(f, 0, sizeof(*f));
	f->name = abx_xstrdup(name);
	f->path = abx_xstrdup(path);
	f->problem = no_problem;
	(void)inspect(f, &f->problem);
}

static bool has_name(const struct abx_provider_files *l, const char *name)
{
	for (size_t i = 0; i < l->len; i++)
		if (strcmp(l->items[i].name, name) == 0)
			return true;
	return false;
}

static void add_file(struct abx_provider_files *l, const char *name, const char *path)
{
	bool shadowed = has_name(l, name);

	l->items = abx_xreallocarray(l->items, l->len + 1, sizeof(*l->items));
	fill(&l->items[l->len], name, path);
	l->items[l->len++].shadowed = shadowed;
}

static void scan_dir(struct abx_provider_files *l, const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, NULL, alphasort);

	if (n < 0) {
		if (errno != ENOENT)
			abx_warn("providers in %s are not seen: %s", dir, strerror(errno));
		return;
	}
	for (int i = 0; i < n; i++) {
		abx_autofree char *name = name_of_file(entries[i]->d_name);
		abx_autofree char *path = abx_xasprintf("%s/%s", dir, entries[i]->d_name);

		if (name)
			add_file(l, name, path);
		free(entries[i]);
	}
	free(entries);
}

int abx_registry_scan(struct abx_provider_files *ret, struct abx_err *err ABX_UNUSED)
{
	abx_auto(abx_strv) struct abx_strv dirs = {0};

	memset(ret, 0, sizeof(*ret));
	search_path(&dirs);
	for (size_t i = 0; i < dirs.len; i++)
		scan_dir(ret, dirs.items[i]);
	return 0;
}

static int take(struct abx_provider_file *f, struct abx_provider_file *ret, struct abx_err *err)
{
	if (f->problem.code) {
		int code = f->problem.code;

		if (err)
			*err = f->problem;
		abx_provider_file_release(f);
		return code;
	}
	*ret = *f;
	return 0;
}

static int find_path(const char *path, struct abx_provider_file *ret, struct abx_err *err)
{
	abx_autofree char *name = name_of_file(strrchr(path, '/') + 1);
	struct abx_provider_file f;

	if (path[0] != '/') {
		(void)abx_err_set(err, ABX_EPROVIDER, "provider '%s': not an absolute path", path);
		return abx_err_remedy(err, "give the whole path");
	}
	if (!name) {
		(void)abx_err_set(err, ABX_EPROVIDER, "%s: not the file name of a provider", path);
		return abx_err_remedy(err, "a provider's file is named agentbox-<name>.so");
	}
	fill(&f, name, path);
	return take(&f, ret, err);
}

static int not_found(const char *name, const struct abx_strv *dirs, struct abx_err *err)
{
	char where[512] = "";

	for (size_t i = 0; i < dirs->len; i++) {
		size_t at = strlen(where);

		(void)snprintf(where + at, sizeof(where) - at, "%s%s", i ? ":" : "",
			       dirs->items[i]);
	}
	(void)abx_err_set(err, ABX_EPROVIDER, "provider '%s' not found in: %s", name, where);
	return abx_err_remedy(err, "package agentbox-provider-%s?", name);
}

int abx_registry_find(const char *name, struct abx_provider_file *ret, struct abx_err *err)
{
	abx_auto(abx_strv) struct abx_strv dirs = {0};
	char shown[80];

	if (strchr(name, '/'))
		return find_path(name, ret, err);
	if (!abx_is_provider_name(name)) {
		abx_quote_text(name, shown, sizeof(shown));
		(void)abx_err_set(err, ABX_EPROVIDER, "no provider has the name '%s'", shown);
		return abx_err_remedy(err, "names are of a-z, 0-9 and -; agentbox provider list "
					   "shows those that there are");
	}
	search_path(&dirs);
	for (size_t i = 0; i < dirs.len; i++) {
		abx_autofree char *path =
			abx_xasprintf("%s/" PREFIX "%s" SUFFIX, dirs.items[i], name);
		struct abx_provider_file f;
		struct stat st;

		/* A dangling link is a broken provider, not an absent one. */
		if (lstat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
			continue;
		fill(&f, name, path);
		return take(&f, ret, err);
	}
	return not_found(name, &dirs, err);
}
