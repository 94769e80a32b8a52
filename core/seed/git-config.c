/* SPDX-License-Identifier: MIT */
/* The git settings that matter for seeding. */
#include "core/seed/git-config.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "core/util/mem.h"

/* Git's words for true; a key without a value is true as well. */
static bool is_true(const char *value)
{
	return !value || strcasecmp(value, "true") == 0 || strcasecmp(value, "yes") == 0 ||
	       strcasecmp(value, "on") == 0 ||
	       (*value && strspn(value, "0") < strlen(value) &&
		strspn(value, "0123456789") == strlen(value));
}

enum kind { TEXT, PATH, BOOL, NOT_BOOL };

static const struct {
	const char *key;
	enum kind kind;
	size_t offset;
} keys[] = {
	{"user.name", TEXT, offsetof(struct abx_git_config, user_name)},
	{"user.email", TEXT, offsetof(struct abx_git_config, user_email)},
	{"core.autocrlf", TEXT, offsetof(struct abx_git_config, autocrlf)},
	{"core.eol", TEXT, offsetof(struct abx_git_config, eol)},
	{"core.safecrlf", TEXT, offsetof(struct abx_git_config, safecrlf)},
	{"core.excludesfile", PATH, offsetof(struct abx_git_config, excludes_file)},
	{"core.attributesfile", PATH, offsetof(struct abx_git_config, attributes_file)},
	{"core.filemode", BOOL, offsetof(struct abx_git_config, filemode)},
	{"core.ignorecase", BOOL, offsetof(struct abx_git_config, ignorecase)},
	{"core.bare", BOOL, offsetof(struct abx_git_config, bare)},
	{"core.sparsecheckout", BOOL, offsetof(struct abx_git_config, sparse)},
	{"core.symlinks", NOT_BOOL, offsetof(struct abx_git_config, no_symlinks)},
	{"core.worktree", TEXT, offsetof(struct abx_git_config, worktree)},
	{"extensions.partialclone", TEXT, offsetof(struct abx_git_config, promisor)},
	{"extensions.objectformat", TEXT, offsetof(struct abx_git_config, object_format)},
	{"extensions.refstorage", TEXT, offsetof(struct abx_git_config, ref_storage)},
};

static char *home_path(const char *below)
{
	const char *home = getenv("HOME");

	return home ? abx_xasprintf("%s/%s", home, below) : NULL;
}

/* As git reads a path setting, `~user` aside. */
static char *resolve(const char *value, const char *workspace)
{
	if (value[0] == '~' && value[1] == '/')
		return home_path(value + 2);
	if (value[0] == '/' || !value[0])
		return abx_xstrdup(value);
	return abx_xasprintf("%s/%s", workspace, value);
}

static char *default_path(const char *name)
{
	const char *xdg = getenv("XDG_CONFIG_HOME");
	abx_autofree char *below = abx_xasprintf(".config/git/%s", name);

	if (xdg && *xdg)
		return abx_xasprintf("%s/git/%s", xdg, name);
	return home_path(below);
}

static void take(struct abx_git_config *c, const char *key, const char *value,
		 const char *workspace)
{
	const size_t len = strlen(key);

	for (size_t i = 0; i < ABX_N_ELEMENTS(keys); i++) {
		void *at = (char *)c + keys[i].offset;

		if (strcmp(key, keys[i].key) != 0)
			continue;
		if (keys[i].kind == BOOL || keys[i].kind == NOT_BOOL) {
			*(bool *)at = is_true(value) == (keys[i].kind == BOOL);
			return;
		}
		free(*(char **)at);
		*(char **)at = keys[i].kind == PATH && value ? resolve(value, workspace)
							     : abx_xstrdup(value ? value : "true");
		return;
	}
	if (strncmp(key, "remote.", 7) == 0 && len > 16 &&
	    strcmp(key + len - 9, ".promisor") == 0 && is_true(value))
		abx_xreplace(&c->promisor, key);
}

int abx_git_config_parse(const struct abx_buf *list, const char *workspace,
			 struct abx_git_config *ret, struct abx_err *err)
{
	struct abx_git_config c = {.filemode = true};
	const char *at = abx_buf_str(list), *end = at + list->len;

	while (at < end) {
		const char *nul = memchr(at, '\0', (size_t)(end - at)), *line;
		abx_autofree char *key = NULL;

		if (!nul) {
			abx_git_config_release(&c);
			return abx_err_set(err, ABX_EIO, "git config: its list breaks off");
		}
		line = memchr(at, '\n', (size_t)(nul - at));
		key = abx_xstrndup(at, (size_t)((line ? line : nul) - at));
		take(&c, key, line ? line + 1 : NULL, workspace);
		at = nul + 1;
	}
	if (!c.excludes_file)
		c.excludes_file = default_path("ignore");
	if (!c.attributes_file)
		c.attributes_file = default_path("attributes");
	*ret = c;
	return 0;
}

void abx_git_config_release(struct abx_git_config *c)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(keys); i++)
		if (keys[i].kind == TEXT || keys[i].kind == PATH)
			free(*(char **)((char *)c + keys[i].offset));
	memset(c, 0, sizeof(*c));
}

bool abx_git_config_converts(const struct abx_git_config *c)
{
	return c->autocrlf && (strcasecmp(c->autocrlf, "input") == 0 || is_true(c->autocrlf));
}

static void write_value(struct abx_buf *b, const char *key, const char *value)
{
	if (!value)
		return;
	abx_buf_addf(b, "\t%s = \"", key);
	for (; *value; value++) {
		if (*value == '\n')
			abx_buf_adds(b, "\\n");
		else if (*value == '"' || *value == '\\')
			abx_buf_addf(b, "\\%c", *value);
		else
			abx_buf_addc(b, *value);
	}
	abx_buf_adds(b, "\"\n");
}

void abx_git_config_write(const struct abx_git_config *c, bool drop_caches, struct abx_buf *b)
{
	abx_buf_addf(b,
		     "[core]\n\trepositoryformatversion = 0\n\tfilemode = %s\n\tbare = false\n"
		     "\tlogallrefupdates = true\n",
		     c->filemode ? "true" : "false");
	if (c->ignorecase)
		abx_buf_adds(b, "\tignorecase = true\n");
	if (drop_caches)
		abx_buf_adds(b, "\tuntrackedCache = false\n\tfsmonitor = false\n");
	write_value(b, "autocrlf", c->autocrlf);
	write_value(b, "eol", c->eol);
	write_value(b, "safecrlf", c->safecrlf);
	if (c->user_name || c->user_email)
		abx_buf_adds(b, "[user]\n");
	write_value(b, "name", c->user_name);
	write_value(b, "email", c->user_email);
}
