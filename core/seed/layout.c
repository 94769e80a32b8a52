/* SPDX-License-Identifier: MIT */
/* What kind of directory a workspace is, and states that cannot be carried. */
#include "core/seed/layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define PACKED_REFS_MAX ((size_t)256 << 20)
#define HEAD_MAX 8192
#define MODE_TREE 0040000U
#define MODE_GITLINK 0160000U

int abx_layout_refuse(const char *workspace, const char *remedy, struct abx_err *err,
		      const char *fmt, ...)
{
	char what[400], shown[300];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	abx_quote_text(workspace, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_ENOTSUP, "workspace '%s': %s: this cannot be put into a box yet",
			  shown, what);
	return abx_err_remedy(err, "%s", remedy);
}

static char *clone_remedy(const char *workspace)
{
	char shown[300];

	abx_quote_text(workspace, shown, sizeof(shown));
	return abx_xasprintf("use a plain clone of it: git clone '%s' DIR", shown);
}

/* One stat below a directory that is given by its path. */
static bool stat_below(const char *dir, const char *name, struct stat *st)
{
	char path[PATH_MAX];
	const int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return n > 0 && (size_t)n < sizeof(path) && lstat(path, st) == 0;
}

static bool has(const char *dir, const char *name)
{
	struct stat st;

	return stat_below(dir, name, &st);
}

/* What git itself takes for a repository. */
static bool is_git_dir(const char *dir)
{
	struct stat st;

	return stat_below(dir, "HEAD", &st) && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) &&
	       has(dir, "objects") && has(dir, "refs");
}

static int fail_workspace(const char *workspace, int errnum, struct abx_err *err)
{
	char shown[300];

	abx_quote_text(workspace, shown, sizeof(shown));
	return abx_err_errno(err, errnum, "workspace '%s'", shown);
}

static bool is_root(const char *path)
{
	return path[0] == '/' && !path[1];
}

/* Git looks for a repository upwards, within one file system. */
static int check_parents(const char *workspace, struct abx_err *err)
{
	abx_autofree char *at = abx_xstrdup(workspace);
	struct stat here, st;
	char shown[300];

	if (lstat(workspace, &here) < 0)
		return fail_workspace(workspace, errno, err);
	while (!is_root(at)) {
		char *slash = strrchr(at, '/');

		slash[slash == at ? 1 : 0] = '\0';
		if (lstat(at, &st) < 0 || st.st_dev != here.st_dev)
			return 0;
		if (is_git_dir(at))
			return abx_layout_refuse(workspace, "use the work tree with -w DIR", err,
						 "it lies inside of a git directory");
		if ((stat_below(at, ".git", &st) && !S_ISDIR(st.st_mode)) ||
		    (has(at, ".git/HEAD") && has(at, ".git/objects"))) {
			abx_autofree char *remedy = NULL;

			abx_quote_text(at, shown, sizeof(shown));
			remedy = abx_xasprintf("agentbox create -w '%s'", shown);
			return abx_layout_refuse(workspace, remedy, err,
						 "it is a part of the repository '%s'", shown);
		}
	}
	return 0;
}

static const struct {
	const char *path, *what, *remedy;
} states[] = {
	{"reftable", "its refs are kept as reftable", NULL},
	{"commondir", "it is a linked work tree", NULL},
	{"shallow", "it is a shallow clone", "git fetch --unshallow"},
	{"info/grafts", "its history is grafted", NULL},
	{"MERGE_HEAD", "a merge is under way", "finish it, or: git merge --abort"},
	{"rebase-merge", "a rebase is under way", "finish it, or: git rebase --abort"},
	{"rebase-apply", "a rebase or git am is under way",
	 "finish it, or: git rebase --abort, git am --abort"},
	{"CHERRY_PICK_HEAD", "a cherry-pick is under way",
	 "finish it, or: git cherry-pick --abort"},
	{"REVERT_HEAD", "a revert is under way", "finish it, or: git revert --abort"},
	{"sequencer", "a sequence of cherry-picks or reverts is under way",
	 "finish it, or: git cherry-pick --abort"},
	{"BISECT_START", "a bisection is under way", "git bisect reset"},
	{"BISECT_LOG", "a bisection is under way", "git bisect reset"},
};

static bool dir_has_entry(const char *dir, const char *suffix)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		const size_t len = strlen(e->d_name), n = strlen(suffix);

		found = e->d_name[0] != '.' && len >= n && strcmp(e->d_name + len - n, suffix) == 0;
	}
	if (d)
		(void)closedir(d);
	return found;
}

static bool has_replaced_objects(const char *git_dir)
{
	abx_auto(abx_buf) struct abx_buf refs = ABX_BUF_INIT(PACKED_REFS_MAX);
	abx_autofree char *dir = abx_xasprintf("%s/refs/replace", git_dir);
	abx_autofree char *packed = abx_xasprintf("%s/packed-refs", git_dir);

	if (dir_has_entry(dir, ""))
		return true;
	return abx_fs_read(AT_FDCWD, packed, &refs) == 0 && refs.len &&
	       strstr(refs.data, " refs/replace/");
}

