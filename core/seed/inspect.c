/* SPDX-License-Identifier: MIT */
/* Looking at a workspace before anything costs. */
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/clean.h"
#include "core/util/parse.h"

#define MAX_REPOS 10000

void abx_seed_note(struct abx_seed *s, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	abx_strv_add(&s->notes, text);
}
#define NAMED 3U /* ignored files that are named */
#define NAMES_MAX 512

static int add_repo(struct abx_seed *s, const char *path, struct abx_git_place *place,
		    struct abx_seed_want *want, struct abx_err *err)
{
	abx_autofree char *spool = abx_xasprintf("%s/repo-%u-%zu", s->spool, s->round, s->n_repos);
	struct abx_seed_repo *r;
	int code;

	if (s->n_repos >= MAX_REPOS)
		return abx_layout_refuse(s->workspace, "list some in .gitignore", err,
					 "more than %d repositories are in it", MAX_REPOS);
	code = abx_fs_mkdir_p(AT_FDCWD, spool, 0700);
	if (code < 0)
		return abx_err_errno(err, -code, "make '%s'", spool);
	code = abx_seed_repo_inspect(s, path, spool, place, want, &s->files, &r, err);
	if (code < 0)
		return code;
	s->repos = abx_xreallocarray(s->repos, s->n_repos + 1, sizeof(struct abx_seed_repo *));
	s->repos[s->n_repos++] = r;
	return 0;
}

static int add_nested(struct abx_seed *s, const char *path, struct abx_err *err)
{
	abx_autofree char *work = abx_xasprintf("%s/%s", s->workspace, path);
	struct abx_seed_want as_it_is = {0};
	struct abx_git_place place = {0};
	enum abx_workspace_kind kind;
	int r = abx_layout_find(work, s->spool, &kind, &place, err);

	if (r == 0)
		r = add_repo(s, path, &place, &as_it_is, err);
	abx_git_place_release(&place);
	return r;
}

/* Those that were found, and those that are found in them. */
static int add_all_nested(struct abx_seed *s, struct abx_strv *found, struct abx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < found->len && r == 0; i++) {
		r = add_nested(s, found->items[i], err);
		if (r == 0)
			r = add_all_nested(s, &s->repos[s->n_repos - 1]->nested, err);
	}
	return r;
}

/* The submodule at entry i of a commit's files. */
static int add_module(struct abx_seed *s, struct abx_seed_repo *r, size_t i, struct abx_err *err)
{
	const struct abx_index_entry *e = &r->index.entries[i];
	abx_autofree char *path = abx_xasprintf("%s%s%s", r->path, *r->path ? "/" : "", e->path);
	struct abx_seed_want want = {.clean = true};
	struct abx_git_place place = {0};
	char id[2 * ABX_OID_BYTES + 1], shown[256];
	int code = abx_seed_clean_module(s, r, i, &place, err);

	if (code < 0)
		return code;
	abx_oid_hex(e->oid, id);
	if (!place.git_dir) {
		abx_strv_add(&r->absent, path);
		abx_quote_text(path, shown, sizeof(shown));
		abx_seed_note(s,
			      "submodule '%s': this machine does not have its commit %.12s; it is "
			      "empty in the box",
			      shown, id);
		return 0;
	}
	want.commit = abx_xstrdup(id);
	place.elsewhere = true;
	code = add_repo(s, path, &place, &want, err);
	abx_git_place_release(&place);
	abx_seed_want_release(&want);
	return code;
}

static int add_all_modules(struct abx_seed *s, size_t at, struct abx_err *err)
{
	struct abx_seed_repo *r = s->repos[at];
	int code = 0;

	for (size_t i = 0; i < r->index.len && code == 0; i++) {
		const size_t n = s->n_repos;

		if (r->index.entries[i].mode == ABX_MODE_GITLINK)
			code = add_module(s, r, i, err);
		if (code == 0 && s->n_repos > n)
			code = add_all_modules(s, n, err);
	}
	return code;
}

static void note_unkept(struct abx_seed *s, const char *prefix, const struct abx_strv *unkept)
{
	abx_autofree char *path = NULL;
	char shown[200], more[40] = "";

	if (!unkept->len)
		return;
	path = abx_xasprintf("%s%s%s", prefix, *prefix ? "/" : "", unkept->items[0]);
	abx_quote_text(path, shown, sizeof(shown));
	if (unkept->len > 1)
		(void)snprintf(more, sizeof(more), " (and %zu more)", unkept->len - 1);
	abx_seed_note(s, "'%s'%s stays here: git keeps no file of that name", shown, more);
}

