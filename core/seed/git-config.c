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
	{"core.sparsecheckoutcone", BOOL, offsetof(struct abx_git_config, sparse_cone)},
	{"index.sparse", BOOL, offsetof(struct abx_git_config, sparse_index)},
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

/* "section.<name>.key": the name, or NULL. */
static char *middle(const char *key, const char *section, const char *last)
{
	const size_t len = strlen(key), n = strlen(section), m = strlen(last);

	if (len <= n + m || strncmp(key, section, n) != 0 || strcmp(key + len - m, last) != 0)
		return NULL;
	return abx_xstrndup(key + n, len - n - m);
}

/* Without what may be a secret: the box has no business with somebody's password. */
static char *without_user(const char *url)
{
	const char *host = strstr(url, "://"), *at;

	if (!host)
		return abx_xstrdup(url);
	host += 3;
	at = memchr(host, '@', strcspn(host, "/"));
	if (!at)
		return abx_xstrdup(url);
	return abx_xasprintf("%.*s%s", (int)(host - url), url, at + 1);
}

/* Keys with a name in the middle. */
static void take_named(struct abx_git_config *c, const char *key, const char *value)
{
	abx_autofree char *remote = middle(key, "remote.", ".promisor");
	abx_autofree char *filter = middle(key, "remote.", ".partialclonefilter");
	char *module = middle(key, "submodule.", ".url");

	if (remote && is_true(value))
		abx_xreplace(&c->promisor, remote);
	if (filter && value)
		abx_xreplace(&c->promisor_filter, value);
	if (!module)
		return;
	abx_strv_take(&c->submodules, module);
	abx_strv_take(&c->submodules, without_user(value ? value : ""));
}

static void take(struct abx_git_config *c, const char *key, const char *value,
		 const char *workspace)
{
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
	take_named(c, key, value);
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
	free(c->promisor_filter);
	abx_strv_release(&c->submodules);
	memset(c, 0, sizeof(*c));
}

bool abx_git_config_converts(const struct abx_git_config *c)
{
	return c->autocrlf && (strcasecmp(c->autocrlf, "input") == 0 || is_true(c->autocrlf));
}

unsigned int abx_git_config_eol(const struct abx_git_config *c)
{
	const bool converts = abx_git_config_converts(c);
	/* core.autocrlf, when it says anything, decides. */
	const bool crlf =
		converts ? is_true(c->autocrlf) : c->eol && strcasecmp(c->eol, "crlf") == 0;

	return (converts ? ABX_GIT_CONFIG_AUTOCRLF : 0) | (crlf ? ABX_GIT_CONFIG_CRLF : 0);
}

static void write_quoted(struct abx_buf *b, const char *value)
{
	abx_buf_addc(b, '"');
	for (; *value; value++) {
		if (*value == '\n')
			abx_buf_adds(b, "\\n");
		else if (*value == '"' || *value == '\\')
			abx_buf_addf(b, "\\%c", *value);
		else
			abx_buf_addc(b, *value);
	}
	abx_buf_addc(b, '"');
}

static void write_value(struct abx_buf *b, const char *key, const char *value)
{
	if (!value)
		return;
	abx_buf_addf(b, "\t%s = ", key);
	write_quoted(b, value);
	abx_buf_addc(b, '\n');
}

/* A name with a line break has no spelling there. */
static void write_submodules(const struct abx_strv *modules, struct abx_buf *b)
{
	for (size_t i = 0; i + 1 < modules->len; i += 2) {
		if (strchr(modules->items[i], '\n'))
			continue;
		abx_buf_adds(b, "[submodule ");
		write_quoted(b, modules->items[i]);
		abx_buf_adds(b, "]\n\tactive = true\n");
		write_value(b, "url", modules->items[i + 1]);
	}
}

/* So that git does not take what a partial clone lacks for lost. */
static void write_promisor(const struct abx_git_config *c, struct abx_buf *b)
{
	if (!c->promisor)
		return;
	abx_buf_adds(b, "[extensions]\n");
	write_value(b, "partialClone", c->promisor);
	abx_buf_adds(b, "[remote ");
	write_quoted(b, c->promisor);
	abx_buf_adds(b, "]\n\tpromisor = true\n");
	write_value(b, "partialclonefilter", c->promisor_filter);
}

/* core/seed/stream-git.c puts the script there. */
static void write_lfs(struct abx_buf *b)
{
	abx_buf_adds(b, "[filter \"lfs\"]\n");
	write_value(b, "clean", "sh \"$(git rev-parse --git-common-dir)/agentbox-lfs\" clean %f");
	write_value(b, "smudge", "sh \"$(git rev-parse --git-common-dir)/agentbox-lfs\" smudge %f");
}

void abx_git_config_write(const struct abx_git_config *c, unsigned int flags, struct abx_buf *b)
{
	abx_buf_addf(b,
		     "[core]\n\trepositoryformatversion = %d\n\tfilemode = %s\n\tbare = false\n"
		     "\tlogallrefupdates = true\n",
		     c->promisor ? 1 : 0, c->filemode ? "true" : "false");
	if (c->ignorecase)
		abx_buf_adds(b, "\tignorecase = true\n");
	if (flags & ABX_GIT_CONFIG_NO_CACHES)
		abx_buf_adds(b, "\tuntrackedCache = false\n\tfsmonitor = false\n");
	if (flags & ABX_GIT_CONFIG_BY_TIME)
		abx_buf_adds(b, "\tcheckStat = minimal\n\ttrustctime = false\n");
	if (c->sparse)
		abx_buf_addf(b, "\tsparseCheckout = true\n\tsparseCheckoutCone = %s\n",
			     c->sparse_cone ? "true" : "false");
	write_value(b, "autocrlf", c->autocrlf);
	write_value(b, "eol", c->eol);
	write_value(b, "safecrlf", c->safecrlf);
	if (c->sparse_index)
		abx_buf_adds(b, "[index]\n\tsparse = true\n");
	if (c->user_name || c->user_email)
		abx_buf_adds(b, "[user]\n");
	write_value(b, "name", c->user_name);
	write_value(b, "email", c->user_email);
	write_submodules(&c->submodules, b);
	write_promisor(c, b);
	if (flags & ABX_GIT_CONFIG_LFS)
		write_lfs(b);
}
