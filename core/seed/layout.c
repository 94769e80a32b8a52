/* SPDX-License-Identifier: MIT */
/* What kind of directory a workspace is, and states that cannot be carried. */
#include "core/seed/layout.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/git.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define HEAD_MAX 8192

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

/* Git looks for a repository upwards, within one file system: the directory that has one, or
 * NULL. */
static int find_parent(const char *workspace, char **ret, struct abx_err *err)
{
	abx_autofree char *at = abx_xstrdup(workspace);
	struct stat here, st;

	*ret = NULL;
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
			*ret = abx_steal_ptr(&at);
			return 0;
		}
	}
	return 0;
}

/* Does a repository above have files in this directory? */
static int is_tracked(const char *workspace, const char *spool, bool *ret, struct abx_err *err)
{
	static const char *const args[] = {"ls-files", "-z", "--", ".", NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	struct abx_git git;
	int r;

	abx_git_init(&git, workspace, spool);
	r = abx_git_run(&git, args, NULL, &out, err);
	abx_git_release(&git);
	/* What git takes for no repository is none. */
	*ret = r == 0 && out.len;
	return r == ABX_EIO ? 0 : r;
}

int abx_layout_top(const char *workspace, const char *spool, char **ret_top, struct abx_err *err)
{
	abx_autofree char *parent = NULL;
	bool tracked = false;
	int r = 0;

	if (!has(workspace, ".git") && !is_git_dir(workspace))
		r = find_parent(workspace, &parent, err);
	if (r == 0 && parent)
		r = is_tracked(workspace, spool, &tracked, err);
	if (r == 0)
		*ret_top = tracked ? abx_steal_ptr(&parent) : NULL;
	return r;
}

static int check_parents(const char *workspace, const char *spool, struct abx_err *err)
{
	abx_autofree char *top = NULL, *remedy = NULL;
	char shown[300];
	int r = abx_layout_top(workspace, spool, &top, err);

	if (r < 0 || !top)
		return r;
	abx_quote_text(top, shown, sizeof(shown));
	remedy = abx_xasprintf("agentbox create -w '%s'", shown);
	return abx_layout_refuse(workspace, remedy, err, "it is a part of the repository '%s'",
				 shown);
}

static int check_git_dir(const char *workspace, const struct abx_git_place *p, struct abx_err *err)
{
	abx_autofree char *clone = clone_remedy(workspace);

	if (has(p->common_dir, "reftable"))
		return abx_layout_refuse(workspace, clone, err, "its refs are kept as reftable");
	if (has(p->common_dir, "info/grafts"))
		return abx_layout_refuse(workspace, clone, err, "its history is grafted");
	return 0;
}

void abx_git_place_release(struct abx_git_place *p)
{
	free(p->git_dir);
	free(p->common_dir);
	memset(p, 0, sizeof(*p));
}

/* One path from git; a name may end with newlines. */
static int ask_path(const struct abx_git *git, const char *what, char **ret, struct abx_err *err)
{
	const char *const args[] = {"rev-parse", "--path-format=absolute", what, NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT((size_t)2 * PATH_MAX);
	const int r = abx_git_run(git, args, NULL, &out, err);

	if (r < 0)
		return r;
	if (out.len < 2)
		return abx_err_set(err, ABX_EIO, "git rev-parse: its output is not understood");
	*ret = abx_xstrndup(out.data, out.len - 1);
	return 0;
}

/* .git is a file or a link, or belongs to a linked work tree: git knows what it means. */
static int find_by_git(const char *workspace, const char *spool, struct abx_git_place *p,
		       struct abx_err *err)
{
	abx_autofree char *top = NULL, *clone = clone_remedy(workspace);
	struct abx_git git;
	int r;

	abx_git_init(&git, workspace, spool);
	p->elsewhere = true;
	r = ask_path(&git, "--git-dir", &p->git_dir, err);
	if (r == 0)
		r = ask_path(&git, "--git-common-dir", &p->common_dir, err);
	if (r == 0)
		r = ask_path(&git, "--show-toplevel", &top, err);
	abx_git_release(&git);
	if (r == 0 && strcmp(top, workspace) != 0)
		r = abx_layout_refuse(workspace, clone, err,
				      "its .git is that of another work tree, '%s'", top);
	if (r == ABX_EIO)
		return abx_layout_refuse(workspace, "repair it, or move .git away", err,
					 "its .git is not a git repository");
	return r;
}

static int find_repository(const char *workspace, const char *spool, const char *git_dir,
			   struct abx_git_place *p, struct abx_err *err)
{
	struct stat st;

	if (lstat(git_dir, &st) < 0)
		return fail_workspace(workspace, errno, err);
	if (S_ISLNK(st.st_mode) || S_ISREG(st.st_mode) || has(git_dir, "commondir"))
		return find_by_git(workspace, spool, p, err);
	if (!S_ISDIR(st.st_mode) || !is_git_dir(git_dir))
		return abx_layout_refuse(workspace, "repair it, or move .git away", err,
					 "its .git is not a git repository");
	p->git_dir = abx_xstrdup(git_dir);
	p->common_dir = abx_xstrdup(git_dir);
	return 0;
}

int abx_layout_find(const char *workspace, const char *spool, enum abx_workspace_kind *ret,
		    struct abx_git_place *ret_place, struct abx_err *err)
{
	abx_autofree char *git_dir = abx_xasprintf("%s/.git", workspace);
	abx_autofree char *clone = clone_remedy(workspace);
	struct abx_git_place place = {0};
	int r;

	if (!has(workspace, ".git")) {
		if (is_git_dir(workspace))
			return abx_layout_refuse(workspace, clone, err, "it is a bare repository");
		r = check_parents(workspace, spool, err);
		if (r == 0)
			*ret = ABX_WORKSPACE_PLAIN;
		return r;
	}
	r = find_repository(workspace, spool, git_dir, &place, err);
	if (r == 0)
		r = check_git_dir(workspace, &place, err);
	if (r < 0) {
		abx_git_place_release(&place);
		return r;
	}
	*ret = ABX_WORKSPACE_GIT;
	*ret_place = place;
	return 0;
}

int abx_layout_head(const char *workspace, const struct abx_git_place *place, char **ret_branch,
		    struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(HEAD_MAX);
	abx_autofree char *path = abx_xasprintf("%s/HEAD", place->git_dir);
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

/* core.worktree counts from the git directory on. */
static bool is_work_tree(const char *workspace, const struct abx_git_place *place,
			 const char *worktree)
{
	abx_autofree char *path = worktree[0] == '/'
					  ? abx_xstrdup(worktree)
					  : abx_xasprintf("%s/%s", place->git_dir, worktree);
	struct stat here, there;

	return stat(workspace, &here) == 0 && stat(path, &there) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

int abx_layout_check_config(const char *workspace, const struct abx_git_place *place,
			    const struct abx_git_config *c, struct abx_err *err)
{
	abx_autofree char *clone = clone_remedy(workspace);

	if (c->object_format && strcmp(c->object_format, "sha1") != 0)
		return abx_layout_refuse(workspace, "use a repository with SHA-1 objects", err,
					 "its object format is %s", c->object_format);
	if (c->ref_storage && strcmp(c->ref_storage, "files") != 0)
		return abx_layout_refuse(workspace, clone, err, "its refs are kept as %s",
					 c->ref_storage);
	/* Git went by both already when it said where the repository is. */
	if (c->bare && !place->elsewhere)
		return abx_layout_refuse(workspace, clone, err, "it is a bare repository");
	if (c->worktree && !place->elsewhere && !is_work_tree(workspace, place, c->worktree))
		return abx_layout_refuse(workspace, clone, err,
					 "its work tree is elsewhere (core.worktree)");
	if (c->no_symlinks)
		return abx_layout_refuse(workspace, "git config --unset core.symlinks", err,
					 "its symbolic links are files (core.symlinks)");
	return 0;
}
