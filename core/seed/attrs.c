/* SPDX-License-Identifier: MIT */
/* Which files of the work tree need not be what git keeps, byte for byte. */
#include "core/seed/attrs.h"

#include <string.h>

#include "core/seed/git-config.h"
#include "core/util/mem.h"

static const char *const names[] = {"filter", "ident", "working-tree-encoding",
				    "text",   "eol",   "crlf"};
enum { FILTER, IDENT, ENCODING, TEXT, EOL, CRLF, N_NAMES };

static bool exists(const char *dir, const char *name)
{
	abx_autofree char *path = abx_xasprintf("%s/%s", dir, name);

	return access(path, F_OK) == 0;
}

bool abx_attrs_matter(const char *common_dir, const struct abx_index *index)
{
	static const char name[] = ".gitattributes";
	const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");

	if (exists("/etc", "gitattributes") || exists(common_dir, "info/attributes"))
		return true;
	if (xdg && *xdg ? exists(xdg, "git/attributes")
			: home && exists(home, ".config/git/attributes"))
		return true;
	for (size_t i = 0; i < index->len; i++) {
		const char *path = index->entries[i].path;
		const size_t len = strlen(path), n = sizeof(name) - 1;

		if (len >= n && strcmp(path + len - n, name) == 0 &&
		    (len == n || path[len - n - 1] == '/'))
			return true;
	}
	return false;
}

int abx_attrs_start(const struct abx_git *git, const struct abx_index *index, bool of_index,
		    struct abx_git_job *ret, struct abx_err *err)
{
	const char *const args[] = {
		"check-attr", of_index ? "--cached" : "-z", "-z",   "--stdin", "filter",
		"ident",      "working-tree-encoding",	    "text", "eol",     "crlf",
		NULL};
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);

	for (size_t i = 0; i < index->len; i++)
		abx_buf_add(&in, index->entries[i].path, strlen(index->entries[i].path) + 1);
	if (in.failed)
		return abx_err_set(err, ABX_ENOMEM, "git check-attr: too many files");
	return abx_git_start(git, args, &in, 0, ret, err);
}

static bool is_off(const char *value)
{
	return strcmp(value, "unspecified") == 0 || strcmp(value, "unset") == 0;
}

/* Follows git: `text` decides, `crlf` is its old name, `eol` alone means text. */
static bool may_convert(const char *const v[N_NAMES], bool autocrlf)
{
	const char *text = strcmp(v[TEXT], "unspecified") != 0 ? v[TEXT] : v[CRLF];

	if (strcmp(text, "unset") == 0)
		return false;
	if (strcmp(text, "unspecified") != 0)
		return true;
	return autocrlf || !is_off(v[EOL]);
}

/* Would a checkout write line ends that git does not keep? */
static bool writes_crlf(const char *const v[N_NAMES], unsigned int eol)
{
	if (strcmp(v[EOL], "crlf") == 0)
		return true;
	return strcmp(v[EOL], "lf") != 0 && strcmp(v[CRLF], "input") != 0 &&
	       (eol & ABX_GIT_CONFIG_CRLF);
}

static void take_values(const char *const v[N_NAMES], unsigned int eol, size_t i,
			struct abx_attrs *attrs)
{
	bool raw = may_convert(v, eol & ABX_GIT_CONFIG_AUTOCRLF);

	attrs->made[i] = (raw && writes_crlf(v, eol)) || !is_off(v[IDENT]) || !is_off(v[ENCODING]);

	for (size_t k = FILTER; k <= ENCODING; k++)
		raw = raw || !is_off(v[k]);
	attrs->raw[i] = raw;
	attrs->n_raw += raw;
	if (is_off(v[FILTER]))
		return;
	if (strcmp(v[FILTER], "lfs") == 0) {
		attrs->lfs[i] = true;
		attrs->n_lfs++;
		return;
	}
	attrs->n_filtered++;
	if (!attrs->filter)
		attrs->filter = abx_xstrdup(v[FILTER]);
}

static const char *next_string(const char **at, const char *end)
{
	const char *s = *at, *nul = s < end ? memchr(s, '\0', (size_t)(end - s)) : NULL;

	if (!nul)
		return NULL;
	*at = nul + 1;
	return s;
}

/* path NUL attribute NUL value NUL, six times for each path in the order they were given. */
static int parse(const struct abx_buf *out, const struct abx_index *index, unsigned int eol,
		 struct abx_attrs *attrs, struct abx_err *err)
{
	const char *at = abx_buf_str(out), *end = at + out->len;

	for (size_t i = 0; i < index->len; i++) {
		const char *v[N_NAMES];

		for (size_t k = 0; k < N_NAMES; k++) {
			const char *path = next_string(&at, end), *name = next_string(&at, end);

			v[k] = next_string(&at, end);
			if (!v[k] || !path || !name || strcmp(name, names[k]) != 0 ||
			    strcmp(path, index->entries[i].path) != 0)
				return abx_err_set(err, ABX_EIO,
						   "git check-attr: its output is not understood");
		}
		take_values(v, eol, i, attrs);
	}
	return 0;
}

int abx_attrs_finish(struct abx_git_job *job, const struct abx_index *index, unsigned int eol,
		     struct abx_attrs *ret, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	struct abx_attrs attrs = {0};
	int r = abx_git_finish(job, &out, err);

	if (r < 0)
		return r;
	attrs.raw = abx_xcalloc(index->len, sizeof(bool));
	attrs.made = abx_xcalloc(index->len, sizeof(bool));
	attrs.lfs = abx_xcalloc(index->len, sizeof(bool));
	r = parse(&out, index, eol, &attrs, err);
	if (r < 0)
		abx_attrs_release(&attrs);
	else
		*ret = attrs;
	return r;
}

void abx_attrs_release(struct abx_attrs *attrs)
{
	free(attrs->raw);
	free(attrs->made);
	free(attrs->lfs);
	free(attrs->filter);
	memset(attrs, 0, sizeof(*attrs));
}
