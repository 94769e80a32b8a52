/* SPDX-License-Identifier: MIT */
/* agentbox download */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/cli/changes.h"
#include "core/cli/workdir.h"
#include "core/seed/back-patch.h"
#include "core/state/lock.h"
#include "core/util/landing.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define PATCH_MAX ((size_t)1 << 30)
#define LOCK_WAIT_MS 30000

static void print_change(const struct abx_change *c)
{
	char shown[1024];

	abx_quote_text(c->path, shown, sizeof(shown));
	if (c->problem)
		(void)printf("%c %s: not brought back: %s\n", c->kind, shown, c->problem);
	else
		(void)printf("%c %s\n", c->kind, shown);
}

static size_t count_problems(const struct abx_changes *changes)
{
	size_t n = 0;

	for (size_t i = 0; i < changes->len; i++)
		n += changes->items[i].problem != NULL;
	return n;
}

static int report(struct abx_cli *cli, const struct abx_changes *changes, bool dry,
		  const char *workspace, struct abx_err *err)
{
	size_t n_problems = count_problems(changes);
	int r;

	if (cli->json) {
		/* The document names each problem; the exit code says that there is one. */
		r = abx_out_json(abx_changes_json(changes), err);
		return r < 0 ? r : n_problems != 0;
	} else {
		for (size_t i = 0; i < changes->len; i++)
			print_change(&changes->items[i]);
		if (!changes->len)
			r = abx_out_line(err, "nothing changed");
		else
			r = abx_out_line(err, "%zu %s %s", changes->len - n_problems,
					 dry ? "would come back to" : "came back to", workspace);
	}
	if (r == 0 && n_problems) {
		(void)abx_err_set(err, ABX_EIO, "%zu of %zu changes were not brought back",
				  n_problems, changes->len);
		for (size_t i = 0; i < changes->len; i++)
			if (changes->items[i].problem &&
			    abx_text_of_full_disk(changes->items[i].problem))
				(void)abx_err_remedy(err, "free some space in '%s'", workspace);
		return ABX_EIO;
	}
	return r;
}

struct job {
	struct abx_cli *cli;
	bool dry;
	struct abx_strv ignored;
	uint64_t max_file, max_total;
	const char *patch; /* a file, "-" for stdout, or NULL */
};

static int write_file(struct abx_cli *cli, const char *path, const struct abx_buf *text)
{
	struct abx_landing l = ABX_LANDING_INIT;
	const char *name;
	int r;

	l.notes = cli->app.notes;
	r = abx_landing_begin_at(&l, path, 0666, &name);
	if (r == 0)
		r = abx_fs_write_all(l.fd, abx_buf_str(text), text->len);
	if (r == 0)
		r = abx_landing_land(&l, name);
	abx_landing_close(&l);
	return r;
}

/* Whole or not at all; what is left out is said on stderr, for stdout may be the patch. */
static int patch(struct job *job, struct abx_changes_session *s, struct abx_changes *found,
		 const char *tmp, struct abx_err *err)
{
	const bool to_stdout = strcmp(job->patch, "-") == 0;
	abx_autofree char *path = abx_xasprintf("%s/patch", tmp);
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(PATCH_MAX);
	abx_autoclose int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t n_problems;
	int r;

	if (fd < 0)
		return abx_err_errno(err, errno, "write '%s'", path);
	r = abx_back_patch(s->cloud, &s->opts, &s->sandbox, &s->back, tmp, found, fd, err);
	if (r < 0)
		return r;
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : abx_buf_read_fd(&text, fd);
	if (r == 0 && to_stdout)
		r = abx_fs_write_all(STDOUT_FILENO, abx_buf_str(&text), text.len);
	else if (r == 0)
		r = write_file(job->cli, job->patch, &text);
	if (r < 0)
		return abx_err_errno(err, -r, "write the patch '%s'", job->patch);
	for (size_t i = 0; i < found->len; i++) {
		char shown[1024];

		if (!found->items[i].problem)
			continue;
		abx_quote_text(found->items[i].path, shown, sizeof(shown));
		abx_warn("%s: not in the patch: %s", shown, found->items[i].problem);
	}
	n_problems = count_problems(found);
	return n_problems ? abx_err_set(err, ABX_EIO, "%zu of %zu changes are not in the patch",
					n_problems, found->len)
			  : 0;
}

