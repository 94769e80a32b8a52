/* SPDX-License-Identifier: MIT */
/* The committed state of a repository. */
#include "core/seed/clean.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "core/seed/made.h"
#include "core/seed/stream-git.h"
#include "core/util/parse.h"

#define ANSWER_MAX ((size_t)4 << 20)

/* ---- which ---- */

/* The commit that a name means; ABX_EIO when there is none. */
static int resolve(const struct abx_git *git, const char *name, char **ret, struct abx_err *err)
{
	abx_autofree char *commit = abx_xasprintf("%s^{commit}", name);
	const char *const args[] = {"rev-parse", "--verify", "--end-of-options", commit, NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ANSWER_MAX);
	int r = abx_git_run(git, args, NULL, &out, err);

	if (r < 0)
		return r;
	if (out.len)
		out.data[--out.len] = '\0';
	if (!abx_is_oid_hex(abx_buf_str(&out)))
		return abx_err_set(err, ABX_EIO, "git rev-parse: its output is not understood");
	*ret = abx_xstrdup(abx_buf_str(&out));
	return 0;
}

static int no_such(const struct abx_seed *s, const char *what, const char *name,
		   struct abx_err *err)
{
	char shown[200];

	abx_quote_text(name, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EINVAL, "%s '%s': there is none in '%s'", what, shown, s->shown);
	return abx_err_remedy(err, "git branch --all lists them");
}

static int want_used(struct abx_seed *s, const struct abx_git *git, const char *head,
		     struct abx_seed_want *w, struct abx_err *err)
{
	const char *name = s->options.use_branch;
	abx_autofree char *ref = abx_xasprintf("refs/heads/%s", name);
	int r;

	if (head && strcmp(head, name) == 0 && !s->options.no_dirty)
		return 0;
	w->clean = true;
	w->branch = abx_xstrdup(name);
	r = resolve(git, ref, &w->commit, err);
	if (r == ABX_EIO && !(head && strcmp(head, name) == 0))
		return no_such(s, "branch", name, err);
	if (r == 0 && !(head && strcmp(head, name) == 0))
		abx_seed_note(s,
			      "the box has what is committed on '%s'; what is not committed "
			      "here belongs to another branch, and stays here",
			      name);
	return r == ABX_EIO ? 0 : r;
}

static int want_from(const struct abx_seed *s, const struct abx_git *git, struct abx_seed_want *w,
		     struct abx_err *err)
{
	const char *name = s->options.from_branch;
	abx_autofree char *ref = abx_xasprintf("refs/heads/%s", name);
	int r = ABX_EIO;

	w->clean = true;
	if (abx_is_branch_name(name))
		r = resolve(git, ref, &w->commit, err);
	if (r == 0)
		w->branch = abx_xstrdup(name);
	else if (r == ABX_EIO)
		r = resolve(git, name, &w->commit, err);
	return r == ABX_EIO ? no_such(s, "branch, tag or commit", name, err) : r;
}

static int want_head(const struct abx_git *git, const char *head, struct abx_seed_want *w,
		     struct abx_err *err)
{
	int r = resolve(git, "HEAD", &w->commit, err);

	w->clean = true;
	w->branch = abx_xstrdup_null(head);
	/* Nobody has committed anything yet. */
	return r == ABX_EIO && head ? 0 : r;
}

int abx_seed_which(struct abx_seed *s, const struct abx_git_place *place, struct abx_seed_want *ret,
		   struct abx_err *err)
{
	const struct abx_seed_options *o = &s->options;
	struct abx_seed_want w = {0};
	abx_autofree char *head = NULL;
	struct abx_git git;
	int r;

	if (!o->use_branch && !o->from_branch && !o->no_dirty)
		return 0;
	r = abx_layout_head(s->workspace, place, &head, err);
	if (r < 0)
		return r;
	abx_git_init(&git, s->workspace, s->spool);
	if (o->use_branch)
		r = want_used(s, &git, head, &w, err);
	else if (o->from_branch)
		r = want_from(s, &git, &w, err);
	else
		r = want_head(&git, head, &w, err);
	abx_git_release(&git);
	if (r < 0)
		abx_seed_want_release(&w);
	else
		*ret = w;
	return r;
}

void abx_seed_want_release(struct abx_seed_want *w)
{
	free(w->commit);
	free(w->branch);
	memset(w, 0, sizeof(*w));
}

/* ---- what it has ---- */

/* Sizes as git keeps them; a partial clone is not asked for what it lacks. */
static int add_sizes(const struct abx_seed_repo *r, struct abx_seed_files *files,
		     struct abx_err *err)
{
	static const char *const args[] = {"cat-file", "--batch-check=%(objectsize)", NULL};
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	int code;

	for (size_t i = 0; i < r->index.len; i++) {
		const struct abx_lfs_file *lfs = abx_lfs_of_entry(&r->lfs, i);
		char id[2 * ABX_OID_BYTES + 1];

		if (r->index.entries[i].mode == ABX_MODE_GITLINK)
			continue;
		files->files++;
		if (lfs && lfs->here)
			files->bytes += lfs->size;
		abx_oid_hex(r->index.entries[i].oid, id);
		abx_buf_addf(&in, "%s\n", id);
	}
	if (!in.len || in.failed || r->config.promisor)
		return 0;
	code = abx_git_run(&r->git, args, &in, &out, err);
	for (const char *at = abx_buf_str(&out); code == 0 && *at;) {
		const size_t len = strcspn(at, "\n");
		abx_autofree char *line = abx_xstrndup(at, len);
		uint64_t n;

		if (abx_parse_u64(line, INT64_MAX, &n))
			files->bytes += n;
		at += len + (at[len] == '\n');
	}
	return code;
}

