/* SPDX-License-Identifier: MIT */
/* A box's commits as a ref of the host's repository. */
#include "core/seed/fetch.h"

#include <string.h>

#include "core/seed/fetch-io.h"
#include "core/seed/seed-script.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define LOG_MAX ((size_t)4 << 20)
#define STDERR_MAX ((size_t)1 << 20)
#define DOWNLOAD_REMEDY "agentbox download brings the files"

const char *abx_fetch_result_name(enum abx_fetch_result result)
{
	static const char *const names[] = {
		[ABX_FETCH_FAILED] = "failed",	 [ABX_FETCH_NOTHING] = "nothing",
		[ABX_FETCH_SAME] = "unchanged",	 [ABX_FETCH_NEW] = "new",
		[ABX_FETCH_FORWARD] = "forward", [ABX_FETCH_MOVED] = "moved"};

	return names[result];
}

void abx_fetched_release(struct abx_fetched *f)
{
	for (size_t i = 0; i < f->len; i++) {
		struct abx_fetched_repo *r = &f->items[i];

		for (size_t k = 0; k < r->n_subjects; k++)
			free(r->subjects[k]);
		free(r->subjects);
		free(r->path);
		free(r->branch);
		free(r->old_id);
		free(r->new_id);
		free(r->problem);
		free(r->remedy);
	}
	free(f->items);
	memset(f, 0, sizeof(*f));
}

/* What the box need not send: commits that are certainly here. */
static int list_known(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
		      struct abx_buf *b, struct abx_err *err)
{
	const char *const args[] = {"rev-parse", "--verify", "-q", "HEAD^{commit}", NULL};
	const char *const ref[] = {"for-each-ref", "--format=%(objectname)", ask->ref, NULL};
	int r;

	/* Before the first commit there is none. */
	(void)abx_git_run(&h->git, args, NULL, b, NULL);
	r = abx_git_run(&h->git, ref, NULL, b, err);
	if (r == 0 && ask->base_commit && abx_fetch_has(h, ask->base_commit))
		abx_buf_addf(b, "%s\n", ask->base_commit);
	return r;
}

static int ask_box(const struct abx_box_io *io, const struct abx_fetch_ask *ask,
		   const struct abx_buf *known, struct abx_fetched *ret, struct abx_err *err)
{
	const char *const args[] = {ask->dir, NULL};
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(STDERR_MAX);
	struct abx_fetch_reader reader;
	struct abx_box_script script = {"fetch", abx_script_fetch,	args,
					-1,	 abx_fetch_reader_feed, &reader};
	abx_autoclose int fd = abx_spool_bytes(ask->spool, abx_buf_str(known), known->len);
	int code = 0, r;

	if (fd < 0)
		return abx_err_errno(err, -fd, "write in '%s'", ask->spool);
	script.stdin_fd = fd;
	abx_fetch_reader_init(&reader, ask, ret, err);
	r = abx_box_run(io, &script, &code, &said, err);
	if (r == 0 && code)
		r = abx_box_script_error("fetch", code, &said, err);
	if (r == 0)
		r = abx_fetch_reader_end(&reader);
	abx_fetch_reader_release(&reader);
	return r;
}

/* ---- one repository ---- */

static void take_subjects(struct abx_fetched_repo *repo, const struct abx_buf *out)
{
	const char *at = abx_buf_str(out), *end = at + out->len;

	repo->subjects = abx_xcalloc(ABX_FETCH_SUBJECTS, sizeof(*repo->subjects));
	while (at < end && repo->n_subjects < ABX_FETCH_SUBJECTS) {
		repo->subjects[repo->n_subjects++] = abx_xstrdup(at);
		at += strlen(at) + 1;
	}
}

/* Which commits are new: neither in the ref nor in what is checked out here. */
static int list_commits(const struct abx_fetch_host *h, struct abx_fetched_repo *repo,
			struct abx_err *err)
{
	static const char *const head[] = {"rev-parse", "--verify", "-q", "HEAD^{commit}", NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(LOG_MAX);
	abx_auto(abx_buf) struct abx_buf log = ABX_BUF_INIT(LOG_MAX);
	const char *list[] = {"rev-list", "--count", repo->new_id, "--not", NULL, NULL, NULL};
	const char *show[] = {"-c",
			      "log.showSignature=false",
			      "log",
			      "-s",
			      "-z",
			      "--format=%h %s",
			      "--max-count=10",
			      "--no-mailmap",
			      repo->new_id,
			      "--not",
			      NULL,
			      NULL,
			      NULL};
	size_t n = 4, m = 10;
	int r;

	if (repo->old_id)
		list[n++] = show[m++] = repo->old_id;
	if (abx_git_run(&h->git, head, NULL, NULL, NULL) == 0)
		list[n++] = show[m++] = "HEAD";
	r = abx_git_run(&h->git, list, NULL, &out, err);
	if (r == 0 && out.len)
		out.data[--out.len] = '\0';
	if (r == 0 && !abx_parse_u64(abx_buf_str(&out), UINT64_MAX, &repo->commits))
		r = abx_err_set(err, ABX_EIO, "git rev-list: its output is not understood");
	if (r == 0)
		r = abx_git_run(&h->git, show, NULL, &log, err);
	if (r == 0)
		take_subjects(repo, &log);
	return r;
}

static int fetch_into(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
		      struct abx_fetched_repo *repo, const char *pack, struct abx_err *err)
{
	int r = abx_fetch_ref_look(h, ask, repo, err);

