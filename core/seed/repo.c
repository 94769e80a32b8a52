/* SPDX-License-Identifier: MIT */
/* Looking at one repository of a workspace. */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/clean.h"
#include "core/seed/special.h"
#include "core/util/parse.h"

#define INFO_FILE_MAX ((size_t)4 << 20)
#define PACKED_REFS_MAX ((size_t)256 << 20)
#define WARNINGS_MAX ((size_t)1 << 20)

/* Git passes over a directory that it cannot read, with a warning and success. */
static int check_warnings(const char *workspace, const struct abx_buf *warnings,
			  struct abx_err *err)
{
	static const char text[] = "could not open directory '";
	const char *at = strstr(abx_buf_str(warnings), text);
	abx_autofree char *path = NULL;
	char shown[256];

	if (!at)
		return 0;
	at += sizeof(text) - 1;
	path = abx_xstrndup(at, strcspn(at, "'"));
	abx_quote_text(path, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EPERM, "workspace '%s': cannot read directory '%s'", workspace,
			  shown);
	return abx_err_remedy(err, "make it readable, or list it in .gitignore");
}

static int finish_status(struct abx_seed_repo *r, struct abx_git_job *job, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	abx_auto(abx_buf) struct abx_buf warnings = ABX_BUF_INIT(WARNINGS_MAX);
	int code = abx_git_finish_warned(job, &out, &warnings, err);

	if (code == 0)
		code = check_warnings(r->shown, &warnings, err);
	return code < 0 ? code : abx_status_parse(&out, &r->status, err);
}

static int finish_config(struct abx_seed_repo *r, struct abx_git_job *job, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	int code = abx_git_finish(job, &out, err);

	if (code == 0)
		code = abx_git_config_parse(&out, r->work, &r->config, err);
	return code < 0 ? code : abx_layout_check_config(r->work, &r->place, &r->config, err);
}

static int read_info_file(const char *path, struct abx_buf *b, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf part = ABX_BUF_INIT(INFO_FILE_MAX);
	const int r = abx_fs_read(AT_FDCWD, path, &part);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return abx_err_errno(err, -r, "read '%s'", path);
	abx_buf_add(b, abx_buf_str(&part), part.len);
	if (part.len && part.data[part.len - 1] != '\n')
		abx_buf_addc(b, '\n');
	return 0;
}

static int read_info_below(const char *dir, const char *name, struct abx_buf *b,
			   struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/info/%s", dir, name);

	return read_info_file(path, b, err);
}

/* The user's own rules hold in the box too; those of the repository win over them. */
static int read_info(struct abx_seed_repo *r, struct abx_err *err)
{
	const struct abx_git_config *c = &r->config;
	int code = 0;

	if (c->excludes_file && *c->excludes_file)
		code = read_info_file(c->excludes_file, &r->exclude, err);
	if (code == 0)
		code = read_info_below(r->place.common_dir, "exclude", &r->exclude, err);
	if (code == 0 && c->attributes_file && *c->attributes_file)
		code = read_info_file(c->attributes_file, &r->attributes, err);
	if (code == 0)
		code = read_info_below(r->place.common_dir, "attributes", &r->attributes, err);
	if (code == 0 && c->sparse)
		code = read_info_below(r->place.git_dir, "sparse-checkout", &r->sparse, err);
	return code;
}

/* What is untracked may give attributes to what is tracked. */
static bool attributes_appeared(const struct abx_seed_repo *r)
{
	if (r->config.attributes_file && access(r->config.attributes_file, F_OK) == 0)
		return true;
	for (size_t i = 0; i < r->status.untracked.len; i++) {
		const char *path = r->status.untracked.items[i], *slash = strrchr(path, '/');

		if (strcmp(slash ? slash + 1 : path, ".gitattributes") == 0)
			return true;
	}
	return false;
}

/* Refs that mean something beside the branches: replaced objects, a bisection. */
static int read_refs(struct abx_seed_repo *r, struct abx_git_job *job, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	int code = abx_git_finish(job, &out, err);

	if (code < 0)
		return code;
	for (const char *at = abx_buf_str(&out); *at;) {
		const size_t len = strcspn(at, "\n");

		if (len > 2 * ABX_OID_BYTES + 1)
			abx_strv_take(&r->refs, abx_xstrndup(at, len));
		at += len + (at[len] == '\n');
	}
	return 0;
}

