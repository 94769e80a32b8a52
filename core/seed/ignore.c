/* SPDX-License-Identifier: MIT */
/* What stays here although git does not ignore it, and what travels although it does. */
#include "core/seed/ignore.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/seed/layout.h"
#include "core/util/parse.h"

#define RULES_FILE ".agentboxignore"
#define RULES_MAX ((size_t)4 << 20)
/* Matches always, since git calls it a failure when nothing does.  "./" before each path keeps
 * git from taking a colon for a sign. */
#define PROBE ".agentbox-ignore-probe"

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void abx_paths_sort(struct abx_strv *v)
{
	if (v->len)
		qsort(v->items, v->len, sizeof(char *), by_bytes);
}

bool abx_paths_have(const struct abx_strv *v, const char *path)
{
	return v->len && bsearch(&path, v->items, v->len, sizeof(char *), by_bytes);
}

void abx_paths_drop(struct abx_strv *v, const struct abx_strv *drop)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->len; i++) {
		if (abx_paths_have(drop, v->items[i]))
			free(v->items[i]);
		else
			v->items[kept++] = v->items[i];
	}
	if (v->len)
		v->items[kept] = NULL;
	v->len = kept;
}

static int write_file(const char *dir, const char *name, const char *data, size_t len,
		      struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/%s", dir, name);
	abx_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : abx_fs_write_all(fd, data, len);

	return r < 0 ? abx_err_errno(err, -r, "write '%s'", path) : 0;
}

/* A repository in which nothing holds but these rules. */
static int make_repository(const char *dir, struct abx_buf *rules, struct abx_err *err)
{
	static const char *const dirs[] = {"objects", "refs", "info", "work"};
	static const char head[] = "ref: refs/heads/none\n";
	static const char config[] = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
				     "\texcludesFile = /dev/null\n";
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(dirs) && r == 0; i++) {
		abx_autofree char *path = abx_xasprintf("%s/%s", dir, dirs[i]);

		r = abx_fs_mkdir_p(AT_FDCWD, path, 0700);
		if (r < 0)
			return abx_err_errno(err, -r, "make '%s'", path);
	}
	abx_buf_adds(rules, "\n/" PROBE "\n");
	if (rules->failed)
		return abx_err_set(err, ABX_EINVAL, RULES_FILE ": longer than %zu bytes",
				   RULES_MAX);
	r = write_file(dir, "HEAD", head, sizeof(head) - 1, err);
	if (r == 0)
		r = write_file(dir, "config", config, sizeof(config) - 1, err);
	return r < 0 ? r : write_file(dir, "info/exclude", rules->data, rules->len, err);
}

int abx_ignore_open(const char *workspace, int root_fd, const char *spool, struct abx_ignore *ret,
		    struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf rules = ABX_BUF_INIT(RULES_MAX);
	struct abx_ignore i = {0};
	int r = abx_fs_read(root_fd, RULES_FILE, &rules);

	if (r == -ENOENT) {
		*ret = i;
		return 0;
	}
	if (r < 0)
		return abx_err_errno(err, -r, "read '%s/" RULES_FILE "'", workspace);
	i.dir = abx_xasprintf("%s/ignore.git", spool);
	i.spool = abx_xstrdup(spool);
	abx_quote_text(workspace, i.shown, sizeof(i.shown));
	r = make_repository(i.dir, &rules, err);
	if (r < 0)
		abx_ignore_release(&i);
	else
		*ret = i;
	return r;
}

void abx_ignore_release(struct abx_ignore *i)
{
	free(i->dir);
	free(i->spool);
	memset(i, 0, sizeof(*i));
}

static int ask(const struct abx_ignore *i, const struct abx_buf *in, struct abx_buf *out,
	       struct abx_err *err)
{
	static const char *const args[] = {"check-ignore", "--no-index", "-z", "--stdin", NULL};
	abx_autofree char *work = abx_xasprintf("%s/work", i->dir);
	struct abx_git git;
	int r;

	abx_git_init(&git, work, i->spool);
	abx_git_setenv(&git, "GIT_DIR=..");
	abx_git_setenv(&git, "GIT_WORK_TREE=.");
	r = abx_git_run(&git, args, in, out, err);
	abx_git_release(&git);
	if (r != ABX_ENOTFOUND)
		return r;
	(void)abx_err_set(err, ABX_ENOTFOUND,
			  "workspace '%s': " RULES_FILE " is read by git, which is not on this "
			  "machine",
			  i->shown);
	return abx_err_remedy(err, "install git on this machine");
}

