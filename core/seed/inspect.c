/* SPDX-License-Identifier: MIT */
/* Looking at a workspace before anything costs. */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/attrs.h"
#include "core/seed/layout.h"
#include "core/seed/seed-state.h"
#include "core/util/parse.h"

#define INFO_FILE_MAX ((size_t)4 << 20)
#define WARNINGS_MAX ((size_t)1 << 20)

/* The first level only compresses twice as fast as the usual one and costs a tenth of size;
 * deltas that exist are taken over, new ones are not looked for.  The pack lives for seconds:
 * it need not reach the disk. */
static const char *const pack_args[] = {"-c",
					"pack.compression=1",
					"-c",
					"pack.packSizeLimit=0",
					"-c",
					"pack.writeReverseIndex=false",
					"-c",
					"core.fsync=none",
					"pack-objects",
					"--revs",
					"--indexed-objects",
					"--delta-base-offset",
					"--window=0",
					"-q",
					NULL, /* the base name */
					NULL};

/* New objects and temporary files of git go to the spool; the repository is read as an
 * alternate.  Quoted as git unquotes it: paths may have any byte. */
static int prepare_pack_git(struct abx_seed *s, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(4 * 4096);
	abx_autofree char *dir = abx_xasprintf("%s/objects/pack", s->spool);
	abx_autofree char *env = abx_xasprintf("GIT_OBJECT_DIRECTORY=%s/objects", s->spool);
	const int r = abx_fs_mkdir_p(AT_FDCWD, dir, 0700);

	if (r < 0)
		return abx_err_errno(err, -r, "make '%s'", dir);
	abx_buf_adds(&b, "GIT_ALTERNATE_OBJECT_DIRECTORIES=\"");
	for (const char *at = s->workspace; *at; at++) {
		if (*at == '"' || *at == '\\')
			abx_buf_addc(&b, '\\');
		abx_buf_addc(&b, *at);
	}
	abx_buf_adds(&b, "/.git/objects\"");
	abx_git_init(&s->pack_git, s->workspace, s->spool);
	abx_git_setenv(&s->pack_git, env);
	/* zlib takes 268 KiB for each object, which glibc would give back each time: half of the
	 * time for a small repository. */
	abx_git_setenv(&s->pack_git, "MALLOC_TRIM_THRESHOLD_=67108864");
	abx_git_setenv(&s->pack_git, abx_buf_str(&b));
	return 0;
}

static int start_pack(struct abx_seed *s, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(64);
	abx_autofree char *base = abx_xasprintf("%s/%s", s->spool, ABX_SEED_PACK);
	const char *args[ABX_N_ELEMENTS(pack_args)];
	int r = prepare_pack_git(s, err);

	if (r < 0)
		return r;
	memcpy(args, pack_args, sizeof(args));
	args[ABX_N_ELEMENTS(args) - 2] = base;
	abx_buf_adds(&in, "HEAD\n");
	r = abx_git_start(&s->pack_git, args, &in, ABX_GIT_PIPE, &s->pack, err);
	s->pack.what = "pack-objects";
	return r;
}

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

static int finish_status(struct abx_seed *s, struct abx_git_job *job, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	abx_auto(abx_buf) struct abx_buf warnings = ABX_BUF_INIT(WARNINGS_MAX);
	int r = abx_git_finish_warned(job, &out, &warnings, err);

	if (r == 0)
		r = check_warnings(s->shown, &warnings, err);
	if (r == 0)
		r = abx_status_parse(&out, &s->status, err);
	if (r == 0 && !s->status.head)
		return abx_layout_refuse(s->workspace, "make a first commit", err,
					 "it has no commit");
	return r;
}