struct jobs {
	struct abx_git_job config, attrs, status, refs, included;
};

bool abx_seed_repo_packs(const struct abx_seed_repo *r, const char *const texts[])
{
	abx_auto(abx_buf) struct abx_buf packed = ABX_BUF_INIT(PACKED_REFS_MAX);
	abx_autofree char *path = abx_xasprintf("%s/packed-refs", r->place.common_dir);
	bool found = false;

	if (abx_fs_read(AT_FDCWD, path, &packed) < 0)
		return false;
	for (size_t i = 0; texts[i] && !found; i++)
		found = strstr(abx_buf_str(&packed), texts[i]);
	return found;
}

bool abx_seed_repo_stashes(const struct abx_seed_repo *r)
{
	static const char *const packed[] = {" refs/stash\n", NULL};
	abx_autofree char *path = abx_xasprintf("%s/refs/stash", r->place.common_dir);

	return access(path, F_OK) == 0 || abx_seed_repo_packs(r, packed);
}

/* Is there any such ref?  Looking is cheaper than asking git. */
static bool refs_matter(const struct abx_seed_repo *r)
{
	static const char *const packed[] = {" refs/replace/", " refs/bisect/", NULL};
	abx_autofree char *replace = abx_xasprintf("%s/refs/replace", r->place.common_dir);
	abx_autofree char *bisect = abx_xasprintf("%s/refs/bisect", r->place.git_dir);

	return access(replace, F_OK) == 0 || access(bisect, F_OK) == 0 ||
	       abx_seed_repo_packs(r, packed);
}

static const char *const config_args[] = {"config", "-z", "--list", NULL};
static const char *const refs_args[] = {"for-each-ref", "--format=%(objectname) %(refname)",
					"refs/replace", "refs/bisect", NULL};

static const char *const replace_args[] = {"for-each-ref", "--format=%(objectname) %(refname)",
					   "refs/replace", NULL};

/* Run git, as much at once as can be, the longest first. */
static int start_git(struct abx_seed_repo *r, const struct abx_seed_options *o, struct jobs *j,
		     struct abx_err *err)
{
	int code = 0;

	if (refs_matter(r))
		code = abx_git_start(&r->git, refs_args, NULL, ABX_GIT_PIPE, &j->refs, err);
	if (code == 0 && j->refs.pid)
		code = read_refs(r, &j->refs, err);
	if (code == 0 && !o->look_only)
		code = abx_seed_pack_start(r, o->depth, err);
	if (code == 0)
		code = abx_git_start(&r->git, abx_status_args, NULL, 0, &j->status, err);
	if (code == 0)
		code = abx_git_start(&r->git, config_args, NULL, 0, &j->config, err);
	if (code == 0)
		code = abx_included_start(&r->git, r->path, o->include_ignored, &j->included, err);
	if (code == 0 && abx_attrs_matter(r->place.common_dir, &r->index))
		code = abx_attrs_start(&r->git, &r->index, false, &j->attrs, err);
	return code;
}

static int ask_git(struct abx_seed_repo *r, const struct abx_seed_options *o, struct jobs *j,
		   struct abx_err *err)
{
	int code = start_git(r, o, j, err);

	if (code == 0)
		code = finish_config(r, &j->config, err);
	if (code == 0)
		code = finish_status(r, &j->status, err);
	if (code == 0 && !j->attrs.pid &&
	    (attributes_appeared(r) || abx_git_config_converts(&r->config)))
		code = abx_attrs_start(&r->git, &r->index, false, &j->attrs, err);
	if (code == 0 && j->attrs.pid)
		code = abx_attrs_finish(&j->attrs, &r->index, abx_git_config_eol(&r->config),
					&r->attrs, err);
	return code;
}

/* Index and branch are those that were read? */
static int is_unchanged(const struct abx_seed_repo *r, bool *ret, struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/index", r->place.git_dir), *branch = NULL;
	const struct stat *old = &r->index.st;
	struct stat now;
	bool same;
	int code = abx_layout_head(r->work, &r->place, &branch, err);

	if (code < 0)
		return code;
	if (stat(path, &now) < 0)
		same = r->index.missing;
	else
		same = !r->index.missing && now.st_ino == old->st_ino &&
		       now.st_size == old->st_size && now.st_mtim.tv_sec == old->st_mtim.tv_sec &&
		       now.st_mtim.tv_nsec == old->st_mtim.tv_nsec;
	*ret = same && (!branch == !r->head_branch) &&
	       (!branch || strcmp(branch, r->head_branch) == 0);
	return 0;
}