int abx_ignore_ask(const struct abx_ignore *i, const char *prefix, const struct abx_strv *paths,
		   struct abx_strv *ret, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	const size_t skip = 2 + (*prefix ? strlen(prefix) + 1 : 0);
	int r;

	if (!i->dir || !paths->len)
		return 0;
	abx_buf_add(&in, "./" PROBE, sizeof("./" PROBE));
	for (size_t n = 0; n < paths->len; n++) {
		abx_buf_addf(&in, "./%s%s%s", prefix, *prefix ? "/" : "", paths->items[n]);
		abx_buf_addc(&in, '\0');
	}
	if (in.failed)
		return abx_err_set(err, ABX_ENOMEM, RULES_FILE ": too many files to ask about");
	r = ask(i, &in, &out, err);
	if (r < 0)
		return r;
	for (const char *at = abx_buf_str(&out), *end = at + out.len; at < end;
	     at += strlen(at) + 1)
		if (strcmp(at, "./" PROBE) != 0 && strlen(at) > skip)
			abx_strv_add(ret, at + skip);
	abx_paths_sort(ret);
	return 0;
}

static bool is_unkept(int root_fd, const char *path)
{
	static const char modules[] = ".gitmodules";
	const char *name = path;
	struct stat st;

	for (;; name++) {
		const size_t len = strcspn(name, "/");

		if (len == 4 && strncasecmp(name, ".git", len) == 0)
			return true;
		if (!name[len])
			break;
		name += len;
	}
	return strcasecmp(name, modules) == 0 &&
	       fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

void abx_unkept(int root_fd, const struct abx_strv *paths, struct abx_strv *ret)
{
	for (size_t i = 0; i < paths->len; i++)
		if (is_unkept(root_fd, paths->items[i]))
			abx_strv_add(ret, paths->items[i]);
	abx_paths_sort(ret);
}

/* `glob`, from the workspace's root, as one from the directory `path` of it; NULL: nothing in
 * there matches.  To be freed. */
static char *from_there(const char *glob, const char *path)
{
	while (*path && *glob) {
		const size_t g = strcspn(glob, "/"), p = strcspn(path, "/");
		abx_autofree char *pattern = abx_xstrndup(glob, g);
		abx_autofree char *name = abx_xstrndup(path, p);

		if (strcmp(pattern, "**") == 0)
			return abx_xstrdup(glob);
		if (fnmatch(pattern, name, 0) != 0)
			return NULL;
		glob += g + (glob[g] == '/');
		path += p + (path[p] == '/');
	}
	return abx_xstrdup(*glob ? glob : "**");
}

static void add_spec(struct abx_strv *args, const char *glob, const char *path)
{
	const size_t len = strlen(glob) - (*glob && glob[strlen(glob) - 1] == '/');
	abx_autofree char *whole = abx_xstrndup(glob, len), *here = NULL;

	if (!strchr(whole, '/'))
		here = abx_xasprintf("**/%s", whole);
	else
		here = from_there(whole + (*whole == '/'), path);
	if (!here || !*here)
		return;
	abx_strv_take(args, abx_xasprintf(":(glob)%s", here));
	abx_strv_take(args, abx_xasprintf(":(glob)%s/**", here));
}

int abx_included_start(const struct abx_git *git, const char *path, const struct abx_strv *globs,
		       struct abx_git_job *ret, struct abx_err *err)
{
	static const char *const first[] = {"ls-files",		  "-o", "-i",
					    "--exclude-standard", "-z", "--"};
	struct abx_strv args = {NULL, 0, 0};
	int r = 0;

	if (!globs || !globs->len)
		return 0;
	for (size_t i = 0; i < ABX_N_ELEMENTS(first); i++)
		abx_strv_add(&args, first[i]);
	for (size_t i = 0; i < globs->len; i++)
		add_spec(&args, globs->items[i], path);
	if (args.len > ABX_N_ELEMENTS(first))
		r = abx_git_start(git, (const char *const *)args.items, NULL, 0, ret, err);
	abx_strv_release(&args);
	return r;
}

int abx_included_finish(struct abx_git_job *job, struct abx_strv *ret, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	int r = job->pid ? abx_git_finish(job, &out, err) : 0;

	if (r < 0)
		return r;
	for (const char *at = abx_buf_str(&out), *end = at + out.len; at < end;
	     at += strlen(at) + 1)
		abx_strv_add(ret, at);
	abx_paths_sort(ret);
	return 0;
}