static int read_attrs(struct abx_seed_repo *r, bool skip, struct abx_err *err)
{
	struct abx_git_job job = ABX_GIT_JOB_INIT;
	const unsigned int eol = abx_git_config_eol(&r->config);
	int code;

	if (!(eol & ABX_GIT_CONFIG_AUTOCRLF) && !abx_attrs_matter(r->place.common_dir, &r->index) &&
	    !(r->config.attributes_file && access(r->config.attributes_file, F_OK) == 0))
		return 0;
	code = abx_attrs_start(&r->git, &r->index, /* of_index= */ true, &job, err);
	if (code == 0)
		code = abx_attrs_finish(&job, &r->index, eol, &r->attrs, err);
	if (code == 0 && r->attrs.n_lfs)
		code = abx_lfs_find(&r->git, r->place.common_dir, &r->index, r->attrs.lfs, &r->lfs,
				    err);
	for (size_t i = 0; i < r->lfs.len && skip; i++)
		r->lfs.items[i].here = false;
	return code;
}

/* abx_seed_repo_git() has named this file to git. */
static int read_tree(struct abx_seed_repo *r, struct abx_err *err)
{
	const char *const args[] = {"read-tree", r->want.commit, NULL};
	abx_autofree char *path = abx_xasprintf("%s/index", r->spool);
	int code;

	if (!r->want.commit) {
		r->index.missing = true;
		return 0;
	}
	code = abx_git_run(&r->git, args, NULL, NULL, err);
	if (code == 0)
		code = abx_index_read(path, &r->index, err);
	if (code == 0)
		r->status.head = abx_xstrdup(r->want.commit);
	return code;
}

int abx_seed_clean_read(const struct abx_seed *s, struct abx_seed_repo *r,
			struct abx_seed_files *files, struct abx_err *err)
{
	int code = read_tree(r, err);

	if (code == 0)
		code = read_attrs(r, s->options.skip_lfs, err);
	if (code == 0)
		code = abx_seed_find_made(r, err);
	return code < 0 ? code : add_sizes(r, files, err);
}

/* ---- submodules ---- */

/* "submodule.NAME.path\nPATH" for each, from the commit's own list. */
static char *module_name(const struct abx_seed_repo *r, const char *path)
{
	static const char head[] = "submodule.", tail[] = ".path";
	abx_autofree char *blob = abx_xasprintf("--blob=%s:.gitmodules", r->want.commit);
	const char *const args[] = {"config", blob, "-z", "--get-regexp", "^submodule\\..*\\.path$",
				    NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ANSWER_MAX);
	const char *at, *end;

	if (abx_git_run(&r->git, args, NULL, &out, NULL) < 0)
		return NULL;
	at = abx_buf_str(&out);
	for (end = at + out.len; at < end; at += strlen(at) + 1) {
		const char *line = strchr(at, '\n');
		const size_t len = line ? (size_t)(line - at) : 0;

		if (len <= sizeof(head) + sizeof(tail) - 2 || strcmp(line + 1, path) != 0)
			continue;
		return abx_xstrndup(at + sizeof(head) - 1, len - sizeof(head) - sizeof(tail) + 2);
	}
	return NULL;
}

static bool leaves(const char *name)
{
	for (const char *at = name;; at++) {
		const size_t len = strcspn(at, "/");

		if (len == 2 && strncmp(at, "..", 2) == 0)
			return true;
		at += len;
		if (!*at)
			return *name == '/';
	}
}

static bool has_commit(const struct abx_seed *s, const char *git_dir, const char *id)
{
	abx_autofree char *dir = abx_xasprintf("--git-dir=%s", git_dir);
	abx_autofree char *commit = abx_xasprintf("%s^{commit}", id);
	const char *const args[] = {dir, "cat-file", "-e", commit, NULL};
	struct abx_git git;
	bool is;

	abx_git_init(&git, s->workspace, s->spool);
	is = abx_git_run(&git, args, NULL, NULL, NULL) == 0;
	abx_git_release(&git);
	return is;
}

static void take_place(const struct abx_seed *s, const char *dir, const char *name, const char *id,
		       struct abx_git_place *p)
{
	abx_autofree char *path = abx_xasprintf("%s/modules/%s", dir, name);
	abx_autofree char *objects = abx_xasprintf("%s/objects", path);

	if (p->git_dir || access(objects, F_OK) < 0 || !has_commit(s, path, id))
		return;
	p->git_dir = abx_xstrdup(path);
	p->common_dir = abx_xstrdup(path);
	p->elsewhere = true;
}

int abx_seed_clean_module(const struct abx_seed *s, struct abx_seed_repo *r, size_t i,
			  struct abx_git_place *ret_place, struct abx_err *err)
{
	const struct abx_index_entry *e = &r->index.entries[i];
	abx_autofree char *work = abx_xasprintf("%s/%s", r->work, e->path);
	abx_autofree char *git = abx_xasprintf("%s/.git", work), *name = NULL;
	struct abx_git_place p = {0};
	enum abx_workspace_kind kind = ABX_WORKSPACE_PLAIN;
	char id[2 * ABX_OID_BYTES + 1];
	int code = 0;

	abx_oid_hex(e->oid, id);
	if (access(git, F_OK) == 0)
		code = abx_layout_find(work, s->spool, &kind, &p, err);
	if (code < 0)
		return code;
	if (p.git_dir && !has_commit(s, p.git_dir, id))
		abx_git_place_release(&p);
	name = p.git_dir ? NULL : module_name(r, e->path);
	if (name && !leaves(name)) {
		take_place(s, r->place.git_dir, name, id, &p);
		take_place(s, r->place.common_dir, name, id, &p);
	}
	*ret_place = p;
	return 0;
}