static int make_patch(struct job *job, struct abx_changes_session *s, struct abx_changes *found,
		      struct abx_err *err)
{
	struct abx_workdir dir = ABX_WORKDIR_INIT;
	int r = abx_workdir_open(&job->cli->app.home, s->box, ABX_WORKDIR_PATCH, &dir, err);

	if (r == 0)
		r = patch(job, s, found, dir.path, err);
	abx_workdir_close(&dir);
	return r;
}

/* Between a look at a file and its landing nothing else that comes back may land there. */
static int apply(struct job *job, struct abx_changes_session *s, struct abx_changes *found,
		 struct abx_err *err)
{
	const char *workspace = s->back.workspace;
	abx_autoclose int lock = -1;

	/* Where directories cannot be locked it goes on without. */
	if (abx_lock_dir(workspace, LOCK_WAIT_MS, &lock) == -EWOULDBLOCK) {
		char shown[300];

		abx_quote_text(workspace, shown, sizeof(shown));
		(void)abx_err_set(err, ABX_EEXIST,
				  "workspace '%s': another download into it is under way", shown);
		return abx_err_remedy(err, "wait until it is done");
	}
	return abx_back_apply(s->cloud, &s->opts, &s->sandbox, &s->back, found, abx_progress_show,
			      job->cli, err);
}

static int bring_back(struct job *job, struct abx_changes_session *s, struct abx_changes *found,
		      struct abx_err *err)
{
	struct abx_cli *cli = job->cli;
	size_t n_good;
	int r;

	s->back.ignored = (const char *const *)job->ignored.items;
	s->back.max_file = job->max_file;
	s->back.max_total = job->max_total;
	r = abx_back_changes(s->cloud, &s->opts, &s->sandbox, &s->back, found, err);
	if (r < 0)
		return r;
	if (job->patch)
		return make_patch(job, s, found, err);
	n_good = found->len - count_problems(found);
	if (!job->dry && (n_good || found->n_have)) {
		if (!cli->json && !cli->yes)
			for (size_t i = 0; i < found->len; i++)
				print_change(&found->items[i]);
		if (n_good)
			r = abx_ask(cli, err, "bring %zu changes back to %s", n_good,
				    s->back.workspace);
		if (r == 0)
			r = apply(job, s, found, err);
		abx_progress_end(cli);
	}
	return r < 0 ? r : report(cli, found, job->dry, s->back.workspace, err);
}

static int work(void *ctx, struct abx_changes_session *s, struct abx_err *err)
{
	struct abx_changes found = {0};
	int r = bring_back(ctx, s, &found, err);

	abx_changes_release(&found);
	return r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct job job = {.cli = cli};
	const struct abx_opt opts[] = {
		{0, "dry-run", ABX_OPT_KIND_FLAG, &job.dry, NULL, "only say what would come back"},
		{0, "include-ignored", ABX_OPT_KIND_LIST, &job.ignored, "PATTERN",
		 "ignored files that come too, as in .gitignore"},
		{0, "max-file", ABX_OPT_KIND_SIZE, &job.max_file, "SIZE",
		 "larger files stay in the box (16G)"},
		{0, "max-total", ABX_OPT_KIND_SIZE, &job.max_total, "SIZE",
		 "more than this in all does (64G)"},
		{0, "patch", ABX_OPT_KIND_TEXT, &job.patch, "FILE",
		 "write a patch for git apply instead (-: to stdout)"},
		{0}};
	const char *what;
	int r = abx_opts_one_box(cli, opts, argc, argv, &what, err);

	if (r == ABX_OPTS_GO && job.patch && (job.dry || cli->json))
		r = abx_usage(cli, err, "--patch goes with neither --dry-run nor --json");
	else if (r == ABX_OPTS_GO)
		r = abx_changes_run(cli, what,
				    job.dry || job.patch ? ABX_CHANGES_READ : ABX_CHANGES_APPLY,
				    work, &job, err);
	abx_strv_release(&job.ignored);
	return r;
}

const struct abx_cmd abx_cmd_download = {
	.name = "download",
	.usage = "[BOX] [--dry-run] [--patch FILE] [--include-ignored PATTERN] [--json] [-y]",
	.summary = "Bring the changes of a box back into the project.",
	.help = "Added, changed and deleted files come back as they are in the box; ignored ones\n"
		"do not.  A file that was changed here since the box was made is left alone and\n"
		"named, and so is what is no file of a project; the exit code is then 1.\n",
	.run = run,
};