	if (r < 0)
		return r;
	if (repo->old_id && strcmp(repo->old_id, repo->new_id) == 0) {
		repo->result = ABX_FETCH_SAME;
		return 0;
	}
	r = abx_fetch_check(h, repo->pack_bytes ? pack : NULL, repo->new_id, err);
	if (r == 0)
		r = list_commits(h, repo, err);
	if (r == 0 && !repo->old_id && !repo->commits) {
		repo->result = ABX_FETCH_NOTHING;
		return 0;
	}
	if (r == 0)
		r = abx_fetch_ref_judge(h, ask, repo, err);
	if (r == 0)
		r = abx_fetch_land(h, ask->notes, err);
	if (r == 0)
		r = abx_fetch_ref_write(h, ask, repo, err);
	if (r < 0)
		repo->result = ABX_FETCH_FAILED;
	return r;
}

/* What goes wrong with one of them is its problem, and the others go on. */
static void fetch_one(const struct abx_fetch_ask *ask, struct abx_fetched *f, size_t i)
{
	struct abx_fetched_repo *repo = &f->items[i];
	abx_autofree char *pack = abx_xasprintf("%s/%zu.pack", ask->spool, i);
	abx_autofree char *spool = abx_xasprintf("%s/%zu", ask->spool, i);
	struct abx_fetch_host h = {0};
	struct abx_err err = ABX_ERR_INIT;
	int r;

	if (repo->problem)
		return;
	if (!repo->new_id) {
		repo->result = ABX_FETCH_NOTHING;
		return;
	}
	r = abx_fetch_host_open(ask->workspace, repo->path, spool, &h, &err);
	if (r == 0) {
		r = fetch_into(&h, ask, repo, pack, &err);
		abx_fetch_host_close(&h);
	}
	if (r < 0) {
		repo->problem = abx_xstrdup(err.text);
		repo->remedy = *err.remedy ? abx_xstrdup(err.remedy) : NULL;
	}
}

int abx_fetch_io(const struct abx_box_io *io, const struct abx_fetch_ask *ask,
		 struct abx_fetched *ret, struct abx_err *err)
{
	abx_autofree char *spool = abx_xasprintf("%s/root", ask->spool);
	abx_auto(abx_buf) struct abx_buf known = ABX_BUF_INIT(4096);
	struct abx_err local = ABX_ERR_INIT;
	struct abx_fetch_host root = {0};
	struct abx_fetched f = {NULL, 0};
	char shown[300];
	int r;

	err = err ? err : &local;
	abx_quote_text(ask->workspace, shown, sizeof(shown));
	r = abx_fetch_host_open(ask->workspace, "", spool, &root, err);
	if (r == ABX_ENOTFOUND) {
		(void)abx_err_set(err, ABX_ENOTSUP, "fetch: '%s' is not a git repository", shown);
		return abx_err_remedy(err, DOWNLOAD_REMEDY);
	}
	if (r < 0)
		return abx_err_wrap(err, "fetch");
	r = list_known(&root, ask, &known, err);
	abx_fetch_host_close(&root);
	if (r == 0)
		r = ask_box(io, ask, &known, &f, err);
	if (r == 0 && !f.len) {
		(void)abx_err_set(err, ABX_ESTATE, "fetch: there is no git repository in the box");
		r = abx_err_remedy(err, DOWNLOAD_REMEDY);
	}
	if (r < 0) {
		abx_fetched_release(&f);
		return r;
	}
	/* What others name comes before those that name it. */
	for (size_t i = f.len; i-- > 0;)
		fetch_one(ask, &f, i);
	*ret = f;
	return 0;
}

int abx_fetch(struct abx_cloud *cloud, const struct abx_call_opts *o,
	      const struct abx_sandbox *sandbox, const struct abx_fetch_ask *ask,
	      struct abx_fetched *ret, struct abx_err *err)
{
	struct abx_box_of_cloud box = {cloud, o, sandbox};
	const struct abx_box_io io = abx_box_io_of_cloud(&box);

	return abx_fetch_io(&io, ask, ret, err);
}