/* Somebody worked in the repository meanwhile: what was read does not fit together. */
static int check_unchanged(struct abx_seed_repo *r, struct abx_err *err)
{
	bool same = false;
	int code = is_unchanged(r, &same, err);

	if (code < 0 || same)
		return code;
	(void)abx_err_set(err, ABX_ESTATE, "workspace '%s': git changed it while it was read",
			  r->shown);
	return abx_err_remedy(err, "try again");
}

bool abx_seed_repo_is_outdated(const struct abx_seed_repo *r)
{
	static const char *const args[] = {"rev-parse", "--verify", "-q", "HEAD", NULL};
	const size_t len = r->status.head ? strlen(r->status.head) : 0;
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(256);
	bool same = false;

	if (r->want.clean)
		return false;
	if (is_unchanged(r, &same, NULL) < 0 || !same)
		return true;
	return r->status.head && (abx_git_run(&r->git, args, NULL, &out, NULL) < 0 ||
				  out.len < len || memcmp(out.data, r->status.head, len) != 0);
}

/* A copy in the spool is made one file: a split index takes its other half from beside the
 * repository's own, wherever it lies itself. */
static int join_index(struct abx_seed_repo *r, struct abx_err *err)
{
	static const char *const args[] = {"update-index", "--no-split-index", NULL};
	abx_autofree char *path = abx_xasprintf("%s/index", r->spool);
	abx_autofree char *env = abx_xasprintf("GIT_INDEX_FILE=%s", path);
	struct abx_index joined = {0};
	struct abx_git git;
	int code = abx_fs_write_atomic(AT_FDCWD, path, r->index.bytes.data, r->index.bytes.len,
				       0600, /* durable= */ false);

	if (code < 0)
		return abx_err_errno(err, -code, "write '%s'", path);
	code = abx_seed_repo_git(r, &git, err);
	if (code < 0)
		return code;
	abx_git_setenv(&git, env);
	code = abx_git_run(&git, args, NULL, NULL, err);
	abx_git_release(&git);
	if (code == 0)
		code = abx_index_read(path, &joined, err);
	if (code < 0)
		return code;
	/* Whether it changes meanwhile is for the repository's own to tell. */
	joined.st = r->index.st;
	abx_index_release(&r->index);
	r->index = joined;
	return 0;
}

static int read_index(struct abx_seed_repo *r, struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/index", r->place.git_dir);
	int code = abx_index_read(path, &r->index, err);

	if (code == 0 && r->index.split)
		code = join_index(r, err);
	for (size_t i = 0; i < r->index.len; i++)
		r->assumed = r->assumed || r->index.entries[i].assume_valid;
	return code;
}

/* What is ignored and stays here: not those that are included. */
static void forget_ignored(struct abx_seed_repo *r)
{
	struct abx_strv *v = &r->status.ignored;
	size_t kept = 0;

	for (size_t i = 0; i < v->len; i++) {
		const size_t len = strlen(v->items[i]);
		bool goes = abx_paths_have(&r->included, v->items[i]);

		for (size_t n = 0; n < r->included.len && !goes; n++)
			goes = v->items[i][len - 1] == '/' &&
			       strncmp(r->included.items[n], v->items[i], len) == 0;
		if (goes)
			free(v->items[i]);
		else
			v->items[kept++] = v->items[i];
	}
	v->len = kept;
}

/* What is not tracked and travels, sorted. */
static int list_others(const struct abx_seed *s, struct abx_seed_repo *r, struct jobs *j,
		       struct abx_strv *ret, struct abx_err *err)
{
	struct abx_strv stay = {NULL, 0, 0};
	int code = abx_included_finish(&j->included, &r->included, err);