static int check_git_dir(const char *workspace, const char *git_dir, struct abx_err *err)
{
	abx_autofree char *clone = clone_remedy(workspace);
	abx_autofree char *packs = abx_xasprintf("%s/objects/pack", git_dir);

	for (size_t i = 0; i < ABX_N_ELEMENTS(states); i++)
		if (has(git_dir, states[i].path))
			return abx_layout_refuse(workspace,
						 states[i].remedy ? states[i].remedy : clone, err,
						 "%s", states[i].what);
	if (dir_has_entry(packs, ".promisor"))
		return abx_layout_refuse(workspace, "use a full clone", err,
					 "it is a partial clone");
	if (has_replaced_objects(git_dir))
		return abx_layout_refuse(workspace, "git replace -d what git replace -l shows", err,
					 "some of its objects are replaced (git replace)");
	return 0;
}

int abx_layout_check(const char *workspace, enum abx_workspace_kind *ret, struct abx_err *err)
{
	abx_autofree char *git_dir = abx_xasprintf("%s/.git", workspace);
	abx_autofree char *clone = clone_remedy(workspace);
	struct stat st;
	int r;

	if (lstat(git_dir, &st) < 0) {
		if (errno != ENOENT)
			return fail_workspace(workspace, errno, err);
		if (is_git_dir(workspace))
			return abx_layout_refuse(workspace, clone, err, "it is a bare repository");
		r = check_parents(workspace, err);
		if (r == 0)
			*ret = ABX_WORKSPACE_PLAIN;
		return r;
	}
	if (S_ISLNK(st.st_mode))
		return abx_layout_refuse(workspace, clone, err, "its .git is a symbolic link");
	if (S_ISREG(st.st_mode))
		return abx_layout_refuse(workspace, clone, err,
					 "its .git is a file (a linked work tree or a submodule)");
	if (!S_ISDIR(st.st_mode) || !is_git_dir(git_dir))
		return abx_layout_refuse(workspace, "repair it, or move .git away", err,
					 "its .git is not a git repository");
	r = check_git_dir(workspace, git_dir, err);
	if (r == 0)
		*ret = ABX_WORKSPACE_GIT;
	return r;
}

int abx_layout_head(const char *workspace, char **ret_branch, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(HEAD_MAX);
	abx_autofree char *path = abx_xasprintf("%s/.git/HEAD", workspace);
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	const char *at;
	int r;

	if (n > 0) { /* the way of very old versions */
		abx_buf_adds(&b, "ref: ");
		abx_buf_add(&b, target, (size_t)n);
	} else {
		r = abx_fs_read(AT_FDCWD, path, &b);
		if (r < 0)
			return fail_workspace(path, -r, err);
	}
	while (b.len && (b.data[b.len - 1] == '\n' || b.data[b.len - 1] == ' '))
		b.data[--b.len] = '\0';
	at = abx_buf_str(&b);
	if (strncmp(at, "ref:", 4) != 0) {
		if (!abx_is_oid_hex(at))
			return abx_layout_refuse(workspace, "git checkout a branch", err,
						 "its HEAD is not understood");
		*ret_branch = NULL;
		return 0;
	}
	at += 4 + strspn(at + 4, " \t");
	if (strncmp(at, "refs/heads/", 11) != 0)
		return abx_layout_refuse(workspace, "git checkout a branch", err,
					 "its HEAD is not on a branch");
	*ret_branch = abx_xstrdup(at + 11);
	return 0;
}

int abx_layout_check_config(const char *workspace, const struct abx_git_config *c,
			    struct abx_err *err)
{
	abx_autofree char *clone = clone_remedy(workspace);

	if (c->object_format && strcmp(c->object_format, "sha1") != 0)
		return abx_layout_refuse(workspace, "use a repository with SHA-1 objects", err,
					 "its object format is %s", c->object_format);
	if (c->ref_storage && strcmp(c->ref_storage, "files") != 0)
		return abx_layout_refuse(workspace, clone, err, "its refs are kept as %s",
					 c->ref_storage);
	if (c->bare)
		return abx_layout_refuse(workspace, clone, err, "it is a bare repository");
	if (c->worktree)
		return abx_layout_refuse(workspace, clone, err,
					 "its work tree is elsewhere (core.worktree)");
	if (c->promisor)
		return abx_layout_refuse(workspace, "use a full clone", err,
					 "it is a partial clone");
	if (c->sparse)
		return abx_layout_refuse(workspace, "git sparse-checkout disable", err,
					 "it is a sparse checkout");
	if (c->no_symlinks)
		return abx_layout_refuse(workspace, "git config --unset core.symlinks", err,
					 "its symbolic links are files (core.symlinks)");
	return 0;
}

int abx_layout_check_index(const char *workspace, const struct abx_index *index,
			   struct abx_err *err)
{
	if (index->split)
		return abx_layout_refuse(workspace, "git update-index --no-split-index", err,
					 "its index is split");
	for (size_t i = 0; i < index->len; i++) {
		const struct abx_index_entry *e = &index->entries[i];
		char shown[200];

		abx_quote_text(e->path, shown, sizeof(shown));
		if (e->mode == MODE_GITLINK)
			return abx_layout_refuse(workspace, "use a clone without submodules", err,
						 "it has a submodule, '%s'", shown);
		if (e->skip_worktree || e->mode == MODE_TREE)
			return abx_layout_refuse(workspace,
						 "git sparse-checkout disable, or "
						 "git update-index --no-skip-worktree",
						 err, "'%s' is tracked but not checked out", shown);
		if (e->stage)
			return abx_layout_refuse(workspace, "resolve it and git add it", err,
						 "'%s' has a merge conflict", shown);
	}
	return 0;
}