/* Of a plain tree anything can be kept here. */
static int drop_staying(struct abx_seed *s, struct abx_strv *nested, struct abx_err *err)
{
	struct abx_strv paths = {NULL, 0, 0}, stay = {NULL, 0, 0}, unkept = {NULL, 0, 0};
	int r;

	for (size_t i = 0; i < s->files.len; i++) {
		const struct abx_seed_file *f = &s->files.items[i];

		abx_strv_take(&paths, abx_xasprintf("%s%s", f->path, S_ISDIR(f->mode) ? "/" : ""));
	}
	for (size_t i = 0; i < nested->len; i++)
		abx_strv_take(&paths, abx_xasprintf("%s/", nested->items[i]));
	r = abx_ignore_ask(&s->ignore, "", &paths, &stay, err);
	if (r == 0) {
		abx_unkept(s->root_fd, &paths, &unkept);
		note_unkept(s, "", &unkept);
		for (size_t i = 0; i < unkept.len; i++)
			abx_strv_add(&stay, unkept.items[i]);
		abx_paths_sort(&stay);
		abx_seed_files_drop(&s->files, &stay);
		for (size_t i = 0; i < stay.len; i++) {
			char *path = stay.items[i];

			if (path[strlen(path) - 1] == '/')
				path[strlen(path) - 1] = '\0';
		}
		abx_paths_sort(&stay);
		abx_paths_drop(nested, &stay);
	}
	abx_strv_release(&unkept);
	abx_strv_release(&paths);
	abx_strv_release(&stay);
	return r;
}

static int inspect_plain(struct abx_seed *s, struct abx_err *err)
{
	const struct abx_seed_options *o = &s->options;
	struct abx_strv nested = {NULL, 0, 0};
	int r;

	if (o->no_dirty || o->from_branch || o->use_branch)
		return abx_err_set(err, ABX_EINVAL,
				   "workspace '%s': it is not a repository: there are no branches "
				   "and no commits to choose from",
				   s->shown);
	r = abx_seed_files_walk(s->workspace, s->root_fd, &s->files, &nested, err);
	if (r == 0)
		r = drop_staying(s, &nested, err);
	if (r == 0)
		r = add_all_nested(s, &nested, err);
	abx_strv_release(&nested);
	return r;
}

static int inspect_git(struct abx_seed *s, struct abx_git_place *place, struct abx_err *err)
{
	struct abx_seed_want want = {0};
	int r = abx_seed_which(s, place, &want, err);
	const bool clean = want.clean;

	if (r == 0)
		r = add_repo(s, "", place, &want, err);
	abx_seed_want_release(&want);
	if (r < 0)
		return r;
	return clean ? add_all_modules(s, 0, err) : add_all_nested(s, &s->repos[0]->nested, err);
}

/* How many there are, and the first ones of all repositories as a text. */
static void fill_ignored(struct abx_seed *s)
{
	struct abx_buf text = ABX_BUF_INIT(NAMES_MAX);
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_repos; i++) {
		const struct abx_seed_repo *r = s->repos[i];

		for (size_t k = 0; k < r->status.ignored.len; k++) {
			abx_autofree char *path = abx_xasprintf(
				"%s%s%s", r->path, *r->path ? "/" : "", r->status.ignored.items[k]);
			char shown[64];

			if (n++ >= NAMED)
				continue;
			abx_quote_text(path, shown, sizeof(shown));
			abx_buf_addf(&text, "%s%s", n > 1 ? ", " : "", shown);
		}
	}
	if (n > NAMED)
		abx_buf_adds(&text, ", ...");
	s->info.n_ignored = n;
	free(s->ignored_names);
	s->ignored_names = n ? abx_xstrdup(abx_buf_str(&text)) : NULL;
	s->info.ignored_names = s->ignored_names;
	abx_buf_release(&text);
}