	if (code == 0)
		code = abx_ignore_ask(&s->ignore, r->path, &r->status.untracked, &stay, err);
	if (code == 0)
		code = abx_ignore_ask(&s->ignore, r->path, &r->included, &stay, err);
	if (code == 0) {
		abx_unkept(r->root_fd, &r->status.untracked, &r->unkept);
		abx_unkept(r->root_fd, &r->included, &r->unkept);
		for (size_t i = 0; i < r->unkept.len; i++)
			abx_strv_add(&stay, r->unkept.items[i]);
		abx_paths_sort(&stay);
		abx_paths_drop(&r->included, &stay);
		abx_status_forget(&r->status, &stay);
		forget_ignored(r);
		for (size_t i = 0; i < r->status.untracked.len; i++)
			abx_strv_add(ret, r->status.untracked.items[i]);
		for (size_t i = 0; i < r->included.len; i++)
			abx_strv_add(ret, r->included.items[i]);
		abx_paths_sort(ret);
	}
	abx_strv_release(&stay);
	return code;
}

/* Pointers in place of what Git LFS keeps, where nobody changed it.  Both lists are in byte
 * order, directories aside. */
static int take_pointers(struct abx_seed_repo *r, struct abx_seed_files *files, size_t from,
			 struct abx_err *err)
{
	const size_t skip = *r->path ? strlen(r->path) + 1 : 0;
	struct abx_lfs lfs = {NULL, 0};
	int code = abx_lfs_find(&r->git, r->place.common_dir, &r->index, r->attrs.lfs, &lfs, err);

	for (size_t i = from, k = 0; code == 0 && i < files->len && k < lfs.len; i++) {
		struct abx_seed_file *f = &files->items[i];
		const char *path = f->path + skip, *entry = NULL;

		if (!S_ISREG(f->mode))
			continue;
		while (k < lfs.len && (entry = r->index.entries[lfs.items[k].entry].path) &&
		       strcmp(entry, path) < 0)
			k++;
		if (k == lfs.len || strcmp(entry, path) != 0 ||
		    abx_status_is_dirty(&r->status, path))
			continue;
		f->instead = abx_xstrdup(lfs.items[k].pointer);
		f->has_oid = false;
		files->bytes -= f->size;
		files->bytes += strlen(f->instead);
		abx_index_distrust(&r->index, lfs.items[k].entry);
	}
	if (code == 0 && lfs.len)
		code = abx_index_sign(&r->index, err);
	abx_lfs_release(&lfs);
	return code;
}

static int list_files(const struct abx_seed *s, struct abx_seed_repo *r, struct jobs *j,
		      struct abx_seed_files *files, struct abx_err *err)
{
	struct abx_strv others = {NULL, 0, 0};
	const struct abx_seed_known known = {.workspace = s->workspace,
					     .prefix = r->path,
					     .root_fd = r->root_fd,
					     .index = &r->index,
					     .status = &r->status,
					     .others = &others,
					     .raw = r->attrs.raw,
					     .nested = &r->nested,
					     .absent = &r->absent};

	const size_t before = files->len;
	int code = list_others(s, r, j, &others, err);

	if (code == 0)
		code = abx_seed_files_known(&known, files, err);
	if (code == 0 && !s->options.look_only)
		code = abx_seed_count_special(s, r, files, err);
	if (code == 0 && s->options.skip_lfs && r->attrs.n_lfs)
		code = take_pointers(r, files, before, err);
	abx_strv_release(&others);
	return code;
}

/* A commit does not change, whatever is done meanwhile. */
static int inspect_clean(const struct abx_seed *s, struct abx_seed_repo *r,
			 struct abx_seed_files *files, struct abx_err *err)
{
	struct jobs j = {ABX_GIT_JOB_INIT, ABX_GIT_JOB_INIT, ABX_GIT_JOB_INIT, ABX_GIT_JOB_INIT,
			 ABX_GIT_JOB_INIT};
	int code = abx_seed_repo_git(r, &r->git, err);

	r->head_branch = abx_xstrdup_null(r->want.branch);
	if (code == 0)
		code = abx_git_start(&r->git, config_args, NULL, 0, &j.config, err);
	if (code == 0 && refs_matter(r))
		code = abx_git_start(&r->git, replace_args, NULL, ABX_GIT_PIPE, &j.refs, err);
	if (code == 0 && j.refs.pid)
		code = read_refs(r, &j.refs, err);
	if (code == 0)
		code = abx_seed_pack_start(r, s->options.depth, err);
	if (code == 0)
		code = finish_config(r, &j.config, err);
	if (code == 0)
		code = read_info(r, err);
	if (code == 0)
		code = abx_seed_clean_read(s, r, files, err);
	abx_git_abandon(&j.config);
	abx_git_abandon(&j.refs);
	return code;
}

