/* SPDX-License-Identifier: MIT */
/* What a box changed, as a patch. */
#include "core/seed/back-patch.h"

#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/back-fetch.h"
#include "core/seed/back-list.h"
#include "core/seed/git.h"
#include "core/util/mem.h"

#define REPOSITORY "patch.git"
#define COPY_BYTES 65536
#define HEAD_MAX ((size_t)65536)

/* One content: of a change, as it was or as it is. */
struct content {
	struct abx_change *change;
	bool old;
};

struct patch {
	const struct abx_back *back;
	struct content *contents;
	int to_git; /* stdin of git fast-import */
	struct abx_err *err;
};

static int say(const struct patch *p, const void *data, size_t len)
{
	const int r = abx_fs_write_all(p->to_git, data, len);

	return r < 0 ? abx_err_errno(p->err, -r, "write to git fast-import") : 0;
}

static int on_begin(void *ctx, size_t i, uint64_t size, struct abx_err *err)
{
	const struct patch *p = ctx;
	char head[80];

	(void)err;
	(void)snprintf(head, sizeof(head), "blob\nmark :%zu\ndata %llu\n", i + 1,
		       (unsigned long long)size);
	return say(p, head, strlen(head));
}

static int on_data(void *ctx, size_t i, const void *data, size_t len, struct abx_err *err)
{
	(void)i;
	(void)err;
	return say(ctx, data, len);
}

static int on_end(void *ctx, size_t i, struct abx_err *err)
{
	(void)i;
	(void)err;
	return say(ctx, "\n", 1);
}

static bool too_large(void *ctx, size_t i, uint64_t size)
{
	const struct patch *p = ctx;
	const uint64_t max = p->back->max_file ? p->back->max_file : ABX_BACK_FILE_MAX;

	if (size <= max)
		return false;
	abx_change_fail(p->contents[i].change, "larger than --max-file");
	return true;
}

/* As git fast-import reads a path in quotes. */
static void add_path(struct abx_buf *b, const char *path)
{
	abx_buf_addc(b, '"');
	for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
		if (*c < ' ' || *c >= 0x7f || *c == '"' || *c == '\\')
			abx_buf_addf(b, "\\%03o", *c);
		else
			abx_buf_addc(b, (char)*c);
	}
	abx_buf_adds(b, "\"\n");
}

static int say_commit(const struct patch *p, size_t n, bool old)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(HEAD_MAX);
	int r;

	abx_buf_addf(&b,
		     "commit refs/heads/%s\ncommitter agentbox <agentbox@localhost> 0 +0000\n"
		     "data 0\n",
		     old ? "old" : "new");
	r = say(p, b.data, b.len);
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct content *c = &p->contents[i];

		if (c->old != old || c->change->problem)
			continue;
		abx_buf_reset(&b);
		abx_buf_addf(&b, "M %06o :%zu ", old ? c->change->old_mode : c->change->mode,
			     i + 1);
		add_path(&b, c->change->path);
		r = b.failed ? abx_err_set(p->err, ABX_ENOMEM, "patch: a path is too long")
			     : say(p, b.data, b.len);
	}
	return r;
}

/* Both sides of each change that can come. */
static size_t choose(struct abx_changes *changes, struct content *contents, const char **ids)
{
	size_t n = 0;

	for (size_t i = 0; i < changes->len; i++) {
		struct abx_change *c = &changes->items[i];

		if (c->problem)
			continue;
		if (c->old_blob) {
			contents[n] = (struct content){c, true};
			ids[n++] = c->old_blob;
		}
		if (c->blob) {
			contents[n] = (struct content){c, false};
			ids[n++] = c->blob;
		}
	}
	return n;
}

static int import(const struct abx_box_io *io, struct patch *p, const struct abx_git *git,
		  const char *tmp, struct abx_changes *changes, struct abx_err *err)
{
	static const char *const args[] = {"fast-import", "--quiet", "--done", NULL};
	abx_autofree const char **ids = abx_xcalloc(2 * changes->len + 1, sizeof(*ids));
	struct abx_git_job job = ABX_GIT_JOB_INIT;
	struct abx_fetch fetch = {ids, 0, on_begin, on_data, on_end, too_large, p};
	int pair[2], r;

	p->contents = abx_xcalloc(2 * changes->len + 1, sizeof(*p->contents));
	fetch.len = choose(changes, p->contents, ids);
	if (pipe2(pair, O_CLOEXEC) < 0)
		return abx_err_errno(err, errno, "patch: pipe");
	p->to_git = pair[1];
	r = abx_git_start_fd(git, args, pair[0], 0, &job, err);
	(void)close(pair[0]);
	if (r == 0)
		r = abx_back_fetch(io, p->back->dir, tmp, &fetch, err);
	if (r == 0)
		r = say_commit(p, fetch.len, /* old= */ true);
	if (r == 0)
		r = say_commit(p, fetch.len, /* old= */ false);
	if (r == 0)
		r = say(p, "done\n", 5);
	(void)close(pair[1]);
	if (r == 0)
		r = abx_git_finish(&job, NULL, err);
	else
		abx_git_abandon(&job);
	return r;
}

static int copy(int from, int to, struct abx_err *err)
{
	char data[COPY_BYTES];
	ssize_t n;

	while ((n = read(from, data, sizeof(data))) != 0) {
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : abx_fs_write_all(to, data, (size_t)n);
		if (r < 0)
			return abx_err_errno(err, -r, "write the patch");
	}
	return 0;
}

/* Plumbing: nobody's settings make it another format. */
static int write_patch(const struct abx_git *git, int fd, struct abx_err *err)
{
	static const char *const args[] = {"diff-tree",
					   "-p",
					   "--binary",
					   "--full-index",
					   "-M",
					   "--no-ext-diff",
					   "refs/heads/old",
					   "refs/heads/new",
					   NULL};
	struct abx_git_job job = ABX_GIT_JOB_INIT;
	int r = abx_git_start(git, args, NULL, ABX_GIT_PIPE, &job, err);

	if (r == 0)
		r = copy(job.out_fd, fd, err);
	if (r < 0) {
		abx_git_abandon(&job);
		return r;
	}
	return abx_git_finish(&job, NULL, err);
}

int abx_back_patch_io(const struct abx_box_io *io, const struct abx_back *back, const char *tmp,
		      struct abx_changes *changes, int fd, struct abx_err *err)
{
	static const char *const init[] = {"init", "-q", "--bare", "--template=", REPOSITORY, NULL};
	abx_autofree char *env = abx_xasprintf("GIT_DIR=%s/" REPOSITORY, tmp);
	struct patch p = {.back = back, .to_git = -1, .err = err};
	struct abx_git git;
	int r;

	abx_git_init(&git, tmp, tmp);
	r = abx_git_run(&git, init, NULL, NULL, err);
	abx_git_setenv(&git, env);
	if (r == 0)
		r = import(io, &p, &git, tmp, changes, err);
	if (r == 0)
		r = write_patch(&git, fd, err);
	abx_git_release(&git);
	free(p.contents);
	return r;
}

int abx_back_patch(struct abx_cloud *cloud, const struct abx_call_opts *o,
		   const struct abx_sandbox *sandbox, const struct abx_back *back, const char *tmp,
		   struct abx_changes *changes, int fd, struct abx_err *err)
{
	struct abx_box_of_cloud box = {cloud, o, sandbox};
	const struct abx_box_io io = abx_box_io_of_cloud(&box);

	return abx_back_patch_io(&io, back, tmp, changes, fd, err);
}