/* What is there otherwise than somebody might expect. */
static void note_lacks(struct abx_seed *s, const struct abx_seed_repo *r)
{
	char shown[200];

	note_unkept(s, r->path, &r->unkept);
	/* Of a commit it has been said. */
	for (size_t i = 0; i < r->absent.len && !r->want.clean; i++) {
		abx_quote_text(r->absent.items[i], shown, sizeof(shown));
		abx_seed_note(s, "submodule '%s' is not checked out here: it is empty in the box",
			      shown);
	}
	if (!r->want.clean && abx_seed_repo_stashes(r)) {
		abx_quote_text(*r->path ? r->path : ".", shown, sizeof(shown));
		abx_seed_note(s,
			      "what git stash keeps in '%s' stays here (git stash apply, or "
			      "git stash branch NAME, before)",
			      shown);
	}
	if (!r->attrs.filter)
		return;
	abx_quote_text(r->attrs.filter, shown, sizeof(shown));
	abx_seed_note(s,
		      "%zu file%s of filter '%s' as in the work tree: the box has no such filter, "
		      "commit them here",
		      r->attrs.n_filtered, r->attrs.n_filtered == 1 ? "" : "s", shown);
}

static void fill_info(struct abx_seed *s)
{
	const struct abx_seed_repo *root = abx_seed_root(s);

	s->info.committed = root && root->want.clean;
	s->info.base_commit = root ? root->status.head : NULL;
	s->info.head_branch = root ? root->head_branch : NULL;
	s->info.files = s->files.files;
	s->info.bytes = s->files.bytes;
	s->info.skipped = s->files.skipped;
	s->info.skipped_first = s->files.skipped_first;
	fill_ignored(s);
	s->info.repos = s->n_repos;
	s->info.notes = &s->notes;
	s->info.commits = root ? root->n_commits : 0;
}

/* Is it below the workspace, and not ignored there? */
static bool would_take(const struct abx_seed *s, enum abx_workspace_kind kind, const char *path)
{
	const size_t len = strlen(s->workspace);
	const char *below = path + len + 1;
	const char *const args[] = {"check-ignore", "-q", "--", below, NULL};
	struct abx_git git;
	int r;

	if (strncmp(path, s->workspace, len) != 0 || path[len] != '/')
		return strcmp(path, s->workspace) == 0;
	if (kind == ABX_WORKSPACE_PLAIN ||
	    (s->options.include_ignored && s->options.include_ignored->len))
		return true;
	abx_git_init(&git, s->workspace, s->spool);
	r = abx_git_run(&git, args, NULL, NULL, NULL);
	abx_git_release(&git);
	return r < 0;
}

static int check_keep_out(const struct abx_seed *s, enum abx_workspace_kind kind,
			  struct abx_err *err)
{
	char shown[256];

	if (!s->options.keep_out || !would_take(s, kind, s->options.keep_out))
		return 0;
	abx_quote_text(s->options.keep_out, shown, sizeof(shown));
	(void)abx_err_set(
		err, ABX_EINVAL,
		"workspace '%s': agentbox's own directory with its secrets, '%s', lies in it",
		s->shown, shown);
	return abx_err_remedy(
		err, "name the project's directory with -w, or list '%s' in .gitignore", shown);
}

static int inspect(struct abx_seed *s, struct abx_err *err)
{
	struct abx_git_place place = {0};
	enum abx_workspace_kind kind;
	int r;

	s->root_fd = abx_fs_open_dir(AT_FDCWD, s->workspace);
	if (s->root_fd < 0)
		return abx_err_errno(err, -s->root_fd, "workspace '%s'", s->shown);
	r = abx_layout_find(s->workspace, s->spool, &kind, &place, err);
	if (r < 0)
		return r;
	r = abx_ignore_open(s->workspace, s->root_fd, s->spool, &s->ignore, err);
	if (r < 0) {
		abx_git_place_release(&place);
		return r;
	}
	s->info.git = kind == ABX_WORKSPACE_GIT;
	r = check_keep_out(s, kind, err);
	if (r == 0)
		r = s->info.git ? inspect_git(s, &place, err) : inspect_plain(s, err);
	abx_git_place_release(&place);
	if (r == 0)
		fill_info(s);
	for (size_t i = 0; r == 0 && i < s->n_repos; i++)
		note_lacks(s, s->repos[i]);
	return r;
}

/* What was only borrowed is left to its owner. */
static void give_back(struct abx_seed *s)
{
	const struct abx_seed_files none = {NULL, 0, 0, 0, 0, 0, NULL, {NULL, 0, 0}};

	s->repos = NULL;
	s->n_repos = 0;
	s->files = none;
	s->root_fd = -1;
	s->borrowed = false;
}

