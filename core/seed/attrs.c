/* SPDX-License-Identifier: MIT */
/* Is what lies in the work tree what git keeps, byte for byte? */
#include "core/seed/attrs.h"

#include <string.h>

#include "core/seed/layout.h"
#include "core/util/parse.h"

static const char *const names[] = {"filter", "ident", "working-tree-encoding",
				    "text",   "eol",   "crlf"};
enum { FILTER, IDENT, ENCODING, TEXT, EOL, CRLF, N_NAMES };

static bool exists(const char *dir, const char *name)
{
	abx_autofree char *path = abx_xasprintf("%s/%s", dir, name);

	return access(path, F_OK) == 0;
}

bool abx_attrs_matter(const char *workspace, const struct abx_index *index)
{
	static const char name[] = ".gitattributes";
	const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");

	if (exists("/etc", "gitattributes") || exists(workspace, ".git/info/attributes"))
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

int abx_attrs_start(const struct abx_git *git, const struct abx_index *index,
		    struct abx_git_job *ret, struct abx_err *err)
{
	static const char *const args[] = {
		"check-attr", "-z",  "--stdin", "filter", "ident", "working-tree-encoding",
		"text",	      "eol", "crlf",	NULL};
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

static int refuse(const char *workspace, const char *path, const char *name, const char *value,
		  struct abx_err *err)
{
	char file[200], shown[80];

	abx_quote_text(path, file, sizeof(file));
	abx_quote_text(value, shown, sizeof(shown));
	if (strcmp(name, "filter") == 0 && strcmp(value, "lfs") == 0)
		return abx_layout_refuse(workspace, "use a clone without Git LFS", err,
					 "'%s' is kept by Git LFS", file);
	return abx_layout_refuse(workspace, "remove that attribute, and commit", err,
				 "git converts '%s' (attribute %s=%s)", file, name, shown);
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

static int take_values(const char *const v[N_NAMES], const char *path, const char *workspace,
		       struct abx_err *err)
{
	for (size_t i = FILTER; i <= ENCODING; i++)
		if (!is_off(v[i]))
			return refuse(workspace, path, names[i], v[i], err);
	return 0;
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
static int parse(const struct abx_buf *out, const char *workspace, const struct abx_index *index,
		 bool autocrlf, struct abx_attrs *attrs, struct abx_err *err)
{
	const char *at = abx_buf_str(out), *end = at + out->len;

	for (size_t i = 0; i < index->len; i++) {
		const char *v[N_NAMES];
		int r;

		for (size_t k = 0; k < N_NAMES; k++) {
			const char *path = next_string(&at, end), *name = next_string(&at, end);

			v[k] = next_string(&at, end);
			if (!v[k] || !path || !name || strcmp(name, names[k]) != 0 ||
			    strcmp(path, index->entries[i].path) != 0)
				return abx_err_set(err, ABX_EIO,
						   "git check-attr: its output is not understood");
		}
		r = take_values(v, index->entries[i].path, workspace, err);
		if (r < 0)
			return r;
		attrs->converts[i] = may_convert(v, autocrlf);
		attrs->n_converts += attrs->converts[i];
	}
	return 0;
}

int abx_attrs_finish(struct abx_git_job *job, const char *workspace, const struct abx_index *index,
		     bool autocrlf, struct abx_attrs *ret, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	struct abx_attrs attrs = {NULL, 0};
	int r = abx_git_finish(job, &out, err);

	if (r < 0)
		return r;
	attrs.converts = abx_xcalloc(index->len, sizeof(bool));
	r = parse(&out, workspace, index, autocrlf, &attrs, err);
	if (r < 0)
		abx_attrs_release(&attrs);
	else
		*ret = attrs;
	return r;
}

/* The files to compare: unchanged in git's eyes, and under a conversion. */
static size_t choose(const struct abx_attrs *attrs, const struct abx_index *index,
		     const struct abx_seed_files *files, const struct abx_seed_file **chosen)
{
	size_t n = 0;

	/* Both are in byte order, directories aside. */
	for (size_t i = 0, k = 0; i < files->len && k < index->len; i++) {
		const struct abx_seed_file *f = &files->items[i];

		if (!f->has_oid || !S_ISREG(f->mode))
			continue;
		while (k < index->len && strcmp(index->entries[k].path, f->path) < 0)
			k++;
		if (k < index->len && attrs->converts[k] &&
		    strcmp(index->entries[k].path, f->path) == 0)
			chosen[n++] = f;
	}
	return n;
}

static int compare(const struct abx_buf *out, const char *workspace,
		   const struct abx_seed_file *const *chosen, size_t n, struct abx_err *err)
{
	const char *at = abx_buf_str(out);

	for (size_t i = 0; i < n; i++) {
		const size_t len = strcspn(at, "\n");
		abx_autofree char *text = abx_xstrndup(at, len);
		char shown[200];
		uint64_t size;

		if (!at[len] || !abx_parse_u64(text, UINT64_MAX, &size))
			return abx_err_set(err, ABX_EIO,
					   "git cat-file: its output is not understood");
		at += len + 1;
		if (size == chosen[i]->size)
			continue;
		abx_quote_text(chosen[i]->path, shown, sizeof(shown));
		return abx_layout_refuse(workspace,
					 "git add --renormalize . and commit, or set the attribute "
					 "-text for it",
					 err, "git converts the line ends of '%s'", shown);
	}
	return 0;
}

int abx_attrs_check_sizes(const struct abx_attrs *attrs, const struct abx_git *git,
			  const char *workspace, const struct abx_index *index,
			  const struct abx_seed_files *files, struct abx_err *err)
{
	static const char *const args[] = {"cat-file", "--batch-check=%(objectsize)", "--buffer",
					   NULL};
	abx_autofree const struct abx_seed_file **chosen = NULL;
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	struct abx_git_job job = ABX_GIT_JOB_INIT;
	size_t n;
	int r;

	if (!attrs->n_converts)
		return 0;
	chosen = abx_xcalloc(index->len, sizeof(*chosen));
	n = choose(attrs, index, files, chosen);
	for (size_t i = 0; i < n; i++) {
		char hex[2 * ABX_OID_BYTES + 1];

		abx_oid_hex(chosen[i]->oid, hex);
		abx_buf_addf(&in, "%s\n", hex);
	}
	if (!n)
		return 0;
	r = abx_git_start(git, args, &in, 0, &job, err);
	if (r == 0)
		r = abx_git_finish(&job, &out, err);
	return r < 0 ? r : compare(&out, workspace, chosen, n, err);
}

void abx_attrs_release(struct abx_attrs *attrs)
{
	free(attrs->converts);
	attrs->converts = NULL;
	attrs->n_converts = 0;
}