static int finish_config(struct abx_seed *s, struct abx_git_job *job, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	int r = abx_git_finish(job, &out, err);

	if (r == 0)
		r = abx_git_config_parse(&out, s->workspace, &s->config, err);
	return r < 0 ? r : abx_layout_check_config(s->workspace, &s->config, err);
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

/* The user's own ignore rules hold in the box too; those of the repository win over them. */
static int read_info(struct abx_seed *s, struct abx_err *err)
{
	abx_autofree char *exclude = abx_xasprintf("%s/.git/info/exclude", s->workspace);
	abx_autofree char *attributes = abx_xasprintf("%s/.git/info/attributes", s->workspace);
	int r = 0;

	if (s->config.excludes_file && *s->config.excludes_file)
		r = read_info_file(s->config.excludes_file, &s->exclude, err);
	if (r == 0)
		r = read_info_file(exclude, &s->exclude, err);
	if (r == 0)
		r = read_info_file(attributes, &s->attributes, err);
	return r;
}

/* What is untracked may give attributes to what is tracked. */
static bool attributes_appeared(const struct abx_seed *s)
{
	if (s->config.attributes_file && access(s->config.attributes_file, F_OK) == 0)
		return true;
	for (size_t i = 0; i < s->status.untracked.len; i++) {
		const char *path = s->status.untracked.items[i], *slash = strrchr(path, '/');

		if (strcmp(slash ? slash + 1 : path, ".gitattributes") == 0)
			return true;
	}
	return false;
}

struct jobs {
	struct abx_git_job config, attrs, status;
	bool attrs_done;
	struct abx_attrs attrs_found;
};

static int check_attrs(struct abx_seed *s, struct jobs *j, struct abx_err *err)
{
	int r = j->attrs.pid ? 0 : abx_attrs_start(&s->git, &s->index, &j->attrs, err);

	if (r == 0)
		r = abx_attrs_finish(&j->attrs, s->workspace, &s->index,
				     abx_git_config_converts(&s->config), &j->attrs_found, err);
	j->attrs_done = r == 0;
	return r;
}

static int start_reading(struct abx_seed *s, struct jobs *j, struct abx_err *err)
{
	/* The longest first. */
	int r = start_pack(s, err);

	return r < 0 ? r : abx_git_start(&s->git, abx_status_args, NULL, 0, &j->status, err);
}

/* Run git, as much at once as can be.  Filters would run inside of `git status`, and may
 * write into the repository: where attributes exist, they are looked at first. */
static int ask_git(struct abx_seed *s, struct jobs *j, struct abx_err *err)
{
	static const char *const config_args[] = {"config", "-z", "--list", NULL};
	const bool attrs_first = abx_attrs_matter(s->workspace, &s->index);
	int r = attrs_first ? abx_attrs_start(&s->git, &s->index, &j->attrs, err)
			    : start_reading(s, j, err);

	if (r == 0)
		r = abx_git_start(&s->git, config_args, NULL, 0, &j->config, err);
	if (r == 0)
		r = finish_config(s, &j->config, err);
	if (r == 0 && attrs_first)
		r = check_attrs(s, j, err);
	if (r == 0 && attrs_first)
		r = start_reading(s, j, err);
	if (r == 0)
		r = finish_status(s, &j->status, err);
	if (r == 0 && !j->attrs_done &&
	    (attributes_appeared(s) || abx_git_config_converts(&s->config)))
		r = check_attrs(s, j, err);
	return r;
}

/* Somebody worked in the repository meanwhile: what was read does not fit together. */
static int check_unchanged(struct abx_seed *s, struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/.git/index", s->workspace), *branch = NULL;
	const struct stat *old = &s->index.st;
	struct stat now;
	bool same;
	int r = abx_layout_head(s->workspace, &branch, err);

	if (r < 0)
		return r;
	if (stat(path, &now) < 0)
		same = s->index.missing;
	else
		same = !s->index.missing && now.st_ino == old->st_ino &&
		       now.st_size == old->st_size && now.st_mtim.tv_sec == old->st_mtim.tv_sec &&
		       now.st_mtim.tv_nsec == old->st_mtim.tv_nsec;
	if (same && (!branch == !s->head_branch) &&
	    (!branch || strcmp(branch, s->head_branch) == 0))
		return 0;
	(void)abx_err_set(err, ABX_ESTATE, "workspace '%s': git changed it while it was read",
			  s->shown);
	return abx_err_remedy(err, "try again");
}

static int inspect_git(struct abx_seed *s, struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/.git/index", s->workspace);
	struct jobs j = {ABX_GIT_JOB_INIT, ABX_GIT_JOB_INIT, ABX_GIT_JOB_INIT, false, {NULL, 0}};
	struct abx_err index_err = ABX_ERR_INIT;
	int r = abx_layout_head(s->workspace, &s->head_branch, err), index_r;

	if (r < 0)
		return r;
	/* An index that is not understood may be of another object format: git says so. */
	index_r = abx_index_read(path, &s->index, &index_err);
	abx_git_init(&s->git, s->workspace, s->spool);
	if (index_r == 0)
		r = abx_layout_check_index(s->workspace, &s->index, err);
	if (r == 0)
		r = ask_git(s, &j, err);
	if (r == 0 && index_r < 0) {
		r = index_r;
		*err = index_err;
	}
	if (r == 0)
		r = abx_seed_files_known(s->workspace, s->root_fd, &s->index, &s->status, &s->files,
					 err);
	if (r == 0 && j.attrs_done)
		r = abx_attrs_check_sizes(&j.attrs_found, &s->git, s->workspace, &s->index,
					  &s->files, err);
	if (r == 0)
		r = read_info(s, err);
	if (r == 0)
		r = check_unchanged(s, err);
	for (size_t i = 0; i < s->index.len; i++)
		s->assumed = s->assumed || s->index.entries[i].assume_valid;
	abx_git_abandon(&j.config);
	abx_git_abandon(&j.attrs);
	abx_git_abandon(&j.status);
	abx_attrs_release(&j.attrs_found);
	return r;
}

static int inspect(struct abx_seed *s, struct abx_err *err)
{
	enum abx_workspace_kind kind;
	int r;

	s->root_fd = abx_fs_open_dir(AT_FDCWD, s->workspace);
	if (s->root_fd < 0)
		return abx_err_errno(err, -s->root_fd, "workspace '%s'", s->shown);
	r = abx_layout_check(s->workspace, &kind, err);
	if (r < 0)
		return r;
	s->info.git = kind == ABX_WORKSPACE_GIT;
	r = s->info.git ? inspect_git(s, err)
			: abx_seed_files_walk(s->workspace, s->root_fd, &s->files, err);
	if (r < 0)
		return r;
	s->info.base_commit = s->status.head;
	s->info.head_branch = s->head_branch;
	s->info.files = s->files.files;
	s->info.bytes = s->files.bytes;
	s->info.skipped = s->files.skipped;
	return 0;
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

int abx_seed_inspect(const char *workspace, const char *spool, struct abx_seed **ret,
		     struct abx_err *err)
{
	struct abx_seed *s = abx_xcalloc(1, sizeof(*s));
	struct abx_err local = ABX_ERR_INIT;
	int r;

	s->workspace = abx_xstrdup(workspace);
	abx_quote_text(workspace, s->shown, sizeof(s->shown));
	open_spool(s, spool);
	s->root_fd = -1;
	s->pack = (struct abx_git_job)ABX_GIT_JOB_INIT;
	s->exclude = (struct abx_buf)ABX_BUF_INIT(2 * INFO_FILE_MAX);
	s->attributes = (struct abx_buf)ABX_BUF_INIT(2 * INFO_FILE_MAX);
	r = inspect(s, err ? err : &local);
	if (r < 0)
		abx_seed_free(s);
	else
		*ret = s;
	return r;
}

void abx_seed_free(struct abx_seed *s)
{
	if (!s)
		return;
	abx_git_abandon(&s->pack);
	if (s->root_fd >= 0)
		(void)close(s->root_fd);
	if (s->spool_fd >= 0)
		(void)close(s->spool_fd);
	abx_seed_files_release(&s->files);
	abx_git_release(&s->git);
	abx_git_release(&s->pack_git);
	abx_git_config_release(&s->config);
	abx_index_release(&s->index);
	abx_status_release(&s->status);
	abx_buf_release(&s->exclude);
	abx_buf_release(&s->attributes);
	free(s->head_branch);
	free(s->workspace);
	free(s->spool);
	free(s);
}

const struct abx_seed_info *abx_seed_info(const struct abx_seed *seed)
{
	return &seed->info;
}