static int inspect(const struct abx_seed *s, struct abx_seed_repo *r, struct abx_seed_files *files,
		   struct abx_err *err)
{
	struct jobs j = {ABX_GIT_JOB_INIT, ABX_GIT_JOB_INIT, ABX_GIT_JOB_INIT, ABX_GIT_JOB_INIT,
			 ABX_GIT_JOB_INIT};
	struct abx_err index_err = ABX_ERR_INIT;
	int code, index_code;

	if (r->want.clean)
		return inspect_clean(s, r, files, err);
	r->root_fd = abx_fs_open_dir(AT_FDCWD, r->work);
	if (r->root_fd < 0)
		return abx_err_errno(err, -r->root_fd, "workspace '%s'", r->shown);
	code = abx_layout_head(r->work, &r->place, &r->head_branch, err);
	if (code == 0)
		code = abx_underway_read(r->place.git_dir, &r->underway, err);
	if (code == 0)
		code = abx_seed_repo_git(r, &r->git, err);
	if (code < 0)
		return code;
	/* An index that is not understood may be of another object format: git says so. */
	index_code = read_index(r, &index_err);
	code = ask_git(r, &s->options, &j, err);
	if (code == 0 && index_code < 0) {
		code = index_code;
		*err = index_err;
	}
	if (code == 0)
		code = list_files(s, r, &j, files, err);
	if (code == 0)
		code = read_info(r, err);
	if (code == 0)
		code = check_unchanged(r, err);
	/* The box does not get it. */
	if (s->options.look_only)
		abx_index_release(&r->index);
	abx_git_abandon(&j.config);
	abx_git_abandon(&j.attrs);
	abx_git_abandon(&j.status);
	abx_git_abandon(&j.refs);
	abx_git_abandon(&j.included);
	return code;
}

int abx_seed_repo_inspect(const struct abx_seed *s, const char *path, const char *spool,
			  struct abx_git_place *place, struct abx_seed_want *want,
			  struct abx_seed_files *files, struct abx_seed_repo **ret,
			  struct abx_err *err)
{
	struct abx_seed_repo *r = abx_xcalloc(1, sizeof(*r));
	int code;

	r->path = abx_xstrdup(path);
	r->work = *path ? abx_xasprintf("%s/%s", s->workspace, path) : abx_xstrdup(s->workspace);
	r->spool = abx_xstrdup(spool);
	abx_quote_text(r->work, r->shown, sizeof(r->shown));
	r->root_fd = -1;
	r->place = *place;
	memset(place, 0, sizeof(*place));
	r->want = *want;
	memset(want, 0, sizeof(*want));
	r->pack = (struct abx_git_job)ABX_GIT_JOB_INIT;
	r->exclude = (struct abx_buf)ABX_BUF_INIT(2 * INFO_FILE_MAX);
	r->attributes = (struct abx_buf)ABX_BUF_INIT(2 * INFO_FILE_MAX);
	r->sparse = (struct abx_buf)ABX_BUF_INIT(INFO_FILE_MAX);
	r->shallow = (struct abx_buf)ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	code = inspect(s, r, files, err);
	if (code < 0)
		abx_seed_repo_free(r);
	else
		*ret = r;
	return code;
}

void abx_seed_repo_free(struct abx_seed_repo *r)
{
	if (!r)
		return;
	abx_git_abandon(&r->pack);
	if (r->root_fd >= 0)
		(void)close(r->root_fd);
	abx_git_place_release(&r->place);
	abx_git_release(&r->git);
	abx_git_release(&r->pack_git);
	abx_git_config_release(&r->config);
	abx_index_release(&r->index);
	abx_status_release(&r->status);
	abx_attrs_release(&r->attrs);
	abx_lfs_release(&r->lfs);
	free(r->made);
	abx_seed_want_release(&r->want);
	abx_underway_release(&r->underway);
	abx_strv_release(&r->refs);
	abx_strv_release(&r->nested);
	abx_strv_release(&r->included);
	abx_strv_release(&r->unkept);
	abx_strv_release(&r->absent);
	abx_buf_release(&r->exclude);
	abx_buf_release(&r->attributes);
	abx_buf_release(&r->sparse);
	abx_buf_release(&r->shallow);
	free(r->head_branch);
	free(r->path);
	free(r->work);
	free(r->spool);
	free(r);
}