static void forget(struct abx_seed *s)
{
	if (s->borrowed)
		give_back(s);
	for (size_t i = 0; i < s->n_repos; i++)
		abx_seed_repo_free(s->repos[i]);
	free(s->repos);
	s->repos = NULL;
	s->n_repos = 0;
	abx_seed_files_release(&s->files);
	abx_strv_release(&s->taken);
	abx_strv_release(&s->notes);
	abx_ignore_release(&s->ignore);
	abx_cleanup_close(&s->root_fd);
	s->moved = false;
	s->round++;
}

/* Until nobody works in it meanwhile, or seems never to stop. */
static int inspect_steadily(struct abx_seed *s, struct abx_err *err)
{
	int r = inspect(s, err);

	for (int i = 1; i < ABX_SEED_ROUNDS; i++) {
		if (r != ABX_ESTATE && !(r == 0 && s->files.gone.len))
			break;
		forget(s);
		r = inspect(s, err);
	}
	for (size_t i = 0; r == 0 && i < s->files.gone.len; i++)
		abx_strv_add(&s->taken, s->files.gone.items[i]);
	return r;
}

int abx_seed_look_again(struct abx_seed *s, struct abx_err *err)
{
	forget(s);
	return inspect_steadily(s, err);
}

bool abx_seed_is_outdated(const struct abx_seed *s)
{
	for (size_t i = 0; i < s->n_repos; i++)
		if (abx_seed_repo_is_outdated(s->repos[i]))
			return true;
	return false;
}

/* A path that ends with this process: a git that outlives it cannot make directories again
 * that somebody has cleared away meanwhile. */
static void open_spool(struct abx_seed *s, const char *spool)
{
	s->spool_fd = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->spool = abx_xasprintf("/proc/%d/fd/%d", getpid(), s->spool_fd);
	if (s->spool_fd >= 0 && access(s->spool, W_OK) == 0)
		return;
	free(s->spool);
	s->spool = abx_xstrdup(spool);
}

int abx_seed_inspect(const char *workspace, const char *spool, const struct abx_seed_options *o,
		     struct abx_seed **ret, struct abx_err *err)
{
	struct abx_seed *s = abx_xcalloc(1, sizeof(*s));
	struct abx_err local = ABX_ERR_INIT;
	int r;

	s->workspace = abx_xstrdup(workspace);
	abx_quote_text(workspace, s->shown, sizeof(s->shown));
	if (o)
		s->options = *o;
	open_spool(s, spool);
	s->root_fd = -1;
	r = inspect_steadily(s, err ? err : &local);
	if (r < 0)
		abx_seed_free(s);
	else
		*ret = s;
	return r;
}

/* A pack that is still being made, and contents whose ids are found out as they are sent, are
 * written down where they belong. */
bool abx_seed_may_lend(const struct abx_seed *s)
{
	bool may = !s->taken.len && !s->moved;

	for (size_t i = 0; i < s->n_repos && may; i++)
		may = s->repos[i]->packed && !(s->repos[i]->want.clean && s->repos[i]->lfs.len);
	return may;
}

struct abx_seed *abx_seed_borrow(const struct abx_seed *from, const char *spool)
{
	struct abx_seed *s = abx_xcalloc(1, sizeof(*s));

	s->workspace = abx_xstrdup(from->workspace);
	memcpy(s->shown, from->shown, sizeof(s->shown));
	s->options = from->options;
	open_spool(s, spool);
	s->borrowed = true;
	s->root_fd = from->root_fd;
	s->files = from->files;
	s->repos = from->repos;
	s->n_repos = from->n_repos;
	for (size_t i = 0; i < from->notes.len; i++)
		abx_strv_add(&s->notes, from->notes.items[i]);
	s->info = from->info;
	s->info.notes = &s->notes;
	return s;
}

void abx_seed_free(struct abx_seed *s)
{
	if (!s)
		return;
	forget(s);
	if (s->spool_fd >= 0)
		(void)close(s->spool_fd);
	abx_strv_release(&s->unsteady);
	free(s->ignored_names);
	free(s->workspace);
	free(s->spool);
	free(s);
}

const struct abx_seed_info *abx_seed_info(const struct abx_seed *seed)
{
	return &seed->info;
}
